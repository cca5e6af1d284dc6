// The slider: one step for each point of a method, the base at its left end.
function control(report) {
  if (!report.ladders.length) return null;
  const section = byId("control");
  const [slider, select, result] = [byId("strength"), byId("method"), byId("result")];
  const ends = section.querySelectorAll(".ends span");
  let ladder = report.ladders[0];

  fill(section.querySelector(".strength label"), report.slider);
  fill(select, ...report.ladders.map(({ method }, index) => make("option", { value: index }, visible(method, 60))));
  show(byId("method-field"), report.ladders.length > 1);
  slider.addEventListener("input", () => report.choose(ladder.steps[slider.valueAsNumber]));
  select.addEventListener("change", () => {
    ladder = report.ladders[Number(select.value)];
    report.choose(ladder.steps[Math.min(slider.valueAsNumber, ladder.steps.length - 1)]);
  });
  show(section);

  return () => {
    if (!ladder.steps.includes(report.index)) {
      ladder = report.ladders.find(({ steps }) => steps.includes(report.index)) ?? ladder;
    }
    const labels = ladder.steps.map((index) => report.points[index].label);
    const step = ladder.steps.indexOf(report.index);
    select.value = report.ladders.indexOf(ladder);
    slider.max = ladder.steps.length - 1;
    slider.value = step;
    slider.style.setProperty("--done", step / (ladder.steps.length - 1));
    slider.setAttribute("aria-valuetext", `${nameOf(report.point)}, ${step + 1} of ${labels.length}`);
    fill(ends[0], named(labels[0]));
    fill(ends[1], named(labels.at(-1)));
    fill(result, make("strong", {}, named(report.point.label)), " ", ...summary(report));
  };
}

function summary(report) {
  const metrics = report.axes ? [report.axes.y, report.axes.x] : report.metrics.slice(0, 2);
  return metrics.map((metric) => {
    const value = valueOf(report.point, metric);
    const moved = report.isBase ? "" : change(metric, value, valueOf(report.base, metric));
    const text = `${metric.label} ${figure(metric, value)}${moved ? ` (${moved})` : ""}`;
    return make("span", { class: "figure" }, text);
  });
}
