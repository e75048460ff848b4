// The buttons of a run: what its state allows.

import { ENDED, ask, element, pathOf, say, tried } from "./common.js";

const WORDS = { pause: "Pause", resume: "Resume", cancel: "Cancel" };
const DONE = {
  pause: "pausing: calls under way finish",
  resume: "going on",
  cancel: "cancelled: calls under way finish and are kept",
};

function allowed(state) {
  if (state === "done") return [];
  if (ENDED.has(state)) return ["resume"];
  return state === "paused" ? ["resume", "cancel"] : ["pause", "cancel"];
}

// Puts the buttons that fit into a group; a button that stays keeps the focus. `sure` asks before a cancel.
export function buttons(group, job, took, sure) {
  const wanted = allowed(job.state);
  const focused = group.contains(document.activeElement);
  for (const one of [...group.querySelectorAll("button[data-do]")]) {
    if (!wanted.includes(one.dataset.do)) one.remove();
  }
  wanted.forEach((what, index) => {
    if (group.querySelector(`[data-do=${what}]`)) return;
    const press = async (event) => {
      // Not disabled: that would take the focus from who works with keys.
      const button = event.currentTarget;
      if (button.ariaBusy === "true") return;
      if (what === "cancel" && sure && !(await sure(`Cancel the run ${job.run}?`))) return;
      button.ariaBusy = "true";
      const after = await tried(() => ask(`${pathOf(job.run)}/${what}`, {}));
      button.ariaBusy = "false";
      if (after === null) return;
      say(`${job.run}: ${DONE[what]}.`);
      took(after);
    };
    const made = element(
      "button",
      { type: "button", "data-do": what, class: what === "cancel" ? "quiet" : "", onclick: press },
      WORDS[what],
      element("span", { class: "unseen" }, ` run ${job.run}`),
    );
    group.insertBefore(made, group.querySelectorAll("button[data-do]")[index] ?? null);
  });
  // The button that was pressed may have gone: who works with keys must not be thrown to the top.
  if (focused && !group.contains(document.activeElement)) group.querySelector("button")?.focus();
}
