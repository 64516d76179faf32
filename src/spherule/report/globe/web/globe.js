// The element: panes that share a camera and a frame, and everything that moves them.

const KEYS = [
  ["arrows", "turn, with Shift slowly"],
  ["+ and −", "zoom"],
  ["0", "as at first"],
  [", and .", "one frame back or on"],
  ["space", "play"],
  ["v and s", "next variable, next source"],
  ["2", "two globes"],
  ["g", "lines of latitude and longitude"],
];

class SpheruleGlobe extends HTMLElement {
  static STEP = 6; // degrees that an arrow key turns
  static made = 0;

  async connectedCallback() {
    if (this.camera) return;
    const still = this.querySelector("img");
    const page = JSON.parse(this.querySelector("script").textContent);
    this.key = `globe-${SpheruleGlobe.made++}`;
    this.camera = new Camera(page.start, page.inside);
    this.frames = page.frames;
    this.shader = page.shader;
    this.photograph = null;
    this.drawn = 0; // pictures so far
    Object.assign(this, { frame: 0, graticule: !page.inside, opacity: 1, playing: false });
    this.read(page);
    this.panes = [0, 1].map((number) => new Pane(this, number));
    this.append(this.layOut(page));
    const able = typeof DecompressionStream === "function" && this.panes[0].start();
    if (!able) {
      this.content.remove();
      const why = "This browser has no WebGL2, which the globe needs: the picture is the first frame.";
      this.append(make("p", { class: "globe-summary" }, still.alt), make("p", { class: "globe-note" }, why));
      return;
    }
    still.hidden = true;
    this.listen();
    await this.photograph?.load();
    if (this.photograph) this.panes[0].start();
    await this.panes[0].choose(0, 0);
    const { sources } = this.variables[0];
    if (sources.length > 1 && this.clientWidth >= 640) await this.showTwo(true);
    this.choosePlace(this.frames.places.length ? 0 : null);
    this.dataset.ready = "";
  }

  read(page) {
    const grids = page.grids.map((grid) => new Rings(grid));
    this.variables = page.variables.map(({ name, units, classes, grid, fields, sources }) => {
      const variable = { name, units, classes, rings: grids[grid] };
      variable.fields = fields.map((field) => new Field(field, variable.rings));
      variable.sources = sources.map((source) => new Source(source, variable));
      return variable;
    });
    if (page.image) this.photograph = new Photograph(page.image, grids[page.image.grid]);
    this.tables = {};
    for (const [name, data] of Object.entries(page.colors)) {
      const rgb = bytesOf(data);
      this.tables[name] = Uint8Array.from({ length: 1024 }, (_, i) =>
        i % 4 < 3 ? rgb[3 * (i >> 2) + (i % 4)] : 255,
      );
    }
  }

  // The color map of a source, 256 times red, green, blue and 255.
  table({ colors, variable }) {
    if (!variable.classes.length) return this.tables[colors];
    const table = new Uint8Array(1024);
    variable.classes.forEach(([, color], i) => table.set([...color, 255], 4 * i));
    return table;
  }

