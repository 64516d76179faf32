// The element: panes that share a camera and a frame, and everything that moves them.

class SpheruleGlobe extends HTMLElement {
  static SLOW = 32; // milliseconds from one picture to the next
  static DULLEST = 0.45; // pixels, of those that a side has, that are drawn in motion at least
  static REST = 250; // milliseconds without motion
  // Milliseconds for which words stand while frames play: nobody reads faster, and they cost a
  // browser without a GPU as much as the picture.
  static READ = 200;
  static made = 0;

  async connectedCallback() {
    if (this.camera) return;
    // The first globe of a page is made when its script runs, the next before its own data are read.
    if (document.readyState === "loading") {
      await new Promise((ready) => document.addEventListener("DOMContentLoaded", ready, { once: true }));
    }
    const still = this.querySelector("img");
    const page = JSON.parse(this.querySelector("script").textContent);
    this.key = `globe-${SpheruleGlobe.made++}`;
    this.camera = new Camera(page.start, page.inside);
    this.frames = page.frames;
    this.shaders = page.shaders;
    this.coast = page.coast;
    this.photograph = null;
    this.drawn = 0; // pictures so far
    Object.assign(this, { frame: 0, graticule: !page.inside, playing: false });
    Object.assign(this, { moving: false, sharpness: 1, took: 0 });
    this.opacity = page.image ? 0.5 : 1;
    this.read(page);
    this.panes = [0, 1].map((number) => new Pane(this, number));
    this.panes[1].element.hidden = true;
    this.controls = new Controls(this, page);
    this.append(this.controls.element);
    const able = typeof DecompressionStream === "function" && this.panes[0].start();
    if (!able) {
      this.controls.element.remove();
      const why = "This browser has no WebGL2, which the globe needs: the picture is the first frame.";
      this.append(make("p", { class: "globe-summary" }, still.alt), make("p", { class: "globe-note" }, why));
      return;
    }
    still.hidden = true;
    for (const pane of this.panes) listen(this, pane);
    await this.photograph?.load();
    await this.panes[0].choose(0, 0);
    const several = this.variables[0].sources.length > 1 || this.frames.places.length > 0;
    if (several && !page.inside && this.clientWidth >= 640) await this.showTwo(true);
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

  // All panes say their value at the place that the pointer is at in one of them.
  point(pane, pointer) {
    pane.pointer = pointer;
    this.pointing = pointer ? pane : null;
    this.say();
  }

  say() {
    this.said = performance.now();
    this.controls.say();
    const place = this.pointing?.see();
    for (const pane of this.panes) pane.read(this.pointing ? place : pane.see());
  }

  turn(east, north) {
    this.camera.turn(east, north);
    this.move();
  }

  zoom(factor) {
    this.camera.scale(factor);
    this.move();
  }

  reset() {
    this.camera.reset();
    this.move();
  }

  async showTwo(on) {
    const [left, right] = this.panes;
    this.controls.two.checked = on;
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

  // How much of the photograph the field covers.
  cover(opacity) {
    this.opacity = opacity;
    this.move();
  }

  showLines(on) {
    this.controls.lines.checked = on;
    this.graticule = on;
    this.request();
  }

  click(place) {
    const { places } = this.frames;
    if (!place || !places.length) return;
    const wanted = toward(90 - place[0] / RADIANS, place[1] / RADIANS);
    const nearness = places.map((at) => toward(...at).reduce((sum, x, i) => sum + x * wanted[i], 0));
    this.go(nearness.indexOf(Math.max(...nearness)));
  }

  go(frame) {
    const count = this.frames.labels.length;
    this.frame = (frame + count) % count;
    this.move();
  }

  play(on) {
    this.playing = on && this.frames.labels.length > 1;
    this.controls.say();
    if (!this.playing) {
      for (const pane of this.panes) pane.frame = -1; // to be summed up
      this.request();
      return;
    }
    let before = performance.now();
    const tick = (now) => {
      if (!this.playing || !this.isConnected) return;
      const passed = Math.floor(((now - before) / 1000) * +this.controls.speed.value);
      if (passed > 0) {
        before += (passed * 1000) / +this.controls.speed.value;
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
    requestAnimationFrame((now) => {
      this.requested = false;
      for (const pane of this.panes) if (!pane.element.hidden) pane.draw();
      if (!this.playing || now - this.said > SpheruleGlobe.READ) this.say();
      this.drawn++;
      if (this.moving) requestAnimationFrame((later) => this.pace(later - now));
    });
  }

  // Draw in motion: with fewer pixels where all of them take too long, until it comes to rest.
  move() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.setMoving(false), SpheruleGlobe.REST);
    this.setMoving(true);
    this.request();
  }

  setMoving(moving) {
    if (this.moving === moving) return;
    this.moving = moving;
    if (this.sharpness < 1) for (const pane of this.panes) pane.resize();
  }

  pace(took) {
    this.took += 0.25 * (took - this.took);
    if (this.took < SpheruleGlobe.SLOW || this.sharpness <= SpheruleGlobe.DULLEST) return;
    this.sharpness = Math.max(0.8 * this.sharpness, SpheruleGlobe.DULLEST);
    this.took = 0;
    for (const pane of this.panes) pane.resize();
  }
}

if (!customElements.get("spherule-globe")) customElements.define("spherule-globe", SpheruleGlobe);
