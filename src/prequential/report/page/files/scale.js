// Axes: from values to pixels and back, and where their marks go.
"use strict";

class Scale {
  constructor(low, high, start, end, logarithmic) {
    Object.assign(this, { low, high, start, end, logarithmic });
    this.from = logarithmic ? Math.log(low) : low;
    this.to = logarithmic ? Math.log(high) : high;
    if (this.to === this.from) this.to = this.from + 1;
  }

  pixel(value) {
    const at = this.logarithmic ? Math.log(Math.max(value, 1e-300)) : value;
    return this.start + ((at - this.from) / (this.to - this.from)) * (this.end - this.start);
  }

  value(pixel) {
    const at = this.from + ((pixel - this.start) / (this.end - this.start)) * (this.to - this.from);
    return this.logarithmic ? Math.exp(at) : at;
  }

  marks(about) {
    return this.logarithmic && this.high / this.low > 3 ? this.logMarks(about) : this.evenMarks(about);
  }

  evenMarks(about) {
    const rough = (this.high - this.low) / Math.max(about, 1);
    const power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || power;
    const marks = [];
    for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high + step * 1e-9; i++) marks.push(i * step + 0); // never −0
    return marks;
  }

  logMarks(about) {
    const decades = Math.log10(this.high / this.low);
    const factors = decades * 3 <= about * 1.5 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / Math.max(about, 1)));
    const marks = [];
    for (let power = Math.floor(Math.log10(this.low)); power <= Math.ceil(Math.log10(this.high)); power++) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        const inside = value >= this.low * 0.9999 && value <= this.high * 1.0001;
        if (inside && power % every === 0) marks.push(value);
      }
    }
    return marks;
  }
}

function positionMark(value) {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(4))} M`;
  return number(value, value % 1 ? 1 : 0);
}

function valueMark(value) {
  const rounded = Number(value.toPrecision(6));
  if (Math.abs(rounded) >= 1e6) return `${Number((rounded / 1e6).toPrecision(4))} M`.replace("-", MINUS);
  if (rounded && Math.abs(rounded) < 1e-4) return rounded.toExponential(0).replace("-", MINUS);
  return rounded.toLocaleString("en-GB", { maximumFractionDigits: 6 }).replace("-", MINUS);
}
