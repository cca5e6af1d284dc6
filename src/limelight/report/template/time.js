// Gini, coverage and groups over time: curves, and the same numbers as tables.
function overTime(report) {
  const periods = report.findings?.periods ?? [];
  if (!periods.length) return null;
  const section = byId("time");
  const names = periods[0].groups.map(([name]) => name);
  show(section);
  show(byId("time-groups"), names.length > 0);
  show(byId("time-group-rows"), names.length > 0);
  fill(section.querySelector(".lead"), timeSays(periods));
  periodTable(byId("time-rows"), periods);
  if (names.length) groupPeriodTable(byId("time-group-rows"), periods, names);
  const others = (report.groups?.label.length ?? 0) - names.length;
  fill(section.querySelector(".note"), others > 0 ? `Groups over time are the first ${count(names.length)}; ${plural(others, "other group")} left out.` : "");
  const share = (value) => percent(value, 2);
  const plain = (value) => decimals(value, 4);
  const draws = [
    periodChart(byId("time-gini"), periods, plain, [
      { name: "each period", of: ({ gini }) => gini },
      { name: "all lists so far", of: ({ cumulative_gini: value }) => value },
    ]),
    periodChart(byId("time-coverage"), periods, share, [
      { name: "each period", of: ({ coverage }) => coverage },
      { name: "all lists so far", of: ({ cumulative_coverage: value }) => value },
    ]),
    names.length && periodChart(byId("time-groups"), periods, share, names.map((name, index) => (
      { name, of: ({ groups: all }) => all[index][1] }
    ))),
  ].filter(Boolean);
  return () => draws.forEach((drawOne) => drawOne());
}

function timeSays(periods) {
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === last) return `One period, from ${first.start}: Gini ${decimals(first.gini, 4)}, coverage ${percent(first.coverage, 2)}.`;
  return `${plural(periods.length, "period")}: from ${first.start} to ${last.start} the Gini goes from ${decimals(first.gini, 4)} to ${decimals(last.gini, 4)}, the coverage from ${percent(first.coverage, 2)} to ${percent(last.coverage, 2)}.`;
}

function periodTable(host, periods) {
  const figureOf = (name, key, text) => ({ name, numeric: true, cell: (period) => text(period[key]) });
  const plain = (value) => decimals(value, 4);
  const share = (value) => percent(value, 2);
  const columns = [
    { name: "From", cell: ({ start }) => start },
    { ...figureOf("Lists", "lists", count), minor: true },
    figureOf("Gini", "gini", plain),
    figureOf("Coverage", "coverage", share),
    figureOf("Gini so far", "cumulative_gini", plain),
    figureOf("Coverage so far", "cumulative_coverage", share),
    figureOf(`Top 1${NO_BREAK}%`, "top_share", share),
    figureOf("Lowest Gini", "gini_floor", plain),
  ];
  plainTable(host, { name: "Figures of each period", columns, rows: periods, many: true });
}

function groupPeriodTable(host, periods, names) {
  const columns = [
    { name: "From", cell: ({ start }) => start },
    ...names.map((name, index) => ({ name: named(name), numeric: true, cell: ({ groups: all }) => percent(all[index][1], 2) })),
  ];
  plainTable(host, { name: "Groups' shares in each period", columns, rows: periods, many: true });
}

function periodChart(host, periods, text, wanted) {
  const chart = openChart(host.querySelector(".chart"));
  const entries = wanted.map(({ name, of }, index) => ({
    name,
    colour: `series-${index % COLOURS}`,
    symbol: SYMBOLS[index % SYMBOLS.length],
    dash: DASHES[index % DASHES.length],
    data: periods.map((period, place) => [place, of(period)]),
  }));
  legend(host.querySelector(".legend"), entries);
  return () => {
    const last = entries.map(({ name, data }) => `${visible(name, 80)} ${text(data.at(-1)[1])}`);
    chart.draw(`${host.querySelector("h3").textContent} over time. In the last period: ${last.join(", ")}.`, {
      xAxis: axis("", { type: "category", data: periods.map(({ start }) => start), boundaryGap: false, splitLine: { show: false } }),
      yAxis: axis("", { scale: true, splitNumber: 4, axisLabel: { formatter: tickOf(text, entries) } }),
      tooltip: tooltip("axis", curveTip((place) => `From ${periods[place].start}`, (value) => text(value))),
      series: entries.map((entry) => line(`time ${entry.name}`, entry, { showSymbol: periods.length < 40 })),
    });
  };
}

const valuesOf = (entries) => entries.flatMap(({ data }) => data.map(([, value]) => value));

// Ticks need fewer digits than the table has, and none stands beyond all there is.
function tickOf(text, entries) {
  const isShare = text(0).includes("%");
  const wide = Math.max(...valuesOf(entries)) - Math.min(...valuesOf(entries)) > 0.1;
  const number = isShare ? (value) => percent(value, wide ? 0 : 1) : (value) => decimals(value, wide ? 2 : 3);
  return (value) => (value > 1 || value < 0 ? "" : number(value));
}
