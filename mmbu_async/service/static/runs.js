// The list of runs, kept up to date by events.

import {
  ENDED, API, ask, badge, cost, count, dollars, duration, element, facts, follow, moment, number, pageOf, pathOf, rowsOf, set, tried,
} from "./common.js";
import { buttons } from "./steer.js";

const list = document.getElementById("runs");
const items = new Map();

function item(job) {
  const known = items.get(job.run);
  if (known) return known;
  const box = element("input", { type: "checkbox", name: "run", value: job.run, form: "compare" });
  const made = {
    job,
    progress: null,
    state: element("span"),
    message: element("p", { class: "said", hidden: true }),
    bar: element("progress", { max: 1, value: 0, "aria-label": `Rows of ${job.run}` }),
    figures: element("dl", { class: "figures" }),
    buttons: element("div", { class: "buttons", role: "group", "aria-label": `Steer ${job.run}` }),
    box,
  };
  made.node = element(
    "li", {},
    element("div", { class: "name" },
      element("h2", {}, element("a", { href: pageOf(job.run) }, element("bdi", {}, job.run))), made.state),
    made.message, made.bar, made.figures,
    element("div", { class: "foot" },
      element("span", { class: "links" },
        element("a", { href: `${API}${pathOf(job.run)}/report?format=html` }, "Report", element("span", { class: "unseen" }, ` of ${job.run}`)),
        element("a", { href: rowsOf(job.run) }, "Rows", element("span", { class: "unseen" }, ` of ${job.run}`))),
      element("label", { class: "check" }, box, " compare", element("span", { class: "unseen" }, ` run ${job.run}`)),
      made.buttons),
  );
  box.addEventListener("change", chosen);
  items.set(job.run, made);
  return made;
}

function show(one) {
  const { job, progress } = one;
  one.state.replaceChildren(badge(job.state));
  set(one.message, job.message);
  one.message.hidden = !job.message;
  one.bar.hidden = progress === null;
  const pairs = [["Model", String(job.settings.model ?? "–")]];
  if (progress !== null) {
    one.bar.max = Math.max(1, progress.total);
    one.bar.value = progress.done;
    pairs.push(["Rows", `${count(progress.done)} of ${count(progress.total)}`]);
    if (job.state === "running") {
      pairs.push(["Rate", `${number(progress.rows_per_s)} rows/s`], ["Time left", duration(progress.eta_s)]);
    }
    pairs.push(["Spent", cost(progress)]);
    if (progress.failed) pairs.push(["Failed rows", count(progress.failed)]);
  }
  pairs.push([ENDED.has(job.state) ? "Ended" : "Submitted", moment(job.ended_at ?? job.created_at)]);
  if (job.priority) pairs.push(["Priority", String(job.priority)]);
  facts(one.figures, pairs);
  buttons(one.buttons, job, (after) => took(after.run, after));
}

function took(run, job) {
  const one = item(job);
  // An event of an older job of the same run changes nothing.
  if (job.id < one.job.id) return;
  one.job = job;
  show(one);
  const at = [...list.children].findIndex((node) => items.get(node.dataset.run).job.id <= job.id);
  one.node.dataset.run = run;
  if (!one.node.isConnected) list.insertBefore(one.node, list.children[at] ?? null);
  sum();
}

function moved(run, progress) {
  const one = items.get(run);
  if (!one) return;
  one.progress = progress;
  show(one);
  sum();
}

function sum() {
  const states = {};
  let spent = 0;
  for (const { job, progress } of items.values()) {
    states[job.state] = (states[job.state] ?? 0) + 1;
    spent += progress?.cost_usd ?? 0;
  }
  const parts = ["running", "queued", "paused"].filter((state) => states[state]).map((state) => `${states[state]} ${state}`);
  set(document.getElementById("summary"), items.size ? [...parts, `${dollars(spent)} spent`].join(" · ") : "");
  document.getElementById("none").hidden = items.size > 0;
}

const compare = document.getElementById("compare");
const boxes = () => [...document.querySelectorAll("input[name=run]:checked")];

function chosen() {
  const names = [...new Set(boxes().map((box) => box.value))];
  compare.hidden = names.length === 0;
  compare.querySelector("button").disabled = names.length < 2;
  set(document.getElementById("chosen"), names.length < 2 ? "Choose at least two." : `${names.length} chosen; the first is the baseline.`);
}

compare.addEventListener("submit", (event) => {
  event.preventDefault();
  const names = [...new Set(boxes().map((box) => box.value))];
  location.assign(`${API}compare?${names.map((name) => `run=${encodeURIComponent(name)}`).join("&")}&format=html`);
});

async function stored() {
  const found = await tried(() => ask("stored"));
  if (found === null) return;
  const rows = found.runs.map((one) => element(
    "tr", {},
    element("td", {}, element("input", {
      type: "checkbox", name: "run", value: one.run, form: "compare", onchange: chosen, "aria-label": `Compare ${one.run}`,
    })),
    element("th", { scope: "row" }, element("bdi", {}, one.run)),
    element("td", {}, one.model), element("td", {}, one.benchmark),
    element("td", { class: "n" }, count(one.rows)), element("td", { class: "n" }, count(one.scored)),
    element("td", {},
      element("a", { href: `${API}${pathOf(one.run)}/report?format=html` }, "Report"), " ",
      element("a", { href: rowsOf(one.run) }, "Rows")),
  ));
  document.querySelector("#stored .scroll").replaceChildren(element(
    "table", {},
    element("thead", {}, element("tr", {},
      ...["Compare", "Run", "Model", "Benchmark", "Rows", "Scored", "See"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows),
  ));
}
document.getElementById("stored").addEventListener("toggle", (event) => { if (event.target.open) stored(); });

follow("events", { job: took, progress: moved });
ask("runs").then(({ runs }) => { for (const { job, progress } of runs.reverse()) { took(job.run, job); if (progress) moved(job.run, progress); } sum(); }).catch(() => {});
