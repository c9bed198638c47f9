// The conditions of a list: further lines are added to the form, and taken out of it.

const form = document.querySelector("form[data-conditions]");
if (form) {
  const most = Number(form.dataset.conditions);
  const add = form.querySelector("[data-condition-add]");
  const lines = () => [...form.querySelectorAll("[data-condition]")];
  // An empty line to copy.
  const blank = lines().at(-1).cloneNode(true);

  function number() {
    lines().forEach((line, index) => {
      for (const field of line.querySelectorAll("[name]")) field.name = field.name.replace(/\d+$/, String(index + 1));
      line.setAttribute("aria-label", `Condition ${index + 1}`);
      line.querySelector("[data-condition-remove]").setAttribute("aria-label", `Take condition ${index + 1} away`);
    });
    add.disabled = lines().length >= most;
  }

  function show(line) {
    line.querySelector("[data-condition-remove]").hidden = false;
  }

  function append() {
    const line = blank.cloneNode(true);
    lines().at(-1).after(line);
    show(line);
    number();
    return line;
  }

  for (const line of lines()) show(line);
  add.hidden = false;
  add.addEventListener("click", () => append().querySelector("select").focus());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-condition-remove]");
    if (!button) return;
    const line = button.closest("[data-condition]");
    const isUsed = line.querySelector("select").value !== "";
    const place = lines().indexOf(line);
    if (lines().length === 1) append();
    line.remove();
    number();
    // What the list was narrowed by is taken away at once.
    if (isUsed) form.requestSubmit();
    else (lines()[place] ?? lines().at(-1)).querySelector("select").focus();
  });
}
