// One sphere of the page: its choices, picture, color bar, the value under the pointer, a summary.

// An element with attributes, children and listeners (names that begin with "on").
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function fill(select, names) {
  select.replaceChildren(...names.map((name, i) => make("option", { value: i }, name)));
  select.closest("label").hidden = names.length < 2;
}

// A number with as many digits as tell a ten-thousandth of a span.
function format(value, span) {
  const digits = Math.ceil(-Math.log10(span / 1e4 || 1e-4));
  const size = Math.abs(value);
  const wide = Math.max(size, span);
  const text =
    size < span / 2e4
      ? "0"
      : wide < 0.01 || wide >= 1e6
        ? value.toExponential(Math.max(0, Math.min(digits + Math.floor(Math.log10(size)), 8)))
        : value.toFixed(Math.max(0, Math.min(digits, 12)));
  return text.replaceAll("-", "−").replace("e+", "e");
}

function degrees(theta, phi) {
  const latitude = 90 - theta / RADIANS;
  const longitude = ((((phi / RADIANS + 180) % 360) + 360) % 360) - 180;
  return [latitude, longitude];
}

function inWords(theta, phi) {
  const [latitude, longitude] = degrees(theta, phi).map((angle) => Math.round(angle * 10) / 10);
  const parallel = `${Math.abs(latitude).toFixed(1)}° ${latitude < 0 ? "S" : "N"}`;
  return `${parallel}, ${Math.abs(longitude).toFixed(1)}° ${longitude < 0 ? "W" : "E"}`;
}

// Red, green and blue, from 0 to 1, of what an element stands on.
function behind(element) {
  for (let below = element; below; below = below.parentElement) {
    // Out of the page, an element has no color at all.
    const color = getComputedStyle(below).backgroundColor.match(/[\d.]+/g) || [0, 0, 0, 0];
    const [red, green, blue, alpha = 1] = color;
    if (+alpha > 0) return [red / 255, green / 255, blue / 255];
  }
  return [1, 1, 1];
}

class Pane {
  static SHARPEST = 2; // pixels of the screen in one of the page: more cost time and are not seen

