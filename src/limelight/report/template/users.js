// What one user sees, before and after. What is new, moved, gone or liked is said in words.
function users(report) {
  if (!report.users.length || !report.points.some((point) => point.lists?.length)) return null;
  const section = byId("users");
  const select = byId("user");
  fill(select, ...report.users.map(({ label }, index) => make("option", { value: index }, visible(label, 60))));
  const compared = Boolean(report.base?.lists?.length);
  show(byId("before"), compared);
  if (!compared) fill(byId("after").firstChild, "Recommended");
  show(section.querySelector(".keys"), compared);
  show(section);

  const draw = () => {
    const number = Number(select.value);
    const user = report.users[number];
    const listOf = (point) => (point?.lists?.[number] ?? []).filter((item) => item in report.items.label);
    const [before, after] = [listOf(report.base), listOf(report.point)];
    const liked = new Set(user.liked);
    const row = (marks) => (item, rank) => listRow(report, item, liked.has(item), marks(item, rank));
    if (compared) {
      fill(byId("before").lastChild, ...before.map(row((item) => (after.includes(item) ? null : ["gone", "leaves"]))));
    }
    fill(byId("after").lastChild, ...after.map(row((item, rank) => compared && moved(before.indexOf(item), rank))));
    fill(byId("user-summary"), ...userSays(report, user, before, after, compared));
    drawHistory(report, user);
  };
  select.addEventListener("change", draw);
  return draw;
}

function moved(was, rank) {
  if (was < 0) return ["new", "new"];
  if (was > rank) return ["up", `▲ ${was - rank}`];
  return was < rank ? ["down", `▼ ${rank - was}`] : null;
}

function listRow(report, item, liked, mark) {
  const { group } = report.items;
  const row = make("li", {}, named(titleOf(report, item)));
  if (!blank(group?.[item])) row.append(make("small", {}, named(group[item])));
  if (liked) row.append(make("span", { class: "badge hit" }, "♥ liked"));
  if (mark) row.append(make("span", { class: `badge ${mark[0]}` }, mark[1]));
  return row;
}

function userSays(report, user, before, after, compared) {
  const hits = (list) => list.filter((item) => user.liked.includes(item)).length;
  const fresh = after.filter((item) => !before.includes(item)).length;
  const liked = user.liked.length ? ` Of ${plural(user.liked.length, "held-out item")} that this user liked, the list has ${count(hits(after))}` : "";
  const then = compared && liked ? ` (before: ${count(hits(before))})` : "";
  const news = compared ? `: ${fresh ? count(fresh) : "nothing"} new in a list of ${count(after.length)}` : "";
  return [named(user.label), " at ", named(report.point.label), `${news}.${liked}${then}${liked && "."}`];
}

const REMEMBERED = 30;

function drawHistory(report, { history }) {
  const element = document.querySelector("#users .history");
  const seen = history.filter((item) => item in report.items.label);
  show(element, seen.length > 0);
  fill(element.querySelector("summary"), `What this user had seen: ${plural(seen.length, "item")}`);
  const rows = seen.slice(0, REMEMBERED).map((item) => make("li", {}, named(titleOf(report, item))));
  if (seen.length > REMEMBERED) rows.push(make("li", {}, `and ${count(seen.length - REMEMBERED)} more`));
  fill(element.querySelector("ul"), ...rows);
}
