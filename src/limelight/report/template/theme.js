// Colours live in the style sheet; charts, which cannot use its variables, ask here for their
// values, and are drawn anew when the theme changes or the page is printed.
const DARK = matchMedia("(prefers-color-scheme: dark)");
const PRINT = matchMedia("print");
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const palette = new Map(); // to ask the style sheet is slow

function colour(name) {
  if (!palette.has(name)) palette.set(name, lookUp(name));
  return palette.get(name);
}

function lookUp(name) {
  const probe = byId("theme");
  probe.style.setProperty("forced-color-adjust", "none"); // else high contrast makes all lines alike
  probe.style.setProperty("outline-color", `var(--${name})`);
  const value = getComputedStyle(probe).outlineColor;
  probe.removeAttribute("style");
  return value;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : DARK.matches;
}

function followTheme(redraw) {
  const button = byId("theme");
  const label = () => fill(button, isDark() ? "Light theme" : "Dark theme");
  const changed = () => {
    palette.clear();
    label();
    redraw();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  DARK.addEventListener("change", changed);
  PRINT.addEventListener("change", changed);
  label();
  show(button);
}
