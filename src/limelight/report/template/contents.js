// Links to the sections that are shown.
function listContents() {
  const list = document.querySelector("#contents ul");
  const titles = [...document.querySelectorAll("main section:not([hidden]) > h2")];
  if (list.childElementCount === titles.length) return; // a link may have the focus
  const links = titles.map((title) => make("a", { href: `#${title.parentElement.id}` }, title.dataset.short));
  fill(list, ...links.map((link) => make("li", {}, link)));
  show(byId("contents"), links.length > 1);
}
