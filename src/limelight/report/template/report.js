// The report as its sections see it: the payload, the point shown now, and what to compare it with.
const SYMBOLS = ["circle", "rect", "triangle"];
const DASHES = ["solid", [8, 3], [2, 3]];
const COLOURS = 6;

function openReport(payload) {
  const { points } = payload;
  const base = payload.base === null ? null : points[payload.base];
  return {
    ...payload,
    base,
    baseIndex: payload.base,
    axes: frontAxes(payload),
    methods: methodStyles(points, base),
    ladders: ladders(points, payload.base),
    index: payload.chosen ?? 0,
    get point() {
      return points[this.index];
    },
    get isBase() {
      return this.index === this.baseIndex;
    },
  };
}

// Accuracy goes up, inequality to the right; where accuracy is unknown, so is what evenness costs.
function frontAxes({ metrics, points }) {
  const usable = metrics.filter(({ key }) => points.some(({ figures }) => known(figures[key]?.[0])));
  const y = usable.find(({ accuracy }) => accuracy);
  const x = usable.find(({ key }) => key === "gini") ?? usable.find(({ better }) => better === "lower");
  return x && y ? { x, y } : null;
}

function methodStyles(points, base) {
  const styles = new Map();
  if (base && points.filter(({ method }) => method === base.method).length === 1) {
    styles.set(base.method, { colour: "ink", symbol: "diamond", dash: [5, 4] });
  }
  let number = 0;
  for (const { method } of points) {
    if (styles.has(method)) continue;
    styles.set(method, {
      colour: `series-${number % COLOURS}`,
      symbol: SYMBOLS[number % SYMBOLS.length],
      dash: DASHES[number % DASHES.length],
    });
    number += 1;
  }
  return styles;
}

// The slider's steps, one ladder for each method: from the base to the strongest control.
function ladders(points, base) {
  const steps = new Map();
  points.forEach(({ method }, index) => {
    steps.set(method, [...(steps.get(method) ?? []), index]);
  });
  const all = [...steps].map(([method, own]) => ({
    method,
    steps: base === null || own.includes(base) ? own : [base, ...own],
  }));
  return all.filter((ladder) => ladder.steps.length > 1);
}

// What an item is called: its title, or its id where the title shows nothing.
const titleOf = ({ items: { label, id } }, row) => (blank(cut(label[row])) ? id[row] : label[row]);

const valueOf = (point, metric) => point?.figures[metric.key]?.[0] ?? null;

const nameOf = (point) => visible(point.label, 80);
