// How the solver converged: objectives as they are, residuals on a logarithmic axis.
const NOT_DRAWN = ["epoch", "seconds"];

const isResidual = (key) => key.startsWith("residual") || key === "feasibility";

function solver(report) {
  const keys = [...new Set(report.points.flatMap(({ trace }) => (trace ?? []).flatMap(Object.keys)))];
  const drawn = keys.filter((key) => !NOT_DRAWN.includes(key));
  if (!drawn.length) return null;
  const section = byId("solver");
  show(section);
  const draws = [
    traceChart(report, byId("objective"), drawn.filter((key) => !isResidual(key)), false),
    traceChart(report, byId("residuals"), drawn.filter(isResidual), true),
  ];
  return () => {
    const epochs = report.point.trace?.length ? report.point.trace.at(-1).epoch : 0;
    const says = epochs ? `, ${plural(epochs, "epoch")}.` : ": nothing was traced.";
    fill(section.querySelector(".lead"), named(report.point.label), says);
    draws.forEach((drawOne) => drawOne?.());
  };
}

function traceChart(report, host, keys, logarithmic) {
  if (!keys.length) return null;
  show(host);
  const chart = openChart(host.querySelector(".chart"));
  const styles = keys.map((key, index) => ({
    name: traceName(key),
    colour: `series-${index % COLOURS}`,
    symbol: SYMBOLS[index % SYMBOLS.length],
    dash: DASHES[index % DASHES.length],
  }));
  legend(host.querySelector(".legend"), styles);
  return () => {
    const trace = report.point.trace ?? [];
    const entries = keys.map((key, index) => ({ ...styles[index], data: traceOf(trace, key, logarithmic) }));
    const last = entries.filter(({ data }) => data.length).map(({ name, data }) => `${name} ${power(data.at(-1)[1])}`);
    const value = { scale: true, axisLabel: { formatter: power } };
    chart.draw(last.length ? `At the end: ${last.join(", ")}.` : "Nothing was traced.", {
      xAxis: axis("Epoch", { minInterval: 1, ...ACROSS }),
      yAxis: logarithmic ? logAxis("") : axis("", value),
      tooltip: tooltip("axis", curveTip((epoch) => `Epoch ${count(epoch)}`, power)),
      series: entries.map((entry, index) => line(`trace ${index}`, entry, { showSymbol: trace.length < 30 })),
    });
  };
}

const traceName = (key) => key.replace("_", " ");

function traceOf(trace, key, logarithmic) {
  const data = trace.map((record) => [record.epoch, record[key]]);
  return data.filter(([, value]) => known(value) && (!logarithmic || value > 0));
}
