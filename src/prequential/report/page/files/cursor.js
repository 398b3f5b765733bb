// What a chart does under a pointer: a cursor with the values there, and a selection that zooms.
"use strict";

const NAMED = 12;

Object.assign(Chart.prototype, {
  moved(event) {
    const box = this.plot.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (this.dragging !== null) this.drawSelection(x);
    else this.handlers.cursor(this.x.value(Math.max(this.x.start, Math.min(this.x.end, x))), this, y);
  },

  pressed(event) {
    if (event.button !== 0) return;
    this.dragging = event.clientX - this.plot.getBoundingClientRect().left;
    this.plot.setPointerCapture(event.pointerId);
  },

  released(event) {
    if (this.dragging === null) return;
    const ends = [this.dragging, event.clientX - this.plot.getBoundingClientRect().left].sort((a, b) => a - b);
    this.left();
    const within = ends.map((at) => this.x.value(Math.max(this.x.start, Math.min(this.x.end, at))));
    if (ends[1] - ends[0] > 6) this.handlers.zoom(within[0], within[1]);
  },

  left() {
    this.dragging = null;
    this.handlers.leave();
  },

  clearCursor() {
    this.above.getContext("2d").clearRect(0, 0, this.width, this.height);
    this.tip.hidden = true;
  },

  drawSelection(x) {
    this.clearCursor();
    const pen = this.above.getContext("2d");
    const ends = [this.dragging, x].map((at) => Math.max(this.x.start, Math.min(this.x.end, at)));
    pen.fillStyle = this.theme.selection;
    pen.fillRect(ends[0], MARGIN.top, ends[1] - ends[0], this.height - MARGIN.top - MARGIN.bottom);
  },

  // The values at a kept position, those nearest to the pointer first where there are too many to name.
  valuesAt(index, near) {
    const found = this.lines
      .filter((line) => line.named !== false && Number.isFinite(line.values[index]))
      .map((line) => ({ line, value: line.values[index], away: Math.abs(this.y.pixel(line.values[index]) - near) }));
    const strong = found.filter(({ line, away }) => !line.faint || away < 4);
    strong.sort((a, b) => a.away - b.away);
    const nearest = strong.length ? strong[0].line : null;
    const named = strong.slice(0, NAMED).sort((a, b) => b.value - a.value);
    return { named, nearest, hidden: strong.length - named.length };
  },

  drawCursor(index, near, withTip) {
    this.clearCursor();
    const pen = this.above.getContext("2d");
    const position = this.view.kept[index];
    const at = this.x.pixel(position);
    if (!(at >= this.x.start - 1 && at <= this.x.end + 1)) return;
    pen.strokeStyle = this.theme.axis;
    pen.beginPath();
    pen.moveTo(at, MARGIN.top);
    pen.lineTo(at, this.height - MARGIN.bottom);
    pen.stroke();
    const { named, nearest, hidden } = this.valuesAt(index, near);
    for (const { line, value } of named) {
      const height = this.y.pixel(value);
      if (height < MARGIN.top - 1 || height > this.height - MARGIN.bottom + 1) continue;
      pen.fillStyle = line.colour;
      pen.beginPath();
      pen.arc(at, height, line === nearest && withTip ? 5 : 3, 0, 2 * Math.PI);
      pen.fill();
    }
    if (withTip) this.showTip(at, position, named, nearest, hidden);
  },

  showTip(at, position, named, nearest, hidden) {
    this.tip.replaceChildren();
    const head = this.tip.appendChild(document.createElement("strong"));
    head.textContent = `after ${number(position)} label${position === 1 ? "" : "s"}`;
    const table = this.tip.appendChild(document.createElement("table"));
    for (const { line, value } of named) {
      const row = table.insertRow();
      row.className = line === nearest ? "nearest" : "";
      row.insertCell().appendChild(swatch(line));
      row.insertCell().textContent = line.name;
      row.insertCell().textContent = this.own.format(value);
    }
    if (hidden) this.tip.appendChild(document.createElement("em")).textContent = `and ${number(hidden)} more`;
    this.tip.hidden = false;
    const room = this.width - at - 20;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${room > width ? at + 12 : Math.max(at - width - 12, 0)}px`;
    this.tip.style.top = `${MARGIN.top}px`;
  },
});

// A short piece of a line, as it is drawn.
function swatch({ colour, dash, width }) {
  const picture = document.getElementById("swatch").content.firstElementChild.cloneNode(true);
  const line = picture.firstElementChild;
  line.setAttribute("stroke", colour);
  line.setAttribute("stroke-width", Math.max(width, 2));
  line.setAttribute("stroke-dasharray", dash.join(" "));
  return picture;
}
