// The tree of entities and attributes of an export: finds by words, and ticks one of two boxes at a time.

for (const tree of document.querySelectorAll("[data-tree]")) {
  const search = tree.querySelector("[data-tree-search]");
  const branches = tree.querySelectorAll("[data-branch]");
  search.hidden = false;
  search.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.trim().toLowerCase();
    for (const branch of branches) {
      let found = 0;
      for (const row of branch.querySelectorAll("[data-name]")) {
        row.hidden = words !== "" && !row.dataset.name.includes(words);
        if (!row.hidden) found += 1;
      }
      branch.hidden = found === 0;
      if (words !== "" && found > 0) branch.open = true;
    }
  });
  search.addEventListener("keydown", (event) => {
    // Enter finds, and does not send the form.
    if (event.key === "Enter") event.preventDefault();
  });
  tree.addEventListener("change", (event) => {
    const box = event.target;
    if (!box.matches("input[type=checkbox]") || !box.checked) return;
    for (const other of box.closest("tr").querySelectorAll("input[type=checkbox]")) {
      if (other !== box) other.checked = false;
    }
  });
}

// A form may have so many fields only: the ticked attributes are sent as one.
for (const form of document.querySelectorAll("form")) {
  if (!form.querySelector("[data-tree]")) continue;
  form.addEventListener("submit", () => {
    for (const name of ["keep", "drop"]) {
      const boxes = [...form.querySelectorAll(`input[type=checkbox][name=${name}]`)];
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = name;
      field.value = boxes.filter((box) => box.checked).map((box) => box.value).join(" ");
      for (const box of boxes) box.disabled = true;
      form.append(field);
    }
  });
}
