// What all pages share: asking the API, following events, and putting foreign texts and figures into words.

export const API = "api/v1/";
export const ENDED = new Set(["done", "incomplete", "cancelled", "failed"]);

export class Refused extends Error {}

export async function ask(path, body) {
  const options = { headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(API + path, options);
  } catch {
    throw new Refused("The service does not answer; is it still running?");
  }
  if (answer.status === 401) {
    location.reload();
    throw new Refused("The session has ended; log in again.");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(content.detail || `The service answered ${answer.status}.`);
  return content;
}

export const pathOf = (run) => `runs/${encodeURIComponent(run)}`;
export const pageOf = (run) => `run?name=${encodeURIComponent(run)}`;
export const rowsOf = (run) => `rows/${encodeURIComponent(run)}/`;

// Follows events; `on` maps a kind to what is done with the run's name and the data. The state comes first,
// after every loss of the connection too.
export function follow(path, on) {
  const told = document.getElementById("connection");
  const source = new EventSource(API + path);
  source.addEventListener("open", () => { told.hidden = true; });
  source.addEventListener("error", () => {
    told.textContent = source.readyState === EventSource.CLOSED
      ? "The service has closed the connection; load the page again."
      : "The connection is lost; figures may be old. Trying again …";
    told.hidden = false;
    if (source.readyState === EventSource.CLOSED) ask("choices").catch(() => {});
  });
  for (const [kind, act] of Object.entries(on)) {
    source.addEventListener(kind, (event) => {
      const { run, data } = JSON.parse(event.data);
      act(run, data);
    });
  }
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

// Characters that would hide or turn a text around are shown as what they are.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
export const plain = (text) =>
  String(text).replace(STEERING, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// An element with attributes, and texts or elements inside; texts are never markup.
export function element(tag, attributes = {}, ...inner) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inner.map((one) => (one instanceof Node ? one : plain(one))));
  return made;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (value) => whole.format(value);

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  return new Intl.NumberFormat("en", {
    maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4,
  }).format(value);
}

export function dollars(value) {
  if (value === null || value === undefined) return "unknown";
  const digits = value !== 0 && Math.abs(value) < 1 ? 4 : 2;
  return `$${new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: digits }).format(value)}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "not known";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export const moment = (seconds) =>
  seconds === null ? "–" : new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const badge = (state) => element("span", { class: `badge ${state}` }, state);

// Name and value pairs of a <dl>. What is there stays: a reader's place in it is kept.
export function facts(list, pairs) {
  while (list.children.length > pairs.length) list.lastElementChild.remove();
  pairs.forEach(([name, value], index) => {
    const box = list.children[index] ?? list.appendChild(element("div", {}, element("dt"), element("dd")));
    set(box.firstElementChild, name);
    set(box.lastElementChild, value);
  });
}

export function set(node, text) {
  const shown = plain(text);
  if (node.textContent !== shown) node.textContent = shown;
}

export function cost(progress) {
  const unknown = progress.cost_unknown;
  if (!unknown) return dollars(progress.cost_usd);
  const calls = `${count(unknown)} ${unknown === 1 ? "call" : "calls"}`;
  // Nothing is known of them: a sum of 0 would read as free.
  return progress.cost_usd ? `${dollars(progress.cost_usd)}, ${calls} of unknown cost` : `unknown, of ${calls}`;
}

// Tells a reader, and one who hears the page, what came of a press; `bad`: that it was refused.
export function say(text, bad = false) {
  const told = document.getElementById("say");
  told.textContent = plain(text);
  told.classList.toggle("bad", bad);
}

export async function tried(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message, true);
    return null;
  }
}
