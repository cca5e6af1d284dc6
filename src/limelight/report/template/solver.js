// How the solver converged: objectives as they are, residuals on a logarithmic axis.
const NOT_DRAWN = ["epoch", "seconds"];

// The same series looks the same on every page; what is not named here comes after.
const TRACED = ["objective", "lagrangian", "residual_V", "residual_U", "residual_s", "residual_w", "feasibility"];

const isResidual = (key) => key.startsWith("residual") || key === "feasibility";

function solver(report) {
  const found = report.points.flatMap(({ trace }) => (trace ?? []).flatMap(Object.keys));
  const keys = [...new Set([...TRACED, ...found])].filter((key) => found.includes(key) && !NOT_DRAWN.includes(key));
  if (!keys.length) return null;
  const section = byId("solver");
  const styles = traceStyles(keys);
  const draws = [
    traceChart(byId("objective"), styles.filter(({ key }) => !isResidual(key)), false),
    traceChart(byId("residuals"), styles.filter(({ key }) => isResidual(key)), true),
  ];
  return () => {
    const point = [report.point, report.base].find((one) => one?.trace?.length > 1);
    show(section, point !== undefined);
    if (!point) return;
    fill(section.querySelector(".lead"), ...solverSays(report.point, point));
    draws.forEach((drawOne) => drawOne(point.trace));
  };
}

function traceStyles(keys) {
  const order = [...new Set([...TRACED, ...keys])];
  return keys.map((key) => {
    const index = order.indexOf(key);
    return {
      key,
      name: key.replace("_", " "),
      colour: `series-${index % COLOURS}`,
      symbol: SYMBOLS[index % SYMBOLS.length],
      dash: DASHES[index % DASHES.length],
    };
  });
}

function solverSays(point, traced) {
  const epochs = `, ${plural(traced.trace.at(-1).epoch, "epoch")}.`;
  if (point === traced) return [named(point.label), epochs];
  return [named(point.label), " has no trace of its own. Shown is the base: ", named(traced.label), epochs];
}

function traceChart(host, styles, logarithmic) {
  let chart = null;
  return (trace) => {
    const entries = styles.map((style) => ({ ...style, data: traceOf(trace, style.key, logarithmic) }));
    const drawn = entries.filter(({ data }) => data.length > 1); // one dot is no curve
    show(host, drawn.length > 0);
    if (!drawn.length) return;
    chart ??= openChart(host.querySelector(".chart")); // takes its size from what is shown
    legend(host.querySelector(".legend"), drawn);
    const texts = new Map(drawn.map(({ name, data }) => [name, traceText(data, logarithmic)]));
    const last = drawn.map(({ name, data }) => `${name} ${texts.get(name)(data.at(-1)[1])}`);
    chart.draw(`At the end: ${last.join(", ")}.`, {
      xAxis: axis("Epoch", { minInterval: 1, ...ACROSS }),
      yAxis: logarithmic ? logAxis("") : axis("", { scale: true, axisLabel: { formatter: tickText(drawn) } }),
      tooltip: tooltip("axis", curveTip((epoch) => `Epoch ${count(epoch)}`, (value, name) => texts.get(name)(value))),
      series: drawn.map((entry) => line(`trace ${entry.key}`, entry, { showSymbol: trace.length < 30 })),
    });
  };
}

// One epoch differs from the next in what is written of them.
function traceText(data, logarithmic) {
  if (logarithmic) return (value) => power(value, 3);
  const values = data.map(([, value]) => value);
  const steps = values.slice(1).map((value, index) => Math.abs(value - values[index])).filter(Boolean);
  return telling(values, Math.min(Math.abs(values[0]) / 1000 || 1, ...steps));
}

function tickText(entries) {
  const values = entries.flatMap(({ data }) => data.map(([, value]) => value));
  const span = Math.max(...values) - Math.min(...values);
  return telling(values, (span || Math.abs(values[0]) || 1) / 10);
}

function traceOf(trace, key, logarithmic) {
  const data = trace.map((record) => [record.epoch, record[key]]);
  return data.filter(([, value]) => known(value) && (!logarithmic || value > 0));
}
