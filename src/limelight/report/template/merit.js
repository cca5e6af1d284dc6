// The items whose exposure is furthest from what they earn, and how far all of it is.
function merit(report) {
  const { over = [], under = [], without = 0 } = report.findings?.merit ?? {};
  if (!over.length && !under.length) return null;
  const section = byId("merit");
  const share = (name, key) => ({ name, numeric: true, cell: (row) => percent(row[key], 2) });
  const columns = [
    { name: "Item", cell: meritName },
    share("Exposure", "exposure_share"),
    share("Merit", "merit_share"),
    { name: "Ratio", numeric: true, help: "exposure per merit: 1 is as earned", cell: ({ ratio }) => (known(ratio) ? decimals(ratio, 2) : MISSING) },
  ];
  for (const [id, name, rows] of [
    ["merit-over", "Items with the most exposure above their merit", over],
    ["merit-under", "Items with the most merit above their exposure", under],
  ]) {
    plainTable(byId(id).querySelector(".rows"), { name, columns, rows });
    show(byId(id), rows.length > 0);
  }
  show(section);
  return () => fill(section.querySelector(".lead"), meritSays(report, without));
}

function meritName({ item_id: id, title }) {
  if (blank(title)) return named(id);
  return make("span", {}, named(title), make("small", {}, named(id)));
}

function meritSays(report, without) {
  const value = (key) => report.point.figures[key]?.[0] ?? null;
  const move = `${percent(value("merit_distance"), 2)} of the exposure would have to move to match merit`;
  const order = `the rank correlation of both is ${known(value("merit_spearman")) ? decimals(value("merit_spearman"), 4) : MISSING}`;
  const none = without ? ` ${plural(without, "item")} without merit ${without === 1 ? "has" : "have"} ${percent(value("merit_none_share"), 2)} of the exposure.` : "";
  return `${move}; ${order}.${none} Shares are of all exposure, and of all merit.`;
}
