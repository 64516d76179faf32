// WebGL: one triangle over the whole picture, and textures that hold one texel a point.

class Sphere {
  static MISSING = -1000;
  static WIDTH = 2048;
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
  static on(canvas, shader) {
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false });
    return gl ? new Sphere(gl, shader) : null;
  }

  constructor(gl, shader) {
    this.gl = gl;
    this.program = Sphere.linked(gl, Sphere.CORNERS, shader);
    gl.useProgram(this.program);
    this.triangle = gl.createVertexArray();
    gl.bindVertexArray(this.triangle);
    this.textures = {};
    this.places = {}; // of uniforms
    this.names = ["values", "rings", "table", "colors", "image", "imageRings", "imageTable"];
    this.names.forEach((name, unit) => {
      this.set("1i", name, unit);
      this.texture(name, "R32F", new Float32Array(1), 1);
    });
  }

  static linked(gl, vertices, fragments) {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertices], [gl.FRAGMENT_SHADER, fragments]]) {
      const part = gl.createShader(kind);
      gl.shaderSource(part, text);
      gl.compileShader(part);
      gl.attachShader(program, part);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(program).map((part) => gl.getShaderInfoLog(part));
      throw new Error(`the shader of the globe does not compile: ${logs.join("")}`);
    }
    return program;
  }

  set(kind, name, ...values) {
    this.places[name] ??= this.gl.getUniformLocation(this.program, name);
    this.gl[`uniform${kind}`](this.places[name], ...values);
  }

  // Values of points, row after row; memory is kept while the size stays.
  texture(name, format, values, points, width = Sphere.WIDTH) {
    const { gl } = this;
    const [columns, rows] = [Math.min(points, width), Math.ceil(points / width)];
    const [layout, kind] = {
      R32F: [gl.RED, gl.FLOAT],
      RGBA32F: [gl.RGBA, gl.FLOAT],
      RGBA8: [gl.RGBA, gl.UNSIGNED_BYTE],
    }[format];
    gl.activeTexture(gl.TEXTURE0 + this.names.indexOf(name));
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
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, columns, rows, layout, kind, values);
  }

  // Room for so many points in whole rows of a texture.
  static room(points, parts, Kind) {
    const whole = points <= Sphere.WIDTH ? points : Math.ceil(points / Sphere.WIDTH) * Sphere.WIDTH;
    return new Kind(whole * parts);
  }

  setRings(rings, image = false) {
    const [ringName, tableName] = image ? ["imageRings", "imageTable"] : ["rings", "table"];
    const data = Sphere.room(rings.count, 4, Float32Array);
    for (let r = 0; r < rings.count; r++) {
      data.set([rings.theta[r], rings.nphi[r], rings.phi0[r], rings.start[r]], 4 * r);
    }
    this.texture(ringName, "RGBA32F", data, rings.count);
    const table = Sphere.room(rings.steps, 1, Float32Array);
    table.set(rings.table);
    this.texture(tableName, "R32F", table, rings.steps);
    this.set("1i", image ? "imageSteps" : "steps", rings.steps);
    this.set("1i", image ? "imageLast" : "last", rings.count - 2);
  }

  setSource(source, colors) {
    this.setRings(source.rings);
    this.heights = Sphere.room(source.rings.size, 1, Float32Array);
    this.texture("colors", "RGBA8", colors, 256);
    this.set("1i", "classes", source.variable.classes.length ? 1 : 0);
    this.source = source;
  }

  setPhotograph(photograph) {
    this.photograph = photograph;
    this.pixels = Sphere.room(photograph.rings.size, 4, Uint8Array);
    this.setRings(photograph.rings, true);
    this.set("1i", "photograph", 1);
  }

  setFrame(frame) {
    this.source.heights(frame, this.heights);
    this.texture("values", "R32F", this.heights, this.source.rings.size);
    if (this.photograph) {
      this.photograph.pixels(frame, this.pixels);
      this.texture("image", "RGBA8", this.pixels, this.photograph.rings.size);
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
    this.coast = { program: Sphere.linked(gl, Sphere.ON_SPHERE, Sphere.INK), count: ends.length / 3 };
    this.coast.vertices = gl.createVertexArray();
    gl.bindVertexArray(this.coast.vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(ends), gl.STATIC_DRAW);
    const place = gl.getAttribLocation(this.coast.program, "place");
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(this.triangle);
  }

  drawCoast(camera) {
    const { gl, coast } = this;
    const { width, height } = gl.canvas;
    const { east, north, toward } = camera.frame;
    const at = (name) => gl.getUniformLocation(coast.program, name);
    gl.useProgram(coast.program);
    gl.bindVertexArray(coast.vertices);
    gl.uniform2f(at("size"), width, height);
    gl.uniformMatrix3fv(at("frame"), false, [...east, ...north, ...toward]);
    gl.uniform1f(at("distant"), camera.distance);
    gl.uniform1f(at("focal"), camera.focal(Math.min(width, height)));
    gl.drawArrays(gl.LINES, 0, coast.count);
    gl.bindVertexArray(this.triangle);
    gl.useProgram(this.program);
  }

  draw(camera, { graticule, marker, opacity, pixel }) {
    const { gl } = this;
    const { width, height } = gl.canvas;
    const { east, north, toward } = camera.frame;
    gl.viewport(0, 0, width, height);
    this.set("2f", "size", width, height);
    this.set("Matrix3fv", "frame", false, [...east, ...north, ...toward]);
    this.set("1f", "distant", camera.distance);
    this.set("1f", "focal", camera.focal(Math.min(width, height)));
    this.set("1f", "pixel", pixel);
    this.set("1f", "graticule", graticule);
    this.set("1f", "opacity", opacity);
    this.set("3f", "marker", ...(marker ?? [0, 0, 0]));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    if (this.coast && graticule) this.drawCoast(camera);
  }
}
