// The text at a step: what stands, what is predicted, what is still hidden.

import { el, visible } from "./dom.js";
import { levelOf, textRamp } from "./colour.js";
import { LONGEST_PIECE } from "./model.js";

const MASK = "▒";
const SILENT = "◦"; // a special token behind the end, of which there are many

/** A token as it is read: line breaks and other signs without a shape are made visible. */
export function spell(piece) {
  const cut = piece.length > LONGEST_PIECE ? `${piece.slice(0, LONGEST_PIECE)}… (${piece.length.toLocaleString("en")} characters)` : piece;
  return visible(cut).replaceAll("\n", "↵\n");
}

export class TextPanel {
  /** `onpoint(position)` is told where the pointer or the keyboard is. */
  constructor(onpoint, label = "Text at this step") {
    this.root = el("div", { class: "text", tabIndex: 0, role: "group", "aria-label": label });
    this.onpoint = onpoint;
    this.spans = [];
    this.drawn = [];
    this.root.addEventListener("pointerover", (event) => this.point(event));
    this.root.addEventListener("click", (event) => this.point(event));
  }

  point(event) {
    const position = event.target.dataset?.p;
    if (position !== undefined) this.onpoint(Number(position));
  }

  show(decode) {
    this.decode = decode;
    this.colours = textRamp();
    this.drawn = new Array(decode.length).fill("");
    this.spans = Array.from({ length: decode.length }, (_, p) => el("span", { class: "token", dataset: { p } }));
    this.root.replaceChildren(...this.spans);
    this.pointed = -1;
  }

  recolour() {
    this.colours = textRamp();
    this.drawn.fill("");
  }

  /** Draw a step; only what differs from what is drawn is touched. */
  draw(step, { everything = false } = {}) {
    const { decode } = this;
    const ids = decode.idsAt(step);
    const pieces = decode.pieces(ids);
    const end = decode.textEnd(ids);
    const [from, to] = this.answerSpan(step);
    for (let p = 0; p < ids.length; p += 1) {
      const state = decode.stateOf(step, p);
      const confidence = decode.confidence(step, p);
      const hidden = state === "masked" && !(everything && decode.hasCells);
      const now = decode.commitsNow(step, p);
      const forced = now && decode.isForced(p);
      const look = `${hidden ? -1 : ids[p]} ${state} ${confidence} ${now} ${p >= end} ${p === end} ${p >= from && p < to} ${pieces[p].length}`;
      if (look === this.drawn[p]) continue;
      this.drawn[p] = look;
      this.dress(this.spans[p], { id: ids[p], piece: pieces[p], state, confidence, hidden, now, forced, after: p >= end, first: p === end, answer: p >= from && p < to });
    }
  }

  dress(span, { id, piece, state, confidence, hidden, now, forced, after, first, answer }) {
    const special = this.decode.isSpecial(id);
    const text = hidden ? MASK : special ? (after && !first ? SILENT : visible(this.decode.tokenName(id))) : spell(piece);
    if (span.textContent !== text) span.textContent = text;
    span.className = `token ${state}${forced ? " forced" : now ? " now" : ""}${special && !hidden ? " special" : ""}${after ? " after" : ""}${answer ? " answer" : ""}${text === "" ? " empty" : ""}`;
    span.dataset.id = id;
    span.dataset.state = state;
    span.dataset.c = confidence;
    const plain = hidden || Number.isNaN(confidence);
    span.style.setProperty("--c", plain ? "transparent" : this.colours[levelOf(confidence)]);
  }

  answerSpan(step) {
    const { arrays, hasCells } = this.decode;
    if (!hasCells || arrays.signal_candidate[step - 1] < 0) return [-1, -1];
    return [arrays.signal_span_start[step - 1], arrays.signal_span_end[step - 1]];
  }

  mark(position) {
    this.spans[this.pointed]?.classList.remove("pointed");
    this.pointed = position;
    this.spans[position]?.classList.add("pointed");
    const span = this.spans[position];
    if (span && document.activeElement === this.root) span.scrollIntoView({ block: "nearest" });
  }
}

/** The text that an exit would have left, beside the full decode's. */
export function leftText(decode, exitStep, fired) {
  const ids = decode.idsAt(exitStep);
  const full = decode.finalIds();
  const end = decode.textEnd(ids);
  const pieces = decode.pieces(ids.slice(0, end));
  const shown = [];
  pieces.forEach((piece, p) => {
    const special = decode.isSpecial(ids[p]);
    const forced = fired && decode.isMasked(exitStep, p);
    const differs = ids[p] !== full[p];
    const look = `token${forced ? " forced" : ""}${differs ? " differs" : ""}${special ? " special" : ""}`;
    const text = special ? visible(decode.tokenName(ids[p])) : spell(piece);
    // Neighbours that look alike are one element: most of a text is as the full decode has it.
    if (!differs && shown.at(-1)?.className === look) shown.at(-1).append(text);
    else shown.push(el("span", { class: look, title: differs ? `the full decode has ${JSON.stringify(decode.pieces([full[p]])[0])}` : forced ? "force-filled" : undefined }, text));
  });
  return el("div", { class: "text left" }, shown.length ? shown : el("em", { class: "quiet" }, "(empty)"));
}
