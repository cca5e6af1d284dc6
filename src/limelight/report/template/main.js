// A section fills its part of the page once, where there is something to show, and returns what to
// do whenever another point is chosen.
const SECTIONS = [
  control, rules, targets, figures, front, lorenz, topShares, ranks, overTime, items, groups, merit, users, solver, facts,
];

function start(payload) {
  const report = openReport(payload);
  show(byId("content")); // charts take their size from the page
  const draws = SECTIONS.map((section) => section(report)).filter(Boolean);
  const redraw = () => {
    draws.forEach((drawSection) => drawSection());
    listContents();
  };
  let waiting = false;
  report.choose = (index) => {
    report.index = index;
    if (waiting) return; // a dragged slider asks more often than the screen shows
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      redraw();
    });
  };
  redraw();
  followTheme(redraw);
  show(document.querySelector("footer"));
}

function complain(error) {
  const trouble = byId("trouble");
  const old = typeof DecompressionStream === "undefined";
  fill(trouble, old ? "The figures below need a newer browser." : `The figures could not be drawn: ${cut(error.message)}`);
  show(trouble);
  console.error(error);
}

unpack(byId("payload").textContent).then(start).catch(complain);
