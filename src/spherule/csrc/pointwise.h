// Maps over the channels of each point: linear ones, and a multilayer perceptron whose hidden
// values never leave the caches.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t batch, points, in, hidden, out;  // hidden: of the perceptron, else 0
    int32_t dtype;                           // of fields, not SPHERULE_FLOAT16
    int32_t threads;
} spherule_pointwise;

// (batch, channels, points); strides in elements. Points lie next to each other, or, for linear
// maps, channels do: rows, one for each point.
typedef struct {
    void *data;
    int64_t channels, batch_stride, channel_stride, point_stride;
} spherule_channels;

// Weights of maps have the dtype of the fields; all else that is not a field has 32 bits where that
// has 16.

// y = weight x + bias; weight (out, in) and bias (out, or null) contiguous. The channels of x and
// those of y are in parts, one for each head of attention, say.
SPHERULE_API int spherule_linear(const spherule_pointwise *, const void *weight, const void *bias,
                                 const spherule_channels *x, int64_t x_parts,
                                 const spherule_channels *y, int64_t y_parts);
// Its gradients, each null where it is not wanted. `transpose` is the weight's, (in, out); dx has
// as many parts as x.
SPHERULE_API int spherule_linear_backward(const spherule_pointwise *, const void *transpose,
                                          const spherule_channels *x, int64_t x_parts,
                                          const spherule_channels *dy, int64_t y_parts,
                                          const spherule_channels *dx, void *dweight, void *dbias);

// y = second gelu(first x + bias); first (hidden, in), bias (hidden), second (out, hidden)
SPHERULE_API int spherule_mlp(const spherule_pointwise *, const void *first, const void *bias,
                              const void *second, const spherule_channels *x,
                              const spherule_channels *y);
// Its gradients, all of them, from x and dy alone. dsecond is transposed: (hidden, out).
SPHERULE_API int spherule_mlp_backward(const spherule_pointwise *, const void *first,
                                       const void *first_transpose, const void *bias,
                                       const void *second_transpose, const spherule_channels *x,
                                       const spherule_channels *dy, const spherule_channels *dx,
                                       void *dfirst, void *dbias, void *dsecond);

#ifdef __cplusplus
}
#endif
