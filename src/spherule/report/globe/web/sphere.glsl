#version 300 es
// One frame: at each pixel the values of the points that places.glsl found around it, as the script
// reads them under the pointer, and their color.
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;

uniform usampler2D places; // where each pixel looks among the values
uniform sampler2D values;  // of a point and of the next to the east: 0 at the lower end of the color
                           // map, 1 at the upper
uniform sampler2D colors;
uniform bool classes;      // values are numbers of colors, and nothing is interpolated
uniform float pixel;       // pixels of the screen in one of the page
uniform vec3 sky;          // the color around the sphere

uniform bool photograph;
uniform usampler2D imagePlaces;
uniform usampler2D image;  // colors of a point and of the next to the east, 8 bits each
uniform float opacity;     // of the field above the photograph

out vec4 color;

const float PRESENT = 0.5;
const int WIDTH = 11;      // of a row of texels, a power of two, as in the script

ivec2 at(uint i) {
  return ivec2(int(i) & ((1 << WIDTH) - 1), int(i) >> WIDTH);
}

float fieldAt(uvec4 place) {
  vec2 east = unpackUnorm2x16(place.z);
  float t = unpackUnorm2x16(place.w).x;
  vec4 found = vec4(texelFetch(values, at(place.x), 0).rg, texelFetch(values, at(place.y), 0).rg);
  vec4 shares = vec4(vec2(1.0 - t), vec2(t)) * vec4(1.0 - east.x, east.x, 1.0 - east.y, east.y);
  if (classes) {
    float most = max(max(shares.x, shares.y), max(shares.z, shares.w));
    return shares.x == most ? found.x : shares.y == most ? found.y : shares.z == most ? found.z : found.w;
  }
  shares *= vec4(greaterThan(found, vec4(-500.0)));
  float present = dot(shares, vec4(1.0));
  return present < PRESENT ? -1000.0 : dot(shares, found) / present;
}

vec3 bytes(uint rgb) {
  return vec3(uvec3(rgb, rgb >> 8, rgb >> 16) & 255u) / 255.0;
}

vec3 imageAt(uvec4 place) {
  vec2 east = unpackUnorm2x16(place.z);
  uvec2 north = texelFetch(image, at(place.x), 0).rg, south = texelFetch(image, at(place.y), 0).rg;
  return mix(mix(bytes(north.x), bytes(north.y), east.x),
             mix(bytes(south.x), bytes(south.y), east.y), unpackUnorm2x16(place.w).x);
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

void main() {
  uvec4 place = texelFetch(places, ivec2(gl_FragCoord.xy), 0);
  color = vec4(sky, 1.0);
  float rim = float(place.w >> 16 & 255u) / 255.0, lines = float(place.w >> 24) / 255.0;
  if (rim == 0.0) return;
  float value = fieldAt(place);
  bool there = value > -500.0;
  vec3 drawn = there ? painted(value) : missing();
  if (photograph) {
    uvec4 imagePlace = texelFetch(imagePlaces, ivec2(gl_FragCoord.xy), 0);
    drawn = mix(imageAt(imagePlace), drawn, there ? opacity : 0.0);
  }
  drawn = mix(drawn, vec3(dot(drawn, vec3(0.3, 0.6, 0.1)) > 0.45 ? 0.0 : 1.0), 0.3 * lines);
  color.rgb = mix(sky, drawn, rim);
}
