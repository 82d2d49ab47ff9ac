// What gates look at, step by step: the answer read, how long it has held, confidence and gap.

import { brief } from "./dom.js";
import { css, markColour, markerPath } from "./colour.js";
import { Plot, line } from "./plot.js";

const MOST_VALUES = 5;
const ROW = 17;

/** Vertical lines that all plots share: blocks, where the answer settles, and exits. */
export function drawMoments(context, plot, axis, decode, exits) {
  const x = (step) => axis.share(step) * plot.width;
  const half = plot.width / (axis.to - axis.from + 1) / 2;
  if (decode.stabilization) {
    context.fillStyle = css("settled");
    const start = Math.max(0, x(decode.stabilization) - half);
    context.fillRect(start, 0, plot.width - start, plot.height);
  }
  context.fillStyle = css("rule");
  for (let step = Math.max(2, axis.from); step <= axis.to; step += 1) {
    if (decode.blockOfStep[step - 1] !== decode.blockOfStep[step - 2]) {
      context.fillRect(Math.round(x(step) - half), 0, 1, plot.height);
    }
  }
  for (const { step, colour } of exits) {
    if (step < axis.from || step > axis.to) continue;
    context.fillStyle = markColour(colour);
    context.fillRect(Math.round(x(step)) - 0.75, 0, 1.5, plot.height);
  }
}

/** Exits above everything else: the mark of each gate, stacked where several stop at a step. */
export class MarkLane extends Plot {
  constructor() {
    super("exits", 34, "Where each gate stops, and where the answer settles");
    this.marks = [];
  }

  draw(axis, decode, exits) {
    const context = this.begin();
    if (!context) return;
    drawMoments(context, this, axis, decode, []);
    context.fillStyle = css("rule");
    context.fillRect(0, this.height - 1, this.width, 1);
    const stacked = new Map();
    this.marks = [];
    for (const exit of exits) {
      if (exit.step < axis.from || exit.step > axis.to) continue;
      const row = stacked.get(exit.step) ?? 0;
      stacked.set(exit.step, row + 1);
      const x = axis.share(exit.step) * this.width + Math.floor(row / 3) * 11;
      const y = this.height - 8 - (row % 3) * 10;
      context.save();
      context.translate(x, y);
      context.fillStyle = markColour(exit.colour);
      context.strokeStyle = css("panel");
      context.lineWidth = 1.5;
      const path = new Path2D(markerPath(exit.marker, 4.6));
      context.stroke(path);
      context.fill(path);
      context.restore();
      this.marks.push({ gate: exit.gate, step: exit.step, x, y });
    }
    if (decode.stabilization) {
      context.fillStyle = css("settled-ink");
      context.textAlign = "right";
      context.fillText("settled", this.width - 4, 8);
    }
  }
}

/** The numbers of the steps. */
export class Ruler extends Plot {
  constructor() {
    super("", 20, "Numbers of the steps");
  }

  draw(axis) {
    const context = this.begin();
    if (!context) return;
    const shown = axis.to - axis.from + 1;
    const apart = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256].find((n) => (n * this.width) / shown >= 44) ?? 512;
    context.fillStyle = css("quiet");
    context.textAlign = "center";
    for (let step = Math.ceil(axis.from / apart) * apart; step <= axis.to; step += apart) {
      const x = axis.share(step) * this.width;
      context.fillRect(Math.round(x), 0, 1, 4);
      context.fillText(String(step), Math.min(this.width - 9, Math.max(5, x)), 12);
    }
  }
}

/** The answer that was read, one lane for each value; the full decode's answer is the lowest. */
export class AnswerTrack extends Plot {
  constructor() {
    super("answer read", ROW * (MOST_VALUES + 1), "The answer that is read at each step");
  }

  lanes(decode) {
    const { signal_candidate: read, signal_answer: answers } = decode.arrays;
    const final = answers[decode.steps - 1];
    const seen = [...new Set(read)].filter((number) => number >= 0 && number !== final);
    const others = seen.slice(-(final >= 0 ? MOST_VALUES - 1 : MOST_VALUES));
    return { final, others, more: seen.length - others.length };
  }

