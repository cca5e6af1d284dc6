// Tokens live as long as the tab, and where a browser keeps nothing, as long as the page.
const kept = new Map();

function recall(name) {
  try {
    return sessionStorage.getItem(name) ?? kept.get(name) ?? null;
  } catch {
    return kept.get(name) ?? null;
  }
}

function keep(name, token) {
  kept.set(name, token);
  try {
    if (token === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, token);
  } catch {
    // Private windows may refuse.
  }
}

// What a header can carry; with anything else the browser would say that the network is down.
const isToken = (text) => /^[\x21-\x7e]+$/.test(text);

const NO_TOKEN = "A token has letters, digits and signs, and no spaces.";

const READER = "limelight-token";
const ADMIN = "limelight-admin-token";

// A form that asks for a token where the service wants one.
function tokenForm(retry) {
  const [form, field, says] = [byId("ask"), byId("token"), byId("ask-says")];
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const token = field.value.trim();
    if (!isToken(token)) {
      fill(says, NO_TOKEN);
      return;
    }
    field.value = "";
    keep(READER, token);
    retry();
  });
  return {
    ask(error) {
      const tried = recall(READER) !== null;
      keep(READER, null);
      fill(says, tried ? `The service does not take this token. ${cut(error.message, 600)}` : "The service asks for a token.");
      const first = form.hidden;
      show(form);
      if (first && document.activeElement === document.body) field.focus();
    },
    done: () => show(form, false),
  };
}
