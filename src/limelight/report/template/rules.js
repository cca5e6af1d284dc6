// What the lists should not have: of each rule the worst that was found, and the verdict.
function rules(report) {
  const all = report.findings?.rules ?? [];
  if (!all.length) return null;
  const section = byId("rules");
  const broken = all.filter(({ verdict }) => verdict === "broken").length;
  const open = all.filter(({ verdict }) => verdict === "undecided").length;
  const told = [broken && `Broken: ${count(broken)} of ${plural(all.length, "rule")}.`, open && `Undecided, because the interval holds the threshold: ${count(open)}.`];
  fill(section.querySelector(".lead"), told.filter(Boolean).join(" ") || "All rules are met.");
  const columns = [
    { name: "Fail if", cell: ({ rule }) => named(rule) },
    { name: "Found", numeric: true, cell: ({ found }) => named(found) },
    { name: "Interval", numeric: true, cell: ({ interval }) => interval },
    { name: "Result", numeric: true, cell: ({ verdict, result }) => make("span", { class: `badge ${verdict}` }, result) },
  ];
  plainTable(section.querySelector(".rows"), { name: "Rules", columns, rows: all });
  show(section);
  return null;
}
