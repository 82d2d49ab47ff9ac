// One trajectory in memory. It answers what stood where at a step, and decides nothing.

const LATIN = new TextDecoder();
export const LONGEST_PIECE = 160;

export class Decode {
  constructor({ header, arrays }) {
    Object.assign(this, header);
    this.arrays = arrays;
    this.steps = header.row.steps;
    this.length = header.row.length;
    this.block = header.row.block_length;
    this.hasCells = "token" in arrays;
    this.ends = new Set(header.endIds);
    this.tokens = new Map(header.vocabulary.map((token) => [token.id, token]));
    this.blockOfStep = this.findBlocks();
    this.commitAt = this.findCommits();
  }

  at(name, step, position) {
    return this.arrays[name][position * this.steps + step - 1];
  }

  isMasked(step, position) {
    if (this.hasCells) return this.at("masked", step, position) === 1;
    return this.arrays.commitStep[position] >= step;
  }

  /** The token that stands at a position, or would if decoding ended at this step. */
  shown(step, position) {
    return this.hasCells ? this.at("filled", step, position) : this.arrays.final[position];
  }

  confidence(step, position) {
    return this.hasCells ? this.at("confidence", step, position) : Number.NaN;
  }

  commitsNow(step, position) {
    return this.isMasked(step, position) && (step === this.steps || !this.isMasked(step + 1, position));
  }

  /** Whether a position was still masked when the run's own gate stopped it. */
  isForced(position) {
    return this.origin(position) === "fill";
  }

  /** committed: stands; provisional: predicted in the block at work; masked: its block has not begun. */
  stateOf(step, position) {
    if (!this.isMasked(step, position)) return "committed";
    if (!this.hasCells) return this.commitsNow(step, position) ? "provisional" : "masked";
    return position < (this.blockOfStep[step - 1] + 1) * this.block ? "provisional" : "masked";
  }

  origin(position) {
    return this.origins[this.arrays.committedBy[position]] ?? "";
  }

  /** The block that each step works in: that of the first masked position. */
  findBlocks() {
    const found = new Int32Array(this.steps);
    let first = 0;
    for (let step = 1; step <= this.steps; step += 1) {
      if (this.hasCells) first = 0;
      while (first < this.length - 1 && !this.isMasked(step, first)) first += 1;
      found[step - 1] = Math.floor(first / this.block);
    }
    return found;
  }

  findCommits() {
    return this.arrays.commitStep;
  }

  get blocks() {
    return Math.ceil(this.length / this.block);
  }

  maskedCount(step) {
    let count = 0;
    for (let position = 0; position < this.length; position += 1) count += this.isMasked(step, position);
    return count;
  }

  candidate(step) {
    if (!this.hasCells) return null;
    const number = this.arrays.signal_candidate[step - 1];
    return number < 0 ? null : this.values[number];
  }

  /** Where the text ends, in tokens, as the reading sees it. */
  textEnd(ids) {
    if (this.ending !== "cut") return ids.length;
    const found = ids.findIndex((id) => this.ends.has(id));
    return found < 0 ? ids.length : found;
  }

  idsAt(step) {
    const ids = new Array(this.length);
    for (let position = 0; position < this.length; position += 1) ids[position] = this.shown(step, position);
    return ids;
  }

  finalIds() {
    return Array.from(this.arrays.final);
  }

  /** What each token writes. A character that several tokens spell stands at the last of them. */
  pieces(ids) {
    const found = new Array(ids.length);
    let held = [];
    ids.forEach((id, i) => {
      const token = this.tokens.get(id);
      if (token?.bytes) {
        held.push(...token.bytes);
        const next = this.tokens.get(ids[i + 1]);
        if (next?.bytes) {
          found[i] = "";
          return;
        }
        found[i] = LATIN.decode(new Uint8Array(held));
      } else {
        found[i] = token?.text ?? "";
      }
      held = [];
    });
    return found;
  }

  isSpecial(id) {
    return this.tokens.get(id)?.name !== undefined;
  }

  tokenName(id) {
    return this.tokens.get(id)?.name ?? null;
  }
}
