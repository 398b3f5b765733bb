// What the page knows of the runs: codelengths after shared numbers of labels, and everything computed from them.
"use strict";

function floatsFrom(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}

// A curve is the codelength in nats after kept[0], kept[1], … labels; it may end before the longest one does.
class Curves {
  constructor(data) {
    this.kept = floatsFrom(data.kept);
    this.runs = data.curves.map(floatsFrom);
    this.entries = data.entries;
    this.codes = data.codes;
    this.means = new Map();
  }

  get length() {
    return this.kept[this.kept.length - 1];
  }

  // The mean of an entry's seeds, as far as all of them go.
  mean(entry) {
    if (!this.means.has(entry)) {
      const runs = this.entries[entry].runs.map((run) => this.runs[run]);
      const mean = new Float64Array(Math.min(...runs.map((run) => run.length)));
      for (const run of runs) for (let i = 0; i < mean.length; i++) mean[i] += run[i] / runs.length;
      this.means.set(entry, mean);
    }
    return this.means.get(entry);
  }

  // A reference is "entry:0", "run:3" or "code:1".
  reference(id) {
    const [kind, number] = id.split(":");
    if (kind === "entry") return this.mean(Number(number));
    return this.runs[kind === "run" ? Number(number) : this.codes[Number(number)].curve];
  }

  // Codelength minus the reference's, as far as both go. The reference of an entry to itself is exactly zero.
  regret(curve, reference) {
    const regret = new Float64Array(Math.min(curve.length, reference.length));
    for (let i = 0; i < regret.length; i++) regret[i] = curve[i] - reference[i];
    return regret;
  }

  // Mean nats per label over the labels between t / √(1 + width) and t · √(1 + width).
  loss(curve, width) {
    const { kept } = this;
    const [from, to] = this.windows(width);
    const loss = new Float64Array(curve.length).fill(NaN);
    for (let i = 1; i < curve.length; i++) {
      const last = Math.min(to[i], curve.length - 1);
      const first = Math.min(from[i], last - 1);
      loss[i] = (curve[last] - curve[first]) / (kept[last] - kept[first]);
    }
    return loss;
  }

  // For each kept position the kept ones nearest to the two ends of its window.
  windows(width) {
    if (this.windowsOf !== width) {
      const { kept } = this;
      const factor = Math.sqrt(1 + width);
      const from = new Int32Array(kept.length);
      const to = new Int32Array(kept.length);
      for (let i = 1, low = 0, high = 0; i < kept.length; i++) {
        while (low < i - 1 && kept[low + 1] <= kept[i] / factor) low++;
        while (high < kept.length - 1 && kept[high] < kept[i] * factor) high++;
        from[i] = low;
        to[i] = Math.max(high, i);
      }
      this.windowsOf = width;
      this.windowEnds = [from, to];
    }
    return this.windowEnds;
  }

  // The kept position nearest to a number of labels, as an index.
  nearest(labels) {
    const { kept } = this;
    let low = 0;
    let high = kept.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (kept[middle] <= labels) low = middle;
      else high = middle;
    }
    return labels - kept[low] < kept[high] - labels ? low : high;
  }
}

const MINUS = "−";

function withSign(value, digits = 1) {
  const text = number(Math.abs(value), digits);
  return Number(text.replace(/,/g, "")) === 0 ? text : (value < 0 ? MINUS : "+") + text;
}

function number(value, digits = 0) {
  if (!Number.isFinite(value)) return "∞";
  const text = value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return text.replace("-", MINUS);
}

// A loss keeps three digits wherever its point is.
function shortNumber(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return number(value);
  return size && size < 0.001 ? value.toExponential(1).replace("-", MINUS) : String(Number(value.toPrecision(3)));
}
