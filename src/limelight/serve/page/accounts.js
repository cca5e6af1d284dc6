// What each account has of all exposure, against the bounds it was promised.
function accounts(live) {
  const section = byId("accounts");
  const body = make("tbody");
  const rows = () => live.now.accounts;
  const most = () => Math.max(...rows().flatMap(({ share, cap, floor }) => [share, cap ?? 0, floor ?? 0])) || 1;
  const columns = [
    { name: "Account", cell: (row) => accountName(rows()[row]) },
    { name: "Share", numeric: true, cell: (row) => percent(rows()[row].share, 2) },
    { name: "Cap", numeric: true, cell: (row) => percent(rows()[row].cap, 2) },
    { name: "Floor", numeric: true, cell: (row) => percent(rows()[row].floor, 2) },
    { name: "Between its bounds", minor: true, cell: (row) => boundsCell(rows()[row], most()) },
  ];
  const heads = columns.map((column) => make("th", { scope: "col", class: columnClass(column) }, column.name));
  const table = make("table", {}, make("caption", { class: "unseen" }, "Accounts"), make("thead", {}, make("tr", {}, ...heads)), body);
  fill(section.querySelector(".rows"), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of accounts" }, table));
  return () => {
    show(section, rows().length > 0);
    fill(section.querySelector(".lead"), accountsSay(rows()));
    fill(body, ...rows().map((_, row) => tableRow(columns, row)));
    [...body.rows].forEach((element, row) => element.classList.toggle("bad", standing(rows()[row]) !== ""));
  };
}

function standing({ share, cap, floor }) {
  if (known(cap) && share > cap) return "above cap";
  return known(floor) && share < floor ? "below floor" : "";
}

function accountName(account) {
  const word = standing(account);
  return make("span", {}, named(account.group), ...(word ? [make("span", { class: "badge" }, word)] : []));
}

function accountsSay(all) {
  const bound = all.filter(({ cap, floor }) => known(cap) || known(floor));
  const broken = bound.filter((account) => standing(account)).length;
  if (!bound.length) return "The share of all exposure that each has; none has a cap or a floor.";
  return broken
    ? `Of the ${plural(bound.length, "account")} with bounds here, ${count(broken)} ${broken === 1 ? "is" : "are"} outside.`
    : "All accounts here are within their bounds.";
}

function boundsCell(account, most) {
  const mark = (kind, value) => {
    const element = make("i", { class: kind });
    element.style.setProperty("--at", value / most);
    return element;
  };
  const bounds = [account.cap, account.floor].filter(known).map((bound) => mark("bound", bound));
  return make("span", { class: "within", "aria-hidden": "true" }, mark("has", account.share), ...bounds);
}
