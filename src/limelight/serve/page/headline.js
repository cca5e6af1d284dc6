// What the window holds in one sentence, and a card for each figure.
const NEAR = 0.01; // of the target: what control is asked to keep

const aimOf = ({ target }) => (known(target?.gini) ? target.gini : null);

function headline(live) {
  const cards = CARDS.map(liveCard);
  fill(document.querySelector("#figures .cards"), ...cards.map(({ element }) => element));
  return () => {
    fill(byId("headline"), headlineSays(live.now));
    cards.forEach((card) => card.draw(live.now));
  };
}

function headlineSays(now) {
  const over = now.window_seconds > 0 ? ` of the last ${span(now.window_seconds)}` : "";
  if (!now.lists) return `Nothing was shown${over ? over.replace(" of", " in") : ""}.`;
  const aim = aimOf(now);
  const asked = aim === null ? "" : `; the target is ${gini(aim)}`;
  return `The Gini of exposure over ${plural(Math.round(now.lists), "list")}${over} is ${gini(now.gini)}${asked}.`;
}

// { name, value(now), help(now), judge(now) -> [word, whether it is good] }
const CARDS = [
  { name: "Gini", value: (now) => gini(now.gini), help: giniHelp, judge: onTarget },
  { name: "Strength", value: (now) => three(now.strength), help: () => "Of the control, in units of a place's mean relevance." },
  { name: "Coverage", value: (now) => percent(now.coverage), help: () => "The share of the items that any list showed." },
  { name: "Relevance lost", value: (now) => percent(now.relevance_loss, 2), help: () => "Against the lists that users would get without control." },
  { name: "Lists a second", value: (now) => three(now.requests_per_second), help: () => "Over the last minute." },
  {
    name: "Latency, p99", value: (now) => ms(now.latency_ms?.p99),
    help: (now) => (known(now.latency_ms?.p50) ? `Over the last minute; half take less than ${ms(now.latency_ms.p50)}.` : "Over the last minute."),
  },
];

function giniHelp(now) {
  const plain = known(now.gini_plain) ? `Without control ${gini(now.gini_plain)}. ` : "";
  const floor = known(now.gini_floor) ? `The lowest that these lists allow is ${gini(now.gini_floor)}.` : "";
  return plain + floor || "0 if all items have the same.";
}

function onTarget(now) {
  const aim = aimOf(now);
  if (aim === null || !known(now.gini)) return ["", true];
  if (Math.abs(now.gini - aim) <= NEAR) return ["on target", true];
  return [now.gini > aim ? "too high" : "too low", false];
}

function liveCard({ name, value, help, judge }) {
  const [badge, number, words] = [make("span", { class: "badge" }), make("p", { class: "value" }), make("p", { class: "help" })];
  const element = make("li", {}, make("h3", {}, name, ...(judge ? [" ", badge] : [])), number, words);
  const draw = (now) => {
    const [word, good] = judge?.(now) ?? ["", true];
    fill(number, value(now));
    fill(words, help(now));
    fill(badge, word);
    element.dataset.verdict = good ? "good" : "bad";
  };
  return { element, draw };
}
