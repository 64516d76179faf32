// Where the eye is: above a place of the sphere, north up, or at its center looking there.

const RADIANS = Math.PI / 180;

// The unit vector of a place in degrees.
function toward(latitude, longitude) {
  const [a, b] = [latitude * RADIANS, longitude * RADIANS];
  return [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)];
}

class Camera {
  // Radii from the center to an eye outside, and the share of the picture that the sphere fills.
  static DISTANCE = 5;
  static FILL = 0.95;
  static NEAREST = 24;

  constructor([latitude, longitude], inside) {
    this.home = [latitude, longitude];
    this.inside = inside;
    this.reset();
  }

  reset() {
    [this.latitude, this.longitude] = this.home;
    this.zoom = 1;
  }

  turn(east, north) {
    this.longitude = ((((this.longitude + east + 180) % 360) + 360) % 360) - 180;
    this.latitude = Math.max(-90, Math.min(this.latitude + north, 90));
  }

  scale(factor) {
    this.zoom = Math.max(this.inside ? 0.6 : 0.5, Math.min(this.zoom * factor, Camera.NEAREST));
  }

  get distance() {
    return this.inside ? 0 : Camera.DISTANCE;
  }

  // Pixels from the middle to a ray of 45 degrees.
  focal(side) {
    // The rim is seen at the angle whose sine is 1 / distance.
    const rim = 1 / Math.sqrt(Camera.DISTANCE ** 2 - 1);
    return this.zoom * (this.inside ? side / 2 : (Camera.FILL * side) / 2 / rim);
  }

  // Degrees that the picture's middle moves when a drag moves it by one pixel.
  degrees(side) {
    const focal = this.focal(side);
    return (this.inside ? 1 : Camera.DISTANCE - 1) / focal / RADIANS;
  }

  // Unit vectors to the east and the north of the place in the middle, and towards it.
  get frame() {
    const { latitude, longitude } = this;
    return {
      east: toward(0, longitude + 90),
      north: toward(latitude + 90, longitude),
      toward: toward(latitude, longitude),
    };
  }

  // Colatitude and longitude that a pixel (from the middle, up) sees, or null for the sky.
  see(x, y, side) {
    const { east, north, toward } = this.frame;
    const focal = this.focal(side) * (this.inside ? 1 : -1);
    const ray = [0, 1, 2].map((i) => x * east[i] + y * north[i] + focal * toward[i]);
    const length = Math.hypot(...ray);
    const direction = ray.map((part) => part / length);
    const along = this.distance * direction.reduce((sum, part, i) => sum + part * toward[i], 0);
    const inside = along ** 2 - this.distance ** 2 + 1;
    if (inside < 0) return null;
    const reach = -along + (this.inside ? 1 : -1) * Math.sqrt(inside);
    const [px, py, pz] = direction.map((part, i) => reach * part + this.distance * toward[i]);
    return [Math.atan2(Math.hypot(px, py), pz), Math.atan2(py, px)];
  }
  // Where in the picture (from the middle, up) a place is seen from outside, or null behind the rim.
  show(place, side) {
    const { east, north, toward } = this.frame;
    const along = (axis) => axis.reduce((sum, part, i) => sum + part * place[i], 0);
    const nearer = along(toward);
    if (nearer < 1 / this.distance) return null;
    const scale = this.focal(side) / (this.distance - nearer);
    return [scale * along(east), scale * along(north)];
  }
}
