// Mean and variance of each channel of each sample, and what becomes of a field that is centered
// and scaled by them.
#pragma once
#include "pointwise.h"

#ifdef __cplusplus
extern "C" {
#endif

// Fields have p->in channels and as many out. Quadrature weights (points) are those of all samples,
// or (batch, points): `stride` is from one sample's to the next. `total` are their sums, one a
// sample; where it is 0, so are mean and variance. What belongs to a channel of a sample is (batch,
// channels), contiguous.
SPHERULE_API int spherule_moments(const spherule_pointwise *p, const void *weights, int64_t stride,
                                  const double *total, const spherule_channels *x, void *mean,
                                  void *variance);
SPHERULE_API int spherule_moments_backward(const spherule_pointwise *p, const void *weights,
                                           int64_t stride, const double *total,
                                           const spherule_channels *x, const void *mean,
                                           const void *dmean, const void *dvariance,
                                           const spherule_channels *dx);

// y = (x - mean) scale + shift; shift (channels)
SPHERULE_API int spherule_standardize(const spherule_pointwise *p, const spherule_channels *x,
                                      const void *mean, const void *scale, const void *shift,
                                      const spherule_channels *y);
// dscale = sum of dy (x - mean), total = sum of dy, for each channel of each sample
SPHERULE_API int spherule_standardize_backward(const spherule_pointwise *p,
                                               const spherule_channels *x, const void *mean,
                                               const void *scale, const spherule_channels *dy,
                                               const spherule_channels *dx, void *dscale,
                                               void *total);

// All of it in one go: y = (x - mean) inverse scale + shift with inverse = 1 / sqrt(variance +
// eps); scale and shift (channels). Mean and inverse are kept for the gradients.
SPHERULE_API int spherule_instance_norm(const spherule_pointwise *p, const void *weights,
                                        int64_t stride, const double *total, const double *eps,
                                        const spherule_channels *x, const void *scale,
                                        const void *shift, const spherule_channels *y, void *mean,
                                        void *inverse);
// dscale and dshift are each sample's own part.
SPHERULE_API int
spherule_instance_norm_backward(const spherule_pointwise *p, const void *weights, int64_t stride,
                                const double *total, const spherule_channels *x, const void *scale,
                                const void *mean, const void *inverse, const spherule_channels *dy,
                                const spherule_channels *dx, void *dscale, void *dshift);

#ifdef __cplusplus
}
#endif
