// Keys: "/" goes to the field for searching, "?" lists the keys. They do nothing while something is being typed, and can be
// turned off; that is kept on this machine only.

const keys = [
  ["/", "Go to the field for searching"],
  ["?", "This list"],
  ["n", "The next page of a list"],
  ["g then s", "All stores"],
  ["Ctrl+Enter", "Run the query that is being typed"],
  ["Esc", "Leave a field, close this list"],
];

function isOn() {
  try {
    return localStorage.getItem("keys") !== "off";
  } catch {
    return true;
  }
}

function turn(on) {
  try {
    localStorage.setItem("keys", on ? "on" : "off");
  } catch {
    // Without storage the keys stay as they are.
  }
}

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  parent?.append(made);
  return made;
}

let list;

function show() {
  if (!list) {
    list = element("dialog");
    list.className = "keys";
    list.setAttribute("aria-labelledby", "keys-heading");
    element("h2", "Keys", list).id = "keys-heading";
    const table = element("dl", "", list);
    for (const [key, words] of keys) {
      element("kbd", key, element("dt", "", table));
      element("dd", words, table);
    }
    const form = element("form", "", list);
    form.method = "dialog";
    const label = element("label", "", form);
    label.className = "check";
    const box = element("input", "", label);
    box.type = "checkbox";
    box.checked = isOn();
    box.addEventListener("change", () => turn(box.checked));
    label.append("Single keys do something");
    element("button", "Close", form);
    document.body.append(list);
  }
  if (!list.open) list.showModal();
}

const opener = document.querySelector("[data-keys]");
if (opener && "HTMLDialogElement" in window) {
  opener.hidden = false;
  opener.addEventListener("click", show);
}

let last = "";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  if (target instanceof HTMLElement && (target.matches("input, select, textarea") || target.isContentEditable)) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const before = last;
  last = event.key;
  if (!isOn() || list?.open) return;
  if (event.key === "/") {
    const field = document.querySelector("main input[type='search'], main [data-query]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "?") {
    event.preventDefault();
    if (opener) show();
  } else if (event.key === "n") {
    document.querySelector("main a[rel='next']")?.click();
  } else if (event.key === "s" && before === "g") {
    document.querySelector("header a.brand")?.click();
  }
});
