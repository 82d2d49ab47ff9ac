// One trajectory: the screen a person lives in.

import { announce, brief, copyText, el, percent, visible } from "./dom.js";
import { markColour } from "./colour.js";
import { state } from "./state.js";
import { Decode } from "./model.js";
import { TextPanel, leftText, spell } from "./text.js";
import { Axis } from "./plot.js";
import { AnswerTrack, LevelTrack, MarkLane, Ruler } from "./tracks.js";
import { Grid, LAYERS, ORIGIN_COLOURS } from "./grid.js";
import { Player } from "./player.js";
import { GatePanel, glyph, worth } from "./gates.js";

const KEPT_FRAMES = 600;

export class TrajectoryScreen {
  constructor(source, overview) {
    this.source = source;
    this.overview = overview;
    this.frames = [];
    this.position = -1;
    this.asking = null;
    this.text = new TextPanel((position) => this.point(position));
    this.player = new Player((step) => this.moved(step));
    this.lane = new MarkLane();
    this.answers = new AnswerTrack();
    this.answers.scale.title = "how often the answer has changed so far";
    this.runs = new LevelTrack("steps unchanged", "For how many steps the answer has been the same, and the patience that gates ask for", [["run", "ink"]], 4);
    this.confidence = new LevelTrack("confidence", "Confidence of the answer’s span, and what gates ask for", [["confidence", "ink"]], 1);
    this.gap = new LevelTrack("gap (logits)", "Mean gap over the task’s region, dotted over masked positions, and the thresholds of Prophet and SchED", [["region_gap", "ink"], ["masked_gap", "quiet", [1.5, 2.5]]], 4);
    this.grid = new Grid(264, (position) => this.point(position));
    this.ruler = new Ruler();
    this.plots = [this.lane, this.answers, this.runs, this.confidence, this.gap, this.grid, this.ruler];
    for (const plot of this.plots) plot.listen(() => this.axis, (step) => this.player.go(step));
    this.gates = new GatePanel(overview, source.live, (step) => this.player.go(step));
    this.build();
    new ResizeObserver(() => this.redraw()).observe(this.stage);
  }

