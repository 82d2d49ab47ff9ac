// Runs and trajectories: filters, an order, and a list that holds only the rows in sight.

import { brief, el, visible } from "./dom.js";
import { markColour } from "./colour.js";
import { state } from "./state.js";

const ROW = 54;
const WINDOW = 60;
const KEPT_WINDOWS = 16;
const FILTERS = ["task", "method", "verdict", "exits", "gate2", "q", "sort", "desc"];
const SORTS = { recorded: "as recorded", stabilization: "by stabilization", exit: "by exit", entropy: "by entropy at exit", steps: "by steps" };
const EXITS = { "": "any exit", fired: "fired", premature: "premature", sound: "after settling", never: "never fired" };
const VERDICTS = { "": "any verdict", right: "right", wrong: "wrong", ungraded: "not graded" };

export class ListPanel {
  constructor(source, overview, onopen) {
    this.source = source;
    this.overview = overview;
    this.onopen = onopen;
    this.runs = new Map(overview.runs.map((run) => [run.key, run]));
    this.windows = new Map();
    this.total = 0;
    this.active = -1;
    this.generation = 0;
    this.spacer = el("div", { class: "spacer" });
    this.box = el("div", { class: "rows", role: "listbox", tabIndex: 0, "aria-label": "Trajectories", onscroll: () => this.draw(), onkeydown: (event) => this.key(event) }, this.spacer);
    this.count = el("p", { class: "count", role: "status" });
    this.root = el("aside", { class: "list", "aria-label": "Trajectories" }, source.live ? this.filters() : null, this.count, this.box);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.read();
  }

  filters() {
    const names = (key, label) => Object.fromEntries([["", `every ${key}`], ...this.overview.runs.map((run) => [run[key], run[label]])]);
    const select = (name, choices, label) => {
      const made = el("select", { "aria-label": label, onchange: () => state.patch({ [name]: made.value }) },
        Object.entries(choices).map(([value, word]) => el("option", { value, selected: state.get(name) === value }, visible(word))));
      return made;
    };
    let timer = 0;
    this.search = el("input", { type: "search", placeholder: "Search prompts, texts, answers", "aria-label": "Search", value: state.get("q"),
      oninput: () => {
        clearTimeout(timer);
        timer = setTimeout(() => state.patch({ q: this.search.value }), 180);
      } });
    const gates = Object.fromEntries(this.overview.gates.map((gate) => [gate.name === "cvee" ? "" : gate.name, `under ${gate.label}`]));
    this.turn = el("button", { type: "button", class: "turn", "aria-label": "Turn the order round", title: "Turn the order round", onclick: () => state.patch({ desc: state.get("desc") ? "" : 1 }) }, state.get("desc") ? "↓" : "↑");
    const sorts = Object.fromEntries(Object.entries(SORTS).map(([name, word]) => [name === "recorded" ? "" : name, word]));
    return el("div", { class: "filters", role: "search" }, this.search,
      el("div", { class: "pair" }, select("task", names("task", "taskLabel"), "Task"), select("method", names("method", "methodLabel"), "Method")),
      el("div", { class: "pair" }, select("verdict", VERDICTS, "Verdict"), select("exits", EXITS, "Exit")),
      el("div", { class: "pair" }, select("gate2", gates, "Gate of the exit"), el("div", { class: "sorting" }, select("sort", sorts, "Order"), this.turn)));
  }

  query() {
    const asked = { task: state.get("task"), method: state.get("method"), verdict: state.get("verdict"), exits: state.get("exits"), q: state.get("q"), sort: state.get("sort", "recorded"), desc: state.get("desc"), gate: state.get("gate2", "cvee") };
    const bySettings = asked.exits || ["exit", "entropy"].includes(asked.sort);
    return bySettings ? { ...asked, set: state.get("set") } : asked;
  }

  /** Start over: another order or other filters. */
  async read() {
    this.generation += 1;
    this.windows.clear();
    this.box.scrollTop = 0;
    this.count.textContent = "reading…";
    await this.fetch(0);
    if (this.turn) this.turn.textContent = state.get("desc") ? "↓" : "↑";
  }

  async fetch(number) {
    if (this.windows.has(number)) return;
    this.windows.set(number, null);
    const { generation } = this;
    try {
      const found = await this.source.list(this.query(), number * WINDOW, WINDOW);
      if (generation !== this.generation) return;
      this.keep(number, found.rows);
      this.total = found.total;
      this.count.textContent = `${found.total.toLocaleString("en")} ${found.total === 1 ? "trajectory" : "trajectories"}`;
      this.spacer.style.setProperty("height", `${found.total * ROW}px`);
      this.draw();
      performance.mark("c4-list");
      this.fetchMarks(found.rows);
    } catch (error) {
      if (generation === this.generation) this.count.textContent = visible(error.message);
    }
  }

