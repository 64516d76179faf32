// What is below the panes: time, zoom, choices, notes, and the list of keys.

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

class Controls {
  static SPEEDS = [1, 2, 4, 8, 15, 30]; // frames a second
  static USUAL = 8;

  constructor(globe, { image, inside, notes, frames }) {
    this.globe = globe;
    this.element = make(
      "div",
      { class: inside ? "globe globe-inside" : "globe" },
      make("div", { class: "globe-panes" }, ...globe.panes.map((pane) => pane.element)),
      this.time(frames),
      this.choices(image),
      ...notes.map((note) => make("p", { class: "globe-note" }, note)),
      this.help(frames),
    );
    this.say();
  }

  time({ labels, name }) {
    const { globe } = this;
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: labels.length - 1,
      value: 0,
      "aria-label": name,
      oninput: () => globe.go(+this.slider.value),
    });
    this.when = make("output", { class: "globe-when" });
    this.playing = make("button", { type: "button", onclick: () => globe.play(!globe.playing) });
    this.speed = make("select", { "aria-label": "Frames a second" });
    for (const speed of Controls.SPEEDS) {
      this.speed.append(make("option", { value: speed }, `${speed} a second`));
    }
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.speed.value = calm ? Controls.SPEEDS[0] : Controls.USUAL;
    const row = make("div", { class: "globe-row" }, this.playing, this.slider, this.when, this.speed);
    row.hidden = labels.length === 1;
    return row;
  }

  choices(image) {
    const { globe } = this;
    const button = (name, label, onclick) =>
      make("button", { type: "button", "aria-label": label, onclick }, name);
    const box = (checked, change) => {
      const input = make("input", { type: "checkbox", onchange: () => change(input.checked) });
      input.checked = checked;
      return input;
    };
    this.two = box(false, (on) => globe.showTwo(on));
    this.lines = box(globe.graticule, (on) => globe.showLines(on));
    const strength = make("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.05,
      value: globe.opacity,
      oninput: () => globe.cover(+strength.value),
    });
    const over = make("label", {}, "over the picture", strength);
    over.hidden = !image;
    return make(
      "div",
      { class: "globe-row" },
      button("+", "closer", () => globe.zoom(1.3)),
      button("−", "farther", () => globe.zoom(1 / 1.3)),
      button("as at first", "as at first", () => globe.reset()),
      make("label", {}, this.two, "two globes"),
      make("label", {}, this.lines, "lines"),
      over,
    );
  }

  help({ places }) {
    const keys = KEYS.concat(places.length ? [["click, Enter", "choose a place"]] : []);
    const list = make("dl", { id: `${this.globe.key}-keys` });
    for (const [key, what] of keys) list.append(make("dt", {}, key), make("dd", {}, what));
    return make("details", {}, make("summary", {}, "keys"), list);
  }

  say() {
    const { frame, frames, playing } = this.globe;
    this.slider.value = frame;
    this.slider.setAttribute("aria-valuetext", frames.labels[frame]);
    this.when.textContent = frames.labels[frame];
    this.playing.textContent = playing ? "stop" : "play";
  }
}
