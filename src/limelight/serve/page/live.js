// Asks, draws, and says so when there is no answer. Each part of the page prepares its place once,
// and returns what to do with every answer.
const PARTS = [headline, curve, overTime, moveTarget, accounts, shown];

// A service of several models shows one of them: /?model=b.
function chosenModel() {
  const model = new URLSearchParams(location.search).get("model");
  return model ? { model } : {};
}

function start() {
  const live = { now: null, at: null };
  const draws = PARTS.map((prepare) => prepare(live));
  const redraw = () => {
    if (!live.now) return;
    draws.forEach((draw) => draw());
    listNotes(live.now.notes);
    listContents();
  };
  const question = new URLSearchParams({ top: 20, ...chosenModel() });
  const ask = keepAsking(() => call(`v1/exposure?${question}`, recall(READER)), {
    answered(found) {
      form.done();
      hush();
      live.now = withParts(found);
      show(byId("content")); // charts take their size from the page
      try {
        redraw();
        tell();
      } catch (error) {
        console.error(error);
        silence(`The answer of the service cannot be drawn: ${cut(error.message)}.`, live.at);
      }
    },
    failed(error) {
      silence(error instanceof Refusal ? cut(error.message, 600) : "The service does not answer.", live.at);
    },
    refused(error) {
      hush();
      form.ask(error);
    },
  });
  const tell = () => {
    live.at = new Date();
    const heard = known(live.now.stale_seconds) ? ` Other replicas were heard of ${span(live.now.stale_seconds)} ago.` : "";
    fill(byId("fresh"), `As of ${clock(live.at, TIME)}, renewed every two seconds.${heard}`);
  };
  const form = tokenForm(ask);
  live.refresh = ask;
  byId("again").addEventListener("click", ask);
  followTheme(redraw);
  show(document.querySelector("footer"));
  ask();
}

// An older or a smaller service leaves out what it does not know.
function withParts(found) {
  const lists = ["lorenz", "accounts", "most", "least", "history", "notes"];
  return { ...found, ...Object.fromEntries(lists.map((key) => [key, found[key] ?? []])) };
}

function silence(why, since) {
  const old = since ? ` The figures are of ${clock(since, TIME)}.` : "";
  const text = `${why}${old} The page keeps asking.`;
  if (byId("trouble").textContent !== text) fill(byId("trouble"), text); // said once, not every time
  troubled(true);
}

function hush() {
  fill(byId("trouble"));
  troubled(false);
}

function troubled(isSo) {
  show(byId("again"), isSo);
  byId("silence").classList.toggle("warning", isSo);
  document.body.classList.toggle("silent", isSo);
}

start();
