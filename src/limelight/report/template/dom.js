// Texts of a report may be hostile (titles are what sellers type), so nothing here parses HTML:
// text reaches the page as text, cut to a length that no layout minds, apart from its neighbours'
// writing direction.
const LONGEST = 300;

const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function cut(text, length = LONGEST) {
  const whole = String(text);
  if (whole.length <= length) return whole;
  return `${Array.from(whole.slice(0, length)).slice(0, -1).join("")}…`;
}

function named(text) {
  const shown = cut(text).trim() || "(no name)";
  return make("bdi", { class: "name", title: shown }, shown);
}

function fill(element, ...children) {
  element.replaceChildren(...children);
}

function show(element, visible = true) {
  element.hidden = !visible;
}
