// Numbers as people read them. A missing number is a dash.
const MISSING = "–";

const known = (value) => typeof value === "number" && Number.isFinite(value);

function decimals(value, digits) {
  const text = Math.abs(value).toLocaleString("en-GB", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
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
  return known(share) ? `${decimals(100 * share, digits)} %` : MISSING;
}

// Three digits that matter, whatever the size.
function three(value) {
  if (!known(value)) return MISSING;
  const size = Math.abs(value);
  return decimals(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

const times = (value) => (known(value) ? `${three(value)} ×` : MISSING);

// Ticks of a logarithmic axis and values of residuals, which span many powers of ten.
function power(value) {
  if (!known(value)) return MISSING;
  if (value === 0 || (Math.abs(value) >= 0.001 && Math.abs(value) < 100000)) {
    return value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
  }
  return value.toExponential(1).replace(".0e", "e").replace("e+", "e").replaceAll("-", "−");
}

function figure(metric, value) {
  if (!known(value)) return MISSING;
  return metric.percent ? percent(value, metric.digits) : decimals(value, metric.digits);
}

function interval(metric, [, low, high]) {
  return known(low) && known(high) ? `${figure(metric, low)} to ${figure(metric, high)}` : "";
}

// A share changes by points; any other figure by a part of what it was.
function change(metric, value, before) {
  if (!known(value) || !known(before)) return "";
  if (metric.percent) return `${signed(100 * (value - before), 1)} points`;
  if (before === 0) return signed(value - before, metric.digits);
  return `${signed((100 * (value - before)) / Math.abs(before), 1)} %`;
}

// Whether a figure got "better" or "worse"; nothing where neither way is.
function verdict(metric, value, before) {
  if (!known(value) || !known(before) || !metric.better || value === before) return "";
  return value > before === (metric.better === "higher") ? "better" : "worse";
}
