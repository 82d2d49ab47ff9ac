// Every key, in one place: what it does, and how the help tells of it.

import { el } from "./dom.js";

export const KEYS = [
  ["← →", "one step back or on"],
  ["Shift ← →", "a block’s worth of steps"],
  ["Home End", "first and last step"],
  ["Space", "play or pause"],
  ["[ ]", "slower, faster"],
  ["e E", "next or previous exit or settling"],
  ["↑ ↓", "another position"],
  ["1 … 5", "what the grid shows"],
  ["+ − 0", "zoom in, out, everything"],
  ["a", "show predictions of later blocks too"],
  ["j k", "next or previous trajectory"],
  ["/", "search"],
  ["t c m", "trajectory, cohort, comparison"],
  ["y", "copy as command"],
  ["l", "copy the link to this view"],
  ["d", "light or dark"],
  ["?", "this help"],
];

export function makeHelp() {
  const close = el("button", { type: "button", class: "quiet-button", onclick: () => dialog.close() }, "Close");
  const rows = KEYS.map(([keys, does]) => el("tr", {}, el("th", { scope: "row" }, keys.split(" ").map((key) => (["…", "Shift"].includes(key) ? ` ${key} ` : el("kbd", {}, key)))), el("td", {}, does)));
  const dialog = el("dialog", { class: "help", "aria-label": "Keys" }, el("h2", {}, "Keys"), el("table", {}, el("tbody", {}, rows)),
    el("p", { class: "quiet" }, "The text shows the buffer as a step finds it. Colour is confidence: amber is low, blue is high. Committed tokens stand on a coloured line; provisional ones are predictions in the block at work. The faded part of the grid is committed."), close);
  return dialog;
}
