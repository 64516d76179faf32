#version 300 es
// One ray a pixel against the unit sphere, from outside or from its center; then the field on its
// ring grid at the place that was hit, as the script reads it under the pointer.
precision highp float;
precision highp int;
precision highp sampler2D;

uniform vec2 size;       // of the picture, in pixels
uniform mat3 frame;      // columns: east, north and towards the place in the middle
uniform float distant;   // radii from the center to the eye; 0 is inside
uniform float focal;     // pixels from the middle to a ray of 45 degrees
uniform float pixel;     // pixels of the screen in one of the page

uniform sampler2D values;  // a texel a point: 0 at the lower end of the color map, 1 at the upper
uniform sampler2D rings;   // colatitude, points, first longitude, index of the first point
uniform sampler2D table;   // for equal steps of colatitude the ring to the north
uniform int steps;
uniform int last;          // ring that has another to the south
uniform sampler2D colors;
uniform bool classes;      // values are numbers of colors, and nothing is interpolated

uniform bool photograph;
uniform sampler2D image;
uniform sampler2D imageRings;
uniform sampler2D imageTable;
uniform int imageSteps;
uniform int imageLast;
uniform float opacity;     // of the field above the photograph

uniform float graticule;   // degrees between lines; 0 is none
uniform vec3 marker;       // a place; 0 is none

out vec4 color;

const float PI = 3.141592653589793;
const float PRESENT = 0.5;
const int WIDTH = 11;      // of a row of texels, a power of two, as in the script

vec4 texel(sampler2D data, int i) {
  return texelFetch(data, ivec2(i & ((1 << WIDTH) - 1), i >> WIDTH), 0);
}

int ringAt(sampler2D ringData, sampler2D tableData, int count, int end, float theta) {
  int ring = int(texel(tableData, min(int(theta / PI * float(count)), count - 1)).r);
  return ring < end && texel(ringData, ring + 1).x <= theta ? ring + 1 : ring;
}

// The two points of a ring beside a longitude, and how far it is from the first to the second.
void beside(vec4 ring, float phi, out ivec2 points, out float share) {
  float turn = (phi - ring.z) * (0.5 / PI);
  float position = (turn - floor(turn)) * ring.y;
  float west = min(floor(position), ring.y - 1.0);
  float east = west + 1.0 < ring.y ? west + 1.0 : 0.0;
  share = position - west;
  points = ivec2(ring.w + vec2(west, east));
}

float fieldAt(float theta, float phi) {
  int ring = ringAt(rings, table, steps, last, theta);
  vec4 north = texel(rings, ring), south = texel(rings, ring + 1);
  float t = clamp((theta - north.x) / (south.x - north.x), 0.0, 1.0);
  ivec2 a, b;
  float s, u;
  beside(north, phi, a, s);
  beside(south, phi, b, u);
  vec4 shares = vec4((1.0 - t) * (1.0 - s), (1.0 - t) * s, t * (1.0 - u), t * u);
  vec4 found = vec4(texel(values, a.x).r, texel(values, a.y).r, texel(values, b.x).r, texel(values, b.y).r);
  if (classes) {
    float most = max(max(shares.x, shares.y), max(shares.z, shares.w));
    return shares.x == most ? found.x : shares.y == most ? found.y : shares.z == most ? found.z : found.w;
  }
  shares *= vec4(greaterThan(found, vec4(-500.0)));
  float present = dot(shares, vec4(1.0));
  return present < PRESENT ? -1000.0 : dot(shares, found) / present;
}

vec3 imageAt(float theta, float phi) {
  int ring = ringAt(imageRings, imageTable, imageSteps, imageLast, theta);
  vec4 north = texel(imageRings, ring), south = texel(imageRings, ring + 1);
  float t = clamp((theta - north.x) / (south.x - north.x), 0.0, 1.0);
  ivec2 a, b;
  float s, u;
  beside(north, phi, a, s);
  beside(south, phi, b, u);
  return mix(mix(texel(image, a.x).rgb, texel(image, a.y).rgb, s),
             mix(texel(image, b.x).rgb, texel(image, b.y).rgb, u), t);
}

vec3 painted(float value) {
  if (classes) return texelFetch(colors, ivec2(int(value + 0.5), 0), 0).rgb;
  return texture(colors, vec2((clamp(value, 0.0, 1.0) * 255.0 + 0.5) / 256.0, 0.5)).rgb;
}

// Gray, in stripes: a gray alone is some color's twin to color-blind eyes.
vec3 missing() {
  float stripe = fract((gl_FragCoord.x + gl_FragCoord.y) / (9.0 * pixel));
  return vec3(stripe < 0.5 ? 0.62 : 0.66);
}

// Of a line whose distance is given in pixels.
float line(float away, float wide) {
  return 1.0 - smoothstep(0.5 * wide - 0.5, 0.5 * wide + 0.5, away);
}

void main() {
  vec2 place = gl_FragCoord.xy - 0.5 * size;
  bool inside = distant == 0.0;
  vec3 toward = frame[2];
  vec3 direction = normalize(frame * vec3(place, inside ? focal : -focal));
  float along = distant * dot(toward, direction);
  float depth = along * along - distant * distant + 1.0;
  float rim = inside ? 1.0 : clamp(depth / fwidth(depth) + 0.5, 0.0, 1.0);
  float reach = -along + (inside ? 1.0 : -1.0) * sqrt(max(depth, 0.0));
  vec3 hit = normalize(distant * toward + reach * direction);
  // What a pixel to the right and one up cover: of the whole, of longitude, of latitude.
  vec3 right = dFdx(hit), up = dFdy(hit);
  float angle = max(length(right), length(up)), radius = max(length(hit.xy), 1e-6);
  vec4 slope = vec4((hit.x * right.y - hit.y * right.x) / radius, right.z,
                    (hit.x * up.y - hit.y * up.x) / radius, up.z) / radius;
  if (rim == 0.0) {
    color = vec4(0.0);
    return;
  }
  float theta = atan(length(hit.xy), hit.z), phi = atan(hit.y, hit.x);
  float value = fieldAt(theta, phi);
  bool there = value > -500.0;
  vec3 drawn = there ? painted(value) : missing();
  if (photograph) drawn = mix(imageAt(theta, phi), drawn, there ? opacity : 0.0);
  if (graticule > 0.0) {
    float apart = graticule * PI / 180.0;
    float latitude = 0.5 * PI - theta;
    float parallel = abs(latitude - apart * round(latitude / apart)) / length(slope.yw);
    float meridian = abs(phi - apart * round(phi / apart)) / length(slope.xz);
    float strength = max(line(parallel, pixel), line(meridian, pixel));
    // Close to a pole there would be nothing but lines.
    if (sin(theta) < 0.5 * sin(apart)) strength = 0.0;
    drawn = mix(drawn, vec3(dot(drawn, vec3(0.3, 0.6, 0.1)) > 0.45 ? 0.0 : 1.0), 0.3 * strength);
  }
  if (dot(marker, marker) > 0.0) {
    float away = distance(hit, marker) / angle;
    drawn = mix(drawn, vec3(1.0), line(abs(away - 7.0 * pixel), 4.0 * pixel));
    drawn = mix(drawn, vec3(0.05), line(abs(away - 7.0 * pixel), 2.0 * pixel));
  }
  color = vec4(drawn, 1.0) * rim;
}
