// One card for each figure: its value, its interval, and how far it is from the base.
function figures(report) {
  const metrics = report.metrics.filter((metric) => report.points.some((point) => known(valueOf(point, metric))));
  if (!metrics.length) return null;
  const section = byId("figures");
  const cards = metrics.map((metric) => card(report, metric));
  fill(section.querySelector(".cards"), ...cards.map(({ element }) => element));
  show(section);
  show(section.querySelector(".note"), report.base !== null && report.points.length > 1);
  fill(byId("intervals"), report.intervals_note ?? "");
  show(byId("intervals"), !blank(report.intervals_note));
  const paired = report.points.some(({ changes }) => Object.keys(changes ?? {}).length);
  if (paired) fill(section.querySelector(".chance"), " “Better” and “worse” are shown only where the interval of the change does not hold 0.");
  section.classList.toggle("with-intervals", metrics.some((metric) => hasIntervals(report, metric)));
  const lead = section.querySelector(".lead");
  show(lead, report.points.length > 1);
  hold(lead, report.points.map(({ sentence }) => sentence));
  return () => {
    // The headline says the sentence of the chosen point.
    const isChosen = report.index === report.chosen;
    fill(lead, make("bdi", {}, isChosen ? CHOSEN : report.point.sentence));
    fill(byId("over"), `Exposure is measured over ${cut(report.point.over)}.`);
    show(byId("over"), !blank(report.point.over));
    cards.forEach((one) => one.draw());
  };
}

const CHOSEN = "The point that the headline is about.";

const hasIntervals = ({ points }, { key }) => points.some(({ figures: all }) => known(all[key]?.[1]));

function card(report, metric) {
  const [value, range, moved, changed] = ["value", "range", "moved", "range changed"].map((name) => make("p", { class: name }));
  show(changed, report.points.some(({ changes }) => changes?.[metric.key]));
  const judgement = make("span", { class: "badge" });
  const strip = makeStrip(report, metric);
  const element = make(
    "li", {}, make("h3", {}, metric.label, " ", judgement), value, moved, range, changed, strip.element,
    make("p", { class: "help" }, metric.help ?? ""),
  );
  const draw = () => {
    const now = report.point.figures[metric.key] ?? [null, null, null];
    const before = report.isBase ? null : valueOf(report.base, metric);
    const step = report.isBase ? [] : report.point.changes?.[metric.key] ?? [];
    // Where changes have intervals, one that has none may be chance.
    const unsure = report.point.changes && !step.length;
    const judged = unsure ? "" : verdict(metric, now, before, step);
    const text = change(metric, now[0], before);
    fill(value, figure(metric, now[0]));
    fill(range, interval(metric, now) || " ");
    fill(changed, changeInterval(metric, step) || " ");
    fill(moved, arrow(now[0], before), text || " ");
    fill(judgement, report.isBase ? "base" : judged);
    element.dataset.verdict = judged;
    strip.draw();
  };
  return { element, draw };
}

function arrow(value, before) {
  if (!known(value) || !known(before) || value === before) return "";
  return value < before ? "▼ " : "▲ ";
}

// Where the value stands among those of all points.
function makeStrip(report, metric) {
  const values = report.points.map((point) => valueOf(point, metric)).filter(known);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const element = make("div", { class: "strip", "aria-hidden": "true" });
  if (high === low) return { element: make("div", { class: "strip empty" }), draw() {} };
  const place = (kind, value) => {
    const mark = make("span", { class: kind });
    mark.style.setProperty("--at", (value - low) / (high - low));
    show(mark, known(value));
    return mark;
  };
  const now = place("now", null);
  element.append(place("then", valueOf(report.base, metric)), now);
  return {
    element,
    draw() {
      const value = valueOf(report.point, metric);
      show(now, known(value));
      now.style.setProperty("--at", (value - low) / (high - low));
    },
  };
}
