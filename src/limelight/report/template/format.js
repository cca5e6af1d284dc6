// Numbers as people read them. A missing number is a dash.
const MISSING = "–";
const NO_BREAK = "\u00a0"; // no line ends between a number and its unit

const known = (value) => typeof value === "number" && Number.isFinite(value);

function decimals(value, digits) {
  const [whole, rest] = rounded(Math.abs(value), digits).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

// As Python rounds, which wrote the headline: the number that is stored, where toLocaleString takes
// what it looks like, and halves to the even neighbour, where toFixed takes the upper one.
function rounded(size, digits) {
  const scaled = size * 10 ** digits;
  const isHalf = Number.isInteger(size * 2 ** (digits + 1)) && scaled % 1 === 0.5;
  const toEven = isHalf && Math.floor(scaled) % 2 === 0;
  return (toEven ? Math.floor(scaled) / 10 ** digits : size).toFixed(digits);
}

const count = (value) => (known(value) ? decimals(value, 0) : MISSING);

const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

// How much more it became; unknown where either is.
const gained = (value, before) => (known(value) && known(before) ? value - before : null);

function signed(value, digits) {
  const text = decimals(value, digits);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

function percent(share, digits = 1) {
  return known(share) ? `${decimals(100 * share, digits)}${NO_BREAK}%` : MISSING;
}

// Three digits that matter, whatever the size.
function three(value) {
  if (!known(value)) return MISSING;
  const size = Math.abs(value);
  return decimals(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

const times = (value) => (known(value) ? `${three(value)}${NO_BREAK}×` : MISSING);

// Ticks of a logarithmic axis and values of residuals, which span many powers of ten.
function power(value, digits = 1) {
  if (!known(value)) return MISSING;
  if (value === 0 || (Math.abs(value) >= 0.001 && Math.abs(value) < 100000)) {
    return value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
  }
  return exponential(value, digits);
}

const exponential = (value, digits) => (
  value.toExponential(digits).replace(/\.?0*e\+?/, "e").replaceAll("-", "−")
);

// How to write numbers so that those which differ by a step can be told apart; ten digits at most.
function telling(values, step) {
  const size = Math.max(...values.map(Math.abs)) || 1;
  const digits = Math.min(9, Math.max(1, Math.ceil(Math.log10(size / step))));
  const places = Math.max(0, digits - Math.floor(Math.log10(size)));
  const plain = size >= 0.001 && size < 1e9;
  return (value) => (plain || value === 0 ? decimals(value, places) : exponential(value, digits));
}

function figure(metric, value) {
  if (!known(value)) return MISSING;
  return metric.percent ? percent(value, metric.digits) : decimals(value, metric.digits);
}

function interval(metric, [, low, high]) {
  return known(low) && known(high) ? `95${NO_BREAK}% interval ${figure(metric, low)} to ${figure(metric, high)}` : "";
}

// Shares and the Gini change by points; a correlation by a number; any other figure by a part of
// what it was.
const byPoints = ({ percent: isShare, key }) => isShare || key === "gini" || key === "merit_gini";

function change(metric, value, before) {
  if (!known(value) || !known(before)) return "";
  if (byPoints(metric)) return `${signed(100 * (value - before), 1)}${NO_BREAK}points`;
  if (before === 0 || metric.key === "merit_spearman") return signed(value - before, metric.digits);
  return `${signed((100 * (value - before)) / Math.abs(before), 1)}${NO_BREAK}%`;
}

function changeInterval(metric, [low, high]) {
  if (!known(low) || !known(high)) return "";
  const text = byPoints(metric) ? (end) => signed(100 * end, 1) : (end) => signed(end, metric.digits);
  const unit = byPoints(metric) ? `${NO_BREAK}points` : "";
  return `change: 95${NO_BREAK}% interval ${text(low)} to ${text(high)}${unit}`;
}

// Whether a figure got "better" or "worse"; nothing where neither way is, nor where that may be
// chance: where the interval of the change holds 0, or else where the figure's own holds the base.
function verdict(metric, [value, low, high], before, [least, most] = []) {
  if (!known(value) || !known(before) || !metric.better || value === before) return "";
  const paired = known(least) && known(most);
  if (paired && least <= 0 && most >= 0) return "";
  if (!paired && known(low) && known(high) && low <= before && before <= high) return "";
  return value > before === (metric.better === "higher") ? "better" : "worse";
}
