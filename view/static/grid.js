// Every position at every step: one picture, drawn once for each layer and then only scaled.

import { el } from "./dom.js";
import { css, fadedRamp, levelOf, mix, ramp } from "./colour.js";
import { Plot } from "./plot.js";
import { drawMoments } from "./tracks.js";

export const LAYERS = [
  { name: "confidence", about: "softmax probability of the predicted token", top: 1 },
  { name: "entropy", about: "of the whole prediction, in nats" },
  { name: "gap", about: "best logit minus second best" },
  { name: "changed", about: "predictions that differ from the step before" },
  { name: "commit", about: "who committed a position, and when" },
];
// Okabe and Ito's, in the order of the origins: schedule, core, confirmed, accepted, fill.
export const ORIGIN_COLOURS = [[120, 130, 145], [0, 114, 178], [0, 158, 115], [230, 159, 0], [213, 94, 0]];

/** The highest value that a layer shows: what all but the top hundredth stay below. */
function topOf(values) {
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(0.99 * (sorted.length - 1))] || 1;
}

function rgb(text) {
  const hex = text.replace("#", "");
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** The pixels of a layer, steps across and positions down. */
export function paint(decode, layer) {
  const { steps, length } = decode;
  const image = new ImageData(steps, length);
  const pixels = new Uint32Array(image.data.buffer);
  const colourOf = layer === "commit" || !decode.hasCells ? commitColours(decode) : layer === "changed" ? changeColours(decode) : levelColours(decode, layer);
  for (let position = 0; position < length; position += 1) {
    for (let step = 1; step <= steps; step += 1) {
      pixels[position * steps + step - 1] = colourOf(step, position);
    }
  }
  return image;
}

/** A colour as the four bytes of a pixel, whatever the order of bytes in a number. */
function pixel([red, green, blue]) {
  return new Uint32Array(new Uint8ClampedArray([red, green, blue, 255]).buffer)[0];
}

function levelColours(decode, layer) {
  const bright = ramp().map(pixel);
  const faded = fadedRamp().map(pixel);
  const top = LAYERS.find((one) => one.name === layer).top ?? topOf(decode.arrays[layer]);
  const { steps } = decode;
  const values = decode.arrays[layer];
  const masked = decode.arrays.masked;
  return (step, position) => {
    const at = position * steps + step - 1;
    return (masked[at] ? bright : faded)[levelOf(values[at] / top)];
  };
}

function changeColours(decode) {
  const ground = rgb(css("panel"));
  const strong = rgb(css("changed"));
  const [none, much, quiet, faint] = [ground, strong, mix(ground, strong, 0.1), mix(ground, strong, 0.32)].map(pixel);
  return (step, position) => {
    const masked = decode.isMasked(step, position);
    const changed = step > 1 && decode.at("token", step, position) !== decode.at("token", step - 1, position);
    return changed ? (masked ? much : faint) : masked ? quiet : none;
  };
}

function commitColours(decode) {
  const ground = rgb(css("panel"));
  const waiting = pixel(mix(ground, rgb(css("quiet")), 0.18));
  const strong = ORIGIN_COLOURS.map(pixel);
  const faded = ORIGIN_COLOURS.map((colour) => pixel(mix(colour, ground, 0.72)));
  return (step, position) => {
    const by = decode.arrays.committedBy[position];
    if (!decode.isMasked(step, position)) return faded[by];
    return decode.commitsNow(step, position) ? strong[by] : waiting;
  };
}

export class Grid extends Plot {
  constructor(height, onpoint) {
    super("positions", height, "Every position at every step");
    this.picture = el("canvas");
    this.pointer = el("div", { class: "row-mark", "aria-hidden": "true" });
    this.area.append(this.pointer);
    this.area.addEventListener("pointermove", (event) => {
      if (!this.axis) return;
      const box = this.area.getBoundingClientRect();
      onpoint(this.axis.positionAt((event.clientY - box.top) / box.height), this.axis.stepAt((event.clientX - box.left) / box.width));
    });
  }

  show(decode, layer) {
    this.decode = decode;
    this.picture.width = decode.steps;
    this.picture.height = decode.length;
    this.picture.getContext("2d").putImageData(paint(decode, layer), 0, 0);
    this.canvas.setAttribute("aria-label", `${layer} of ${decode.length} positions at ${decode.steps} steps`);
  }

  draw(axis, decode, exits) {
    this.axis = axis;
    const context = this.begin();
    if (!context) return;
    context.imageSmoothingEnabled = false;
    const [columns, rows] = [axis.to - axis.from + 1, axis.high - axis.low + 1];
    context.drawImage(this.picture, axis.from - 1, axis.low, columns, rows, 0, 0, this.width, this.height);
    this.blocks(context, axis, decode, rows);
    drawMoments(context, this, axis, { ...decode, stabilization: null, blockOfStep: decode.blockOfStep }, exits);
  }

  blocks(context, axis, decode, rows) {
    context.fillStyle = css("grid-rule");
    for (let edge = decode.block; edge < decode.length; edge += decode.block) {
      const y = ((edge - axis.low) / rows) * this.height;
      if (y > 0 && y < this.height) context.fillRect(0, Math.round(y), this.width, 1);
    }
  }

  mark(axis, position) {
    const rows = axis.high - axis.low + 1;
    const size = Math.max(2, this.height / rows);
    const top = ((position - axis.low) / rows) * this.height;
    this.pointer.hidden = position < axis.low || position > axis.high;
    this.pointer.style.setProperty("transform", `translateY(${top}px)`);
    this.pointer.style.setProperty("height", `${size}px`);
  }
}
