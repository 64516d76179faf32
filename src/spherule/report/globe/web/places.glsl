#version 300 es
// Where each pixel looks: one ray against the unit sphere, from outside or from its center, and the
// points of a ring grid around the place that was hit. It runs when the view changes; while frames
// play in a view that rests, they only look their values up here.
precision highp float;
precision highp int;
precision highp sampler2D;

uniform vec2 size;       // of the picture, in pixels
uniform mat3 frame;      // columns: east, north and towards the place in the middle
uniform float distant;   // radii from the center to the eye; 0 is inside
uniform float focal;     // pixels from the middle to a ray of 45 degrees
uniform float pixel;     // pixels of the screen in one of the page
uniform float graticule; // degrees between lines; 0 is none

uniform sampler2D rings; // colatitude, points, first longitude, index of the first point
uniform sampler2D table; // for equal steps of colatitude the ring to the north
uniform int steps;
uniform int last;        // ring that has another to the south

// The point to the west on the ring to the north, and on that to the south; how far it is to the
// next points on either, in 16 bits each; how far from ring to ring in 16 bits, then in 8 bits each
// the part of the pixel that the sphere covers, and the part that lines do.
out uvec4 found;

const float PI = 3.141592653589793;
const int WIDTH = 11;    // of a row of texels, a power of two, as in the script

vec4 texel(sampler2D data, int i) {
  return texelFetch(data, ivec2(i & ((1 << WIDTH) - 1), i >> WIDTH), 0);
}

int ringAt(float theta) {
  int ring = int(texel(table, min(int(theta / PI * float(steps)), steps - 1)).r);
  return ring < last && texel(rings, ring + 1).x <= theta ? ring + 1 : ring;
}

// The point of a ring to the west of a longitude, and how far it is from there to the next.
uint west(vec4 ring, float phi, out float share) {
  float turn = (phi - ring.z) * (0.5 / PI);
  float position = (turn - floor(turn)) * ring.y;
  float point = min(floor(position), ring.y - 1.0);
  share = position - point;
  return uint(ring.w + point);
}

// Of a line of a pixel of the page, whose distance is given in pixels.
float line(float away) {
  return 1.0 - smoothstep(0.5 * pixel - 0.5, 0.5 * pixel + 0.5, away);
}

void main() {
  vec2 place = gl_FragCoord.xy - 0.5 * size;
  bool inside = distant == 0.0;
  vec3 toward = frame[2];
  vec3 direction = normalize(frame * vec3(place, inside ? focal : -focal));
  float along = distant * dot(toward, direction);
  float depth = along * along - distant * distant + 1.0;
  // In the middle of the picture, depth is the same in neighboring pixels.
  float rim = inside ? 1.0 : clamp(depth / max(fwidth(depth), 1e-6) + 0.5, 0.0, 1.0);
  float reach = -along + (inside ? 1.0 : -1.0) * sqrt(max(depth, 0.0));
  vec3 hit = normalize(distant * toward + reach * direction);
  // What a pixel to the right and one up cover of longitude and of latitude.
  vec3 right = dFdx(hit), up = dFdy(hit);
  float radius = max(length(hit.xy), 1e-6);
  vec4 slope = vec4((hit.x * right.y - hit.y * right.x) / radius, right.z,
                    (hit.x * up.y - hit.y * up.x) / radius, up.z) / radius;
  found = uvec4(0);
  if (rim == 0.0) return;
  float theta = atan(length(hit.xy), hit.z), phi = atan(hit.y, hit.x);
  float lines = 0.0;
  if (graticule > 0.0) {
    float apart = graticule * PI / 180.0;
    float latitude = 0.5 * PI - theta;
    float parallel = abs(latitude - apart * round(latitude / apart)) / length(slope.yw);
    float meridian = abs(phi - apart * round(phi / apart)) / length(slope.xz);
    // Close to a pole there would be nothing but lines.
    if (sin(theta) >= 0.5 * sin(apart)) lines = max(line(parallel), line(meridian));
  }
  int ring = ringAt(theta);
  vec4 north = texel(rings, ring), south = texel(rings, ring + 1);
  float t = clamp((theta - north.x) / (south.x - north.x), 0.0, 1.0);
  float s, u;
  found.x = west(north, phi, s);
  found.y = west(south, phi, u);
  found.z = packUnorm2x16(vec2(s, u));
  uvec2 parts = uvec2(vec2(rim, lines) * 255.0 + 0.5);
  found.w = packUnorm2x16(vec2(t, 0.0)) | parts.x << 16 | parts.y << 24;
}
