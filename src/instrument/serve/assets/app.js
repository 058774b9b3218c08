// What a page of `temper serve` does beyond HTML: it follows changes, filters, and obeys keys.
"use strict";

const by = (selector) => [...document.querySelectorAll(selector)];
const one = (selector) => document.querySelector(selector);

// ---- filters: of runs by the server's rules, of figures by their names ----

const filter = one("#filter");
const rows = one("#rows");

async function renewRows() {
  const reply = await fetch("/rows?filter=" + encodeURIComponent(filter.value));
  if (!reply.ok) return;
  const chosen = new Set(by("input[name=run]:checked").map((x) => x.value));
  const here = one("tr.here")?.id;
  rows.innerHTML = await reply.text();
  for (const box of by("input[name=run]")) box.checked = chosen.has(box.value);
  if (here) document.getElementById(here)?.classList.add("here");
}

function filterFigures() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const figure of by("figure[data-tag]")) {
    const tag = figure.dataset.tag.toLowerCase();
    figure.hidden = !words.every((w) => tag.includes(w));
  }
}

let typing = 0;
filter?.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(rows ? renewRows : filterFigures, 100);
});

// ---- changes ----

const summary = one("#summary");

// The new picture replaces the old one when it is there, so that nothing flickers; one that was asked
// for earlier and comes later does not.  The first picture of a page is part of it.  A version is the
// server's name for what it has read; pictures out of sight get it when they come into sight.
let renewals = 0;
function renewPicture(picture, version) {
  const old = picture.dataset.src ?? picture.src;
  const url = new URL(old, location);
  url.searchParams.set("v", version);
  if (url.href === new URL(old, location).href) return;
  const next = new Image(480, 320);
  next.alt = picture.alt ?? picture.getAttribute("aria-label");
  next.dataset.live = "";
  const figure = picture.parentElement, renewal = ++renewals;
  next.onload = () => {
    if (renewal < Number(figure.dataset.renewal ?? 0)) return;
    figure.dataset.renewal = renewal;
    figure.querySelector("[data-live]").replaceWith(next);
  };
  next.src = url.href;
}

const isSeen = (x) => {
  const box = x.getBoundingClientRect();
  return box.width > 0 && box.bottom > -500 && box.top < innerHeight + 500;
};

let latest = null;
function renewSeen() {
  if (latest === null) return;
  for (const picture of by("[data-live]")) if (isSeen(picture)) renewPicture(picture, latest);
}
addEventListener("scroll", () => later(renewSeen));

async function renewRun(version) {
  latest = version;
  renewSeen();
  if (!summary) return;
  const reply = await fetch("/run/" + summary.dataset.run + "/summary");
  if (reply.ok) summary.innerHTML = await reply.text();
}

function shows(run) {
  return summary?.dataset.run === run ||
    new URLSearchParams(location.search).getAll("run").includes(run);
}

let waiting = 0;
function later(what) {
  clearTimeout(waiting);
  waiting = setTimeout(what, 200);
}

// Where runs are compared, the page says of which version they are.
const compared = one("[data-version]");
async function renewCompared() {
  const reply = await fetch(location.href);
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const version = page.querySelector("[data-version]")?.dataset.version;
  if (version && version !== (latest ?? compared.dataset.version)) renewRun(version);
}

const live = one("#live");
const events = new EventSource("/events");
// What was written before it listened, or while it could not, is told to nobody.
async function catchUp() {
  if (rows) return renewRows();
  if (compared) return renewCompared();
  if (!summary) return;
  const reply = await fetch("/run/" + summary.dataset.run + "/summary");
  const line = document.createElement("p");
  if (reply.ok) line.innerHTML = await reply.text();
  if (reply.ok && line.innerHTML !== summary.innerHTML) renewRun(Date.now());
}
let times = 0;
events.onopen = () => {
  live.textContent = "live";
  if (times++ || !rows) catchUp();
};
events.onerror = () => { live.textContent = "not live"; };
events.onmessage = (message) => {
  const event = JSON.parse(message.data);
  if (rows) later(renewRows);
  else if (event.run && shows(event.run)) renewRun(event.version);
  else if (event.list && summary) renewRun(Date.now());
  else if (event.list || event.again) catchUp();
};
addEventListener("pagehide", () => events.close());

// ---- the run that is pointed at is opened before it is asked for ----

let pointed = 0;
const opened = new Set();
function openAhead(event) {
  clearTimeout(pointed);
  const link = event.target.closest?.("#rows a");
  if (!link || opened.has(link.href)) return;
  pointed = setTimeout(() => { opened.add(link.href); fetch(link.href); }, 30);
}
addEventListener("pointerover", openAhead);

// ---- keys ----

function move(by_) {
  const list = by("tr[id^=r]");
  const at = list.findIndex((x) => x.classList.contains("here"));
  const next = list[Math.min(list.length - 1, Math.max(0, at + by_))];
  if (at >= 0) list[at].classList.remove("here");
  next?.classList.add("here");
  next?.scrollIntoView({ block: "nearest" });
}

const keys = {
  "/": () => filter?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => one("tr.here input")?.click(),
  Enter: () => one("tr.here a")?.click(),
  c: () => one("#compare")?.requestSubmit(),
  u: () => { location.href = "/"; },
  "+": () => one("#in")?.click(),
  "-": () => one("#out")?.click(),
  ArrowLeft: () => one("#left")?.click(),
  ArrowRight: () => one("#right")?.click(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea, button")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "Enter" && event.target.matches("a")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// ---- a stretch of the timeline ----

const line = one(".timeline");
let begin = null;
const timeAt = (event) => {
  const box = line.getBoundingClientRect();
  const left = Number(line.dataset.left) / Number(line.dataset.width);
  const share = Math.min(1, Math.max(0, ((event.clientX - box.left) / box.width - left) / (1 - left)));
  const from = BigInt(line.dataset.from), to = BigInt(line.dataset.to);
  return from + BigInt(Math.round(Number(to - from) * share));
};
line?.addEventListener("pointerdown", (event) => { begin = { at: timeAt(event), x: event.clientX }; });
line?.addEventListener("pointerup", (event) => {
  if (!begin || Math.abs(event.clientX - begin.x) < 5) { begin = null; return; }
  const end = timeAt(event);
  const url = new URL(location.href);
  url.searchParams.set("from", begin.at < end ? begin.at : end);
  url.searchParams.set("to", begin.at < end ? end : begin.at);
  location.href = url.href;
});
