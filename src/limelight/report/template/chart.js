// What all charts share: size, axes, colours, tooltips. A chart is a picture with a description in
// words; what can be done in it with a mouse can be done with the keyboard beside it.
const PRINTED = 640; // pixels: what paper of any usual size has room for

function openChart(host) {
  host.setAttribute("role", "img");
  const chart = charts.init(host, null, { renderer: "svg" });
  new ResizeObserver(() => chart.resize()).observe(host);
  addEventListener("beforeprint", () => chart.resize({ width: PRINTED }));
  addEventListener("afterprint", () => chart.resize({ width: "auto" }));
  return {
    on: (event, handler) => chart.on(event, handler),
    draw(description, option) {
      host.setAttribute("aria-label", description);
      chart.setOption({ ...frame(), ...option }, { replaceMerge: ["series"] });
    },
  };
}

function frame() {
  return {
    animation: !CALM.matches && !PRINT.matches,
    animationDuration: 0,
    animationDurationUpdate: 250,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: {
      left: 6, right: 16, top: 14, bottom: 6, outerBoundsMode: "same", outerBoundsContain: "all",
    },
  };
}

const ACROSS = { nameGap: 28 }; // room for the numbers above the name of a horizontal axis

function axis(name, options = {}) {
  return {
    type: "value",
    name,
    nameLocation: "middle",
    nameGap: 10,
    nameTextStyle: { color: colour("muted"), fontSize: 12 },
    axisLine: { show: true, lineStyle: { color: colour("line") } },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: colour("grid") } },
    minorTick: { show: false },
    ...options,
    axisLabel: {
      color: colour("muted"), fontSize: 12, hideOverlap: true, ...options.axisLabel,
    },
  };
}

// A tooltip's content is a node, never a string: ECharts would parse a string as HTML.
function tooltip(trigger, content) {
  return {
    trigger,
    confine: true,
    transitionDuration: 0,
    backgroundColor: colour("card"),
    borderColor: colour("line"),
    textStyle: { color: colour("ink"), fontSize: 13 },
    extraCssText: "max-width: min(22rem, 80vw); white-space: normal;",
    axisPointer: { type: "line", lineStyle: { color: colour("muted"), type: "solid" }, label: { show: false } },
    formatter: content,
  };
}

function tip(title, rows) {
  const lines = rows.map(([name, value]) => make("tr", {}, make("th", {}, named(name)), make("td", {}, named(value))));
  return make("div", { class: "tip" }, make("strong", {}, title), make("table", {}, ...lines));
}

function line(id, { name, data, ...style }, options = {}) {
  return {
    id,
    name,
    type: "line",
    data,
    showSymbol: false,
    symbol: style.symbol ?? "circle",
    symbolSize: 7,
    lineStyle: { color: colour(style.colour), width: 2, type: style.dash },
    itemStyle: { color: colour(style.colour) },
    emphasis: { disabled: true },
    ...options,
  };
}

// Two curves over the same places: the base, dashed, and the point shown now.
function curves(report, key, places) {
  const pairs = (point) => places.map((place, index) => [place, point[key][index]]);
  const now = { name: report.point.label, ...report.methods.get(report.point.method), dash: "solid" };
  const entries = [{ ...now, symbol: null, data: report.point[key] && pairs(report.point) }];
  if (report.base?.[key] && !report.isBase) {
    const before = { name: report.base.label, colour: "ink", dash: [5, 4] };
    entries.unshift({ ...before, data: pairs(report.base) });
  }
  return entries.filter(({ data }) => data);
}