  draw(axis, decode, exits) {
    const { final, others, more } = this.lanes(decode);
    const order = [...(more ? [null] : []), ...others, ...(final >= 0 ? [final] : [])];
    this.resize(Math.max(1, order.length) * ROW + 4);
    const context = this.begin();
    if (!context) return;
    drawMoments(context, this, axis, decode, exits);
    const lane = new Map(order.map((number, i) => [number, this.height - 2 - (order.length - i) * ROW]));
    const read = decode.arrays.signal_candidate;
    const x = (step) => (axis.share(step) - 0.5 / (axis.to - axis.from + 1)) * this.width;
    let start = axis.from;
    for (let step = axis.from; step <= axis.to; step += 1) {
      if (step < axis.to && read[step] === read[step - 1]) continue;
      if (read[step - 1] >= 0) {
        this.bar(context, x(start), x(step + 1), read[step - 1], lane, final, decode);
      }
      start = step + 1;
    }
    if (more) this.label(context, 0, lane.get(null), `${more} earlier`, css("quiet"));
  }

  bar(context, from, to, number, lane, final, decode) {
    const top = lane.get(number) ?? lane.get(null);
    const colour = number === final ? css("answer") : css("other-answer");
    context.fillStyle = colour;
    context.fillRect(from, top + 2, Math.max(1, to - from - 0.5), ROW - 4);
    if (!lane.has(number)) return;
    const text = brief(decode.values[number], 40);
    if (context.measureText(text).width + 8 < to - from) {
      this.label(context, from, top, text, number === final ? css("on-answer") : css("ink"));
    }
  }

  label(context, x, top, text, colour) {
    context.fillStyle = colour;
    context.textAlign = "left";
    context.fillText(text, Math.max(4, x + 4), top + ROW / 2 + 0.5);
  }
}

/** A signal, and what gates ask of it. */
export class LevelTrack extends Plot {
  /** `signals`: what to draw, as [signal, colour of the theme]; `top`: the least upper end. */
  constructor(label, about, signals, top) {
    super(label, 54, about);
    this.signals = signals;
    this.top = top;
  }

  draw(axis, decode, exits, gates) {
    const context = this.begin();
    if (!context) return;
    drawMoments(context, this, axis, decode, exits);
    const asks = gates.flatMap((gate) =>
      this.signals.filter(([name]) => gate.asks[name]).map(([name]) => ({ gate, values: gate.asks[name] })));
    const top = this.reach(decode, asks, axis);
    const x = (step) => axis.share(step) * this.width;
    const y = (value) => (value === null || Number.isNaN(value) ? null : this.height - 4 - (Math.min(value, top * 1.05) / top) * (this.height - 12));
    for (const { gate, values } of asks) {
      line(context, this.steps(axis, values, x, y), { colour: markColour(gate.colour), width: 1.4, dash: [5, 3] });
    }
    for (const [name, colour, dash] of this.signals) {
      const values = decode.arrays[`signal_${name}`];
      line(context, this.points(axis, values, x, y), { colour: css(colour), width: 1.6, dash: dash ?? [] });
      this.dots(context, axis, values, x, y, css(colour));
    }
    this.scale.textContent = Number(top.toPrecision(2)).toString();
  }

  reach(decode, asks, axis) {
    let top = this.top;
    const see = (value) => {
      if (value !== null && Number.isFinite(value) && value > top) top = value;
    };
    for (const [name] of this.signals) decode.arrays[`signal_${name}`].subarray(axis.from - 1, axis.to).forEach(see);
    for (const { values } of asks) values.slice(axis.from - 1, axis.to).forEach((value) => see(Math.min(value, this.top * 4)));
    return top;
  }

  points(axis, values, x, y) {
    const found = [];
    for (let step = axis.from; step <= axis.to; step += 1) found.push([x(step), y(values[step - 1])]);
    return found;
  }

  /** The same with corners: a threshold holds for a whole step. */
  steps(axis, values, x, y) {
    const half = this.width / (axis.to - axis.from + 1) / 2;
    return this.points(axis, values, x, y).flatMap(([at, level]) => [[at - half, level], [at + half, level]]);
  }

  /** A value alone between two undefined ones has no line, but it is there. */
  dots(context, axis, values, x, y, colour) {
    context.fillStyle = colour;
    for (let step = axis.from; step <= axis.to; step += 1) {
      const alone = (at) => at < 1 || at > values.length || Number.isNaN(values[at - 1]);
      if (!alone(step) && alone(step - 1) && alone(step + 1)) context.fillRect(x(step) - 1.5, y(values[step - 1]) - 1.5, 3, 3);
    }
  }
}
