// The data of a page: rings of points, fields as 16-bit codes, sources as sums of fields.

const MISSING = 65535;
// A place is missing where less than this share of the points around it has a value.
const PRESENT = 0.5;

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

async function inflate(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A stack of rings of equally spaced points, from pole to pole.
class Rings {
  constructor({ name, theta, nphi, phi0, weight, row }) {
    Object.assign(this, { name, theta, nphi, phi0, weight, row, count: theta.length });
    this.start = [];
    this.size = 0;
    for (const points of nphi) {
      this.start.push(this.size);
      this.size += points;
    }
    // For equal steps of colatitude the last ring that is not south of the step's north end. Steps
    // are finer than rings, so that at most one more ring begins within a step.
    const gaps = theta.slice(1).map((angle, i) => angle - theta[i]);
    this.steps = Math.ceil(Math.PI / Math.min(...gaps)) + 1;
    this.table = new Float32Array(this.steps);
    for (let step = 0, ring = 0; step < this.steps; step++) {
      const edge = (step * Math.PI) / this.steps;
      while (ring < this.count - 2 && theta[ring + 1] <= edge) ring++;
      this.table[step] = ring;
    }
  }

  // The ring to the north of a colatitude; there is one to the south of it too.
  ringAt(theta) {
    const step = Math.min(Math.floor((theta / Math.PI) * this.steps), this.steps - 1);
    const ring = this.table[step];
    return ring < this.count - 2 && this.theta[ring + 1] <= theta ? ring + 1 : ring;
  }

  // Points around a place and their shares: linear along two rings, then between them.
  around(theta, phi) {
    const north = this.ringAt(theta);
    const t = (theta - this.theta[north]) / (this.theta[north + 1] - this.theta[north]);
    const found = [];
    for (const [ring, share] of [[north, 1 - t], [north + 1, t]]) {
      const n = this.nphi[ring];
      const position = (((phi - this.phi0[ring]) / (2 * Math.PI)) * n) % n;
      const west = Math.floor(position);
      const s = position - west;
      found.push([this.start[ring] + (((west % n) + n) % n), share * (1 - s)]);
      found.push([this.start[ring] + ((((west + 1) % n) + n) % n), share * s]);
    }
    return found;
  }

  // Beside the value of each point, at even places, that of the next to the east.
  pair(values) {
    for (let point = 1; point < this.size; point++) values[2 * point - 1] = values[2 * point];
    for (let ring = 0; ring < this.count; ring++) {
      values[2 * (this.start[ring] + this.nphi[ring]) - 1] = values[2 * this.start[ring]];
    }
  }

  // Colatitude and longitude of a point.
  place(point) {
    let ring = this.count - 1;
    while (this.start[ring] > point) ring--;
    const turn = (point - this.start[ring]) / this.nphi[ring];
    return [this.theta[ring], this.phi0[ring] + 2 * Math.PI * turn];
  }
}

// Frames of codes: value = offset + scale * code.
class Field {
  constructor({ offset, scale, frames, data }, rings) {
    Object.assign(this, { offset, scale, frames, data, rings });
  }

  // Undo the differences: twice from the point to the west, then from the point to the north.
  async load() {
    if (this.codes) return;
    const bytes = await inflate(this.data);
    const { size, row } = this.rings;
    const total = this.frames * size;
    const codes = new Uint16Array(total);
    for (let frame = 0; frame < this.frames; frame++) {
      let first = 0;
      let second = 0;
      for (let i = frame * size, point = 0; point < size; i++, point++) {
        const folded = (bytes[i] << 8) | bytes[total + i];
        first += (folded >> 1) ^ -(folded & 1);
        second += first;
        codes[i] = row && point >= row ? second + codes[i - row] : second;
      }
    }
    this.codes = codes;
    this.data = null;
  }

  at(frame, point) {
    const code = this.codes[Math.min(frame, this.frames - 1) * this.rings.size + point];
    return code === MISSING ? NaN : this.offset + this.scale * code;
  }
}

// What is chosen by name: the sum of one field or two, with its colors.
class Source {
  constructor({ name, of, colors, limits }, variable) {
    Object.assign(this, { name, colors, limits, variable });
    this.fields = of.map((i) => variable.fields[i]);
    this.rings = variable.rings;
  }

  get label() {
    const alone = this.variable.sources.length === 1;
    return alone ? this.variable.name : `${this.variable.name}, ${this.name}`;
  }

  load() {
    return Promise.all(this.fields.map((field) => field.load()));
  }

  at(frame, point) {
    let sum = 0;
    for (const field of this.fields) sum += field.at(frame, point);
    return sum;
  }

  // The value at a place: of the nearest point for classes, else interpolated; NaN is missing.
  sample(frame, theta, phi) {
    const around = this.rings.around(theta, phi);
    if (this.variable.classes.length) {
      const [point] = around.reduce((best, next) => (next[1] > best[1] ? next : best));
      return this.at(frame, point);
    }
    let sum = 0;
    let present = 0;
    for (const [point, share] of around) {
      const value = this.at(frame, point);
      if (share > 0 && !Number.isNaN(value)) {
        sum += share * value;
        present += share;
      }
    }
    return present >= PRESENT ? sum / present : NaN;
  }

  // What the shader draws, of each point and of the next to the east: 0 at the lower end of the
  // color map, 1 at the upper; classes by number.
  heights(frame, into) {
    const { size } = this.rings;
    const [low, high] = this.variable.classes.length ? [0, 1] : this.limits;
    const parts = this.fields.map(({ codes, offset, scale, frames }) => {
      const first = Math.min(frame, frames - 1) * size;
      return { codes: codes.subarray(first, first + size), offset, scale };
    });
    for (let point = 0; point < size; point++) {
      let value = 0;
      for (const { codes, offset, scale } of parts) {
        value += codes[point] === MISSING ? NaN : offset + scale * codes[point];
      }
      const height = (value - low) / (high - low);
      into[2 * point] = Number.isNaN(height) ? Sphere.MISSING : Math.max(-99, Math.min(height, 99));
    }
    this.rings.pair(into);
  }

  // Extremes with their places, the mean by area, and the share of the sphere without a value.
  statistics(frame) {
    const { count, nphi, weight, start } = this.rings;
    const found = { low: Infinity, high: -Infinity, mean: NaN, missing: 0 };
    let sum = 0;
    let area = 0;
    let whole = 0;
    for (let ring = 0; ring < count; ring++) {
      if (weight[ring] === 0 && nphi[ring] === 1) continue;
      for (let point = start[ring]; point < start[ring] + nphi[ring]; point++) {
        const value = this.at(frame, point);
        whole += weight[ring];
        if (Number.isNaN(value)) continue;
        area += weight[ring];
        sum += weight[ring] * value;
        if (value < found.low) [found.low, found.lowest] = [value, point];
        if (value > found.high) [found.high, found.highest] = [value, point];
      }
    }
    found.missing = 1 - area / whole;
    if (area > 0) found.mean = sum / area;
    return found;
  }

  // Names of classes and the share of the sphere that each covers, largest first.
  shares(frame) {
    const { count, nphi, weight, start } = this.rings;
    const { classes } = this.variable;
    const areas = classes.map(() => 0);
    for (let ring = 0; ring < count; ring++) {
      for (let point = start[ring]; point < start[ring] + nphi[ring]; point++) {
        areas[this.at(frame, point)] += weight[ring];
      }
    }
    const whole = areas.reduce((sum, area) => sum + area, 0);
    const found = classes.map(([name], i) => [name, areas[i] / whole]);
    return found.sort((a, b) => b[1] - a[1]);
  }
}

// A photograph: bytes of red, green and blue, frame by frame.
class Photograph {
  constructor({ frames, data }, rings) {
    Object.assign(this, { frames, data, rings });
  }

  async load() {
    if (this.bytes) return;
    this.bytes = await inflate(this.data);
    for (let i = 0; i < this.bytes.length; i++) {
      if (i % this.rings.size) this.bytes[i] += this.bytes[i - 1];
    }
    this.data = null;
  }

  // What the shader draws, of each point and of the next to the east: red, green and blue as bytes.
  pixels(frame, into) {
    const { size } = this.rings;
    const red = Math.min(frame, this.frames - 1) * 3 * size;
    const [green, blue] = [red + size, red + 2 * size];
    const { bytes } = this;
    for (let point = 0; point < size; point++) {
      into[2 * point] = bytes[red + point] | (bytes[green + point] << 8) | (bytes[blue + point] << 16);
    }
    this.rings.pair(into);
  }
}
