// The address holds the whole state, so a link opens the same view.

const MANY = new Set(["set"]);
const WRITE_DELAY = 200;

class State {
  constructor() {
    this.values = {};
    this.listeners = [];
    this.timer = 0;
    this.read();
    addEventListener("hashchange", () => {
      const before = this.values;
      this.read();
      const names = new Set([...Object.keys(before), ...Object.keys(this.values)]);
      const changed = [...names].filter((name) => String(before[name]) !== String(this.values[name]));
      if (changed.length) this.tell(new Set(changed));
    });
  }

  read() {
    const found = {};
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      if (MANY.has(name)) (found[name] ??= []).push(value);
      else found[name] = value;
    }
    this.values = found;
  }

  get(name, fallback = "") {
    return this.values[name] ?? (MANY.has(name) ? [] : fallback);
  }

  number(name, fallback = 0) {
    const value = Number.parseInt(this.values[name] ?? "", 10);
    return Number.isFinite(value) ? value : fallback;
  }

  /** Change some values; an empty one is taken out. `push` makes a place to come back to. */
  patch(values, { push = false } = {}) {
    const changed = new Set();
    for (const [name, value] of Object.entries(values)) {
      const next = Array.isArray(value) ? value.map(String) : value === null ? "" : String(value);
      if (String(this.values[name] ?? "") === String(next)) continue;
      if (next.length) this.values[name] = next;
      else delete this.values[name];
      changed.add(name);
    }
    if (!changed.size) return;
    clearTimeout(this.timer);
    // Browsers refuse a new address at every frame of a scrub.
    if (push) this.write(true);
    else this.timer = setTimeout(() => this.write(false), WRITE_DELAY);
    this.tell(changed);
  }

  address() {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(this.values)) {
      for (const one of Array.isArray(value) ? value : [value]) query.append(name, one);
    }
    return `#${query}`;
  }

  write(push) {
    try {
      history[push ? "pushState" : "replaceState"](null, "", this.address());
    } catch {
      // A page inside a notebook has no address of its own.
    }
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  tell(changed) {
    for (const listener of this.listeners) listener(changed);
  }
}

export const state = new State();
