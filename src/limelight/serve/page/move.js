// The target, to be moved by who has the admin token: first it is said what that would cost.
function moveTarget(live) {
  const section = byId("target");
  const [slider, cost, says, field, admin] = ["aim", "cost", "moved", "admin-field", "admin"].map(byId);
  const ends = section.querySelectorAll(".ends span");
  let touched = false;

  const price = () => {
    const asked = slider.valueAsNumber;
    slider.setAttribute("aria-valuetext", gini(asked));
    slider.style.setProperty("--done", (asked - slider.min) / (slider.max - slider.min || 1));
    fill(cost, make("strong", {}, `Gini ${gini(asked)}`), costSays(live.now, asked));
  };
  slider.addEventListener("input", () => {
    touched = true;
    fill(says);
    price();
  });
  section.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (admin.value) keep(ADMIN, admin.value.trim());
    admin.value = "";
    fill(says, "Asking the service.");
    const [isMoved, words] = await sendTarget(slider.valueAsNumber);
    fill(says, words);
    touched = !isMoved; // what was not taken can be sent again
    askForAdmin(field, admin);
    live.refresh();
  });
  askForAdmin(field, admin);

  return () => {
    const { now } = live;
    show(section, known(now.gini) && known(now.strength));
    fill(section.querySelector(".lead"), aimSays(now));
    if (touched || document.activeElement === slider) return; // somebody is about to move it
    const [low, high] = aimRange(now);
    Object.assign(slider, { min: low, max: high, value: aimOf(now) ?? now.gini });
    fill(ends[0], `more even, ${gini(low)}`);
    fill(ends[1], `${gini(high)}, less even`);
    price();
  };
}

// From what can be reached to what no control gives, in whole steps of the slider.
function aimRange({ gini_floor: floor, gini_plain: plain, front, target, gini: now }) {
  const ginis = [plain, ...(front ?? []).map((point) => point.gini), target?.gini, now].filter(known);
  const low = Math.min(0.995, Math.max(0.005, Math.ceil(200 * (floor ?? 0)) / 200));
  const high = Math.min(0.995, Math.ceil(200 * Math.max(low, ...ginis)) / 200);
  return [low, high];
}

function aimSays(now) {
  const aim = aimOf(now);
  const others = OTHER_AIMS.filter(([key]) => known(now.target?.[key])).map(([key, words]) => `${words} ${percent(now.target[key])}`);
  const also = others.length ? ` Also asked for: ${others.join(", ")}.` : "";
  if (aim === null) return `No target of the Gini is set.${also}`;
  const cost = known(now.relevance_loss) ? `, which costs ${percent(now.relevance_loss, 2)} of relevance` : "";
  return `The target is ${gini(aim)}; the window stands at ${gini(now.gini)}${cost}.${also}`;
}

const OTHER_AIMS = [
  ["min_coverage", "coverage of at least"],
  ["max_relevance_loss", "a loss of relevance of at most"],
  ["group_cap", "no account above"],
  ["group_floor", "no account below"],
];

function costSays(now, asked) {
  const loss = lossAt(now.front, asked);
  const today = known(now.relevance_loss) ? ` Relevance lost now: ${percent(now.relevance_loss, 2)}.` : "";
  if (loss === null) return "What it would cost is not known.";
  return `When the model was fitted, that cost about ${percent(loss, 2)} of nDCG.${today}`;
}

// What the stored front says of a Gini: between two of its points, and nothing beyond its ends.
function lossAt(front, asked) {
  const points = (front ?? []).filter((point) => known(point.gini) && known(point.loss));
  points.sort((a, b) => a.gini - b.gini);
  const ginis = points.map((point) => point.gini);
  if (asked < ginis[0] || !ginis.length) return null;
  if (asked >= ginis.at(-1)) return points.at(-1).loss > 0.001 ? null : points.at(-1).loss;
  return between(ginis, points.map((point) => point.loss), asked);
}

function askForAdmin(field, input) {
  const wanted = recall(ADMIN) === null;
  show(field, wanted);
  input.required = wanted;
}

async function sendTarget(asked) {
  const token = recall(ADMIN);
  if (!isToken(token ?? "")) {
    keep(ADMIN, null);
    return [false, NO_TOKEN];
  }
  try {
    await post("admin/target", token, { gini: asked, ...chosenModel() });
    return [true, `The target is ${gini(asked)} from now on.`];
  } catch (error) {
    if (wantsToken(error)) keep(ADMIN, null);
    const why = error instanceof Refusal ? cut(error.message, 600) : "the service does not answer";
    return [false, `The target was not moved: ${why}`];
  }
}
