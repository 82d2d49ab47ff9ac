// All trajectories of a run: where gates stop against where answers settle, and when they settle.

import { el, percent, visible } from "./dom.js";
import { css, markColour, markerPath } from "./colour.js";
import { state } from "./state.js";
import { line } from "./plot.js";
import { glyph, settingsOf } from "./gates.js";

const EDGE = { left: 46, right: 14, top: 12, bottom: 38 };
const REACH = 12;
const USUAL = ["cvee", "prophet", "sched"];

/** A square plot of shares, with a point that says what it is. */
class SharePlot {
  constructor(title, about, across, up, onopen) {
    this.canvas = el("canvas", { role: "img", "aria-label": about });
    this.tip = el("div", { class: "tip", hidden: true });
    this.area = el("div", { class: "share-area" }, this.canvas, this.tip);
    this.root = el("section", { class: "card", "aria-label": title }, el("div", { class: "card-head" }, el("h2", {}, title)), el("p", { class: "quiet" }, about), this.area);
    Object.assign(this, { across, up, onopen, points: [] });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const point = this.near(event);
      if (point) this.onopen(point.run, point.t);
    });
  }

  begin() {
    const width = this.area.clientWidth;
    if (!width) return null;
    const height = Math.min(460, Math.max(260, width * 0.82));
    const ratio = globalThis.devicePixelRatio || 1;
    Object.assign(this, { width, height, points: [] });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.setProperty("height", `${height}px`);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = `12px ${css("sans")}`;
    return context;
  }

  x(share) {
    return EDGE.left + share * (this.width - EDGE.left - EDGE.right);
  }

  y(share) {
    return this.height - EDGE.bottom - share * (this.height - EDGE.top - EDGE.bottom);
  }

  frame(context) {
    context.fillStyle = css("quiet");
    context.strokeStyle = css("rule");
    context.lineWidth = 1;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      context.beginPath();
      context.moveTo(this.x(share), this.y(0));
      context.lineTo(this.x(share), this.y(1));
      context.moveTo(this.x(0), this.y(share));
      context.lineTo(this.x(1), this.y(share));
      context.stroke();
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(String(share), this.x(share), this.y(0) + 6);
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(String(share), this.x(0) - 7, this.y(share));
    }
    context.fillStyle = css("ink");
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillText(this.across, this.x(0.5), this.height - 1);
    context.save();
    context.translate(11, this.y(0.5));
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(this.up, 0, 0);
    context.restore();
  }

  near(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let found = null;
    let least = REACH * REACH;
    for (const point of this.points) {
      const far = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (far < least) [found, least] = [point, far];
    }
    return found;
  }

  hover(event) {
    const point = this.near(event);
    this.canvas.classList.toggle("clickable", Boolean(point));
    this.tip.hidden = !point;
    if (!point) return;
    this.tip.textContent = point.says;
    const left = Math.min(point.x + 12, this.width - this.tip.offsetWidth - 4);
    this.tip.style.setProperty("transform", `translate(${Math.max(4, left)}px, ${Math.max(2, point.y - 34)}px)`);
  }
}

