// The scrubber: a step that everything follows, by hand, by key, or playing.

import { el } from "./dom.js";

export const SPEEDS = [2, 5, 10, 20, 40];
const THUMB = 16;

export class Player {
  /** `onstep(step)` is told of every move. */
  constructor(onstep) {
    this.onstep = onstep;
    this.steps = 1;
    this.step = 1;
    this.playing = 0;
    this.play = el("button", { class: "play", type: "button", onclick: () => this.toggle(), "aria-label": "Play" }, "▶");
    this.range = el("input", { type: "range", min: 1, max: 1, value: 1, "aria-label": "Step", oninput: () => this.go(Number(this.range.value)) });
    this.speed = el("select", { "aria-label": "Steps per second", onchange: () => this.restart() },
      SPEEDS.map((speed) => el("option", { value: speed, selected: speed === 10 }, `${speed}/s`)));
    this.readout = el("div", { class: "readout" });
    const button = (label, text, move) => el("button", { type: "button", "aria-label": label, title: label, onclick: move }, text);
    this.buttons = el("div", { class: "transport" },
      button("First step", "|◀", () => this.go(1)), button("One step back", "◁", () => this.go(this.step - 1)), this.play,
      button("One step on", "▷", () => this.go(this.step + 1)), button("Last step", "▶|", () => this.go(this.steps)), this.speed, this.readout);
    this.track = el("div", { class: "scrub" }, this.range);
    this.root = el("div", { class: "player" }, this.buttons);
  }

  show(steps, step) {
    this.pause();
    this.steps = steps;
    this.range.max = steps;
    this.set(step);
  }

  /** Put the thumb exactly below each step of plots as wide as the track. */
  align() {
    const width = this.track.clientWidth;
    const inner = (width * (this.steps - 1)) / this.steps;
    this.range.style.setProperty("width", `${inner + THUMB}px`);
    this.range.style.setProperty("margin-left", `${width / this.steps / 2 - THUMB / 2}px`);
  }

  set(step) {
    this.step = Math.max(1, Math.min(this.steps, step));
    this.range.value = this.step;
  }

  go(step) {
    this.set(step);
    this.onstep(this.step);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    if (this.step === this.steps) this.go(1);
    this.playing = setInterval(() => {
      if (this.step >= this.steps) this.pause();
      else this.go(this.step + 1);
    }, 1000 / Number(this.speed.value));
    this.tellPlaying();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = 0;
    this.tellPlaying();
  }

  restart() {
    if (!this.playing) return;
    this.pause();
    this.start();
  }

  faster(by) {
    const at = SPEEDS.indexOf(Number(this.speed.value)) + by;
    this.speed.value = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))];
    this.restart();
  }

  tellPlaying() {
    this.play.textContent = this.playing ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.play.classList.toggle("on", Boolean(this.playing));
  }
}