  constructor(globe, number) {
    Object.assign(this, { globe, number, pointer: null, frame: -1, pixel: 1, sky: [1, 1, 1] });
    const side = ["left", "right"][number];
    const choice = (label) => make("select", { "aria-label": `${label}, ${side} globe` });
    this.variableChoice = choice("Variable");
    this.sourceChoice = choice("Source");
    this.canvas = make("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "globe",
      "aria-describedby": `${globe.key}-keys ${globe.key}-summary-${number}`,
    });
    this.marker = make("i", { class: "globe-marker", hidden: "" });
    this.readout = make("output", { class: "globe-readout" });
    this.bar = make("div", { class: "globe-bar" });
    this.summary = make("p", {
      class: "globe-summary",
      id: `${globe.key}-summary-${number}`,
      "aria-live": "polite",
    });
    this.element = make(
      "div",
      { class: "globe-pane" },
      make(
        "div",
        { class: "globe-choices" },
        make("label", {}, this.variableChoice),
        make("label", {}, this.sourceChoice),
      ),
      make("div", { class: "globe-stage" }, this.canvas, this.marker),
      this.readout,
      this.bar,
      this.summary,
    );
    fill(this.variableChoice, globe.variables.map((variable) => variable.name));
    this.variableChoice.addEventListener("change", () => this.choose(+this.variableChoice.value, 0));
    this.sourceChoice.addEventListener("change", () =>
      this.choose(+this.variableChoice.value, +this.sourceChoice.value),
    );
    this.canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.sphere = null;
    });
    this.canvas.addEventListener("webglcontextrestored", () => this.start());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  // False where there is no WebGL2.
  start() {
    this.sphere = Sphere.on(this.canvas, this.globe.shaders);
    if (this.sphere && this.globe.coast) this.sphere.setCoast(this.globe.coast);
    if (this.sphere && this.globe.photograph) this.sphere.setPhotograph(this.globe.photograph);
    if (this.sphere && this.source) this.show(this.source);
    return this.sphere !== null;
  }

  async choose(variable, source) {
    const chosen = this.globe.variables[variable].sources[source];
    this.chosen = chosen;
    this.variableChoice.value = variable;
    fill(this.sourceChoice, this.globe.variables[variable].sources.map(({ name }) => name));
    this.sourceChoice.value = source;
    await chosen.load();
    // Another may have been chosen in the meantime.
    if (this.chosen === chosen) this.show(chosen);
  }

  chooseNext(what) {
    const [variable, source] = [+this.variableChoice.value, +this.sourceChoice.value];
    const { variables } = this.globe;
    return what === "variable"
      ? this.choose((variable + 1) % variables.length, 0)
      : this.choose(variable, (source + 1) % variables[variable].sources.length);
  }

  show(source) {
    this.source = source;
    this.sphere?.setSource(source, this.globe.table(source));
    this.frame = -1;
    this.drawBar();
    this.globe.request();
  }

  resize() {
    const { moving, sharpness } = this.globe;
    this.pixel = Math.min(window.devicePixelRatio || 1, Pane.SHARPEST) * (moving ? sharpness : 1);
    this.sky = behind(this.canvas);
    const { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.max(1, Math.round(clientWidth * this.pixel));
    this.canvas.height = Math.max(1, Math.round(clientHeight * this.pixel));
    this.globe.request();
  }

  draw() {
    if (!this.sphere || !this.source) return;
    const { globe } = this;
    if (this.frame !== globe.frame) {
      this.frame = globe.frame;
      this.sphere.setFrame(this.frame);
      if (!globe.playing) this.summarize();
    }
    this.sphere.draw(globe.camera, {
      graticule: globe.graticule ? (globe.camera.zoom > 3 ? 10 : 30) : 0,
      opacity: globe.opacity,
      pixel: this.pixel,
      sky: this.sky,
    });
    if (globe.frames.places.length) this.mark(toward(...globe.frames.places[globe.frame]));
  }

  mark(place) {
    const { clientWidth, clientHeight } = this.canvas;
    const at = this.globe.camera.show(place, Math.min(clientWidth, clientHeight));
    this.marker.hidden = !at;
    if (!at) return;
    this.marker.style.left = `${clientWidth / 2 + at[0]}px`;
    this.marker.style.top = `${clientHeight / 2 - at[1]}px`;
  }

  // Colatitude and longitude at a point of the page, by default in the middle of the picture.
  see(pointer = this.pointer) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const [x, y] = pointer ?? [left + width / 2, top + height / 2];
    const side = Math.min(width, height);
    return this.globe.camera.see(x - left - width / 2, top + height / 2 - y, side);
  }

  // Say the value at a place: under the pointer, or in the middle for those who turn by keys.
  read(place) {
    this.readout.textContent = "\u00a0";
    for (const name of ["value", "latitude", "longitude"]) delete this.readout.dataset[name];
    if (!place || !this.source) return;
    const value = this.source.sample(this.frame, ...place);
    const { classes, units } = this.source.variable;
    const [latitude, longitude] = degrees(...place);
    Object.assign(this.readout.dataset, { value, latitude, longitude });
    const said = Number.isNaN(value)
      ? "no value"
      : classes.length
        ? classes[value]?.[0]
        : `${this.format(value)} ${units}`;
    this.readout.textContent = `${inWords(...place)}: ${said}`;
  }

  format(value) {
    return format(value, this.source.limits[1] - this.source.limits[0]);
  }

  drawBar() {
    const { limits, variable } = this.source;
    this.bar.replaceChildren();
    if (variable.classes.length) {
      for (const [name, color] of variable.classes) {
        const swatch = make("i", { style: `background: rgb(${color})` });
        this.bar.append(make("span", { class: "globe-class" }, swatch, name));
      }
      return;
    }
    const table = this.globe.table(this.source);
    const colors = [];
    for (let i = 0; i < 256; i += 15) colors.push(`rgb(${table.slice(4 * i, 4 * i + 3)})`);
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((t) => limits[0] + t * (limits[1] - limits[0]));
    this.bar.append(
      make("div", { class: "globe-gradient", style: `background: linear-gradient(90deg, ${colors})` }),
      make(
        "div",
        { class: "globe-ticks" },
        ...ticks.map((tick) => make("span", {}, format(tick, 50 * (limits[1] - limits[0])))),
      ),
      make("div", { class: "globe-units" }, [this.source.label, variable.units].filter(Boolean).join(", ")),
    );
  }

  // What is seen, for those who don't see it.
  summarize() {
    const { source, frame, globe } = this;
    const { variable } = source;
    const when = globe.frames.labels[frame] ? `, ${globe.frames.labels[frame]}` : "";
    const what = `${source.label}${when}`;
    this.canvas.setAttribute("aria-label", what);
    if (variable.classes.length) {
      const shares = source.shares(frame).slice(0, 4);
      const said = shares.map(([name, share]) => `${name} ${(100 * share).toFixed(0)} %`);
      this.summary.textContent = `${what}: ${said.join(", ")} of the sphere.`;
      return;
    }
    const { low, high, lowest, highest, mean, missing } = source.statistics(frame);
    const absent = missing > 1e-9 ? `; ${(100 * missing).toFixed(1)} % of the sphere has no value` : "";
    if (lowest === undefined) {
      this.summary.textContent = `${what}: no values.`;
      return;
    }
    const at = (point) => inWords(...source.rings.place(point));
    this.summary.textContent =
      `${what}: from ${this.format(low)} (${at(lowest)}) to ${this.format(high)} (${at(highest)}), ` +
      `mean ${`${this.format(mean)} ${variable.units}`.trim()}${absent}.`;
  }
}
