// Keys and small comforts. Everything that the pages offer can be reached without this file.
"use strict";

const find = (selector) => document.querySelector(selector);
const rows = () => [...document.querySelectorAll("ol.rows > li")];
const follow = (selector) => {
  const link = find(selector);
  if (link) link.click();
  return Boolean(link);
};

function openKeys() {
  const keys = find("#keys");
  if (!keys.open) keys.showModal();
}

function step(forward) {
  // In a list the focus moves from row to row; where a row is open, the next one is opened.
  if (document.body.classList.contains("row")) return follow(forward ? "a.next" : "a.previous");
  const links = rows().map((row) => row.querySelector("a.open"));
  if (!links.length) return false;
  const at = links.findIndex((link) => link.closest("li").contains(document.activeElement));
  const wanted = at < 0 ? (forward ? 0 : links.length - 1) : at + (forward ? 1 : -1);
  if (wanted >= links.length) return follow("a.next");
  if (wanted < 0) return follow("a.previous");
  links[wanted].focus({ preventScroll: true });
  links[wanted].closest("li").scrollIntoView({ block: "nearest" });
  return true;
}

function search() {
  const field = find("#q");
  if (field) {
    field.focus();
    field.select();
    return true;
  }
  const up = find("a.up");
  if (up) location.href = up.href.replace(/#.*$/, "#q");
  return Boolean(up);
}

function toggle(selector) {
  const box = find(selector);
  if (box) box.click();
  return Boolean(box);
}

const actions = {
  j: () => step(true),
  k: () => step(false),
  ArrowRight: () => follow("a.next"),
  ArrowLeft: () => follow("a.previous"),
  u: () => follow("a.up"),
  "/": search,
  t: () => toggle(".show-truth"),
  p: () => toggle(".show-predicted"),
  "?": () => (openKeys(), true),
};

const typing = (target) => target.closest("input:not([type=checkbox]), select, textarea");
// A box that scrolls sideways has the arrows for itself.
const scrolls = (target) => target.closest(".box, .scroll, .viewport");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && event.target.id === "q") event.target.blur();
  if (typing(event.target) || find("dialog[open]")) return;
  if (event.key.startsWith("Arrow") && scrolls(event.target)) return;
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
  if (action && action()) event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest(".open-keys")) {
    event.preventDefault();
    openKeys();
  } else if (event.target.closest(".close-keys") && find("#keys").open) {
    event.preventDefault();
    find("#keys").close();
  }
});

// A choice made with the pointer is meant; one that the arrow keys pass by is not.
let pointed = false;
document.addEventListener("pointerdown", () => (pointed = true), true);
document.addEventListener("keydown", () => (pointed = false), true);
for (const select of document.querySelectorAll(".filters select")) {
  select.addEventListener("change", () => pointed && select.form.requestSubmit());
}

// Back from a row: its place in the list has the focus. The browser itself moves to the place when all is
// loaded, and takes the focus away.
addEventListener("load", () => setTimeout(() => {
  if (location.hash.startsWith("#row-")) {
    const link = document.getElementById(location.hash.slice(1))?.querySelector("a.open");
    if (link) link.focus({ preventScroll: true });
  } else if (location.hash === "#q") {
    search();
  }
}));
