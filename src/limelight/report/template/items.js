// Who gains and who loses: every item of the page, in multiples of the share it would have if all
// items had the same.
function items(report) {
  const { label, id, group, interactions } = report.items;
  if (!label.length || !report.points.some((point) => point.exposure)) return null;
  const section = byId("items");
  const texts = label.map((text, row) => [text, id[row], group?.[row] ?? ""].join("\n").toLowerCase());
  const moves = itemMoves(report);
  const columns = [
    { name: "Item", value: (row) => label[row], cell: (row) => itemName(report, row) },
    group && { name: "Group", minor: true, value: (row) => group[row], cell: (row) => (group[row] ? named(group[row]) : "") },
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

function itemName({ items: { label, id } }, row) {
  const name = named(label[row]);
  return id[row] === label[row] ? name : make("span", {}, name, make("small", {}, named(id[row])));
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
    return report.isBase ? SCALE : movesSay(before, after);
  };
  return { columns, update };
}

// A few items have hundreds of times the share of most, so bars grow with the order of magnitude.
const barSize = (value, largest) => Math.log1p(Math.abs(value)) / Math.log1p(largest || 1);

function movesSay(before, after) {
  const moves = { gain: 0, lose: 0, enter: 0 };
  before.forEach((old, row) => {
    const gain = gained(after[row], old);
    if (gain > 0) moves.gain += 1;
    if (gain < 0) moves.lose += 1;
    if (after[row] > 0 && old === 0) moves.enter += 1;
  });
  const enter = moves.enter ? `; ${count(moves.enter)} that nobody was shown before are seen` : "";
  return `Of ${plural(before.length, "item")}, ${count(moves.gain)} gain exposure and ${count(moves.lose)} lose${enter}. ${SCALE}`;
}
