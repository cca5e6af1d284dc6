// Names and values that do not change, and the settings of the point, which do.
function facts(report) {
  list("data", report.data);
  list("made", report.made);
  listNotes(report.notes);
  listSummary(report.findings?.summary ?? []);
  if (!report.points.some(({ settings }) => settings.length)) return null;
  return () => list("settings", report.point.settings);
}

function list(id, pairs) {
  const rows = pairs.map(([name, value]) => (
    make("div", {}, make("dt", {}, named(name)), make("dd", {}, make("bdi", {}, cut(value, 400))))
  ));
  fill(byId(id).querySelector("dl"), ...rows);
  show(byId(id), pairs.length > 0);
}

// Sentences below the headline.
function listSummary(sentences) {
  fill(byId("summary"), ...sentences.map((one) => make("p", { dir: "auto" }, cut(one, 600))));
  show(byId("summary"), sentences.length > 0);
}

function listNotes(notes) {
  const section = byId("notes");
  fill(section.querySelector("ul"), ...notes.map((note) => make("li", {}, cut(note, 2000))));
  show(section, notes.length > 0);
}
