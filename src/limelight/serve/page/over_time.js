// What was measured over time: Gini against its target, strength, and what it costs.
function overTime(live) {
  const figures = [
    timeFigure("gini", "Gini over time", "Gini", "series-0", gini, giniLines),
    timeFigure("strength", "Strength over time", "Strength", "series-2", three, () => []),
    timeFigure("loss", "Cost over time", "Relevance lost", "series-1", (value) => percent(value, 2), () => []),
  ];
  return () => {
    figures.forEach((draw) => draw(live.now));
    show(byId("spread"), document.querySelector("#spread figure:not([hidden])") !== null);
  };
}

// Lines beside what was measured, with what they stand at.
const giniLines = (now) => [
  { name: "target", colour: "ink", dash: [5, 4], at: aimOf(now) },
  { name: "no control", colour: "muted", dash: [2, 3], at: now.gini_plain ?? null },
];

function timeFigure(key, title, name, colour, text, others) {
  const figure = addFigure(key, title);
  let chart = null;
  return (now) => {
    const data = now.history.filter((point) => known(point[key])).map((point) => [1000 * point.time, point[key]]);
    show(figure, data.length > 0);
    if (!data.length) return;
    show(byId("spread"));
    const [first, last] = [data[0][0], data.at(-1)[0]];
    const beside = others(now).filter(({ at }) => known(at)).map((line_) => ({ ...line_, data: [[first, line_.at], [last, line_.at]] }));
    const entries = [{ name, colour, dash: "solid", data }, ...beside];
    const times = timeText((last - first) / 1000);
    const says = timeSays(name, data, text);
    fill(figure.querySelector("figcaption"), says);
    legend(figure.querySelector(".legend"), entries);
    chart ??= openChart(figure.querySelector(".chart")); // takes its size from what is shown
    chart.draw(`${name} over time. ${says}`, {
      xAxis: axis("", { type: "time", min: first, max: last, axisLabel: { formatter: times } }),
      yAxis: axis("", { scale: true, axisLabel: { formatter: text } }),
      tooltip: tooltip("axis", curveTip((time) => clock(new Date(time), { ...DAY, ...TIME }), (value) => text(value))),
      series: entries.map((entry) => line(entry.name, entry, { sampling: "lttb", symbol: "none" })),
    });
  };
}

function timeSays(name, data, text) {
  const values = data.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)].map(text);
  const range = low === high ? "" : `, between ${low} and ${high} in the time shown`;
  return `${name} ${text(values.at(-1))}${range}.`;
}
