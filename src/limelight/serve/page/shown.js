// The items that were shown most and least. Their titles are what sellers type: text, never markup.
function shown(live) {
  const section = byId("items");
  return () => {
    const { most, least } = live.now;
    show(section, most.length + least.length > 0);
    fill(section.querySelector(".lead"), "Exposure in the window: 1 is one first place in one list.");
    listItems(byId("most"), most);
    listItems(byId("least"), least);
  };
}

function listItems(host, rows) {
  show(host, rows.length > 0);
  fill(host.querySelector("ol"), ...rows.map(itemRow));
}

function itemRow({ id, title, exposure }) {
  const hasTitle = !blank(cut(title ?? ""));
  const row = make("li", {}, named(hasTitle ? title : id));
  if (hasTitle) row.append(make("small", {}, named(id)));
  row.append(make("span", { class: "much" }, three(exposure)));
  return row;
}
