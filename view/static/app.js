// The page: three screens, a list beside them, and the keys.

import { announce, copyText, el, visible } from "./dom.js";
import { state } from "./state.js";
import { openSource } from "./source.js";
import { TrajectoryScreen } from "./trajectory.js";
import { ListPanel } from "./list.js";
import { CohortScreen } from "./cohort.js";
import { CompareScreen } from "./compare.js";
import { makeHelp } from "./help.js";
import { LAYERS } from "./grid.js";

const SCREENS = { trajectory: "Trajectory", cohort: "Cohort", compare: "Compare" };
const THEME = "c4-theme";

function keptTheme() {
  try {
    return localStorage.getItem(THEME);
  } catch {
    return null; // a page from disk or in a notebook may have no storage
  }
}

function keepTheme(theme) {
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // Then it is chosen anew next time.
  }
}

class App {
  constructor(source, overview) {
    this.source = source;
    this.overview = overview;
    this.trajectory = new TrajectoryScreen(source, overview);
    this.list = new ListPanel(source, overview, (run, t) => this.open(run, t));
    this.cohort = new CohortScreen(source, overview, (run, t) => this.open(run, t));
    this.compare = new CompareScreen(source, overview);
    this.screens = { trajectory: this.trajectory, cohort: this.cohort, compare: this.compare };
    this.help = makeHelp();
    this.main = el("main", { class: "main", tabIndex: -1 });
    this.tabs = el("nav", { class: "tabs", "aria-label": "Screens" },
      el("button", { type: "button", class: "list-tab", dataset: { view: "list" }, onclick: () => state.patch({ view: "list" }, { push: true }) }, "List"),
      Object.entries(SCREENS).map(([name, label]) => el("button", { type: "button", dataset: { view: name }, onclick: () => state.patch({ view: name === "trajectory" ? "" : name }, { push: true }) }, label)));
    this.bar = this.makeBar();
    this.body = el("div", { class: "body" }, this.list.root, this.main);
    document.getElementById("app").replaceChildren(this.bar, this.body, this.help);
    document.addEventListener("keydown", (event) => this.key(event));
    state.listen((changed) => this.update(changed));
  }

  makeBar() {
    const button = (label, text, act, kind = "") => el("button", { type: "button", class: `tool ${kind}`, title: label, "aria-label": label, onclick: act }, text);
    return el("header", { class: "bar" }, el("div", { class: "brand" }, el("b", {}, "c4"), " view"), this.tabs,
      el("div", { class: "root", title: visible(this.overview.root) }, el("bdi", {}, visible(this.overview.root))),
      el("div", { class: "tools" }, button("Copy as command (y)", "Copy command", () => this.trajectory.copyCommand(), "wide"), button("Copy the link to this view (l)", "Copy link", () => this.copyLink(), "wide"),
        button("Light or dark (d)", "◐", () => this.turnTheme()), button("Keys (?)", "?", () => this.help.showModal())));
  }

  copyLink() {
    state.write(false);
    copyText(location.href, "copied the link to this view");
  }

  turnTheme() {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    keepTheme(theme);
    this.setTheme(theme);
  }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.list.draw();
    this.screen.recolour();
  }

  get view() {
    const asked = state.get("view", "trajectory");
    return asked in SCREENS || asked === "list" ? asked : "trajectory";
  }

  get screen() {
    return this.screens[this.view] ?? this.trajectory;
  }

  open(run, t) {
    const same = state.get("run") === run && state.number("t", -1) === t;
    const compared = this.view === "compare";
    state.patch({ run, t, step: same ? state.get("step") : "", view: compared ? "compare" : "" }, { push: true });
  }

  show() {
    const { view } = this;
    document.body.dataset.view = view;
    for (const button of this.tabs.children) {
      const on = button.dataset.view === view;
      button.classList.toggle("on", on);
      if (on) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    this.trajectory.player.pause();
    this.compare.player.pause();
    this.main.replaceChildren(this.screen.root);
  }

  async openScreen() {
    if (this.screen !== this.trajectory) {
      await this.screen.open();
      return;
    }
    if (state.get("run") && state.get("t") !== "") {
      await this.trajectory.open(state.get("run"), state.number("t"));
      return;
    }
    const { rows } = await this.source.list({}, 0, 1);
    if (rows.length) {
      state.values.run = rows[0].run;
      state.values.t = String(rows[0].t);
      this.list.draw();
      await this.trajectory.open(rows[0].run, rows[0].t);
    }
  }

  update(changed) {
    this.list.update(changed);
    if (changed.has("view")) {
      this.show();
      this.openScreen();
    } else if (this.screen === this.trajectory && (changed.has("run") || changed.has("t"))) {
      this.openScreen();
    } else {
      this.screen.update(changed);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const { target } = event;
    const writes = target.matches("input:not([type=range]):not([type=checkbox]), textarea, select");
    if (event.key === "Escape" && writes) target.blur();
    if (writes) return;
    const act = this.action(event);
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** What a key does here; nothing if it means something to the control that has the focus. */
  action(event) {
    const { player } = this.screen === this.compare ? this.compare : this.trajectory;
    const onSlider = event.target.matches("input[type=range]") && event.target !== player.range;
    const onButton = event.target.matches("button, summary, input[type=checkbox]");
    const decode = this.trajectory.decode;
    const far = decode ? Math.max(1, Math.round(decode.steps / decode.blocks)) : 8;
    const by = (steps) => () => player.go(player.step + (event.shiftKey ? steps * far : steps));
    const moves = { ArrowLeft: by(-1), ArrowRight: by(1), Home: () => player.go(1), End: () => player.go(player.steps), ArrowUp: () => this.trajectory.point(Math.max(0, this.trajectory.position - 1)), ArrowDown: () => this.trajectory.point(this.trajectory.position + 1) };
    if (event.key in moves) return onSlider ? null : moves[event.key];
    if (event.key === " ") return onButton || onSlider ? null : () => player.toggle();
    const layer = LAYERS[Number(event.key) - 1];
    if (layer) return () => state.patch({ layer: layer.name });
    const go = (view) => () => state.patch({ view }, { push: true });
    return {
      "[": () => player.faster(-1), "]": () => player.faster(1),
      e: () => this.trajectory.jump(1), E: () => this.trajectory.jump(-1),
      "+": () => this.trajectory.zoom(1 / 1.6), "=": () => this.trajectory.zoom(1 / 1.6), "-": () => this.trajectory.zoom(1.6), 0: () => this.trajectory.zoom(0),
      a: () => state.patch({ all: state.get("all") ? "" : 1 }), j: () => this.list.step(1), k: () => this.list.step(-1),
      "/": () => this.list.search?.focus(), t: go(""), c: go("cohort"), m: go("compare"),
      y: () => this.trajectory.copyCommand(), l: () => this.copyLink(), d: () => this.turnTheme(), "?": () => this.help.showModal(),
    }[event.key] ?? null;
  }
}

async function main() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = keptTheme() ?? (dark.matches ? "dark" : "light");
  const source = openSource();
  try {
    const overview = await source.overview();
    const app = new App(source, overview);
    dark.addEventListener("change", () => keptTheme() ?? app.setTheme(dark.matches ? "dark" : "light"));
    // What tests and the curious may look at; nothing in the page needs it.
    globalThis.c4 = { app, state, get decode() { return app.trajectory.decode; }, get frames() { return app.trajectory.frames; } };
    app.show();
    await app.openScreen();
    document.documentElement.dataset.ready = "1";
  } catch (error) {
    document.getElementById("app").replaceChildren(el("p", { class: "problem page" }, visible(error.message)));
    announce("the page could not be opened");
  }
}

main();
