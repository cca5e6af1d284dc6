// Times and spans as people say them; the service counts in seconds.
const SPANS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

function span(seconds) {
  if (!known(seconds)) return MISSING;
  const [size, noun] = SPANS.find(([each]) => seconds >= each) ?? [1, "second"];
  const whole = Number(decimals(seconds / size, seconds % size < size / 20 ? 0 : 1).replaceAll(",", ""));
  return whole === 1 ? `1 ${noun}` : `${decimals(whole, Number.isInteger(whole) ? 0 : 1)} ${noun}s`;
}

const clock = (date, parts) => date.toLocaleString("en-GB", parts);

const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const DAY = { day: "numeric", month: "short" };

// How to write the times of an axis, by how much time it shows.
function timeText(seconds) {
  const { second, ...minutes } = TIME;
  const parts = seconds < 600 ? TIME : seconds < 86400 ? minutes : { ...DAY, ...minutes };
  return (value) => clock(new Date(value), seconds < 5 * 86400 ? parts : DAY);
}

const gini = (value) => (known(value) ? decimals(value, 3) : MISSING);

const ms = (value) => (known(value) ? `${three(value)} ms` : MISSING);
