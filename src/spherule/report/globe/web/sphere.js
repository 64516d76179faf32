// WebGL: where each pixel looks is found once a view; a frame looks its values up there.

// Shaders of one purpose, with the places of their uniforms.
class Program {
  constructor(gl, vertices, fragments) {
    Object.assign(this, { gl, places: {}, linked: gl.createProgram() });
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertices], [gl.FRAGMENT_SHADER, fragments]]) {
      const part = gl.createShader(kind);
      gl.shaderSource(part, text);
      gl.compileShader(part);
      gl.attachShader(this.linked, part);
    }
    gl.linkProgram(this.linked);
    if (!gl.getProgramParameter(this.linked, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(this.linked).map((part) => gl.getShaderInfoLog(part));
      throw new Error(`the shader of the globe does not compile: ${logs.join("")}`);
    }
  }

  // The uniforms of one name: kind of the setter and values.
  set(uniforms) {
    this.gl.useProgram(this.linked);
    for (const [name, [kind, ...values]] of Object.entries(uniforms)) {
      this.places[name] ??= this.gl.getUniformLocation(this.linked, name);
      this.gl[`uniform${kind}`](this.places[name], ...values);
    }
  }
}

// Where each pixel looks among the points of a ring grid, as a texture.
class Places {
  constructor(sphere, name, rings) {
    Object.assign(this, { sphere, name, rings, seen: null });
    const data = Sphere.room(rings.count, 4, Float32Array);
    for (let r = 0; r < rings.count; r++) {
      data.set([rings.theta[r], rings.nphi[r], rings.phi0[r], rings.start[r]], 4 * r);
    }
    sphere.texture(`${name}Rings`, "RGBA32F", data, rings.count);
    const table = Sphere.room(rings.steps, 1, Float32Array);
    table.set(rings.table);
    sphere.texture(`${name}Table`, "R32F", table, rings.steps);
  }

  // Does nothing while the view is the same.
  find(view, uniforms) {
    if (this.seen === view) return;
    this.seen = view;
    const { sphere, name, rings } = this;
    const { gl } = sphere;
    const { width, height } = gl.canvas;
    const texture = sphere.texture(name, "RGBA32UI", null, width * height, width);
    gl.bindFramebuffer(gl.FRAMEBUFFER, sphere.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    sphere.placing.set({
      ...uniforms,
      rings: ["1i", Sphere.UNITS.indexOf(`${name}Rings`)],
      table: ["1i", Sphere.UNITS.indexOf(`${name}Table`)],
      steps: ["1i", rings.steps],
      last: ["1i", rings.count - 2],
    });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
}

class Sphere {
  static MISSING = -1000;
  static WIDTH = 2048;
  // Textures by the number of their unit; those of integers and of photographs may stay empty.
  static UNITS = [
    ...["places", "placesRings", "placesTable", "values", "colors"],
    ...["imagePlaces", "imagePlacesRings", "imagePlacesTable", "image"],
  ];
  static CORNERS = `#version 300 es
    void main() {
      gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
    }`;

  // Places on the sphere as the eye outside sees them; those behind the rim are left out.
  static ON_SPHERE = `#version 300 es
    in vec3 place;
    uniform vec2 size;
    uniform mat3 frame;
    uniform float distant, focal;
    out float before;
    void main() {
      vec3 seen = place * frame;
      before = seen.z - 1.0 / distant;
      gl_Position = vec4(2.0 * focal * seen.xy / size, 0.0, distant - seen.z);
    }`;
  static INK = `#version 300 es
    precision highp float;
    in float before;
    out vec4 color;
    void main() {
      if (before < 0.0) discard;
      color = vec4(0.1, 0.1, 0.12, 1.0);
    }`;

  // Null where there is no WebGL2.
  static on(canvas, shaders) {
    // Without alpha, nothing below the picture need be drawn: half of a software compositor's time.
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false });
    return gl ? new Sphere(gl, shaders) : null;
  }

  constructor(gl, { places, sphere }) {
    this.gl = gl;
    this.textures = {};
    this.target = gl.createFramebuffer();
    this.triangle = gl.createVertexArray();
    gl.bindVertexArray(this.triangle);
    this.placing = new Program(gl, Sphere.CORNERS, places);
    this.painting = new Program(gl, Sphere.CORNERS, sphere);
    for (const name of ["places", "values", "colors", "imagePlaces", "image"]) {
      this.painting.set({ [name]: ["1i", Sphere.UNITS.indexOf(name)] });
    }
    // Samplers of integers need textures of integers, used or not.
    for (const name of ["imagePlaces", "image"]) this.texture(name, "RG32UI", new Uint32Array(2), 1);
  }

