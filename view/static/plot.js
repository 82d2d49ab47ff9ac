// Canvases over one common axis of steps, so that a moment is a vertical line through all of them.

import { el } from "./dom.js";
import { css } from "./colour.js";

export class Axis {
  constructor(steps, length) {
    this.steps = steps;
    this.length = length;
    this.reset();
  }

  reset() {
    [this.from, this.to, this.low, this.high] = [1, this.steps, 0, this.length - 1];
  }

  get isZoomed() {
    return this.from > 1 || this.to < this.steps || this.low > 0 || this.high < this.length - 1;
  }

  /** The middle of a step, as a share of the width. */
  share(step) {
    return (step - this.from + 0.5) / (this.to - this.from + 1);
  }

  stepAt(share) {
    const step = Math.floor(this.from + share * (this.to - this.from + 1));
    return Math.max(this.from, Math.min(this.to, step));
  }

  positionAt(share) {
    const position = Math.floor(this.low + share * (this.high - this.low + 1));
    return Math.max(this.low, Math.min(this.high, position));
  }

  /** Look at a part of the steps and positions around a cell; factors below 1 look closer. */
  zoom(step, position, factor) {
    [this.from, this.to] = around(step, this.from, this.to, factor, 1, this.steps);
    [this.low, this.high] = around(position, this.low, this.high, factor, 0, this.length - 1);
  }
}

function around(centre, from, to, factor, least, most) {
  const size = Math.max(8, Math.min(most - least + 1, Math.round((to - from + 1) * factor)));
  const share = (centre - from) / Math.max(1, to - from);
  const start = Math.round(centre - share * (size - 1));
  const first = Math.max(least, Math.min(most - size + 1, start));
  return [first, Math.min(most, first + size - 1)];
}

/** A canvas that is as sharp as the screen, with a label beside it. */
export class Plot {
  constructor(label, height, about) {
    this.canvas = el("canvas", { role: "img", "aria-label": about });
    this.cursor = el("div", { class: "cursor", "aria-hidden": "true" });
    this.scale = el("span", { class: "scale" });
    this.side = el("div", { class: "side" }, el("span", {}, label), this.scale);
    this.area = el("div", { class: "area" }, this.canvas, this.cursor);
    this.resize(height);
    this.root = el("div", { class: "plot" }, this.side, this.area);
  }

  resize(height) {
    this.height = height;
    this.area.style.setProperty("height", `${height}px`);
  }

  /** A context in CSS pixels, cleared; null while the page gives it no room. */
  begin() {
    const width = this.area.clientWidth;
    if (!width) return null;
    const ratio = globalThis.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = `11px ${css("sans")}`;
    context.textBaseline = "middle";
    return context;
  }

  /** Put the cursor on a step, without drawing anything again. */
  moveCursor(axis, step) {
    const share = axis.share(step);
    this.cursor.style.setProperty("transform", `translateX(${share * this.area.clientWidth}px)`);
    this.cursor.hidden = share < 0 || share > 1;
  }

  listen(axis, onstep) {
    const move = (event) => {
      const box = this.area.getBoundingClientRect();
      onstep(axis().stepAt((event.clientX - box.left) / box.width), event, box);
    };
    this.area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.area.setPointerCapture(event.pointerId);
      this.dragging = true;
      move(event);
    });
    this.area.addEventListener("pointermove", (event) => this.dragging && move(event));
    const stop = () => (this.dragging = false);
    this.area.addEventListener("pointerup", stop);
    this.area.addEventListener("pointercancel", stop);
  }
}

export function line(context, points, { colour, width = 1.4, dash = [] }) {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  let broken = true;
  for (const [x, y] of points) {
    if (y === null || Number.isNaN(y)) broken = true;
    else if (broken) {
      context.moveTo(x, y);
      broken = false;
    } else context.lineTo(x, y);
  }
  context.stroke();
  context.restore();
}
