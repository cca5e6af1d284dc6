// The service that the page came from: one question at a time, and none while nobody looks. One that
// does not answer is asked less and less often.
const EVERY = 2000; // milliseconds, as all here
const SLOWEST = 30000;
const PATIENCE = 10000;

class Refusal extends Error {
  constructor(message, status, wait) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

const wantsToken = (error) => error instanceof Refusal && [401, 403].includes(error.status);

async function call(path, token, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, {
    cache: "no-store", redirect: "error", signal: AbortSignal.timeout(PATIENCE), ...options, headers,
  });
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer, text);
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal("The answer of the service cannot be read.", answer.status);
  }
}

const post = (path, token, body) => (
  call(path, token, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } })
);

// A service says why in a sentence, and what to do in another; a proxy before it may say anything.
function refusal(answer, text) {
  const wait = 1000 * (Number(answer.headers.get("retry-after")) || 0);
  return new Refusal(reason(text) ?? `The service answered ${answer.status}.`, answer.status, wait);
}

function reason(text) {
  try {
    const body = JSON.parse(text);
    const said = body.error?.message ?? body.error ?? body.message ?? body.detail;
    if (typeof said !== "string") return null;
    const hint = body.error?.hint ?? body.hint;
    return cut(typeof hint === "string" ? `${said} (${hint})` : said, 600);
  } catch {
    return null;
  }
}

// Asks again and again; `ask` asks at once. After `failed`, waits longer each time; after `refused`,
// until it is told to ask.
function keepAsking(question, { answered, failed, refused }) {
  let timer = null;
  let asking = false;
  let failures = 0;

  async function ask() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    const wait = await once();
    asking = false;
    if (wait !== null) timer = setTimeout(ask, wait);
  }

  async function once() {
    let found = null;
    try {
      found = await question();
    } catch (error) {
      if (wantsToken(error)) {
        refused(error);
        return null;
      }
      failures += 1;
      failed(error);
      return Math.min(SLOWEST, Math.max(EVERY * 2 ** Math.min(failures, 4), error.wait ?? 0));
    }
    failures = 0;
    answered(found);
    return EVERY;
  }

  document.addEventListener("visibilitychange", ask);
  addEventListener("online", ask);
  return ask;
}
