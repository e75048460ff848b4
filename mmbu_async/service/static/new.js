// Start a run: first what it would take, then the run itself. A change after the estimate asks for a new one.

import { ask, count, dollars, duration, element, facts, pageOf, say, tried } from "./common.js";

const by = (id) => document.getElementById(id);
const form = by("new");
const WHOLE = new Set(["limit", "max_tokens", "concurrency", "seed"]);
const NUMBERS = new Set(["temperature", "rpm", "tpm", "max_cost"]);
const OWN = new Set(["further", "priority", "new_run"]);
const DEFAULT = { "": "the benchmark's own" };
let choices = { benchmarks: [], data: [], endpoints: [] };

function option(value, text = value) {
  return element("option", { value }, text);
}

async function fill() {
  const found = await tried(() => ask("choices"));
  if (found === null) return;
  choices = found;
  by("benchmark").append(...found.benchmarks.map((name) => option(name)));
  if (found.benchmarks.includes("mmbu-public")) by("benchmark").value = "mmbu-public";
  by("data").append(option("", DEFAULT[""]), ...found.data.map((name) => option(name)));
  if (found.data.length === 1) by("data").value = found.data[0];
  for (const id of ["endpoint", "judge-endpoint"]) {
    by(id).append(...found.endpoints.map((one) => option(one.name, one.name === one.endpoint ? one.name : `${one.name} (${one.endpoint})`)));
  }
  const anthropic = found.endpoints.find((one) => one.name === "anthropic");
  if (anthropic) by("judge-endpoint").value = "anthropic";
  models();
}

function models() {
  for (const [id, list] of [["endpoint", "models"], ["judge-endpoint", "judge-models"]]) {
    const known = choices.endpoints.find((one) => one.name === by(id).value)?.models ?? [];
    by(list).replaceChildren(...known.map((name) => option(name)));
  }
}

// The settings that were given, as a settings file would have them. Null where they cannot be.
function settings() {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || OWN.has(field.name) || field.value.trim() === "") continue;
    const value = WHOLE.has(field.name) || NUMBERS.has(field.name) ? Number(field.value) : field.value.trim();
    const [table, inner] = field.name.split(".");
    if (inner) (found[table] ??= {})[inner] = value;
    else found[field.name] = value;
  }
  const further = by("further").value.trim();
  if (!further) return found;
  try {
    const more = JSON.parse(further);
    if (typeof more !== "object" || more === null || Array.isArray(more)) throw new SyntaxError("no object");
    return { ...found, ...more, judge: { ...found.judge, ...more.judge } };
  } catch {
    say("The further settings are no JSON object.", true);
    by("further").closest("details").open = true;
    by("further").focus();
    return null;
  }
}

function stale() {
  by("start").hidden = true;
  by("ask").classList.add("primary");
  by("estimate").hidden = true;
}

function side(one) {
  return element(
    "tr", {}, element("th", { scope: "row" }, one.name), element("td", { class: "n" }, count(one.calls)),
    element("td", { class: "n" }, count(one.input_tokens)), element("td", { class: "n" }, count(one.output_tokens)),
    element("td", { class: "n" }, dollars(one.cost_usd)), element("td", { class: "n" }, duration(one.seconds)),
  );
}

function show(found) {
  facts(by("estimate-figures"), [
    ["Rows", `${count(found.rows)} of ${count(found.dataset_rows)}`],
    ["Cost", dollars(found.cost_usd)],
    ["Time", `about ${duration(found.seconds)}`],
  ]);
  by("sides").replaceChildren(element(
    "table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Side"), ...["Calls", "Tokens in", "Tokens out", "Cost", "Time"].map((name) => element("th", { scope: "col", class: "n" }, name)))),
    element("tbody", {}, ...[found.model, ...found.judges].filter(Boolean).map(side)),
  ));
  by("problems").replaceChildren();
  if (found.problem_count) {
    by("problems").append(
      element("p", { class: "notice bad" }, `${count(found.problem_count)} rows or images cannot be used; the run would count them as failed.`),
      element("ul", {}, ...found.problems.map((text) => element("li", {}, text))),
    );
  }
  by("estimate").hidden = false;
  by("start").hidden = false;
  by("ask").classList.remove("primary");
}

let asked = 0;
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = settings();
  if (given === null) return;
  stale();
  say("Estimating: every row and image is looked at …");
  by("ask").disabled = true;
  const mine = ++asked;
  const found = await tried(() => ask("estimate", { settings: given }));
  by("ask").disabled = false;
  if (found === null || mine !== asked) return;
  show(found);
  say(`${count(found.rows)} rows, ${found.cost_usd === null ? "of unknown cost" : `about ${dollars(found.cost_usd)}`}. Nothing has been called yet.`);
  by("start").focus();
});

by("start").addEventListener("click", async () => {
  const given = settings();
  if (given === null) return;
  by("start").disabled = true;
  const job = await tried(() => ask("runs", { settings: given, priority: Number(by("priority").value || 0), new_run: by("new_run").checked }));
  by("start").disabled = false;
  if (job !== null) location.assign(pageOf(job.run));
});

form.addEventListener("input", () => { asked += 1; stale(); });
form.addEventListener("change", models);
by("ask").classList.add("primary");
fill();