export class CohortScreen {
  constructor(source, overview, onopen) {
    this.source = source;
    this.overview = overview;
    this.recorded = overview.runs.filter((run) => run.hasCells && run.n);
    this.shown = new Set(USUAL);
    this.others = new Map();
    this.phase = new SharePlot("Exits against stabilization", "Below the diagonal a gate stopped before the answer had settled. Click a mark to open its trajectory.", "the answer settles (share of the budget)", "the gate stops", onopen);
    this.settling = new SharePlot("When answers settle", "The share of trajectories whose answer has settled. Click a step to open its trajectory.", "share of the budget", "share settled", onopen);
    this.pick = el("select", { "aria-label": "Run", onchange: () => state.patch({ run: this.pick.value, t: "" }) },
      this.recorded.map((run) => el("option", { value: run.key }, visible(`${run.taskLabel} – ${run.methodLabel} – ${run.modelLabel} (${run.n})`))));
    this.table = el("div", { class: "scroll" });
    this.status = el("p", { class: "quiet", role: "status" });
    this.root = el("div", { class: "cohort" }, el("header", { class: "screen-head" }, el("h1", {}, "Cohort"), this.pick, this.status), el("div", { class: "two" }, this.phase.root, this.settling.root),
      el("section", { class: "card", "aria-label": "Gates on this run" }, el("div", { class: "card-head" }, el("h2", {}, "Gates on this run")), this.table));
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  get run() {
    const asked = this.recorded.find((run) => run.key === state.get("run"));
    return asked ?? this.recorded[0];
  }

  async open() {
    if (!this.run) {
      this.status.textContent = "No run here has its steps kept; record one with: c4 record --task math";
      return;
    }
    this.pick.value = this.run.key;
    this.status.textContent = "reading…";
    const key = this.run.key;
    try {
      const found = await this.source.cohort(key, state.get("set"), { points: true });
      if (this.run.key !== key) return;
      this.data = found;
      this.others.set(key, found);
      this.status.textContent = `${found.trajectory.length} trajectories${state.get("set").length ? `, with ${state.get("set").join(", ")}` : ""}`;
      this.fillTable();
      this.draw();
      await this.readOthers();
    } catch (error) {
      this.status.textContent = visible(error.message);
    }
  }

  /** The curves of the other recordings, one after the other. */
  async readOthers() {
    for (const run of this.recorded.filter((one) => one.isBaseline).slice(0, 12)) {
      if (this.others.has(run.key)) continue;
      const found = await this.source.cohort(run.key, [], { gate: ["oracle"], points: true }).catch(() => null);
      if (found) this.others.set(run.key, found);
      this.draw();
    }
  }

  draw() {
    if (!this.data) return;
    this.drawPhase();
    this.drawSettling();
  }

  drawPhase() {
    const { phase, data } = this;
    const context = phase.begin();
    if (!context) return;
    context.fillStyle = css("danger");
    context.beginPath();
    context.moveTo(phase.x(0), phase.y(0));
    context.lineTo(phase.x(1), phase.y(0));
    context.lineTo(phase.x(1), phase.y(1));
    context.fill();
    phase.frame(context);
    context.fillStyle = css("danger-ink");
    context.textAlign = "right";
    context.fillText("premature", phase.x(0.985), phase.y(0.03));
    line(context, [[phase.x(0), phase.y(0)], [phase.x(1), phase.y(1)]], { colour: css("quiet"), width: 1 });
    const { budget } = data.run;
    const gates = this.overview.gates.filter((gate) => this.shown.has(gate.name) && data.gates[gate.name]);
    data.trajectory.forEach((t, i) => {
      const settled = data.stabilization[i];
      if (settled === null) return;
      const marks = gates.map((gate) => ({ gate, at: data.gates[gate.name].exit[i] || data.steps[i], fired: data.gates[gate.name].exit[i] > 0 }));
      context.globalAlpha = 0.35;
      line(context, marks.map(({ at }) => [phase.x(settled / budget), phase.y(at / budget)]), { colour: css("quiet"), width: 0.8 });
      context.globalAlpha = 0.85;
      for (const { gate, at, fired } of marks) {
        const [x, y] = [phase.x(settled / budget), phase.y(at / budget)];
        context.save();
        context.translate(x, y);
        context.fillStyle = context.strokeStyle = markColour(gate.colour);
        const path = new Path2D(markerPath(gate.marker, 4.4));
        if (fired) context.fill(path);
        else context.stroke(path);
        context.restore();
        phase.points.push({ x, y, run: data.run.key, t, says: `#${t}: ${gate.label} ${fired ? `stops at ${at}` : "never stops"}, settles at ${settled}` });
      }
      context.globalAlpha = 1;
    });
  }

  drawSettling() {
    const { settling } = this;
    const context = settling.begin();
    if (!context) return;
    settling.frame(context);
    for (const [key, data] of this.others) if (key !== this.data.run.key) this.curve(context, data, false);
    this.curve(context, this.data, true);
    const { s90 } = this.data;
    if (s90 !== null) {
      context.fillStyle = css("ink");
      context.textAlign = s90 > 0.6 ? "right" : "left";
      context.textBaseline = "bottom";
      context.fillText(` s₀.₉ = ${s90.toFixed(2)} `, settling.x(s90), settling.y(0.9) - 4);
      line(context, [[settling.x(s90), settling.y(0)], [settling.x(s90), settling.y(0.9)]], { colour: css("quiet"), width: 1, dash: [3, 3] });
    }
  }

  curve(context, data, chosen) {
    const { settling } = this;
    const reached = data.trajectory.map((t, i) => ({ t, at: data.stabilization[i] })).filter(({ at }) => at !== null).sort((a, b) => a.at - b.at);
    const colour = markColour(data.run.familyColour);
    const points = [[settling.x(0), settling.y(0)]];
    reached.forEach(({ t, at }, i) => {
      const x = settling.x(at / data.run.budget);
      points.push([x, points.at(-1)[1]], [x, settling.y((i + 1) / data.trajectory.length)]);
      if (chosen) settling.points.push({ x, y: points.at(-1)[1], run: data.run.key, t, says: `#${t} settles at step ${at}` });
    });
    points.push([settling.x(1), points.at(-1)[1]]);
    context.globalAlpha = chosen ? 1 : 0.35;
    line(context, points, { colour, width: chosen ? 2.2 : 1.3 });
    context.fillStyle = colour;
    if (chosen) for (const point of settling.points) context.fillRect(point.x - 2, point.y - 2, 4, 4);
    const middle = points.find(([, y]) => y <= settling.y(0.5));
    if (middle) {
      context.textAlign = middle[0] > settling.x(0.8) ? "right" : "left";
      context.textBaseline = "middle";
      context.globalAlpha = chosen ? 1 : 0.75;
      context.fillText(` ${visible(data.run.taskLabel)} `, middle[0] + 3, middle[1] + 9);
    }
    context.globalAlpha = 1;
  }

  fillTable() {
    const heads = ["", "gate", "accuracy", "full", "steps", "saving", "fires", "premature", "same answer"];
    const rows = this.overview.gates.filter((gate) => this.data.summaries[gate.name]).map((gate) => {
      const summary = this.data.summaries[gate.name];
      const box = el("input", { type: "checkbox", checked: this.shown.has(gate.name), "aria-label": `Draw ${gate.label}`,
        onchange: () => {
          if (box.checked) this.shown.add(gate.name);
          else this.shown.delete(gate.name);
          this.draw();
        } });
      const settings = Object.entries(settingsOf(gate.name)).map(([name, value]) => `${name}=${value}`).join(" ");
      return el("tr", {}, el("td", {}, box), el("td", { class: "name" }, glyph(gate), ` ${visible(gate.label)} `, el("small", { class: "quiet" }, settings)),
        ...[percent(summary.accuracy), percent(summary.full_accuracy), summary.steps.toFixed(1), percent(summary.saving), percent(summary.fired), percent(summary.premature), percent(summary.identical)].map((text) => el("td", {}, text)));
    });
    const ungraded = Math.max(...Object.values(this.data.summaries).map((summary) => summary.not_gradable));
    this.table.replaceChildren(
      el("table", {}, el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", { scope: "col", class: i < 2 ? "name" : "" }, head)))), el("tbody", {}, rows)),
      ungraded ? el("p", { class: "quiet" }, `Up to ${ungraded} trajectories are not graded: their programs have not been run. Accuracies are of the others.`) : "");
  }

  recolour() {
    if (!this.data) return;
    this.fillTable();
    this.draw();
  }

  update(changed) {
    if (changed.has("run") || changed.has("set")) this.open();
  }
}
