// The form for queries: Ctrl+Enter, or ⌘+Enter, runs what was typed.

const field = document.querySelector("[data-query]");
if (field) {
  const hint = document.querySelector("[data-query-key]");
  if (hint) hint.hidden = false;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
}
