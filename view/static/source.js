// Where data comes from: the server behind the page, or the page's own file.

/** A message of c4: a JSON header and the arrays behind it, mapped and not copied. */
export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  for (const [name, { type, shape, offset }] of Object.entries(header.arrays)) {
    const Kind = globalThis[`${type}Array`];
    const count = shape.reduce((product, extent) => product * extent, 1);
    arrays[name] = new Kind(buffer, 4 + size + offset, count);
  }
  return { header, arrays };
}

class ServerSource {
  live = true;

  async ask(question, parameters, method = "GET") {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== "" && one !== null && one !== undefined) query.append(name, one);
      }
    }
    const answer = await fetch(`/api/${question}?${query}`, { method });
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}));
      throw new Error(told.error ?? `the server answered ${answer.status}`);
    }
    return answer;
  }

  async json(...asked) {
    return (await this.ask(...asked)).json();
  }

  overview() {
    return this.json("overview", {});
  }

  list(query, start, count) {
    return this.json("list", { ...query, start, count });
  }

  marks(rows, set) {
    return this.json("marks", { run: rows.map((row) => row.run), t: rows.map((row) => row.t), set });
  }

  async trajectory(run, t, set) {
    return unpack(await (await this.ask("trajectory", { run, t, set })).arrayBuffer());
  }

  answer(run, t, set) {
    return this.json("answer", { run, t, set });
  }

  cohort(run, set, { gate = [], points = false } = {}) {
    return this.json("cohort", { run, set, gate, points: points ? 1 : "" });
  }

  grade(run, t, step) {
    return this.json("grade", { run, t, step }, "POST");
  }
}

class FileSource {
  live = false;

  constructor(text) {
    this.data = JSON.parse(text);
  }

  async overview() {
    return this.data.overview;
  }

  async list(_query, start, count) {
    return { total: this.data.rows.length, start, rows: this.data.rows.slice(start, start + count) };
  }

  async marks(rows) {
    const at = (row) => this.data.rows.findIndex((one) => one.run === row.run && one.t === row.t);
    return rows.map((row) => this.data.marks[at(row)]);
  }

  async trajectory(run, t) {
    const packed = this.data.trajectories[`${run}#${t}`];
    if (!packed) throw new Error("this file does not hold that trajectory; open it with: c4 view");
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return unpack(await new Response(unzipped).arrayBuffer());
  }

  async cohort(run) {
    const found = this.data.cohorts[run];
    if (!found) throw new Error("this file holds no steps of that run");
    return found;
  }
}

export function openSource() {
  const kept = document.getElementById("c4-data");
  return kept ? new FileSource(kept.textContent) : new ServerSource();
}
