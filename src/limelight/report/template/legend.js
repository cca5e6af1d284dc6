// Legends stand above their charts as lists, where they wrap, can be read out and copied.
const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  circle: "M15 2.5a4.5 4.5 0 1 0 .01 0z",
  rect: "M11 3h8v8h-8z",
  triangle: "M15 2l5 9h-10z",
  diamond: "M15 1l5.5 6l-5.5 6l-5.5-6z",
};

function draw(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function swatch({ colour: name, dash, symbol }) {
  const stroke = `var(--${name})`;
  const image = draw("svg", { viewBox: "0 0 30 14", width: 30, height: 14, "aria-hidden": "true" });
  const line = draw("path", { d: "M0 7h30", "stroke-width": 2, "stroke-dasharray": [dash].flat() });
  if (dash === "solid") line.removeAttribute("stroke-dasharray");
  line.style.stroke = stroke;
  if (dash) image.append(line);
  if (symbol) {
    const mark = draw("path", { d: SHAPES[symbol] });
    mark.style.fill = stroke;
    image.append(mark);
  }
  return image;
}

function legend(list, entries) {
  fill(list, ...entries.map((entry) => make("li", {}, swatch(entry), named(entry.name))));
}
