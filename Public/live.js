// Live progress: listens to the server's events and shows them in the places that the page marks.
//
// An element with data-job="ID" shows the job of that id: a progress bar, the phase and the time left. When a job ends the
// page is loaded again, once, so that it shows what came of it.

const jobs = document.querySelectorAll("[data-job]");
const source = document.querySelector("[data-events]")?.dataset.events;

function left(seconds) {
  if (seconds == null) return "";
  if (seconds < 2) return "almost done";
  if (seconds < 90) return `about ${Math.round(seconds)} seconds left`;
  return `about ${Math.round(seconds / 60)} minutes left`;
}

if (source && "EventSource" in window) {
  const events = new EventSource(source);
  events.addEventListener("progress", (event) => {
    const update = JSON.parse(event.data);
    for (const element of jobs) {
      if (element.dataset.job !== update.job) continue;
      element.hidden = false;
      const bar = element.querySelector("progress");
      if (bar && update.fraction != null) bar.value = update.fraction;
      const text = element.querySelector("[data-job-text]");
      if (text) text.textContent = [update.phase, left(update.secondsLeft)].filter(Boolean).join(" · ");
    }
  });
  events.addEventListener("running", (event) => {
    const running = JSON.parse(event.data).jobs;
    for (const element of jobs) {
      if (running.includes(element.dataset.job)) continue;
      // It ended between the making of this page and now.
      events.close();
      window.location.reload();
      return;
    }
  });
  let waiting;
  events.addEventListener("inbox", () => {
    if (!document.querySelector("[data-inbox]")) return;
    // Several changes come at once; and typing is not interrupted.
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (document.activeElement?.matches("input, select, textarea")) return;
      events.close();
      window.location.reload();
    }, 700);
  });
  events.addEventListener("done", () => {
    events.close();
    window.location.reload();
  });
  window.addEventListener("pagehide", () => events.close());
}
