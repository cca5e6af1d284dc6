// The same for groups of items: the share of all exposure that each has.
function groups(report) {
  const all = report.groups;
  if (!all?.label.length || !report.points.some((point) => point.groups)) return null;
  const section = byId("groups");
  const before = report.base?.groups ?? null;
  let after = null;
  let largest = 0;
  const gain = (row) => gained(after?.[row], before?.[row]);
  const share = (name, of) => ({
    name, numeric: true, help: "share of all exposure",
    value: (row) => of()?.[row] ?? null, cell: (row) => percent(of()?.[row] ?? null, 2),
  });
  const columns = [
    { name: "Group", value: (row) => all.label[row], cell: (row) => named(all.label[row]) },
    all.items && { name: "Items", numeric: true, minor: true, value: (row) => all.items[row], cell: (row) => count(all.items[row]) },
    before && share("Before", () => before),
    share(before ? "After" : "Share of exposure", () => after),
    before && {
      name: "Change, points", numeric: true, help: "in percentage points", value: gain,
      cell: (row) => changeCell(gain(row), signed(100 * gain(row), 2), Math.abs(gain(row)) / (largest || 1)),
    },
  ].filter(Boolean);
  const arrange = openTable(section.querySelector(".rows"), {
    name: "groups", columns, rows: all.label.length, sortBy: columns.length - 1,
    texts: all.label.map(folded),
  });
  fill(section.querySelector(".note"), report.groups_note);
  fill(section.querySelector(".lead"), "Share of all exposure that the items of each group have together.");
  if (!before) fill(section.querySelector("h2"), "Groups");
  show(section);
  return () => {
    after = report.point.groups;
    largest = all.label.reduce((most, _, row) => Math.max(most, Math.abs(gain(row) ?? 0)), 0);
    arrange();
  };
}
