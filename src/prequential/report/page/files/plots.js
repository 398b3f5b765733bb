// The three charts and their controls: which lines are drawn, against which reference, in which part of the sequence.
"use strict";

const SHOWN_AT_FIRST = 10;
const FEW = 12;
const SEED_OPACITY = "70";

class Plots {
  constructor(data) {
    this.curves = new Curves(data);
    this.palette = data;
    const { entries, codes } = data;
    this.series = [
      ...entries.map((entry, i) => ({ ...entry, id: `entry:${i}`, number: i })),
      ...codes.map((code, i) => ({ name: code.name, runs: [], finite: true, id: `code:${i}`, number: i })),
    ];
    const most = entries.length > FEW ? SHOWN_AT_FIRST : entries.length;
    this.state = {
      shown: new Set(this.series.slice(0, most).map(({ id }) => id)),
      reference: entries.length > 1 ? "entry:0" : this.shortestCode(),
      logX: !data.linear,
      width: 0.25,
      seeds: entries.length <= FEW,
      others: true,
      zoom: null,
    };
    const handlers = {
      cursor: (labels, chart, y) => this.setCursor(this.curves.nearest(labels), chart, y),
      zoom: (from, to) => this.zoom(from, to),
      reset: () => this.zoom(null),
      leave: () => this.leave(),
      key: (event, chart) => this.key(event, chart),
    };
    const paper = [560, 250];
    const nats = (value) => `${number(value, 1)} nats`;
    const kinds = {
      regret: { yLabel: "regret [nats]", zero: true, paper: [840, 340], format: (value) => `${withSign(value)} nats` },
      loss: { yLabel: "next-step loss [nats per label]", canBeLog: true, floor: true, paper, format: shortNumber },
      codelength: { yLabel: "codelength [nats]", floor: true, paper, format: nats },
    };
    this.charts = Object.entries(kinds).map(([kind, own]) => {
      const chart = new Chart(document.getElementById(kind), own, handlers);
      chart.kind = kind;
      return chart;
    });
    this.cursor = null;
    this.printing = false;
  }

  // A run that is alone is shown against the best code that needs no model.
  shortestCode() {
    const lengths = this.curves.codes.map((code, i) => this.curves.reference(`code:${i}`).at(-1));
    return `code:${lengths.indexOf(Math.min(...lengths))}`;
  }

  get view() {
    const { logX, zoom } = this.state;
    const [from, to] = zoom || [logX ? 1 : 0, Math.max(this.curves.length, 2)];
    return { kept: this.curves.kept, from, to, logX };
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const font = `12px ${style.getPropertyValue("--font")}`;
    const [ink, rule, axis] = ["quiet", "rule", "axis"].map(colour);
    this.theme = { ink, rule, axis, selection: colour("selection"), faint: colour("faint"), text: colour("ink"), font };
  }

  // How a line looks: a colour for each entry and, once these are used up, another kind of dash. On paper, which may
  // know no colours, each colour has a dash of its own.
  look({ id, number: at }) {
    if (id.startsWith("code")) return { colour: this.theme.ink, dash: [[2, 3], [6, 2, 2, 2], [1, 2]][at % 3], width: 1.5 };
    const { colours, dashes } = this.palette;
    const colour = colours[at % colours.length];
    const round = Math.floor(at / colours.length);
    const dash = dashes[(this.printing ? at + round : round) % dashes.length];
    return { colour: colour === "#000000" ? this.theme.text : colour, dash, width: 2 };
  }

  curveOf({ id }) {
    return this.curves.reference(id);
  }

  valuesOf(kind, curve) {
    if (kind === "regret") return this.curves.regret(curve, this.curves.reference(this.state.reference));
    return kind === "loss" ? this.curves.loss(curve, this.state.width) : curve;
  }

