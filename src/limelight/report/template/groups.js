// The same for groups of items: the share of all exposure that each has, beside its share of the
// catalogue and what it should have.
function groups(report) {
  const all = report.groups;
  if (!all?.label.length || !report.points.some((point) => point.groups)) return null;
  const section = byId("groups");
  const before = report.base?.groups ?? null;
  const bound = Boolean(all.floor || all.cap);
  let after = null;
  let largest = 0;
  const gain = (row) => gained(after?.[row], before?.[row]);
  const share = (name, of, options = {}) => ({
    name, numeric: true, help: "share of all exposure",
    value: (row) => of()?.[row] ?? null, cell: (row) => percent(of()?.[row] ?? null, 2), ...options,
  });
  const ratio = (row) => (known(after?.[row]) && all.catalogue[row] > 0 ? after[row] / all.catalogue[row] : null);
  const outside = (row) => outsideBounds(all, row, after?.[row]);
  const columns = [
    { name: "Group", value: (row) => all.label[row], cell: (row) => named(all.label[row]) },
    all.items && { name: "Items", numeric: true, minor: true, value: (row) => all.items[row], cell: (row) => count(all.items[row]) },
    before && share("Before", () => before),
    share(before ? "After" : "Exposure", () => after),
    all.catalogue && share("Catalogue", () => all.catalogue, { help: "share of the items" }),
    all.catalogue && {
      name: "Ratio", numeric: true, help: "share of the exposure over share of the items", value: ratio,
      cell: (row) => (known(ratio(row)) ? decimals(ratio(row), 2) : MISSING),
    },
    all.floor && share("Floor", () => all.floor, { help: "share of the exposure that it should have" }),
    all.cap && share("Cap", () => all.cap, { help: "share of the exposure that it should not exceed" }),
    bound && {
      name: "Missed by", numeric: true, help: "percentage points outside its bounds", value: outside,
      cell: (row) => outsideCell(outside(row)),
    },
    before && {
      name: "Change, points", numeric: true, help: "in percentage points", value: gain,
      cell: (row) => changeCell(gain(row), signed(100 * gain(row), 2), Math.abs(gain(row)) / (largest || 1)),
    },
  ].filter(Boolean);
  const wanted = bound ? "Missed by" : before ? "Change, points" : "Exposure";
  const arrange = openTable(section.querySelector(".rows"), {
    name: "groups", columns, rows: all.label.length, sortBy: columns.findIndex(({ name }) => name === wanted),
    texts: all.label.map(folded),
  });
  fill(section.querySelector(".note"), report.groups_note);
  if (!before) fill(section.querySelector("h2"), "Groups");
  show(section);
  return () => {
    after = report.point.groups;
    largest = all.label.reduce((most, _, row) => Math.max(most, Math.abs(gain(row) ?? 0)), 0);
    fill(section.querySelector(".lead"), groupsSay(all, bound ? outside : null));
    arrange();
  };
}

// How far a share is outside the bounds of its group; nothing where it has none.
function outsideBounds(all, row, share) {
  const [floor, cap] = [all.floor?.[row], all.cap?.[row]];
  if (!known(share) || (!known(floor) && !known(cap))) return null;
  const far = Math.max(known(cap) ? share - cap : 0, known(floor) ? floor - share : 0);
  return far > 1e-4 * share ? far : 0; // shares are rounded to four digits
}

function outsideCell(far) {
  if (!known(far)) return "";
  return far > 0 ? make("strong", { class: "missed" }, decimals(100 * far, 2)) : make("span", { class: "badge met" }, "met");
}

function groupsSay(all, outside) {
  const says = "Share of all exposure that the items of each group have together.";
  if (!outside) return says;
  const rows = all.label.map((_, row) => outside(row)).filter(known);
  const missed = rows.filter((far) => far > 0).length;
  return `${says} ${missed ? `Outside their bounds: ${count(missed)} of ${plural(rows.length, "group")}.` : "All bounds are met."}`;
}