  layOut(page) {
    const check = (label, checked, change) => {
      const box = make("input", { type: "checkbox", onchange: () => change(box.checked) });
      box.checked = checked;
      return [box, make("label", {}, box, label)];
    };
    const last = this.frames.labels.length - 1;
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: last,
      value: 0,
      "aria-label": this.frames.name,
      oninput: () => this.go(+this.slider.value),
    });
    this.when = make("output", { class: "globe-when" });
    this.playButton = make("button", { type: "button", onclick: () => this.play(!this.playing) });
    this.speed = make("select", { "aria-label": "Frames a second" });
    for (const speed of [1, 2, 4, 8, 15, 30]) {
      this.speed.append(make("option", { value: speed }, `${speed} a second`));
    }
    this.speed.value = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : 8;
    let two, lines;
    [this.twoBox, two] = check("two globes", false, (on) => this.showTwo(on));
    [this.linesBox, lines] = check("lines", this.graticule, (on) => this.showLines(on));
    const strength = make("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.05,
      value: (this.opacity = page.image ? 0.5 : 1),
      oninput: () => {
        this.opacity = +strength.value;
        this.request();
      },
    });
    const time = make("div", { class: "globe-row" }, this.playButton, this.slider, this.when, this.speed);
    time.hidden = last === 0;
    const over = make("label", {}, "over the picture", strength);
    over.hidden = !page.image;
    const home = make("button", { type: "button", onclick: () => this.reset() }, "as at first");
    const closer = make("button", { type: "button", "aria-label": "closer", onclick: () => this.zoom(1.3) }, "+");
    const farther = make("button", { type: "button", "aria-label": "farther", onclick: () => this.zoom(1 / 1.3) }, "−");
    const keys = KEYS.concat(this.frames.places.length ? [["click, Enter", "choose a place"]] : []);
    const help = make("details", {}, make("summary", {}, "keys"));
    const list = make("dl", { id: `${this.key}-keys` });
    for (const [key, what] of keys) list.append(make("dt", {}, key), make("dd", {}, what));
    help.append(list);
    this.content = make(
      "div",
      { class: "globe" },
      make("div", { class: "globe-panes" }, ...this.panes.map((pane) => pane.element)),
      time,
      make("div", { class: "globe-row" }, closer, farther, home, two, lines, over),
      ...page.notes.map((note) => make("p", { class: "globe-note" }, note)),
      help,
    );
    this.panes[1].element.hidden = true;
    this.say();
    return this.content;
  }

  listen() {
    for (const pane of this.panes) {
      const { canvas } = pane;
      const touching = new Map();
      let moved = 0;
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        touching.set(event.pointerId, [event.clientX, event.clientY]);
        if (touching.size === 1) moved = 0;
      });
      canvas.addEventListener("pointermove", (event) => {
        const now = [event.clientX, event.clientY];
        const before = touching.get(event.pointerId);
        if (before) {
          const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
          moved += Math.abs(dx) + Math.abs(dy);
          if (touching.size === 2) {
            const [other] = [...touching].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
            const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
            this.camera.scale(apart(now) / Math.max(apart(before), 1));
          } else {
            const side = Math.min(canvas.clientWidth, canvas.clientHeight);
            const each = this.camera.degrees(side);
            this.camera.turn(-dx * each, dy * each);
          }
          touching.set(event.pointerId, now);
        }
        this.point(pane, now);
      });
      const end = (event) => touching.delete(event.pointerId);
      canvas.addEventListener("pointerup", (event) => {
        end(event);
        if (moved < 5) this.click(pane.see([event.clientX, event.clientY]));
      });
      canvas.addEventListener("pointercancel", end);
      canvas.addEventListener("pointerleave", () => this.point(pane, null));
      canvas.addEventListener("keydown", (event) => this.press(event, pane));
      canvas.addEventListener(
        "wheel",
        (event) => {
          // Only after a click, so that a page with a globe in it can be scrolled past it.
          if (document.activeElement !== canvas) return;
          event.preventDefault();
          this.zoom(Math.exp(-event.deltaY / 400));
        },
        { passive: false },
      );
    }
  }

  // All panes say their value at the place that the pointer is at in one of them.
  point(pane, pointer) {
    pane.pointer = pointer;
    this.pointing = pointer ? pane : null;
    this.request();
  }

  press(event, pane) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (event.shiftKey ? 0.1 : 1) * (SpheruleGlobe.STEP / Math.max(this.camera.zoom, 0.5));
    const actions = {
      ArrowLeft: () => this.turn(-step, 0),
      ArrowRight: () => this.turn(step, 0),
      ArrowUp: () => this.turn(0, step),
      ArrowDown: () => this.turn(0, -step),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.reset(),
      ",": () => this.go(this.frame - 1),
      ".": () => this.go(this.frame + 1),
      " ": () => this.play(!this.playing),
      v: () => pane.choose((+pane.variableChoice.value + 1) % this.variables.length, 0),
      s: () => this.nextSource(pane),
      2: () => this.showTwo(!this.twoBox.checked),
      g: () => this.showLines(!this.linesBox.checked),
      Enter: () => this.click(pane.see(null)),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    // Who turns by keys reads the value in the middle.
    pane.pointer = null;
    this.pointing = null;
    action();
  }

  turn(east, north) {
    this.camera.turn(east, north);
    this.request();
  }

  zoom(factor) {
    this.camera.scale(factor);
    this.request();
  }

  reset() {
    this.camera.reset();
    this.request();
  }

  nextSource(pane) {
    const variable = +pane.variableChoice.value;
    const next = (+pane.sourceChoice.value + 1) % this.variables[variable].sources.length;
    pane.choose(variable, next);
  }

  async showTwo(on) {
    const [left, right] = this.panes;
    this.twoBox.checked = on;
    right.element.hidden = !on;
    if (on && !right.sphere) {
      right.start();
      // Truth beside a model; else the next source, or the next variable.
      const { sources } = left.source.variable;
      const variable = +left.variableChoice.value;
      const truth = sources.findIndex(({ name }) => name === "truth");
      if (sources.length > 1) await right.choose(variable, truth > 0 ? truth : 1);
      else await right.choose((variable + 1) % this.variables.length, 0);
    }
    this.request();
  }

  showLines(on) {
    this.linesBox.checked = on;
    this.graticule = on;
    this.request();
  }

  click(place) {
    const { places } = this.frames;
    if (!place || !places.length) return;
    const vector = ([theta, phi]) => [
      Math.sin(theta) * Math.cos(phi),
      Math.sin(theta) * Math.sin(phi),
      Math.cos(theta),
    ];
    const wanted = vector(place);
    const nearness = places.map(([latitude, longitude]) =>
      vector([(90 - latitude) * RADIANS, longitude * RADIANS]).reduce((sum, part, i) => sum + part * wanted[i], 0),
    );
    this.choosePlace(nearness.indexOf(Math.max(...nearness)));
  }

  choosePlace(number) {
    if (number !== null) this.go(number);
  }

  // Where the frame's place is, as a unit vector.
  get marker() {
    if (!this.frames.places.length) return null;
    const [a, b] = this.frames.places[this.frame].map((angle) => angle * RADIANS);
    return [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)];
  }

  go(frame) {
    const count = this.frames.labels.length;
    this.frame = (frame + count) % count;
    this.say();
    this.request();
  }

  say() {
    const label = this.frames.labels[this.frame];
    this.slider.value = this.frame;
    this.slider.setAttribute("aria-valuetext", label);
    this.when.textContent = label;
    this.playButton.textContent = this.playing ? "stop" : "play";
  }

  play(on) {
    this.playing = on && this.frames.labels.length > 1;
    this.say();
    if (!this.playing) {
      for (const pane of this.panes) pane.frame = -1; // to be summed up
      this.request();
      return;
    }
    let before = performance.now();
    const tick = (now) => {
      if (!this.playing || !this.isConnected) return;
      const passed = Math.floor(((now - before) / 1000) * +this.speed.value);
      if (passed > 0) {
        before += (passed * 1000) / +this.speed.value;
        this.go(this.frame + passed);
      }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  // Draw once before the next picture of the screen, however much has changed.
  request() {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => {
      this.requested = false;
      this.pointed = this.pointing?.see() ?? null;
      for (const pane of this.panes) if (!pane.element.hidden) pane.draw();
      this.drawn++;
    });
  }
}

if (!customElements.get("spherule-globe")) customElements.define("spherule-globe", SpheruleGlobe);
