// A line chart on a canvas: lines below, cursor and selection on a second canvas above, so that moving is cheap.
"use strict";

const MARGIN = { left: 70, right: 14, top: 12, bottom: 40 };

class Chart {
  // `own` says what this chart shows: { yLabel, format(value), zero: whether zero is always in sight, canBeLog, floor:
  // whether the axis stops at zero, paper: width and height in print }.
  constructor(figure, own, handlers) {
    Object.assign(this, { figure, own, handlers, lines: [], dragging: null });
    this.plot = figure.querySelector(".plot");
    this.tip = figure.querySelector(".tip");
    this.below = figure.querySelector("canvas.lines");
    this.above = figure.querySelector("canvas.cursor");
    this.plot.addEventListener("pointermove", (event) => this.moved(event));
    this.plot.addEventListener("pointerdown", (event) => this.pressed(event));
    this.plot.addEventListener("pointerup", (event) => this.released(event));
    this.plot.addEventListener("pointercancel", () => this.left());
    this.plot.addEventListener("pointerleave", () => this.left());
    this.plot.addEventListener("dblclick", () => handlers.reset());
    this.plot.addEventListener("keydown", (event) => handlers.key(event, this));
    this.plot.addEventListener("blur", () => handlers.leave());
  }

  // On paper a chart has a size of its own, however large the window is.
  resize(ratio, onPaper) {
    const { clientWidth, clientHeight } = this.plot;
    const [width, height] = onPaper ? this.own.paper : [clientWidth, clientHeight];
    Object.assign(this, { width, height, ratio });
    for (const canvas of [this.below, this.above]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
  }

  // `view` is what all charts share: { kept, from, to, logX }; lines are { name, colour, dash, width, values, faint }.
  draw(lines, view, theme) {
    Object.assign(this, { lines, view, theme });
    const { left, right, top, bottom } = MARGIN;
    this.x = new Scale(view.from, view.to, left, this.width - right, view.logX);
    const [low, high, logY] = this.extent();
    this.y = new Scale(low, high, this.height - bottom, top, logY);
    const pen = this.below.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    this.drawAxes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, this.width - left - right, this.height - top - bottom);
    pen.clip();
    const pixels = Float32Array.from(view.kept, (position) => this.x.pixel(position));
    for (const line of lines) if (line.faint) this.drawLine(pen, line, pixels);
    for (let i = lines.length - 1; i >= 0; i--) if (!lines[i].faint) this.drawLine(pen, lines[i], pixels);
    pen.restore();
  }

  // The values in sight, with a little air; faint lines do not count unless nothing else is there.
  extent() {
    const { kept, from, to } = this.view;
    const strong = this.lines.filter((line) => !line.faint);
    let [low, high] = this.own.zero ? [0, 0] : [Infinity, -Infinity];
    const inSight = [];
    for (let i = 0; i < kept.length; i++) if (kept[i] >= from && kept[i] <= to) inSight.push(i);
    for (const { values } of strong.length ? strong : this.lines) {
      for (const i of inSight) {
        if (values[i] < low) low = values[i];
        if (values[i] > high) high = values[i];
      }
    }
    if (low > high) [low, high] = [0, 1];
    if (this.own.canBeLog && low > 0 && high / low > 8) return [low / 1.15, high * 1.15, true];
    const size = Math.max(Math.abs(low), Math.abs(high));
    const isFlat = high - low < 1e-6 * Math.max(size, 1); // what rounding left is no curve
    const air = isFlat ? (size > 1e-6 ? size * 0.05 : 1) : (high - low) * 0.05;
    return [this.own.floor && low >= 0 ? Math.max(low - air, 0) : low - air, high + air, false];
  }

  drawAxes(pen) {
    const { left, right, top, bottom } = MARGIN;
    const { ink, rule, axis, font } = this.theme;
    pen.font = font;
    pen.fillStyle = ink;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const line = (x0, y0, x1, y1, colour) => {
      pen.strokeStyle = colour;
      pen.beginPath();
      pen.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
      pen.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
      pen.stroke();
    };
    for (const mark of this.x.marks(this.width / 110)) {
      const at = this.x.pixel(mark);
      line(at, top, at, this.height - bottom, rule);
      const text = positionMark(mark);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(at, this.width - half - 1), this.height - bottom + 6); // whole, at the end as well
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const mark of this.y.marks(this.height / 55)) {
      const at = this.y.pixel(mark);
      line(left, at, this.width - right, at, mark === 0 ? axis : rule);
      pen.fillText(valueMark(mark), left - 7, at);
    }
    line(left, this.height - bottom, this.width - right, this.height - bottom, axis);
    pen.textAlign = "right";
    pen.textBaseline = "bottom";
    pen.fillText("labels coded", this.width - right, this.height - 2);
    pen.save();
    pen.translate(3, top);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "top";
    pen.fillText(this.own.yLabel, 0, 0);
    pen.restore();
  }

  // Points that share a column of pixels become one upright stroke, so that no spike is lost and few points are drawn.
  drawLine(pen, line, pixels) {
    const { values } = line;
    const { start, end } = this.x;
    const draw = new Path2D();
    let column = null;
    let [first, least, most, last, open] = [0, 0, 0, 0, false];
    const flush = () => {
      if (column === null) return;
      open ? draw.lineTo(column, first) : draw.moveTo(column, first);
      open = true;
      if (least < Math.min(first, last) - 0.5 || most > Math.max(first, last) + 0.5) {
        draw.lineTo(column, least);
        draw.lineTo(column, most);
      }
      if (last !== first) draw.lineTo(column, last);
    };
    for (let i = 0; i < values.length; i++) {
      if (!Number.isFinite(values[i]) || !Number.isFinite(pixels[i])) continue;
      if (i + 1 < values.length && pixels[i + 1] < start) continue;
      const at = line.faint ? Math.round(pixels[i]) : Math.round(pixels[i] * 2) / 2;
      const height = Math.max(-1e4, Math.min(1e4, this.y.pixel(values[i])));
      if (at === column) {
        least = Math.min(least, height);
        most = Math.max(most, height);
        last = height;
      } else {
        flush();
        [column, first, least, most, last] = [at, height, height, height, height];
      }
      if (pixels[i] > end) break;
    }
    flush();
    pen.strokeStyle = line.colour;
    pen.lineWidth = line.width;
    pen.lineJoin = "round";
    pen.setLineDash(line.dash);
    pen.stroke(draw);
    pen.setLineDash([]);
  }
}
