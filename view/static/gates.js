// The gates beside a trajectory: where each stops, its parameters, and what it is worth on the run.

import { el, percent, svg, visible } from "./dom.js";
import { markColour, markerPath } from "./colour.js";
import { state } from "./state.js";

export function glyph(gate, size = 14) {
  const path = svg("path", { d: markerPath(gate.marker, 4.6), fill: markColour(gate.colour) });
  return svg("svg", { viewBox: "-6.5 -6.5 13 13", width: size, height: size, "aria-hidden": "true", class: "glyph" }, path);
}

export function worth(correct, waits) {
  if (correct === true) return el("span", { class: "worth right" }, "✓ right");
  if (correct === false) return el("span", { class: "worth wrong" }, "✗ wrong");
  return el("span", { class: "worth" }, waits ? "not run" : "not graded");
}

/** The settings of one gate in the address: {tau: "0.8"}. */
export function settingsOf(gate) {
  const found = {};
  for (const text of state.get("set")) {
    const [, part, name, value] = /^(.+)\.(\w+)=(.*)$/su.exec(text) ?? [];
    if (part === gate) found[name] = value;
  }
  return found;
}

function changeSetting(gate, name, value, usual) {
  const kept = state.get("set").filter((text) => !text.startsWith(`${gate}.${name}=`));
  state.patch({ set: Number(value) === usual || value === usual ? kept : [...kept, `${gate}.${name}=${value}`] });
}

export class GatePanel {
  constructor(overview, live, onjump) {
    this.overview = overview;
    this.live = live;
    this.onjump = onjump;
    this.rows = new Map();
    this.list = el("div", { class: "gate-list" });
    this.root = el("section", { class: "gates card", "aria-label": "Gates" }, el("h2", {}, "Gates"), this.list);
  }

  show(decode) {
    this.decode = decode;
    this.rows.clear();
    this.list.replaceChildren(...this.overview.gates.map((gate) => this.makeRow(gate)));
    this.select();
  }

  makeRow(gate) {
    const exit = el("span", { class: "exit" });
    const verdict = el("span", { class: "verdict" });
    const head = el("button", { type: "button", class: "gate-head", title: gate.about, "aria-expanded": "false", onclick: () => state.patch({ gate: state.get("gate", "cvee") === gate.name ? "-" : gate.name }) },
      glyph(gate), el("span", { class: "gate-name" }, visible(gate.label)), exit, verdict);
    const body = el("div", { class: "gate-body", hidden: true });
    const row = { gate, head, exit, verdict, body, inputs: new Map(), root: el("div", { class: "gate-row" }, head, body) };
    this.fill(row);
    this.rows.set(gate.name, row);
    return row.root;
  }

  fill(row) {
    const { gate, body } = row;
    row.cohort = el("dl", { class: "cohort-numbers", "aria-live": "off" });
    row.note = el("p", { class: "problem", hidden: true });
    row.jump = el("button", { type: "button", class: "quiet-button", onclick: () => this.onjump(row.step) }, "go to its exit");
    row.reset = el("button", { type: "button", class: "quiet-button", onclick: () => this.reset(gate) }, "paper’s settings");
    body.replaceChildren(
      el("p", { class: "about" }, gate.about), ...gate.parameters.map((spec) => this.control(row, spec)), row.note,
      el("div", { class: "buttons" }, row.jump, this.live ? row.reset : null), row.cohort);
  }

  usual(gate, name) {
    return gate.defaults[this.decode.run.family]?.[name];
  }

  control(row, spec) {
    const { gate } = row;
    const usual = this.usual(gate, spec.name);
    const value = settingsOf(gate.name)[spec.name] ?? usual;
    const id = `${gate.name}-${spec.name}`;
    const label = el("label", { for: id, title: spec.meaning }, spec.name);
    if (!this.live || spec.fixed) return el("div", { class: "parameter" }, label, el("output", { id }, String(value)));
    const change = (event) => changeSetting(gate.name, spec.name, event.target.value, usual);
    if (spec.choices) {
      const choice = el("select", { id, onchange: change }, spec.choices.map((one) => el("option", { value: one, selected: one === value }, one)));
      row.inputs.set(spec.name, [choice]);
      return el("div", { class: "parameter" }, label, choice);
    }
    const range = el("input", { type: "range", id, min: spec.low, max: Math.max(spec.high, Number(value)), step: spec.step, value, oninput: change, title: spec.meaning });
    const exact = el("input", { type: "number", step: "any", value, onchange: change, "aria-label": `${spec.name}, exactly` });
    row.inputs.set(spec.name, [range, exact]);
    return el("div", { class: "parameter" }, label, range, exact);
  }

  reset(gate) {
    state.patch({ set: state.get("set").filter((text) => !text.startsWith(`${gate.name}.`)) });
  }

  /** Open the gate that the address names, and show its settings. */
  select() {
    const chosen = state.get("gate", "cvee");
    for (const [name, row] of this.rows) {
      const open = name === chosen;
      row.body.hidden = !open;
      row.head.setAttribute("aria-expanded", String(open));
      row.root.classList.toggle("open", open);
      const settings = settingsOf(name);
      row.root.classList.toggle("changed", Object.keys(settings).length > 0);
      for (const [spec, inputs] of row.inputs) {
        for (const input of inputs) {
          if (document.activeElement !== input) input.value = settings[spec] ?? this.usual(row.gate, spec);
        }
      }
    }
  }

  /** What the gates decided on this trajectory. */
  tell(outcomes) {
    for (const outcome of outcomes) {
      const row = this.rows.get(outcome.name);
      if (!row) continue;
      row.step = outcome.steps;
      row.exit.textContent = outcome.fired ? `step ${outcome.steps}` : "never";
      row.exit.classList.toggle("premature", outcome.premature);
      row.exit.title = outcome.fired ? `${percent(1 - outcome.steps / outcome.budget)} of the budget saved${outcome.premature ? "; before the answer had settled" : ""}` : "it never fires on this trajectory";
      const sign = outcome.correct === true ? "✓" : outcome.correct === false ? "✗" : "·";
      row.verdict.textContent = sign;
      row.verdict.className = `verdict ${outcome.correct === true ? "right" : outcome.correct === false ? "wrong" : ""}`;
      row.verdict.title = outcome.correct === null ? "not graded" : outcome.correct ? "right" : "wrong";
    }
  }

  complain(name, text) {
    for (const [gate, row] of this.rows) {
      row.note.hidden = gate !== name || !text;
      row.note.textContent = text;
    }
  }

  /** What a gate is worth on the whole run. */
  tellCohort(name, summary) {
    const row = this.rows.get(name);
    if (!row || !summary) return;
    const facts = [
      ["accuracy", `${percent(summary.accuracy)}`, `full ${percent(summary.full_accuracy)}`],
      ["saving", percent(summary.saving), `${summary.steps.toFixed(1)} of ${summary.budget} steps`],
      ["premature", percent(summary.premature), `fires on ${percent(summary.fired)}${summary.never_settle ? `; ${summary.never_settle} never settle` : ""}`],
    ];
    row.cohort.replaceChildren(
      el("div", { class: "cohort-title" }, `all ${summary.n} trajectories${summary.not_gradable ? `, ${summary.not_gradable} of them not graded` : ""}`),
      ...facts.map(([name_, value, beside]) => el("div", {}, el("dt", {}, name_), el("dd", {}, el("strong", {}, value), el("small", {}, beside)))));
  }
}