  // Values of points, row after row; memory is kept while the size stays. Without values, room.
  texture(name, format, values, points, width = Sphere.WIDTH) {
    const { gl } = this;
    const [columns, rows] = [Math.min(points, width), Math.ceil(points / width)];
    const [layout, kind] = {
      R32F: [gl.RED, gl.FLOAT],
      RG32F: [gl.RG, gl.FLOAT],
      RGBA32F: [gl.RGBA, gl.FLOAT],
      RGBA8: [gl.RGBA, gl.UNSIGNED_BYTE],
      RG32UI: [gl.RG_INTEGER, gl.UNSIGNED_INT],
      RGBA32UI: [gl.RGBA_INTEGER, gl.UNSIGNED_INT],
    }[format];
    gl.activeTexture(gl.TEXTURE0 + Sphere.UNITS.indexOf(name));
    const key = `${format} ${columns} ${rows}`;
    if (this.textures[name]?.key !== key) {
      if (this.textures[name]) gl.deleteTexture(this.textures[name].texture);
      const texture = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texStorage2D(gl.TEXTURE_2D, 1, gl[format], columns, rows);
      const filter = name === "colors" ? gl.LINEAR : gl.NEAREST;
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
      this.textures[name] = { texture, key };
    }
    if (values) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, columns, rows, layout, kind, values);
    return this.textures[name].texture;
  }

  // Room for so many points in whole rows of a texture.
  static room(points, parts, Kind) {
    const whole = points <= Sphere.WIDTH ? points : Math.ceil(points / Sphere.WIDTH) * Sphere.WIDTH;
    return new Kind(whole * parts);
  }

  setSource(source, colors) {
    this.source = source;
    this.places = new Places(this, "places", source.rings);
    this.heights = Sphere.room(source.rings.size, 2, Float32Array);
    this.texture("colors", "RGBA8", colors, 256);
    this.painting.set({ classes: ["1i", source.variable.classes.length ? 1 : 0] });
  }

  setPhotograph(photograph) {
    this.photograph = photograph;
    this.imagePlaces = new Places(this, "imagePlaces", photograph.rings);
    this.pixels = Sphere.room(photograph.rings.size, 2, Uint32Array);
    this.painting.set({ photograph: ["1i", 1] });
  }

  setFrame(frame) {
    this.source.heights(frame, this.heights);
    this.texture("values", "RG32F", this.heights, this.source.rings.size);
    if (this.photograph) {
      this.photograph.pixels(frame, this.pixels);
      this.texture("image", "RG32UI", this.pixels, this.photograph.rings.size);
    }
  }

  // Lines over the sphere: of each the first longitude and latitude in tenths of a degree, then
  // differences.
  setCoast(lines) {
    const { gl } = this;
    const ends = [];
    for (const line of lines) {
      let [longitude, latitude, before] = [0, 0, null];
      for (let i = 0; i < line.length; i += 2) {
        [longitude, latitude] = [longitude + line[i], latitude + line[i + 1]];
        const place = toward(latitude / 10, longitude / 10);
        if (before) ends.push(...before, ...place);
        before = place;
      }
    }
    this.coast = { program: new Program(gl, Sphere.ON_SPHERE, Sphere.INK), count: ends.length / 3 };
    this.coast.vertices = gl.createVertexArray();
    gl.bindVertexArray(this.coast.vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(ends), gl.STATIC_DRAW);
    const place = gl.getAttribLocation(this.coast.program.linked, "place");
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(this.triangle);
  }

  draw(camera, { graticule, opacity, pixel, sky }) {
    const { gl, coast } = this;
    const { width, height } = gl.canvas;
    const { east, north, toward } = camera.frame;
    const seen = {
      size: ["2f", width, height],
      frame: ["Matrix3fv", false, [...east, ...north, ...toward]],
      distant: ["1f", camera.distance],
      focal: ["1f", camera.focal(Math.min(width, height))],
    };
    gl.viewport(0, 0, width, height);
    const lines = { pixel: ["1f", pixel], graticule: ["1f", graticule] };
    const view = JSON.stringify([seen, lines]);
    this.places.find(view, { ...seen, ...lines });
    this.imagePlaces?.find(view, { ...seen, ...lines });
    this.painting.set({ pixel: ["1f", pixel], opacity: ["1f", opacity], sky: ["3f", ...sky] });
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    if (!coast || !graticule) return;
    coast.program.set(seen);
    gl.bindVertexArray(coast.vertices);
    gl.drawArrays(gl.LINES, 0, coast.count);
    gl.bindVertexArray(this.triangle);
  }
}
