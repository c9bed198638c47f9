// Pages that wait for something are loaded again until it is there.

const waiting = document.querySelector("[data-reload]");
if (waiting) {
  const milliseconds = Number(waiting.dataset.reload);
  setTimeout(() => window.location.reload(), milliseconds);
}
