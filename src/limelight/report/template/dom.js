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

// Whether there is nothing to see: spaces, signs without a width, marks of direction.
const blank = (text) => !/[^\p{White_Space}\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}]/u.test(text ?? "");

function visible(text, length = LONGEST) {
  const whole = cut(text, length).trim();
  return blank(whole) ? "(no name)" : whole;
}

function named(text) {
  const shown = visible(text);
  return make("bdi", { class: "name", title: shown }, shown);
}

function fill(element, ...children) {
  element.replaceChildren(...children);
}

// Keeps room for the longest of the texts that an element will have, so that nothing below it moves.
function hold(element, texts) {
  element.dataset.longest = texts.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

function show(element, visible = true) {
  element.hidden = !visible;
}
