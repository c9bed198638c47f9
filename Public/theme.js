// The choice between the system's look, light and dark; it is kept on this machine only.

const button = document.querySelector("[data-theme-choice]");
const order = ["system", "light", "dark"];

function stored() {
  try {
    return localStorage.getItem("theme") ?? "system";
  } catch {
    return "system";
  }
}

function apply(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  if (button) {
    button.hidden = false;
    button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[choice];
    button.setAttribute("aria-label", `Colours: ${choice}. Change.`);
  }
  document.dispatchEvent(new Event("themechange"));
}

apply(stored());
button?.addEventListener("click", () => {
  const next = order[(order.indexOf(stored()) + 1) % order.length];
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Without storage the choice holds for this page only.
  }
  apply(next);
});
