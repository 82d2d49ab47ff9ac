// Two decodes of one example, side by side and step by step.

import { brief, el, visible } from "./dom.js";
import { markColour } from "./colour.js";
import { state } from "./state.js";
import { Decode } from "./model.js";
import { TextPanel } from "./text.js";
import { Axis } from "./plot.js";
import { Grid, LAYERS, ORIGIN_COLOURS } from "./grid.js";
import { Player } from "./player.js";
import { worth } from "./gates.js";

class Side {
  constructor(name, choose) {
    this.name = name;
    this.pick = el("select", { "aria-label": `Run on side ${name}`, onchange: () => choose(this.pick.value) });
    this.facts = el("div", { class: "side-facts" });
    this.text = new TextPanel((position) => this.text.mark(position), `Text on side ${name}`);
    this.grid = new Grid(200, (position) => this.text.mark(position));
    this.done = el("span", { class: "done" });
    this.root = el("section", { class: "card compare-side", "aria-label": `Side ${name}` }, el("div", { class: "card-head" }, this.pick, this.done), this.facts, this.text.root, this.grid.root);
  }

  show(decode, axis) {
    this.decode = decode;
    this.axis = axis;
    const { row, run } = decode;
    this.facts.replaceChildren(worth(row.correct, false), el("bdi", { class: "value" }, row.answer === null ? "no answer" : brief(row.answer, 40)), el("span", { class: "quiet" }, `${row.steps} of ${row.budget} steps${row.exit_step ? `, stopped by its gate at ${row.exit_step}` : ""}`));
    this.root.style.setProperty("--mark", markColour(run.colour));
    this.text.show(decode);
    this.text.draw(decode.steps, { everything: true });
    this.text.root.style.setProperty("height", `${Math.min(Math.max(this.text.root.scrollHeight + 2, 96), 300)}px`);
  }

  draw(layer) {
    this.grid.show(this.decode, this.decode.hasCells ? layer : "commit");
    // Both grids are as wide as the longer decode, so that equal steps stand at equal places.
    this.grid.canvas.style.setProperty("width", `${(100 * this.decode.steps) / this.axis.steps}%`);
    this.grid.draw(new Axis(this.decode.steps, this.decode.length), this.decode, []);
  }

  move(step) {
    const here = Math.min(step, this.decode.steps);
    this.text.draw(here, { everything: false });
    this.grid.moveCursor(this.axis, here);
    const ended = step > this.decode.steps;
    this.done.textContent = ended ? `ended at step ${this.decode.steps}` : `step ${here}`;
    this.root.classList.toggle("ended", ended);
  }
}

export class CompareScreen {
  constructor(source, overview) {
    this.source = source;
    this.overview = overview;
    this.player = new Player((step) => this.moved(step));
    this.a = new Side("A", (run) => state.patch({ run }));
    this.b = new Side("B", (run) => state.patch({ b: run }));
    this.title = el("h1", {});
    this.status = el("p", { class: "quiet", role: "status" });
    this.layers = el("div", { class: "layers", role: "radiogroup", "aria-label": "What the grids show" },
      LAYERS.map((layer) => el("button", { type: "button", role: "radio", title: layer.about, dataset: { layer: layer.name }, onclick: () => state.patch({ layer: layer.name }) }, layer.name)));
    this.legend = el("div", { class: "legend" }, ["schedule", "core", "confirmed", "accepted", "fill"].map((name, i) => el("span", { class: "key" }, el("i", { style: { background: `rgb(${ORIGIN_COLOURS[i].join(" ")})` } }), name)));
    this.pair = el("div", { class: "two" }, this.a.root, this.b.root);
    this.root = el("div", { class: "compare" }, el("header", { class: "screen-head" }, this.title, this.status),
      el("section", { class: "card stage-card" }, this.player.root, el("div", { class: "compare-scrub" }, this.player.track), el("div", { class: "grid-head" }, this.layers, this.legend)), this.pair);
    new ResizeObserver(() => this.redraw()).observe(this.pair);
  }

  /** The runs of the same task and model, which may hold the same example. */
  get candidates() {
    const first = this.overview.runs.find((run) => run.key === state.get("run")) ?? this.overview.runs[0];
    return this.overview.runs.filter((run) => run.task === first.task && run.model === first.model);
  }

  async open() {
    const runs = this.candidates;
    const a = runs.find((run) => run.key === state.get("run")) ?? runs[0];
    const b = runs.find((run) => run.key === state.get("b")) ?? runs.find((run) => run.key !== a.key && run.method === "c4") ?? runs.find((run) => run.key !== a.key) ?? a;
    for (const [side, chosen] of [[this.a, a], [this.b, b]]) {
      side.pick.replaceChildren(...runs.map((run) => el("option", { value: run.key, selected: run.key === chosen.key }, visible(`${run.methodLabel}${run.hasCells ? "" : " (results)"}`))));
    }
    const t = state.number("t", -1);
    this.title.textContent = `${a.taskLabel} ${t >= 0 ? `#${t}` : ""}: ${a.methodLabel} and ${b.methodLabel}`;
    const asked = (this.asked = `${a.key} ${b.key} ${t}`);
    this.pair.hidden = true;
    this.status.textContent = "reading…";
    try {
      const first = t >= 0 ? t : (await this.source.list({ task: a.task, method: a.method }, 0, 1)).rows[0]?.t;
      const [one, other] = await Promise.all([a, b].map((run) => this.source.trajectory(run.key, first, [])));
      if (this.asked !== asked) return;
      this.status.textContent = runs.length > 1 ? "" : "There is no other run of this task and model here; make one with: c4 run --cells --method c4";
      this.show(new Decode(one), new Decode(other), first);
    } catch (error) {
      this.status.textContent = visible(error.message);
    }
  }

  show(one, other, t) {
    this.pair.hidden = false;
    this.title.textContent = `${one.run.taskLabel} #${t}: ${one.run.methodLabel} and ${other.run.methodLabel}`;
    this.axis = new Axis(Math.max(one.steps, other.steps), Math.max(one.length, other.length));
    this.a.show(one, this.axis);
    this.b.show(other, this.axis);
    this.player.show(this.axis.steps, state.number("step", 1));
    this.redraw();
  }

  redraw() {
    if (!this.axis || this.pair.hidden || !this.pair.clientWidth) return;
    const layer = state.get("layer", "commit");
    for (const button of this.layers.children) button.setAttribute("aria-checked", String(button.dataset.layer === layer));
    this.legend.hidden = layer !== "commit";
    this.player.align();
    this.a.draw(layer);
    this.b.draw(layer);
    this.moved(this.player.step, { quietly: true });
  }

  moved(step, { quietly = false } = {}) {
    if (!this.axis) return;
    this.player.set(step);
    this.a.move(step);
    this.b.move(step);
    this.player.readout.replaceChildren(el("strong", {}, `step ${this.player.step}`), ` of ${this.axis.steps}`);
    if (!quietly) state.patch({ step });
  }

  recolour() {
    if (!this.axis) return;
    for (const side of [this.a, this.b]) side.text.recolour();
    this.redraw();
  }

  update(changed) {
    if (changed.has("run") || changed.has("b") || changed.has("t")) this.open();
    else if (changed.has("layer")) this.redraw();
    else if (changed.has("step") && state.number("step", 1) !== this.player.step) this.moved(state.number("step", 1), { quietly: true });
  }
}
