// Colours: of the theme, of confidence, and the marks that methods have in the figures too.

export const LEVELS = 64;
// From little to much, in lightness alone, so that nobody needs to tell two hues apart.
const RAMPS = {
  light: ["#fbf3df", "#d6e2cf", "#93bfc4", "#4f8fb4", "#255f95", "#123a6b"],
  dark: ["#2b2118", "#263640", "#295468", "#397c94", "#62a9b6", "#a3d6cb"],
};
const FADED = 0.72;

function parse(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

export function mix(one, other, share) {
  return one.map((part, i) => Math.round(part + (other[i] - part) * share));
}

export function theme() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** `LEVELS` colours from least to most, as red, green and blue. */
export function ramp() {
  const stops = RAMPS[theme()].map(parse);
  return Array.from({ length: LEVELS }, (_, level) => {
    const place = (level / (LEVELS - 1)) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    return mix(stops[below], stops[below + 1], place - below);
  });
}

/** The same, drawn back towards the background. */
export function fadedRamp() {
  const ground = parse(css("panel"));
  return ramp().map((colour) => mix(colour, ground, FADED));
}

/** Backgrounds behind text: light enough in light mode, and dark enough in dark, to read on. */
export function textRamp() {
  const ground = parse(css("panel"));
  const weak = theme() === "dark" ? [122, 74, 22] : [247, 201, 122];
  const strong = theme() === "dark" ? [24, 66, 88] : [206, 227, 238];
  return Array.from({ length: LEVELS }, (_, level) => {
    const share = level / (LEVELS - 1);
    const hue = share < 0.5 ? mix(weak, ground, share * 2) : mix(ground, strong, (share - 0.5) * 2);
    return `rgb(${hue.join(" ")})`;
  });
}

export function levelOf(share) {
  return Math.max(0, Math.min(LEVELS - 1, Math.round(share * (LEVELS - 1))));
}

/** A method's colour; the darkest ones turn light on a dark page. */
export function markColour(colour) {
  if (theme() !== "dark") return colour;
  const parts = parse(colour);
  const light = (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]) / 255;
  return light >= 0.42 ? colour : `rgb(${mix(parts, [255, 255, 255], 0.62 - light * 0.6).join(" ")})`;
}

function polygon(corners, radius, turn = 0) {
  const points = Array.from({ length: corners }, (_, i) => {
    const angle = (2 * Math.PI * i) / corners - Math.PI / 2 + turn;
    return `${(radius * Math.cos(angle)).toFixed(2)},${(radius * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}

function star(radius) {
  const points = Array.from({ length: 10 }, (_, i) => {
    const angle = (Math.PI * i) / 5 - Math.PI / 2;
    const reach = i % 2 ? radius * 0.45 : radius * 1.15;
    return `${(reach * Math.cos(angle)).toFixed(2)},${(reach * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}

function cross(radius, turned) {
  const [a, b] = [radius * 0.38, radius];
  const corners = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]];
  const turn = ([x, y]) => (turned ? [(x - y) * 0.75, (x + y) * 0.75] : [x, y]);
  return `M${corners.map(turn).map((point) => point.map((v) => v.toFixed(2)).join(",")).join("L")}Z`;
}

/** The outline of one of Matplotlib's markers around the origin. */
export function markerPath(marker, r = 5) {
  const shapes = {
    "^": () => polygon(3, r * 1.15),
    v: () => polygon(3, r * 1.15, Math.PI),
    "<": () => polygon(3, r * 1.15, -Math.PI / 2),
    ">": () => polygon(3, r * 1.15, Math.PI / 2),
    s: () => polygon(4, r * 1.2, Math.PI / 4),
    D: () => polygon(4, r * 1.15),
    d: () => `M0,${-r * 1.2}L${r * 0.7},0L0,${r * 1.2}L${-r * 0.7},0Z`,
    p: () => polygon(5, r * 1.1),
    h: () => polygon(6, r * 1.1),
    H: () => polygon(6, r * 1.1, Math.PI / 6),
    8: () => polygon(8, r * 1.1, Math.PI / 8),
    "*": () => star(r),
    P: () => cross(r, false),
    X: () => cross(r, true),
  };
  const round = `M${-r},0A${r},${r} 0 1,0 ${r},0A${r},${r} 0 1,0 ${-r},0Z`;
  return (shapes[marker] ?? (() => round))();
}
