// Live progress, and pages that never show old numbers.
//
// An element with data-job="ID" shows the job of that id: a progress bar, the phase and the time left. When a job ends that
// has to do with the page, the page is loaded again; where something was typed into it, it says that it is old instead.
// Only a page that is seen listens, since a browser keeps few connections: one that is looked at again asks how many jobs
// have ended since it was made, and, where its store may have been changed by another program, compares the digest of its
// twin with that of the time when it was made, which it carries: a tab that was opened unseen may be old at its first sight.

const jobs = document.querySelectorAll("[data-job]");
const { live, endings, fresh } = document.body.dataset;
let { digest } = document.body.dataset;
let isFirst = true;
let compared = -Infinity;
let events;
let waiting;
let start;
let hasInput = false;
let departure = -Infinity;

document.addEventListener("input", () => { hasInput = true; });
// A page that was just left by a link or a form is not loaded again: that would call back where the browser is going.
document.addEventListener("submit", () => { departure = performance.now(); });
document.addEventListener("click", (event) => { if (event.target.closest?.("a[href]")) departure = performance.now(); });

function left(seconds) {
  if (seconds == null) return "";
  if (seconds < 2) return "almost done";
  if (seconds < 90) return `about ${Math.round(seconds)} seconds left`;
  return `about ${Math.round(seconds / 60)} minutes left`;
}

// Whether a job's end changes what this page shows.
function concerns(update) {
  const path = window.location.pathname;
  if (document.querySelector(`[data-job="${CSS.escape(update.job ?? "")}"]`)) return true;
  if (path.startsWith("/stores/")) {
    // What is done to one store may move another one: only what is of a store alone stays as it is.
    return !update.store || path.split("/")[2] === update.store || path.split("/").length === 3;
  }
  return ["/stores", "/work", "/bundles", "/exports", "/outbox", "/inbox"].some((start) => path === start || path.startsWith(`${start}/`));
}

// Loads the page again, but never while someone fills in a form: then the page says that it is old.
function renew() {
  if (performance.now() - departure < 5000) {
    clearTimeout(waiting);
    waiting = setTimeout(renew, 5000);
    return;
  }
  const isBusy = hasInput || document.activeElement?.matches("input:not([type=checkbox]), select, textarea");
  if (!isBusy) {
    events?.close();
    window.location.reload();
    return;
  }
  if (document.querySelector("[data-stale]")) return;
  const note = document.createElement("div");
  note.className = "note warn";
  note.dataset.stale = "";
  note.setAttribute("role", "status");
  const words = document.createElement("p");
  words.append("Something has changed since this page was made. ");
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Load it again";
  again.addEventListener("click", () => window.location.reload());
  words.append(again);
  note.append(words);
  document.querySelector("main")?.prepend(note);
}

function progress(update) {
  for (const element of jobs) {
    if (element.dataset.job !== update.job) continue;
    element.hidden = false;
    const bar = element.querySelector("progress");
    if (bar && update.fraction != null) bar.value = update.fraction;
    const text = element.querySelector("[data-job-text]");
    if (text) text.textContent = [update.phase, left(update.secondsLeft)].filter(Boolean).join(" · ");
  }
}

function listen() {
  if (!live || !("EventSource" in window) || events) return;
  events = new EventSource(live);
  events.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
  events.addEventListener("running", (event) => {
    const state = JSON.parse(event.data);
    // Something ended between the making of this page and now: a job that it shows, or one that it knows nothing of.
    const isOver = [...jobs].some((element) => !state.jobs.includes(element.dataset.job));
    if (isOver || (String(state.endings) !== endings && concerns({}))) renew();
  });
  events.addEventListener("inbox", () => {
    if (!document.querySelector("[data-inbox]")) return;
    // Several changes come at once.
    clearTimeout(waiting);
    waiting = setTimeout(renew, 700);
  });
  events.addEventListener("done", (event) => {
    if (concerns(JSON.parse(event.data))) renew();
  });
}

// A page that is left at once has not listened: what ended meanwhile is told at the beginning. One with a running job begins
// at once.
function attend() {
  clearTimeout(start);
  start = setTimeout(listen, jobs.length > 0 ? 0 : 1500);
}

function rest() {
  clearTimeout(start);
  events?.close();
  events = undefined;
}

// Whether the page was loaded again for its age a moment ago: that of a store which is written all the time would be for ever.
function wasJustRenewed() {
  try {
    const key = `renewed ${window.location.href}`;
    const last = Number(sessionStorage.getItem(key));
    sessionStorage.setItem(key, String(Date.now()));
    return Date.now() - last < 10000;
  } catch {
    return true;
  }
}

async function compare() {
  // What is still being made loads its page again by itself.
  if (!fresh || document.querySelector("[data-reload]") || performance.now() - compared < 1000) return;
  compared = performance.now();
  try {
    const answer = await fetch(fresh, { headers: { Accept: "application/json" } });
    const now = answer.headers.get("Lazaret-Digest");
    await answer.text();
    if (!answer.ok || !now) return;
    if (digest !== undefined && digest !== now && !(isFirst && wasJustRenewed())) renew();
    digest = now;
    isFirst = false;
  } catch {
    // The inspector has ended, or the page is being left.
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return rest();
  attend();
  compare();
});
window.addEventListener("focus", compare);
// A page beside another window is seen without the focus.
document.documentElement.addEventListener("pointerenter", compare);
window.addEventListener("pagehide", rest);
window.addEventListener("pageshow", (event) => {
  // A page from the browser's memory is as old as its last sight.
  if (event.persisted) window.location.reload();
});
if (document.visibilityState === "visible") {
  attend();
  if (fresh) setTimeout(compare, 50);
}
