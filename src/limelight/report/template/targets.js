// What was asked of the lists, and whether they have it; groups outside their bounds by name.
function targets(report) {
  const all = report.findings?.targets ?? [];
  if (!all.length) return null;
  const section = byId("targets");
  const missed = all.filter(({ met }) => !met).length;
  fill(section.querySelector(".lead"), missed ? `Missed: ${count(missed)} of ${plural(all.length, "target")}.` : "All targets are met.");
  const number = ({ percent: isShare }, value) => (isShare ? percent(value, 2) : decimals(value, 4));
  const rows = all.flatMap((target) => [
    { ...target, name: target.says, result: target.met ? "met" : "missed" },
    ...target.missed.map((group) => ({ ...target, ...group, name: group.group, isGroup: true, found: group.share, result: "missed" })),
    ...moreMissed(target),
  ]);
  const columns = [
    { name: "Target", cell: ({ name, isGroup }) => (isGroup ? make("span", { class: "under" }, named(name)) : name) },
    { name: "Asked", numeric: true, cell: (row) => askedText(row, number) },
    { name: "Found", numeric: true, cell: (row) => (known(row.found) ? number(row, row.found) : "") },
    { name: "Result", numeric: true, cell: ({ result }) => make("span", { class: `badge ${result}` }, result) },
  ];
  plainTable(section.querySelector(".rows"), { name: "Targets", columns, rows });
  show(section);
  return null;
}

const askedText = (row, number) => (known(row.asked) ? number(row, row.asked) : row.more ? "" : "each its own");

function moreMissed({ missed, missed_groups: total }) {
  const left = total - missed.length;
  return left > 0 ? [{ name: `and ${plural(left, "other group")}`, more: true, found: null, result: "missed" }] : [];
}
