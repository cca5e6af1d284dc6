// A table of many rows: searched and sorted as a whole, shown a page at a time.
const PAGE = 20;
const MANY = 6; // columns: more scroll sideways on a phone

// columns: { name, value(row), cell(row) -> node or text, numeric, minor, help }; a row is a number
// below `rows`; columns that are minor are left out where there is little room.
function openTable(host, { name, columns, rows, texts, sortBy }) {
  const state = { column: sortBy, descending: columns[sortBy].numeric, page: 0, wanted: "" };
  const view = tableView(host, name, columns, rows > PAGE);
  let found = [];

  function arrange() {
    const all = Array.from({ length: rows }, (_, row) => row);
    const wanted = state.wanted ? all.filter((row) => texts[row].includes(state.wanted)) : all;
    found = sortRows(wanted, columns[state.column], state.descending);
    show();
  }

  function show() {
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    state.page = Math.min(Math.max(state.page, 0), last);
    const start = state.page * PAGE;
    const shown = found.slice(start, start + PAGE);
    fill(view.body, ...shown.map((row) => tableRow(columns, row)));
    view.headers.forEach((header, index) => markSorted(header, index === state.column, state.descending));
    fill(view.status, shown.length ? `${count(start + 1)} to ${count(start + shown.length)} of ${count(found.length)}` : "Nothing found");
    view.previous.disabled = state.page === 0;
    view.next.disabled = state.page === last;
  }

  view.headers.forEach((header, index) => {
    header.firstChild.addEventListener("click", () => {
      state.descending = index === state.column ? !state.descending : Boolean(columns[index].numeric);
      state.column = index;
      state.page = 0;
      arrange();
    });
  });
  view.search.addEventListener("input", () => {
    state.wanted = folded(view.search.value.trim());
    state.page = 0;
    arrange();
  });
  const turn = (step) => () => {
    state.page += step;
    show();
  };
  view.previous.addEventListener("click", turn(-1));
  view.next.addEventListener("click", turn(1));
  return arrange;
}

// A search minds neither accents nor capitals.
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// Unknown values come last, whichever way the rest is sorted. Keys are looked up once for each row,
// since thousands of rows are sorted whenever the slider moves.
function sortRows(rows, column, descending) {
  const keys = [];
  const [there, missing] = [[], []];
  for (const row of rows) {
    keys[row] = column.value(row);
    (keys[row] === null ? missing : there).push(row);
  }
  const way = descending ? -1 : 1;
  const { compare } = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  there.sort(column.numeric
    ? (a, b) => way * (keys[a] - keys[b]) || a - b
    : (a, b) => way * compare(keys[a], keys[b]) || a - b);
  return there.concat(missing);
}

function tableView(host, name, columns, paged) {
  const headers = columns.map((column) => make(
    "th",
    { scope: "col", class: columnClass(column) },
    make("button", { type: "button", title: column.help }, column.name),
  ));
  const search = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  const label = make("label", {}, make("span", {}, `Search ${name}`), search);
  const previous = make("button", { type: "button" }, "Previous");
  const next = make("button", { type: "button" }, "Next");
  const status = make("span", { role: "status" });
  const body = make("tbody");
  const pages = make("div", { class: "pages" }, status, previous, next);
  show(previous, paged);
  show(next, paged);
  const caption = make("caption", { class: "unseen" }, `${name}, gains and losses`);
  const many = columns.length > MANY ? " many" : "";
  const table = make("table", { class: `wide-table${many}` }, caption, make("thead", {}, make("tr", {}, ...headers)), body);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${name}` }, table);
  fill(host, make("div", { class: "tools" }, label, pages), scroll);
  return { headers, search, previous, next, status, body };
}

// A short table that is shown as it is; `many` columns scroll sideways where there is little room.
function plainTable(host, { name, columns, rows, many = false }) {
  const heads = columns.map((column) => make("th", { scope: "col", class: columnClass(column), title: column.help }, column.name));
  const table = make(
    "table", { class: many ? "plain many" : "plain" },
    make("caption", { class: "unseen" }, name),
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows.map((row) => tableRow(columns, row))),
  );
  fill(host, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table));
}

const columnClass = ({ numeric, minor }) => `${numeric ? "number" : "text"} ${minor ? "minor" : ""}`;

function tableRow(columns, row) {
  const cells = columns.map((column, index) => make(
    index ? "td" : "th",
    { class: columnClass(column), scope: index ? null : "row" },
    column.cell(row),
  ));
  return make("tr", {}, ...cells);
}

function markSorted(header, sorted, descending) {
  if (sorted) header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  else header.removeAttribute("aria-sort");
}

// A change as a number with a bar that grows to the right for a gain, to the left for a loss; its
// size is a part of the room there is.
function changeCell(value, text, size) {
  if (!known(value)) return MISSING;
  const bar = make("span", { class: value < 0 ? "bar loss" : "bar gain", "aria-hidden": "true" });
  bar.style.setProperty("--size", size);
  return make("span", { class: "delta" }, make("span", {}, text), bar);
}
