// The picture of a store's pages: each page a cell, coloured by its table, or by its state where something is wrong with it.
// Hover or arrow keys tell what a page is; the keys below leave only the pages of a table or of a state.
//
// The element names the address of the runs as JSON (state letter, table index, number of pages), and holds a drawing of them
// for browsers without scripts, which this module replaces.

const names = {
  h: "healthy", o: "orphan", d: "damaged", f: "free", v: "overflow", s: "special", u: "unplaced", x: "unreadable",
};

const words = {
  h: "part of its table", o: "nothing led to it; placed by its content", d: "damaged; what was left was carved",
  f: "free", v: "rest of long values", s: "pointer map or lock page", u: "rows that fit no table", x: "unreadable",
};

class PageMap {
  constructor(element, data) {
    this.element = element;
    this.byTable = true;
    this.filter = null;
    this.tables = data.names ?? data.tables;
    this.colours = data.colours ?? [];
    this.pageSize = data.pageSize;
    this.href = data.href;
    this.states = [];
    this.owners = [];
    for (const [state, table, count] of data.runs) {
      for (let index = 0; index < count; index += 1) {
        this.states.push(state);
        this.owners.push(table);
      }
    }
    this.count = this.states.length;
    this.zoom = 1;
    this.selected = 0;
    this.build();
    this.measure();
    new ResizeObserver(() => this.measure()).observe(this.holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    document.addEventListener("themechange", () => this.draw());
  }

  build() {
    this.element.querySelector(".map-still")?.remove();
    this.holder = document.createElement("div");
    this.holder.className = "map-holder";
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Map of ${this.count} pages. Arrow keys move, Enter opens a page, plus and minus zoom.`);
    this.tip = document.createElement("div");
    this.tip.className = "map-tip";
    this.tip.setAttribute("aria-live", "polite");
    this.tip.textContent = "Point at a page, or use the arrow keys.";
    this.holder.append(this.canvas);
    this.element.prepend(this.holder, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("click", (event) => { this.point(event); this.open(); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.show());
    for (const button of this.element.querySelectorAll("[data-zoom]")) {
      button.hidden = false;
      button.addEventListener("click", () => this.setZoom(this.zoom * Number(button.dataset.zoom)));
    }
    const colour = this.element.querySelector("[data-colour]");
    if (colour) {
      colour.hidden = false;
      colour.addEventListener("click", () => {
        this.byTable = !this.byTable;
        colour.textContent = this.byTable ? "Colour by state" : "Colour by table";
        this.draw();
      });
    }
    for (const item of this.element.querySelectorAll("[data-table-colour]")) {
      this.makeFilter(item, { colour: Number(item.dataset.tableColour) });
    }
    for (const item of this.element.querySelectorAll("[data-state]")) this.makeFilter(item, { state: item.dataset.state });
  }

  // An item of a key becomes a button that leaves only its pages, and leaves all of them when it is pressed again.
  makeFilter(item, filter) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      const isOn = button.getAttribute("aria-pressed") === "true";
      for (const other of this.element.querySelectorAll(".legend button")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(!isOn));
      this.filter = isOn ? null : filter;
      this.draw();
    });
  }

  // Whether a page is one of those that the chosen item of a key stands for.
  fits(page) {
    if (!this.filter) return true;
    if (this.filter.state) return this.states[page] === this.filter.state;
    const table = this.owners[page];
    return table >= 0 && (this.colours[table] ?? 0) === this.filter.colour;
  }

  setZoom(zoom) {
    this.zoom = Math.min(8, Math.max(1, zoom));
    this.measure();
  }

  measure() {
    const width = this.holder.clientWidth;
    if (!width) return;
    const ideal = Math.sqrt((width * 260) / Math.max(1, this.count));
    const size = Math.max(3, Math.min(18, Math.floor(ideal))) * this.zoom;
    this.size = size;
    this.across = Math.max(1, Math.floor(width / size));
    this.down = Math.ceil(this.count / this.across);
    const ratio = window.devicePixelRatio || 1;
    const height = this.down * size;
    // Browsers draw nothing on canvases beyond this; larger stores show what is in sight and scroll.
    const limit = Math.floor(16000 / ratio);
    this.holder.style.maxHeight = "28rem";
    this.holder.style.overflowY = "auto";
    this.canvas.width = Math.floor(this.across * size * ratio);
    this.canvas.height = Math.floor(Math.min(height, limit) * ratio);
    this.canvas.style.width = `${this.across * size}px`;
    this.canvas.style.height = `${Math.min(height, limit)}px`;
    this.ratio = ratio;
    this.draw();
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(this.element);
    const colors = {};
    for (const [letter, name] of Object.entries(names)) colors[letter] = style.getPropertyValue(`--page-${name}`).trim();
    const probe = document.createElement("span");
    this.element.append(probe);
    for (const letter of Object.keys(colors)) {
      probe.style.color = `var(--page-${names[letter]})`;
      colors[letter] = getComputedStyle(probe).color;
    }
    const tables = [];
    for (let index = 0; index < 10; index += 1) {
      probe.style.color = `var(--table-${index})`;
      tables.push(getComputedStyle(probe).color);
    }
    probe.style.color = "var(--ink)";
    const ink = getComputedStyle(probe).color;
    probe.remove();
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const gap = this.size > 5 ? 1 : this.size > 3 ? 0.5 : 0;
    for (let page = 0; page < this.count; page += 1) {
      const x = (page % this.across) * this.size;
      const y = Math.floor(page / this.across) * this.size;
      const state = this.states[page];
      const table = this.owners[page];
      context.globalAlpha = this.fits(page) ? 1 : 0.15;
      context.fillStyle = this.byTable && table >= 0 && "hov".includes(state)
        ? tables[this.colours[table] ?? 9] ?? ink : colors[state] ?? ink;
      context.fillRect(x, y, this.size - gap, this.size - gap);
      // Damage is told by a mark too, not by colour alone.
      if ((state === "d" || state === "x" || state === "u") && this.size >= 6) {
        context.strokeStyle = "rgba(0,0,0,.55)";
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x + 1.5, y + this.size - 2.5);
        context.lineTo(x + this.size - 2.5, y + 1.5);
        if (state === "x") {
          context.moveTo(x + 1.5, y + 1.5);
          context.lineTo(x + this.size - 2.5, y + this.size - 2.5);
        }
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    const x = (this.selected % this.across) * this.size;
    const y = Math.floor(this.selected / this.across) * this.size;
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(x, y, this.size, this.size);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.size);
    const row = Math.floor((event.clientY - box.top) / this.size);
    const page = row * this.across + column;
    if (column >= this.across || page < 0 || page >= this.count) return;
    this.select(page);
  }

  key(event) {
    const moves = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.across, ArrowUp: -this.across, PageDown: this.across * 10,
      PageUp: -this.across * 10, Home: -this.selected, End: this.count - 1 - this.selected,
    };
    if (event.key in moves) this.select(Math.min(this.count - 1, Math.max(0, this.selected + moves[event.key])));
    else if (event.key === "Enter") this.open();
    else if (event.key === "+") this.setZoom(this.zoom * 2);
    else if (event.key === "-") this.setZoom(this.zoom / 2);
    else if (event.key === "n") this.nextDamage();
    else return;
    event.preventDefault();
  }

  nextDamage() {
    for (let step = 1; step <= this.count; step += 1) {
      const page = (this.selected + step) % this.count;
      if ("dxuo".includes(this.states[page])) return this.select(page);
    }
  }

  select(page) {
    this.selected = page;
    const top = Math.floor(page / this.across) * this.size;
    if (top < this.holder.scrollTop) this.holder.scrollTop = top;
    if (top + this.size > this.holder.scrollTop + this.holder.clientHeight) {
      this.holder.scrollTop = top + this.size - this.holder.clientHeight;
    }
    this.draw();
    this.show();
  }

  show() {
    const state = this.states[this.selected];
    const table = this.tables[this.owners[this.selected]];
    this.tip.textContent = `Page ${(this.selected + 1).toLocaleString("en")} · ${names[state]}: ${words[state]}${table ? ` · ${table}` : ""}`;
  }

  open() {
    if (this.href) window.location.assign(this.href.replace("{page}", String(this.selected + 1)));
  }
}

async function load(element) {
  const answer = await fetch(element.dataset.map, { headers: { Accept: "application/json" } });
  // Without the data the server's own drawing stays.
  if (!answer.ok) return;
  const data = await answer.json();
  if (Array.isArray(data.runs) && data.runs.length > 0) new PageMap(element, data);
}

for (const element of document.querySelectorAll(".map[data-map]")) load(element);
