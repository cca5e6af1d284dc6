// The trade-off: accuracy against inequality, one line for each method. A point is chosen with the
// mouse in the chart, or in the list beside it.
function front(report) {
  const { axes, points } = report;
  if (!axes) return null;
  const placed = points.flatMap((point, index) => (
    known(valueOf(point, axes.x)) && known(valueOf(point, axes.y)) ? [index] : []
  ));
  if (placed.length < 2) return null;
  const section = byId("front");
  show(section);
  legend(section.querySelector(".legend"), [...report.methods].map(([name, style]) => ({ name, ...style })));
  fill(section.querySelector(".lead"), frontLead(report));
  const radios = pointList(report, section);
  const chart = openChart(section.querySelector(".chart"));
  chart.on("click", ({ data }) => data?.index !== undefined && report.choose(data.index));
  return () => {
    radios[report.index].checked = true;
    reveal(radios[report.index].closest("tr"), section.querySelector(".scroll"));
    chart.draw(frontDescription(report), frontOption(report, placed));
  };
}

function frontLead(report) {
  const { base, axes } = report;
  const compared = base ? " Each point is one setting; the base is marked." : " Each point is one setting.";
  const bars = hasIntervals(report, axes.y) ? ` Grey bars are 95${NO_BREAK}% intervals.` : "";
  return `Up is more accurate, left is shared more evenly.${compared}${bars}`;
}

function frontDescription({ axes, points, point }) {
  const at = (metric) => `${metric.label} ${figure(metric, valueOf(point, metric))}`;
  return `${axes.y.label} against ${axes.x.label} of ${plural(points.length, "point")}. Shown now: ${nameOf(point)}, ${at(axes.y)}, ${at(axes.x)}.`;
}

function frontOption(report, placed) {
  const { axes, points } = report;
  const at = (index) => [valueOf(points[index], axes.x), valueOf(points[index], axes.y)];
  const lines = [...report.methods].map(([method, style]) => {
    const own = placed.filter((index) => points[index].method === method);
    const data = own.map((index) => pointMark(report, index, at(index), style));
    return line(`method ${method}`, { data, ...style }, { showSymbol: true, z: 3, emphasis: { scale: 1.4 } });
  });
  return {
    xAxis: frontAxis(`${axes.x.label} (further left: shared more evenly)`, axes.x, ACROSS),
    yAxis: frontAxis(axes.y.label, axes.y),
    tooltip: tooltip("item", ({ data }) => (data?.index === undefined ? null : pointTip(report, data.index))),
    series: [whiskers(report, placed), ...lines, ring(at(report.index)), ...baseMark(report, placed, at)],
  };
}

function frontAxis(name, metric, options = {}) {
  const text = (value) => (metric.percent ? `${power(100 * value)}${NO_BREAK}%` : power(value));
  return axis(name, { scale: true, splitNumber: 4, axisLabel: { formatter: text }, ...options });
}

// A point on the front is filled; one that another beats is hollow. The base has its own mark.
function pointMark(report, index, value, style) {
  if (index === report.baseIndex) return { value, symbol: "none" };
  const own = colour(style.colour);
  return {
    value,
    index,
    symbol: style.symbol,
    symbolSize: 10,
    itemStyle: { color: report.points[index].on_front ? own : colour("card"), borderColor: own, borderWidth: 1.5 },
  };
}

// Above all others, since weak settings lie close to it and would keep the mouse from it.
function baseMark({ baseIndex }, placed, at) {
  if (!placed.includes(baseIndex)) return [];
  return [{
    id: "base",
    type: "scatter",
    data: [{ value: at(baseIndex), index: baseIndex }],
    symbol: "diamond",
    symbolSize: 15,
    itemStyle: { color: colour("ink"), borderColor: colour("card"), borderWidth: 1 },
    emphasis: { scale: 1.4 },
    z: 5,
  }];
}

function ring(value) {
  return {
    id: "chosen",
    type: "scatter",
    data: known(value[0]) && known(value[1]) ? [value] : [],
    silent: true,
    symbol: "circle",
    symbolSize: 24,
    itemStyle: { color: "transparent", borderColor: colour("ink"), borderWidth: 2 },
    z: 4,
  };
}

// Intervals of accuracy, as one line with gaps.
function whiskers({ axes, points }, placed) {
  const data = placed.flatMap((index) => {
    const [, low, high] = points[index].figures[axes.y.key];
    const x = valueOf(points[index], axes.x);
    return known(low) && known(high) ? [[x, low], [x, high], [null, null]] : [];
  });
  return line("intervals", { data, colour: "whisker", dash: "solid" }, { silent: true, symbol: "none", z: 1 });
}

function pointTip({ metrics, points }, index) {
  const point = points[index];
  const values = metrics.filter(({ key }) => point.figures[key]).map((metric) => {
    const range = interval(metric, point.figures[metric.key]);
    return [metric.label, figure(metric, valueOf(point, metric)) + (range && ` (${range})`)];
  });
  return tip(named(point.label), [...values, ...point.settings]);
}

function pointList(report, section) {
  const { axes } = report;
  const heads = ["", "Point", axes.y.label, axes.x.label].map((text, index) => (
    index ? make("th", { scope: "col", class: index > 1 ? "number" : null }, text) : make("td")
  ));
  fill(section.querySelector("thead"), make("tr", {}, ...heads));
  const radios = report.points.map((point, index) => {
    const radio = make("input", { type: "radio", name: "point", value: index, id: `point-${index}` });
    radio.addEventListener("change", () => report.choose(index));
    return radio;
  });
  fill(section.querySelector("tbody"), ...report.points.map((point, index) => pointRow(report, index, radios[index])));
  return radios;
}

// Scrolls the list, and the list only, to a row that is out of sight.
function reveal(row, list) {
  const place = row.offsetTop - list.scrollTop;
  if (place < row.offsetHeight || place + row.offsetHeight > list.clientHeight) {
    list.scrollTop = row.offsetTop - list.clientHeight / 2;
  }
}

function pointRow(report, index, radio) {
  const { axes, points } = report;
  const point = points[index];
  const label = make("label", { for: radio.id }, named(point.label));
  const marks = make("td", {}, label);
  if (index === report.baseIndex) marks.append(" ", make("span", { class: "badge" }, "base"));
  else if (!point.on_front) marks.append(" ", make("span", { class: "badge" }, "beaten"));
  const numbers = [axes.y, axes.x].map((metric) => make("td", { class: "number" }, figure(metric, valueOf(point, metric))));
  return make("tr", {}, make("td", {}, radio), marks, ...numbers);
}