  linesOf(kind) {
    const lines = [];
    for (const series of this.series) {
      const { name, id, runs } = series;
      if (this.state.shown.has(id)) {
        const look = this.look(series);
        lines.push({ name, ...look, values: this.valuesOf(kind, this.curveOf(series)) });
        if (!this.state.seeds || runs.length < 2) continue;
        for (const run of runs) {
          const values = this.valuesOf(kind, this.curves.runs[run]);
          lines.push({ ...look, width: 0.8, colour: look.colour + SEED_OPACITY, dash: [], values, named: false });
        }
      } else if (this.state.others && id.startsWith("entry")) {
        const values = this.valuesOf(kind, this.curveOf(series));
        lines.push({ name, colour: this.theme.faint, dash: [], width: 1, values, faint: true });
      }
    }
    return lines;
  }

  draw(ratio = window.devicePixelRatio || 1) {
    this.readTheme();
    for (const chart of this.charts) {
      const fits = chart.width === chart.plot.clientWidth && chart.height === chart.plot.clientHeight;
      if (!fits || chart.ratio !== ratio) chart.resize(ratio, this.printing);
      chart.draw(this.linesOf(chart.kind), this.view, this.theme);
      chart.clearCursor();
    }
    document.getElementById("whole").disabled = this.state.zoom === null;
  }

  // Draw again if the window changed.
  fit() {
    if (!this.printing && this.charts.some((chart) => chart.width !== chart.plot.clientWidth)) this.draw();
  }

  change(changes) {
    Object.assign(this.state, changes);
    this.draw();
    this.onchange();
  }

  zoom(from, to) {
    const { logX } = this.state;
    const whole = [logX ? 1 : 0, Math.max(this.curves.length, 2)];
    if (from === null) return this.change({ zoom: null });
    const ends = [Math.max(from, whole[0]), Math.min(to, whole[1])];
    if (logX ? ends[1] / ends[0] < 1.0005 : ends[1] - ends[0] < 2) return undefined;
    return this.change({ zoom: ends[0] <= whole[0] && ends[1] >= whole[1] ? null : ends });
  }

  // Make the part in sight larger or smaller around its middle, or around the cursor.
  scaleBy(factor) {
    const { from, to, logX } = this.view;
    const [forth, back] = logX ? [Math.log, Math.exp] : [(x) => x, (x) => x];
    const here = this.cursor === null ? null : this.curves.kept[this.cursor];
    const inside = here !== null && here > from && here < to;
    const middle = inside ? forth(here) : (forth(from) + forth(to)) / 2;
    this.zoom(back(middle - (middle - forth(from)) * factor), back(middle + (forth(to) - middle) * factor));
  }

  setCursor(index, chart, near) {
    this.cursor = index;
    for (const each of this.charts) each.drawCursor(index, each === chart ? near : each.height / 2, each === chart);
  }

  leave() {
    this.cursor = null;
    for (const chart of this.charts) chart.clearCursor();
  }

  key(event, chart) {
    const step = event.shiftKey ? 25 : 1;
    const last = this.curves.kept.length - 1;
    const at = this.cursor === null ? last : this.cursor;
    const { from, to } = this.view;
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: this.curves.nearest(from), End: this.curves.nearest(to) };
    if (event.key in moves) {
      this.setCursor(Math.max(0, Math.min(last, moves[event.key])), chart, MARGIN.top);
      this.announce(chart);
    } else if (event.key === "+" || event.key === "=") this.scaleBy(0.5);
    else if (event.key === "-") this.scaleBy(2);
    else if (event.key === "Escape" || event.key === "0") this.zoom(null);
    else return;
    event.preventDefault();
  }

  // The values at the cursor in words, for those who do not see the picture.
  announce(chart) {
    const { named } = chart.valuesAt(this.cursor, 0);
    const words = named.slice(0, 6).map(({ line, value }) => `${line.name} ${chart.own.format(value)}`);
    const position = number(this.curves.kept[this.cursor]);
    document.getElementById("spoken").textContent = `after ${position} labels: ${words.join(", ")}`;
  }
}
