// Small line charts, drawn as SVG. Each says its latest value in words, and keeps its figures in a table that
// opens below it.

import { element, moment, plain, set } from "./common.js";

const SPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 150, LEFT = 54, RIGHT = 10, TOP = 10, BOTTOM = 22;
const TABLE_ROWS = 20;

function drawn(tag, attributes, text) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A top of the axis that is easy to read: 1, 2 or 5 times a power of ten.
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value);
}

const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// `series`: [{ name, read }], where `read` takes the value out of a point; null where there is none.
export function chart(place, { title, series, show }) {
  const figure = element("figure", { class: "chart" });
  const caption = element("figcaption", {}, element("strong", {}, title), " ", element("span", { class: "now" }));
  const holder = element("div", { class: "drawing" });
  const table = element("details", {}, element("summary", {}, "Figures"), element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Figures of ${title}` }));
  figure.append(caption, holder, table);
  place.append(figure);
  let points = [];

  function draw() {
    const latest = points[points.length - 1];
    const values = series.map(({ name, read }) => (latest && read(latest) !== null ? `${series.length > 1 ? `${name} ` : ""}${show(read(latest))}` : "")).filter(Boolean);
    const now = values.join(", ") || "nothing yet";
    set(caption.querySelector(".now"), now);
    const width = Math.max(200, holder.clientWidth || 300);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}: ${plain(now)}` });
    holder.replaceChildren(svg);
    const known = points.flatMap((point) => series.map(({ read }) => read(point)).filter((value) => value !== null));
    const top = ceiling(Math.max(0, ...known));
    const first = points[0]?.at ?? 0, last = Math.max(latest?.at ?? 1, first + 1);
    const x = (at) => LEFT + ((at - first) / (last - first)) * (width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
    for (const share of [0, 0.5, 1]) {
      svg.append(
        drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(share * top), y2: y(share * top) }),
        drawn("text", { x: LEFT - 6, y: y(share * top) + 4, "text-anchor": "end" }, show(share * top)),
      );
    }
    if (points.length) {
      svg.append(drawn("text", { x: LEFT, y: HEIGHT - 5 }, clock(first)));
      if (points.length > 1) svg.append(drawn("text", { x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, clock(last)));
    }
    series.forEach(({ read }, index) => {
      // A gap where there was no value: no line may claim one.
      let path = "", pen = false;
      for (const point of points) {
        const value = read(point);
        if (value === null) { pen = false; continue; }
        // A point alone is a dot.
        path += pen ? `L${x(point.at).toFixed(1)} ${y(value).toFixed(1)}` : `M${x(point.at).toFixed(1)} ${y(value).toFixed(1)}h0`;
        pen = true;
      }
      svg.append(drawn("path", { class: `line line${index}`, d: path }));
    });
    if (table.open) tell();
  }

  function tell() {
    const step = Math.max(1, Math.ceil(points.length / TABLE_ROWS));
    const rows = points.filter((_, index) => (points.length - 1 - index) % step === 0).map((point) => element(
      "tr", {}, element("th", { scope: "row" }, moment(point.at)),
      ...series.map(({ read }) => element("td", { class: "n" }, read(point) === null ? "–" : show(read(point)))),
    ));
    table.lastElementChild.replaceChildren(element(
      "table", {},
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Time"), ...series.map(({ name }) => element("th", { scope: "col", class: "n" }, name)))),
      element("tbody", {}, ...rows),
    ));
  }

  table.addEventListener("toggle", () => { if (table.open) tell(); });
  new ResizeObserver(() => { if (holder.firstElementChild?.getAttribute("width") !== String(Math.max(200, holder.clientWidth))) draw(); }).observe(holder);
  return (found) => { points = found; draw(); };
}
