// Building the page. Text from elsewhere only ever becomes text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, listeners (`onclick`) and children; strings become text. */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) assign(made, key, value);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function assign(made, key, value) {
  if (value === undefined || value === null || value === false) return;
  if (key === "class") made.className = value;
  else if (key === "style") Object.entries(value).forEach(([k, v]) => made.style.setProperty(k, v));
  else if (key === "dataset") Object.assign(made.dataset, value);
  else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
  else if (key.includes("-") || key === "role" || key === "for" || key === "list") made.setAttribute(key, value);
  else made[key] = value;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const SHAPELESS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const EVERY_SHAPELESS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const JOINERS = "\u200c\u200d";

/** A text whose invisible characters are spelled out, so that none can reorder or hide others. */
export function visible(text) {
  if (!SHAPELESS.test(text)) return text;
  return text.replace(EVERY_SHAPELESS, (sign) => {
    if (sign === "\n" || sign === "\t" || JOINERS.includes(sign)) return sign;
    const code = sign.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** A text on one line, cut to a number of characters. */
export function brief(text, most) {
  const line = visible(text.slice(0, 4 * most)).replace(/\s+/gu, " ").trim();
  const signs = Array.from(line);
  return signs.length <= most ? line : `${signs.slice(0, most - 1).join("")}…`;
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`;
}

export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = el("textarea", { value: text, class: "offscreen" });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  announce(said);
}

let toast = null;
let toastTimer = 0;

/** Say something briefly, to eyes and to screen readers. */
export function announce(text) {
  if (!toast) {
    toast = el("div", { class: "toast", role: "status", "aria-live": "polite" });
    document.body.append(toast);
  }
  toast.textContent = text;
  toast.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.classList.remove("shown"), 2600);
}
