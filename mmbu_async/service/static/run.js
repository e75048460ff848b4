// One run: where it stands, over time, and the ways to steer it.

import { API, ask, badge, cost, count, dollars, duration, element, facts, follow, moment, number, pathOf, plain, rowsOf, say, set, tried } from "./common.js";
import { chart } from "./charts.js";
import { buttons } from "./steer.js";

const by = (id) => document.getElementById(id);
const run = by("run").dataset.run;
const LINES = 500, POINTS = 1000, DRAW_MS = 1000;
let job = null, progress = null, points = [];

const charts = [
  chart(by("charts"), { title: "Throughput", series: [{ name: "rows/s", read: (one) => one.rows_per_s }], show: (value) => `${number(value)}/s` }),
  chart(by("charts"), {
    title: "Latency of a call",
    series: [{ name: "median", read: (one) => one.latency_p50_s }, { name: "95 %", read: (one) => one.latency_p95_s }],
    show: (value) => `${number(value)} s`,
  }),
  chart(by("charts"), { title: "Spent", series: [{ name: "US dollars", read: (one) => one.cost_usd }], show: dollars }),
];

function tookJob(_, data) {
  if (job !== null && data.id < job.id) return;
  const changed = job !== null && job.state !== data.state;
  if (job === null || data.id !== job.id || by("priority-value").value === "") by("priority-value").value = data.priority;
  job = data;
  by("state").replaceChildren(badge(job.state), " ", element("span", { class: "muted" }, `${job.kind} ${job.id}, submitted ${moment(job.created_at)}`));
  set(by("message"), job.message);
  by("message").hidden = !job.message;
  set(by("settings"), JSON.stringify(job.settings, null, 2));
  buttons(by("buttons"), job, (after) => tookJob(run, after), sure);
  if (changed) say(`The run is ${job.state} now.`);
  sides();
  figures();
}

function tookProgress(_, data) {
  progress = data;
  const last = points[points.length - 1];
  if (!last || data.at > last.at) points.push(data);
  // Every second one of what lies back: a long night stays whole, and small.
  if (points.length > POINTS) points = points.filter((_, index) => index % 2 === 0 || index > POINTS - 100);
  figures();
  redraw();
}

function figures() {
  const pairs = [["Model", String(job?.settings.model ?? "–")], ["Benchmark", String(job?.settings.benchmark ?? "–")]];
  if (progress !== null) {
    by("bar").max = Math.max(1, progress.total);
    by("bar").value = progress.done;
    set(by("bar-label"), `${count(progress.done)} of ${count(progress.total)} rows`);
    pairs.unshift(
      ["Rate", `${number(progress.rows_per_s)} rows/s`],
      ["Time left", job?.state === "running" ? duration(progress.eta_s) : "–"],
      ["Spent", cost(progress)],
      ["Judged", count(progress.judged)],
      ["Failed rows", count(progress.failed)],
      ["Calls under way", count(progress.in_flight)],
      ["Wait for a judge", count(progress.queue)],
      ["Latency", `${number(progress.latency_p50_s)} s, 95 %: ${number(progress.latency_p95_s)} s`],
    );
    set(by("waiting"), progress.waiting ? `Waits: ${progress.waiting}` : "");
    by("waiting").hidden = !progress.waiting || job?.state !== "running";
  }
  facts(by("figures"), pairs);
  errors();
}

function errors() {
  const found = Object.entries(progress?.errors ?? {}).sort((one, other) => other[1] - one[1]);
  if (!found.length) {
    if (by("errors").firstElementChild?.tagName !== "P") by("errors").replaceChildren(element("p", { class: "muted" }, "None in this session."));
    return;
  }
  const most = found[0][1];
  by("errors").replaceChildren(element(
    "table", { class: "bars" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Kind"), element("th", { scope: "col", class: "n" }, "Attempts"), element("td"))),
    element("tbody", {}, ...found.map(([kind, times]) => element(
      "tr", {}, element("th", { scope: "row" }, kind.replaceAll("_", " ")), element("td", { class: "n" }, count(times)),
      element("td", { class: "share" }, element("meter", { max: most, value: times, "aria-hidden": "true" })),
    ))),
  ));
}

// At once where nothing was drawn lately, so that a busy run costs its reader little.
let drawing = null, drawn = -DRAW_MS;
function redraw() {
  drawing ??= setTimeout(() => {
    drawing = null;
    drawn = performance.now();
    for (const draw of charts) draw(points);
  }, Math.max(0, drawn + DRAW_MS - performance.now()));
}

function sides() {
  if (by("limit-side").options.length) return;
  const panel = (job.settings.panel ?? []).map((one) => one.name ?? one.model);
  by("limit-side").append(
    element("option", { value: "" }, "model under test"),
    element("option", { value: "judge" }, "judge"),
    ...panel.map((name) => element("option", { value: name }, `judge ${name}`)),
  );
}

function tookLine(_, { line }) {
  const log = by("log");
  const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  log.append(`${plain(line)}\n`);
  while (log.childNodes.length > LINES) log.firstChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// Events that were lost, or came before this page: what there is is read anew.
async function refresh() {
  const [history, logs] = await Promise.all([tried(() => ask(`${pathOf(run)}/history`)), tried(() => ask(`${pathOf(run)}/logs`))]);
  if (history) { points = history.points; drawn = -DRAW_MS; clearTimeout(drawing); drawing = null; redraw(); }
  if (logs) { by("log").replaceChildren(); for (const line of logs.lines) tookLine(run, { line }); }
}

function sure(question) {
  const dialog = by("sure");
  set(by("sure-text"), question);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

function limitOf(text) {
  if (text.trim() === "") return undefined;
  return /^(none|any)$/i.test(text.trim()) ? null : Number(text);
}

by("limit").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target.elements, side = {};
  if (form.concurrency.value) side.concurrency = Number(form.concurrency.value);
  for (const name of ["rpm", "tpm"]) {
    const value = limitOf(form[name].value);
    if (Number.isNaN(value)) return say(`${form[name].value} is neither a number nor “none”.`, true);
    if (value !== undefined) side[name] = value;
  }
  const body = form.side.value ? { judges: { [form.side.value]: side } } : { model: side };
  const done = await tried(() => ask(`${pathOf(run)}/limit`, body));
  if (done) say(done.limits.join(" · "));
});

by("priority").addEventListener("submit", async (event) => {
  event.preventDefault();
  const after = await tried(() => ask(`${pathOf(run)}/priority`, { priority: Number(by("priority-value").value) }));
  if (after) { tookJob(run, after); say(`Priority ${after.priority}.`); }
});

async function rejudge() {
  const after = await tried(() => ask(`${pathOf(run)}/rejudge`, { failed: true }));
  if (after) { tookJob(run, after); say("Queued: the judge is asked again about rows without a verdict."); }
}

const link = (href, text, more = {}) => element("li", {}, element("a", { href, ...more }, text));
const below = `${API}${pathOf(run)}`;
by("links").append(
  link(`${below}/report?format=html`, "Report"),
  link(rowsOf(run), "Rows"),
  ...["jsonl", "csv", "parquet"].map((form) => link(`${below}/export?format=${form}`, `Export ${form.toUpperCase()}`, { download: "" })),
  element("li", {}, element("button", { type: "button", class: "quiet", onclick: rejudge }, "Ask the judge again")),
);

follow(`${pathOf(run)}/events`, { job: tookJob, progress: tookProgress, log: tookLine, dropped: refresh });
refresh();
