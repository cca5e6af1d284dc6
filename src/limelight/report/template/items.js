// Who gains and who loses: every item of the page, in multiples of the share it would have if all
// items had the same.
function items(report) {
  const { label, id, group, interactions } = report.items;
  if (!label.length || !report.points.some((point) => point.exposure)) return null;
  const section = byId("items");
  const texts = label.map((text, row) => [text, id[row], group?.[row] ?? ""].join("\n")).map(folded);
  const moves = itemMoves(report);
  const columns = [
    { name: "Item", value: (row) => titleOf(report, row), cell: (row) => itemName(report, row) },
    group && { name: "Group", minor: true, value: (row) => group[row], cell: (row) => (blank(group[row]) ? "" : named(group[row])) },
    interactions && {
      name: "Interactions", help: "in the training data", numeric: true, minor: true,
      value: (row) => interactions[row], cell: (row) => count(interactions[row]),
    },
    ...moves.columns,
  ].filter(Boolean);
  const arrange = openTable(section.querySelector(".rows"), {
    name: "items", columns, rows: label.length, texts, sortBy: columns.length - 1,
  });
  fill(section.querySelector(".note"), report.items_note);
  if (!report.base?.exposure) fill(section.querySelector("h2"), "Items");
  show(section);
  return () => {
    fill(section.querySelector(".lead"), moves.update());
    arrange();
  };
}

const SCALE = "Exposure is in multiples of an equal share.";

function itemName(report, row) {
  const [title, id] = [titleOf(report, row), report.items.id[row]];
  const name = named(title);
  return id === title ? name : make("span", {}, name, make("small", {}, named(id)));
}

function itemMoves(report) {
  const before = report.base?.exposure ?? null;
  let after = null;
  let largest = 0;
  const at = (exposure, row) => exposure?.[row] ?? null;
  const gain = (row) => gained(after?.[row], before?.[row]);
  const exposure = (name, of) => ({
    name, numeric: true, help: "1 is as much as if all items had the same",
    value: (row) => at(of(), row), cell: (row) => three(at(of(), row)),
  });
  const columns = before
    ? [
        exposure("Before", () => before),
        exposure("After", () => after),
        {
          name: "Change", numeric: true, value: gain,
          cell: (row) => changeCell(gain(row), signed(gain(row), 2), barSize(gain(row), largest)),
        },
      ]
    : [exposure("Exposure", () => after)];
  const update = () => {
    after = report.point.exposure;
    if (!after) return "The exposure of items is not known for this point.";
    if (!before) return SCALE;
    largest = before.reduce((most, _, row) => Math.max(most, Math.abs(gain(row) ?? 0)), 0);
    return report.isBase ? SCALE : movesSay(report.point.counts ?? tally(before, after));
  };
  return { columns, update };
}

// A few items have hundreds of times the share of most, so bars grow with the order of magnitude.
const barSize = (value, largest) => Math.log1p(Math.abs(value)) / Math.log1p(largest || 1);

// What the rows of the table say, where nobody counted the whole catalogue.
function tally(before, after) {
  const gains = before.map((old, row) => gained(after[row], old));
  return {
    items: before.length,
    gained: gains.filter((gain) => gain > 0).length,
    lost: gains.filter((gain) => gain < 0).length,
    new: before.filter((old, row) => old === 0 && after[row] > 0).length,
  };
}

function movesSay(moves) {
  const enter = moves.new ? `; ${count(moves.new)} that were in no list before are shown` : "";
  return `Of ${plural(moves.items, "item")}, ${count(moves.gained)} gain exposure and ${count(moves.lost)} lose${enter}. ${SCALE}`;
}
