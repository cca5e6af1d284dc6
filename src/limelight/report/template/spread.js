// How the exposure is spread over the items: the Lorenz curve, and exposure by rank.
function lorenz(report) {
  if (!report.points.some((point) => point.lorenz)) return null;
  const figure = byId("lorenz");
  show(byId("spread"));
  show(figure);
  const chart = openChart(figure.querySelector(".chart"));
  return () => {
    const found = curves(report, "lorenz", report.lorenz_x);
    const even = { name: "all items equal", colour: "muted", dash: [2, 3], data: [[0, 0], [1, 1]] };
    const says = lorenzSays(report);
    fill(figure.querySelector("figcaption"), says);
    legend(figure.querySelector(".legend"), [...found, even]);
    chart.draw(`Lorenz curves of ${found.map(({ name }) => visible(name, 80)).join(" and ")}. ${says}`, {
      xAxis: axis("Items, from the least to the most exposed", { ...shares(), ...ACROSS }),
      yAxis: axis("Share of all exposure they hold", shares()),
      tooltip: tooltip("axis", curveTip((x) => `The least exposed ${percent(x)} of the items hold`, (share) => percent(share))),
      series: [line("even", even), ...found.map((entry, index) => line(`curve ${index}`, entry))],
    });
  };
}

// The same from the other end, on a logarithmic axis: where a few items hold nearly all, the Lorenz
// curve lies in a corner, and this one does not.
function topShares(report) {
  if (!report.points.some((point) => point.lorenz)) return null;
  const figure = byId("top");
  show(figure);
  const chart = openChart(figure.querySelector(".chart"));
  return () => {
    const found = curves(report, "lorenz", report.lorenz_x).map((entry) => (
      { ...entry, data: entry.data.filter(([x]) => x < 1).map(([x, share]) => [1 - x, 1 - share]).reverse() }
    ));
    legend(figure.querySelector(".legend"), found);
    chart.draw("Share of all exposure that the most exposed items hold, by how many they are.", {
      xAxis: logAxis("The most exposed items, of all", { max: 1, min: found[0]?.data[0]?.[0], axisLabel: { formatter: tinyPercent }, ...ACROSS }),
      yAxis: axis("Share of all exposure they hold", shares()),
      tooltip: tooltip("axis", curveTip((x) => `The top ${tinyPercent(x)} of the items hold`, (share) => percent(share))),
      series: found.map((entry, index) => line(`top ${index}`, entry)),
    });
  };
}

const tinyPercent = (share) => `${power(Number((100 * share).toPrecision(2)))}${NO_BREAK}%`;

const shares = () => ({ min: 0, max: 1, axisLabel: { formatter: (value) => percent(value, 0) } });

function lorenzSays({ point, base, isBase, lorenz_x: places }) {
  if (!point.lorenz) return "Not known for this point.";
  const top = ({ lorenz: curve }) => percent(1 - between(places, curve, 0.99));
  const compared = base?.lorenz && !isBase;
  const before = compared ? `, instead of ${top(base)}` : "";
  return `The top 1${NO_BREAK}% of the items hold ${top(point)} of the exposure${before}.${halfSays(point, compared ? base : null)}`;
}

function halfSays({ half_held_by: holders }, base) {
  if (!known(holders)) return "";
  const before = known(base?.half_held_by) ? `, instead of ${count(base.half_held_by)}` : "";
  return ` Half of it goes to ${plural(holders, "item")}${before}.`;
}

// Linear interpolation in a curve over ascending places.
function between(places, values, at) {
  const after = Math.max(1, places.findIndex((place) => place >= at));
  const part = (at - places[after - 1]) / (places[after] - places[after - 1]);
  return values[after - 1] + part * (values[after] - values[after - 1]);
}

function ranks(report) {
  if (!report.points.some((point) => point.by_rank)) return null;
  const figure = byId("ranks");
  show(byId("spread"));
  show(figure);
  const chart = openChart(figure.querySelector(".chart"));
  return () => {
    const found = curves(report, "by_rank", report.ranks).map((entry) => (
      { ...entry, data: entry.data.filter(([, value]) => value > 0) }
    ));
    const says = ranksSay(report);
    fill(figure.querySelector("figcaption"), says);
    legend(figure.querySelector(".legend"), found);
    chart.draw(`Exposure of the item at each rank. ${says}`, {
      xAxis: logAxis("Rank of the item, most exposed first", ACROSS),
      yAxis: logAxis("Exposure, equal share = 1"),
      tooltip: tooltip("axis", curveTip((rank) => `The item at rank ${count(rank)} has`, times)),
      series: found.map((entry, index) => line(`curve ${index}`, entry)),
    });
  };
}

function ranksSay({ point, base, isBase }) {
  if (!point.by_rank) return "Not known for this point.";
  const before = base?.by_rank && !isBase ? `, instead of ${three(base.by_rank[0])}` : "";
  return `The most exposed item has ${three(point.by_rank[0])} times the equal share${before}.`;
}

const logAxis = (name, options = {}) => axis(name, { type: "log", axisLabel: { formatter: (value) => power(value) }, ...options });

function curveTip(title, text) {
  return (marks) => {
    const shown = marks.filter(({ seriesId }) => seriesId !== "even");
    if (!shown.length) return null;
    return tip(title(shown[0].value[0]), shown.map(({ seriesName, value }) => [seriesName, text(value[1], seriesName)]));
  };
}