  keep(number, rows) {
    this.windows.set(number, rows);
    while (this.windows.size > KEPT_WINDOWS) this.windows.delete(this.windows.keys().next().value);
  }

  async fetchMarks(rows) {
    const marks = rows.length ? await this.source.marks(rows, state.get("set")).catch(() => []) : [];
    marks.forEach((mark, i) => (rows[i].marks = mark));
    this.draw();
  }

  rowAt(i) {
    return this.windows.get(Math.floor(i / WINDOW))?.[i % WINDOW] ?? null;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4);
    const last = Math.min(this.total, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + 4);
    const shown = [];
    for (let i = first; i < last; i += 1) {
      const row = this.rowAt(i);
      if (!row) this.fetch(Math.floor(i / WINDOW));
      shown.push(this.drawRow(i, row));
    }
    this.spacer.replaceChildren(...shown);
    if (this.active >= 0) this.box.setAttribute("aria-activedescendant", `row-${this.active}`);
  }

  drawRow(i, row) {
    const place = { transform: `translateY(${i * ROW}px)` };
    if (!row) return el("div", { class: "row waiting", style: place, role: "option", "aria-selected": "false" });
    const run = this.runs.get(row.run) ?? { taskLabel: "?", methodLabel: "?", colour: "#888888", familyColour: "#888888" };
    const open = row.run === state.get("run") && row.t === state.number("t", -1);
    const sign = row.correct === true ? "✓" : row.correct === false ? "✗" : "·";
    return el("div", { class: `row${open ? " open" : ""}${i === this.active ? " active" : ""}`, id: `row-${i}`, style: place, role: "option", "aria-selected": String(open), "aria-setsize": this.total, "aria-posinset": i + 1,
      "aria-label": `${run.taskLabel} ${row.t}, ${run.methodLabel}, ${row.verdict ?? "not graded"}`, onclick: () => this.open(i) },
      el("span", { class: `sign ${row.correct === true ? "right" : row.correct === false ? "wrong" : ""}` }, sign),
      el("span", { class: "who" }, el("b", { style: { color: markColour(run.familyColour) } }, brief(run.taskLabel, 18)), ` ${row.t}`, el("span", { class: "method", style: { "--mark": markColour(run.colour) } }, brief(run.methodLabel, 22))),
      el("bdi", { class: "answer" }, row.answer === null ? "–" : brief(row.answer, 16)),
      el("bdi", { class: "excerpt" }, brief(row.prompt, 90)), this.timeline(row));
  }

  timeline(row) {
    const bar = el("span", { class: "timeline", "aria-hidden": "true" });
    const at = (step) => `${((step - 0.5) / row.budget) * 100}%`;
    const dot = (step, kind, colour, title) => bar.append(el("i", { class: kind, title, style: { left: at(step), background: colour } }));
    bar.append(el("i", { class: "spent", style: { width: `${(row.steps / row.budget) * 100}%` } }));
    if (row.marks?.stabilization) dot(row.marks.stabilization, "settle", "", `settles at step ${row.marks.stabilization}`);
    const exits = row.marks?.exits ?? {};
    for (const gate of this.overview.gates) {
      if (["cvee", "prophet", "sched"].includes(gate.name) && exits[gate.name]) dot(exits[gate.name], "exit-dot", markColour(gate.colour), `${gate.label}: step ${exits[gate.name]}`);
    }
    return bar;
  }

  open(i) {
    const row = this.rowAt(i);
    if (!row) return;
    this.active = i;
    this.onopen(row.run, row.t);
    this.draw();
  }

  /** The next or previous trajectory of the list. */
  step(by) {
    const next = Math.max(0, Math.min(this.total - 1, this.active + by));
    const top = next * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + ROW - this.box.clientHeight;
    this.open(next);
  }

  key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.step(by);
  }

  update(changed) {
    if (FILTERS.some((name) => changed.has(name))) this.read();
    else if (changed.has("set") && this.source.live) this.refreshMarks();
    else if (changed.has("run") || changed.has("t")) this.draw();
  }

  refreshMarks() {
    clearTimeout(this.marksTimer);
    this.marksTimer = setTimeout(() => {
      if (this.query().set) this.read();
      else for (const rows of this.windows.values()) if (rows) this.fetchMarks(rows);
    }, 300);
  }
}
