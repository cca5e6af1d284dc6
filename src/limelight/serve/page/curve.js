// A chart with its title, what it says and what its lines are; hidden until there is something in it.
function addFigure(id, title) {
  const parts = [make("h3", {}, title), make("figcaption"), make("ul", { class: "legend" }), make("div", { class: "chart" })];
  const figure = make("figure", { id, hidden: "" }, ...parts);
  document.querySelector("#spread .four").append(figure);
  return figure;
}

// The Lorenz curve now and without control, drawn as that of a report is: a report of two points.
function curve(live) {
  addFigure("lorenz", "Share of the exposure");
  const report = { isBase: false, methods: new Map([["now", { colour: "series-0" }]]) };
  let draw = null;
  return () => {
    const { lorenz: now, lorenz_plain: plain } = live.now;
    show(byId("lorenz"), now.length > 0);
    if (!now.length) return;
    const places = [...new Set([...now, ...(plain ?? [])].map(([place]) => place))].sort((a, b) => a - b);
    const at = (pairs) => (pairs?.length ? valuesAt(pairs, places) : null);
    const points = [
      { label: "no control", lorenz: at(plain) }, { label: "now", method: "now", lorenz: at(now) },
    ];
    Object.assign(report, { points, base: points[0], point: points[1], lorenz_x: places });
    draw ??= lorenz(report);
    draw();
  };
}

function valuesAt(pairs, places) {
  const [from, values] = [pairs.map(([place]) => place), pairs.map(([, value]) => value)];
  return places.map((place) => between(from, values, place));
}