  build() {
    this.title = el("h1", { class: "headline" });
    this.facts = el("div", { class: "facts" });
    this.prompt = el("details", { class: "prompt" });
    this.inspector = el("div", { class: "inspector" }, el("span", { class: "quiet" }, "Point at a token or at the grid to see its numbers."));
    this.layers = el("div", { class: "layers", role: "radiogroup", "aria-label": "What the grid shows" },
      LAYERS.map((layer, i) => el("button", { type: "button", role: "radio", title: `${layer.about} (key ${i + 1})`, dataset: { layer: layer.name }, onclick: () => state.patch({ layer: layer.name }) }, layer.name)));
    this.legend = el("div", { class: "legend" });
    const zoom = (label, text, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.zoomer = el("div", { class: "zoomer" }, zoom("Zoom out", "−", () => this.zoom(1.6)), zoom("Zoom in", "+", () => this.zoom(1 / 1.6)), zoom("Show everything", "⤢", () => this.zoom(0)));
    this.all = el("input", { type: "checkbox", id: "everything", onchange: () => state.patch({ all: this.all.checked ? 1 : "" }) });
    this.stage = el("div", { class: "stage" },
      this.lane.root, el("div", { class: "plot scrub-row" }, el("div", { class: "side" }, "step"), el("div", { class: "area" }, this.player.track)),
      this.answers.root, this.runs.root, this.confidence.root, this.gap.root,
      el("div", { class: "grid-head" }, this.layers, this.legend, this.zoomer), this.grid.root, this.ruler.root);
    this.cards = el("div", { class: "cards" });
    this.notice = el("p", { class: "notice", hidden: true });
    this.textCard = el("section", { class: "card text-card", "aria-label": "Text" },
      el("div", { class: "card-head" }, el("h2", {}, "Text at this step"), this.stateKey(), el("label", { class: "switch", for: "everything" }, this.all, "predict ahead")),
      this.text.root, this.inspector);
    this.main = el("div", { class: "trajectory-main" }, this.textCard, el("section", { class: "card stage-card", "aria-label": "Steps" }, this.player.root, this.stage));
    this.left = el("section", { class: "left-texts", "aria-label": "What each gate would have left" }, el("h2", {}, "What each gate would have left"), this.cards);
    this.root = el("div", { class: "trajectory" }, el("header", { class: "trajectory-head" }, this.title, this.facts, this.prompt, this.notice), el("div", { class: "columns" }, this.main, this.gates.root), this.left);
    this.grid.area.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  stateKey() {
    const sample = (kind, word) => el("span", { class: "key" }, el("span", { class: `token ${kind}` }, "ab"), word);
    this.forcedKey = sample("provisional forced", "force-filled");
    return el("div", { class: "state-key", "aria-hidden": "true" }, sample("committed", "committed"), sample("committed now", "now"), sample("provisional sample", "provisional"), el("span", { class: "key" }, el("span", { class: "token masked" }, "▒"), "masked"), this.forcedKey);
  }

  async open(run, t) {
    const asked = `${run}#${t}`;
    this.asked = asked;
    this.root.classList.add("busy");
    try {
      const message = await this.fetchDecode(run, t);
      if (this.asked !== asked) return;
      this.show(new Decode(message));
    } catch (error) {
      if (this.asked === asked) this.fail(error);
    } finally {
      this.root.classList.remove("busy");
    }
  }

  /** The trajectory under the settings of the address, or without them if a gate refuses those. */
  async fetchDecode(run, t) {
    try {
      return await this.source.trajectory(run, t, state.get("set"));
    } catch (error) {
      if (!state.get("set").length) throw error;
      const message = await this.source.trajectory(run, t, []);
      announce(visible(error.message));
      state.patch({ set: [] });
      return message;
    }
  }

  fail(error) {
    this.decode = null;
    this.title.textContent = "This trajectory cannot be shown";
    this.facts.replaceChildren(el("p", { class: "problem" }, visible(error.message)));
    this.main.hidden = this.left.hidden = this.gates.root.hidden = true;
  }

  show(decode) {
    this.decode = decode;
    this.axis = new Axis(decode.steps, decode.length);
    this.main.hidden = false;
    for (const part of [this.gates.root, this.left, this.lane.root, this.answers.root, this.runs.root, this.confidence.root, this.gap.root]) part.hidden = !decode.hasCells;
    this.head(decode);
    this.forcedKey.hidden = !Array.from(decode.arrays.committedBy).some((_, p) => decode.isForced(p));
    this.text.show(decode);
    this.text.root.style.removeProperty("height");
    this.text.draw(decode.steps, { everything: true });
    // Its height is that of the whole text, and stays, so that nothing below moves while scrubbing.
    const height = Math.min(Math.max(this.text.root.scrollHeight + 2, 80), 300);
    this.text.root.style.setProperty("height", `${height}px`);
    if (decode.hasCells) {
      this.gates.show(decode);
      this.tellGates(decode.gates, decode.command);
      this.askCohort();
    }
    this.player.show(decode.steps, state.number("step", 1));
    this.paintLayer();
    this.redraw();
    this.moved(this.player.step, { quietly: true });
  }

  head(decode) {
    const { run, row } = decode;
    this.title.replaceChildren(el("span", { class: "task", style: { "--family": markColour(run.familyColour) } }, visible(run.taskLabel)), ` #${row.trajectory}`);
    const fact = (name, ...value) => el("div", { class: "fact" }, el("span", { class: "fact-name" }, name), el("span", { class: "fact-value" }, ...value));
    const answer = row.answer === null ? "none" : brief(row.answer, 48);
    const facts = [
      fact(run.isBaseline ? "full decode" : "this decode", worth(row.correct, false), row.verdict && !["right", "wrong"].includes(row.verdict) ? ` (${row.verdict})` : ""),
      fact("answer", el("bdi", { class: "value", title: visible(row.answer ?? "").slice(0, 2000) }, answer)),
      run.family === "code" ? null : fact("gold", el("bdi", { class: "value" }, brief(row.target, 48))),
      fact("settles", decode.stabilization ? `step ${decode.stabilization} of ${row.budget}` : decode.hasCells ? "never" : "steps not kept"),
      fact("method", visible(run.methodLabel)), fact("model", el("bdi", {}, brief(run.modelLabel, 60))),
      fact("shape", `${row.length} positions, ${row.steps} steps, blocks of ${row.block_length}`)];
    this.facts.replaceChildren(...facts.filter(Boolean));
    const open = this.prompt.open;
    this.prompt.replaceChildren(el("summary", {}, el("span", { class: "fact-name" }, "prompt"), el("bdi", { class: "prompt-line" }, brief(row.prompt, 160))), el("pre", { dir: "auto" }, visible(row.prompt)));
    this.prompt.open = open;
    this.notice.hidden = decode.hasCells;
    this.notice.textContent = decode.hasCells ? "" : `Only results of this run were kept, so its text is shown by commit step and no gate can be asked. To keep every step: c4 run --cells --task ${run.task} --method ${run.method} --fresh`;
    document.title = `${run.taskLabel} #${row.trajectory} – c4 view`;
  }

  /** The exits that are drawn: of gates that fire and are not hidden. */
  exits(outcomes) {
    return outcomes.filter((outcome) => outcome.fired).map((outcome) => {
      const gate = this.overview.gates.find((one) => one.name === outcome.name);
      return { gate: outcome.name, step: outcome.steps, colour: gate.colour, marker: gate.marker };
    });
  }

  /** Gates whose thresholds and exits run through all plots. */
  drawnGates() {
    const chosen = new Set(["cvee", "prophet", "sched", state.get("gate", "cvee")]);
    return this.outcomes.filter((outcome) => chosen.has(outcome.name)).map((outcome) => ({ ...this.overview.gates.find((one) => one.name === outcome.name), ...outcome }));
  }

  tellGates(outcomes, command) {
    this.outcomes = outcomes;
    this.command = command;
    this.gates.tell(outcomes);
    this.showCards();
  }

  showCards() {
    const { decode } = this;
    const full = { name: "full", fired: false, steps: decode.steps, budget: decode.row.budget, answer: decode.row.answer, correct: decode.row.correct, identical: true };
    const order = ["cvee", "prophet", "sched"];
    const shown = this.outcomes.filter((outcome) => outcome.fired).sort((one, other) => (order.indexOf(one.name) + 9) % 9 - (order.indexOf(other.name) + 9) % 9);
    this.cards.replaceChildren(this.card(full), ...shown.map((outcome) => this.card(outcome)));
    const silent = this.outcomes.filter((outcome) => !outcome.fired).map((outcome) => this.overview.gates.find((gate) => gate.name === outcome.name).label);
    if (silent.length) this.cards.append(el("p", { class: "quiet never" }, `Never fire on this trajectory: ${visible(silent.join(", "))}.`));
  }

  card(outcome) {
    const gate = this.overview.gates.find((one) => one.name === outcome.name);
    const head = el("div", { class: "card-head" }, gate ? glyph(gate, 16) : null, el("h3", {}, gate ? visible(gate.label) : this.decode.run.isBaseline ? "Full decode" : "As it was decoded"),
      el("span", { class: "quiet" }, `step ${outcome.steps}${gate ? `, saves ${percent(1 - outcome.steps / outcome.budget)}` : ""}`), worth(outcome.correct, outcome.waits));
    const answer = outcome.answer === null ? "no answer" : brief(outcome.answer, 60);
    const words = gate ? (outcome.identical ? "the same answer as without it" : "another answer") : `gold: ${this.decode.run.family === "code" ? "its tests" : brief(this.decode.row.target, 40)}`;
    const foot = el("div", { class: "card-foot" }, el("bdi", { class: "value" }, answer), el("span", { class: outcome.identical ? "quiet" : "differs-note" }, words),
      outcome.premature ? el("span", { class: "premature" }, "premature") : null,
      el("button", { type: "button", class: "quiet-button", onclick: () => this.player.go(outcome.steps) }, "go there"),
      outcome.waits && this.source.live ? el("button", { type: "button", class: "quiet-button", onclick: (event) => this.runProgram(outcome, event.target) }, "run its tests") : null);
    const card = el("article", { class: `card left-card${gate ? "" : " full"}`, dataset: { gate: outcome.name, step: outcome.steps } }, head, leftText(this.decode, outcome.steps, outcome.fired), foot);
    if (gate) card.style.setProperty("--mark", markColour(gate.colour));
    return card;
  }

  async runProgram(outcome, button) {
    button.disabled = true;
    button.textContent = "running…";
    const { key } = this.decode.run;
    try {
      const given = await this.source.grade(key, this.decode.row.trajectory, outcome.steps);
      announce(`the program of ${outcome.name} is ${given.verdict}`);
      await this.ask();
      this.askCohort();
    } catch (error) {
      announce(visible(error.message));
      button.disabled = false;
      button.textContent = "run its tests";
    }
  }

  /** Ask Python's gates again; while one question is out, only the newest other one waits. */
  async ask() {
    if (!this.decode?.hasCells || !this.source.live) return;
    if (this.asking) {
      this.askAgain = true;
      return;
    }
    this.asking = true;
    const decode = this.decode;
    try {
      const answer = await this.source.answer(decode.run.key, decode.row.trajectory, state.get("set"));
      if (this.decode === decode) {
        this.gates.complain("", "");
        this.tellGates(answer.gates, answer.command);
        this.redraw();
      }
    } catch (error) {
      this.gates.complain(state.get("gate", "cvee"), visible(error.message));
    } finally {
      this.asking = false;
      if (this.askAgain) {
        this.askAgain = false;
        this.ask();
      }
    }
  }

  async askCohort() {
    const gate = state.get("gate", "cvee");
    if (!this.decode?.hasCells || gate === "-") return;
    if (this.askingCohort) {
      this.cohortAgain = true;
      return;
    }
    this.askingCohort = true;
    try {
      const found = await this.source.cohort(this.decode.run.key, state.get("set"), { gate: [gate] });
      this.gates.tellCohort(gate, found.summaries[gate]);
    } catch {
      // What is wrong with a setting is said beside it already.
    } finally {
      this.askingCohort = false;
      if (this.cohortAgain) {
        this.cohortAgain = false;
        this.askCohort();
      }
    }
  }

  paintLayer() {
    const layer = this.decode.hasCells ? state.get("layer", "confidence") : "commit";
    this.grid.show(this.decode, layer);
    for (const button of this.layers.children) {
      const on = button.dataset.layer === layer;
      button.setAttribute("aria-checked", String(on));
      button.disabled = !this.decode.hasCells && button.dataset.layer !== "commit";
    }
    this.tellLegend(layer);
  }

  tellLegend(layer) {
    if (layer === "commit") {
      const used = [...new Set(this.decode.arrays.committedBy)].sort();
      this.legend.replaceChildren(...used.map((code) => el("span", { class: "key" }, el("i", { style: { background: `rgb(${ORIGIN_COLOURS[code].join(" ")})` } }), this.decode.origins[code])));
    } else if (layer === "changed") {
      this.legend.replaceChildren(el("span", { class: "key" }, el("i", { class: "swatch-changed" }), "another token than the step before"));
    } else {
      this.legend.replaceChildren(el("span", { class: "key" }, "low", el("i", { class: "swatch-ramp" }), "high"));
    }
  }

  /** Draw what does not change with the step. */
  redraw() {
    const { decode, axis } = this;
    if (!decode || !this.stage.clientWidth) return;
    this.player.align();
    if (decode.hasCells) {
      const drawn = this.drawnGates();
      const exits = this.exits(drawn);
      this.lane.draw(axis, decode, this.exits(this.outcomes));
      this.answers.draw(axis, decode, exits);
      for (const track of [this.runs, this.confidence, this.gap]) track.draw(axis, decode, exits, drawn);
      this.grid.draw(axis, decode, exits);
    } else {
      this.grid.draw(axis, decode, []);
    }
    this.ruler.draw(axis);
    this.grid.scale.textContent = `${axis.low}–${axis.high}`;
    this.zoomer.classList.toggle("zoomed", axis.isZoomed);
    this.follow(this.player.step);
  }

  /** A step was chosen: draw it, and measure how long that took. */
  moved(step, { quietly = false } = {}) {
    const started = performance.now();
    this.player.set(step);
    this.text.draw(step, { everything: state.get("all") === "1" });
    this.follow(step);
    void this.text.root.offsetHeight; // the measurement includes the layout
    this.frames.push(performance.now() - started);
    if (this.frames.length > KEPT_FRAMES) this.frames.shift();
    if (!quietly) state.patch({ step });
  }

  /** What follows the step besides the text. */
  follow(step) {
    const { decode } = this;
    for (const plot of this.plots) plot.moveCursor(this.axis, step);
    const block = decode.blockOfStep[step - 1] + 1;
    const masked = decode.maskedCount(step);
    const read = decode.candidate(step);
    this.player.readout.replaceChildren(
      el("strong", {}, `step ${step}`), ` of ${decode.steps}`, el("span", {}, `block ${block}/${decode.blocks}`), el("span", {}, `${masked} masked`),
      el("span", { class: "reads" }, decode.hasCells ? (read === null ? "reads no answer" : `reads ${brief(read, 28)}`) : ""));
    if (decode.hasCells) this.answers.scale.textContent = `${decode.arrays.signal_changes[step - 1]}×`;
    this.player.range.setAttribute("aria-valuetext", `step ${step} of ${decode.steps}, block ${block}, ${masked} masked${read === null ? "" : `, reads ${brief(read, 28)}`}`);
    if (this.position >= 0) this.inspect();
  }

  point(position) {
    if (!this.decode || position < 0 || position >= this.decode.length) return;
    this.position = position;
    this.text.mark(position);
    this.grid.mark(this.axis, position);
    this.inspect();
  }

  inspect() {
    const { decode, position, player: { step } } = this;
    const id = decode.shown(step, position);
    const piece = decode.tokenName(id) ?? decode.pieces([id])[0];
    const fact = (name, value) => el("span", { class: "number" }, el("span", { class: "fact-name" }, name), value);
    const numbers = decode.hasCells ? [["confidence", 4], ["gap", 3], ["entropy", 3]].map(([name, digits]) => fact(name, decode.at(name, step, position).toFixed(digits))) : [];
    const predicted = decode.hasCells ? decode.at("token", step, position) : id;
    const committed = decode.arrays.commitStep[position];
    this.inspector.replaceChildren(
      el("bdi", { class: "value" }, brief(spell(piece).replaceAll("\n", ""), 40) || "␣"), fact("id", String(id)), fact("position", String(position)), ...numbers,
      fact("state", decode.stateOf(step, position)), fact("committed", committed > 0 ? `step ${committed}, ${decode.origin(position)}` : "never"),
      predicted === id ? "" : fact("now predicts", el("bdi", { class: "value" }, brief(spell(decode.tokenName(predicted) ?? decode.pieces([predicted])[0]).replaceAll("\n", ""), 20))));
  }

  zoom(factor) {
    if (!factor) this.axis.reset();
    else this.axis.zoom(this.player.step, Math.max(0, this.position), factor);
    this.redraw();
    if (this.position >= 0) this.grid.mark(this.axis, this.position);
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.grid.area.getBoundingClientRect();
    const position = this.axis.positionAt((event.clientY - box.top) / box.height);
    this.axis.zoom(this.axis.stepAt((event.clientX - box.left) / box.width), position, event.deltaY > 0 ? 1.25 : 0.8);
    this.redraw();
  }

  /** The next or previous exit, or where the answer settles. */
  jump(direction) {
    const moments = [...this.outcomes.filter((outcome) => outcome.fired).map((outcome) => outcome.steps), this.decode.stabilization].filter(Boolean).sort((a, b) => a - b);
    const here = this.player.step;
    const next = direction > 0 ? moments.find((step) => step > here) : moments.reverse().find((step) => step < here);
    if (next) this.player.go(next);
  }

  copyCommand() {
    if (this.command) copyText(this.command, "copied the command that replays this");
  }

  /** The theme changed: everything drawn has other colours. */
  recolour() {
    if (!this.decode) return;
    this.text.recolour();
    if (this.decode.hasCells) {
      this.gates.show(this.decode);
      this.gates.tell(this.outcomes);
      this.askCohort();
      this.showCards();
    }
    this.head(this.decode);
    this.paintLayer();
    this.redraw();
    this.moved(this.player.step, { quietly: true });
  }

  /** The address changed. */
  update(changed) {
    if (!this.decode) return;
    if (changed.has("set")) {
      this.gates.select();
      this.ask();
      this.askCohort();
    }
    if (changed.has("gate")) {
      this.gates.select();
      this.redraw();
      this.askCohort();
    }
    if (changed.has("layer")) {
      this.paintLayer();
      this.redraw();
    }
    if (changed.has("all")) this.moved(this.player.step, { quietly: true });
    if (changed.has("step") && state.number("step", 1) !== this.player.step) this.moved(state.number("step", 1), { quietly: true });
    this.all.checked = state.get("all") === "1";
  }
}
