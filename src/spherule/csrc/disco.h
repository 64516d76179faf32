// DISCO convolutions: sparse matrices between ring grids, applied to many fields at once.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

// Both structs describe the same matrix between sources (input) and targets (output). A field has
// `hats` parts on one of the two sides: on the targets where a field is spread over the hats, on
// the sources where hats are gathered.

// Hats of an entry of a depthwise convolution.
#define SPHERULE_PARTS 4

// Rings that all have one period. A target row and a source row are `period` points of a ring, a
// stride apart, and
//     target[q] = sum over its entries of value * source[q + shift]    (modulo period).
// Sources are copied with their wrap-around: row m to the places base[m] to base[m + 1], its first
// `low[m]` values before its beginning; `place` of an entry is where target 0 finds its source
// there. Targets come in bands of neighboring rings, which share sources.
typedef struct {
    int64_t period, hats, bands;
    int64_t target_stride, source_stride, target_size, source_size;  // size: values of one field
    const int64_t *target_origin, *source_origin;                    // of each row in a field
    const int64_t *band_target,
        *band_source;      // first target row (bands + 1); first and last source row (bands, 2)
    const int64_t *order;  // bands, most expensive first
    const int64_t *base, *low;
    const int64_t *start, *place;  // entries of a target row
    const int64_t *hat;  // for depthwise convolutions (else null): the PARTS hats of each entry
    const void
        *value;  // of each entry; for depthwise convolutions, of each of its hats, 0 to fill up
} spherule_shifts;

// Any rings. Pair p of target ring r is source ring (source_start, source_nphi); target point i has
// phase i % phases[p], whose entries start at start[row[p] + phase], and moves their columns by i /
// phases[p] * step[p].
typedef struct {
    int64_t rings, hats, targets, sources, longest;  // longest: most entries of a point
    const int64_t *nphi, *ringstart;                 // of target rings
    const int64_t *pairs;                            // first pair of each target ring
    const int64_t *source_start, *source_nphi, *phases, *step, *row;
    const int64_t *start;
    const int32_t *column, *hat;  // short: there may be many millions
    const void *value;
    int64_t spread;  // 1: hats on the targets; 0: on the sources
} spherule_points;

typedef struct {
    int64_t batch, channels;  // fields are (batch, channels, ...), contiguous
    int32_t dtype;            // SPHERULE_FLOAT32 or SPHERULE_FLOAT64
    int32_t threads;
} spherule_fields;

// A product over channels: weight (groups, out, in) with fields of `in` channels in each of
// `channels` groups.
typedef struct {
    int64_t in, out, points;
} spherule_mix;

SPHERULE_API int spherule_disco_shifts(const spherule_shifts *, const spherule_fields *,
                                       const void *x, void *y);
SPHERULE_API int spherule_disco_points(const spherule_points *, const spherule_fields *,
                                       const void *x, void *y);

// y = depthwise convolution with weight (channels, hats)
SPHERULE_API int spherule_disco_depthwise(const spherule_shifts *, const spherule_fields *,
                                          const void *x, const void *weight, void *y);
// dweight = its gradient, from x on the sources and dy on the targets
SPHERULE_API int spherule_disco_correlate(const spherule_shifts *, const spherule_fields *,
                                          const void *x, const void *dy, void *dweight);

// y (batch, groups, out, points) = weight times x (batch, groups, in, points)
SPHERULE_API int spherule_disco_mix(const spherule_mix *, const spherule_fields *,
                                    const void *weight, const void *x, void *y);
// dweight (groups, out, in) = its gradient
SPHERULE_API int spherule_disco_mix_weight(const spherule_mix *, const spherule_fields *,
                                           const void *dy, const void *x, void *dweight);

#ifdef __cplusplus
}
#endif
