// The C interface: chooses the kernels for this machine, once, when the library is loaded, and
// hands them only what is valid.
#include "isa.h"
#include "valid_disco.h"

SPHERULE_KERNELS(baseline);
#ifdef SPHERULE_X86
SPHERULE_KERNELS(v3);
SPHERULE_KERNELS(v4);
SPHERULE_KERNELS(v4_bf16);
#endif

namespace {

struct Kernels {
    const char *isa;
    int vector_bits;
    bool short_products;  // of 16-bit numbers
    const AttentionKernels &attention;
    const DiscoKernels &disco;
    const LegendreKernels &legendre;
    const NormKernels &norm;
    const PointwiseKernels &pointwise;
    const RingSpectraKernels &ring_spectra;
    const ShallowWaterKernels &shallow_water;
    const SparseKernels &sparse;
};

#define SPHERULE_CHOSEN(name, vector_bits, short_products, isa)                                    \
    {name,                                                                                         \
     vector_bits,                                                                                  \
     short_products,                                                                               \
     SPHERULE_JOIN(attention, isa),                                                                \
     SPHERULE_JOIN(disco, isa),                                                                    \
     SPHERULE_JOIN(legendre, isa),                                                                 \
     SPHERULE_JOIN(norm, isa),                                                                     \
     SPHERULE_JOIN(pointwise, isa),                                                                \
     SPHERULE_JOIN(ring_spectra, isa),                                                             \
     SPHERULE_JOIN(shallow_water, isa),                                                            \
     SPHERULE_JOIN(sparse, isa)}

Kernels choose() {
#ifdef SPHERULE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16"))
        return Kernels SPHERULE_CHOSEN("x86-64-v4 with AVX512_BF16", 512, true, v4_bf16);
    if (__builtin_cpu_supports("x86-64-v4"))
        return Kernels SPHERULE_CHOSEN("x86-64-v4", 512, false, v4);
    if (__builtin_cpu_supports("x86-64-v3"))
        return Kernels SPHERULE_CHOSEN("x86-64-v3", 256, false, v3);
#endif
    return Kernels SPHERULE_CHOSEN("baseline", 128, false, baseline);
}

const Kernels kernels = choose();

// With hats for each entry
int checked_depthwise(const spherule_shifts &s, const spherule_fields &f) {
    return s.hat ? checked(s, f) : SPHERULE_BAD_TABLE;
}

// Sizes, then tables
template <class S> int checked_table(const S &s) {
    return !valid_sizes(s) ? SPHERULE_BAD_SIZES : !valid(s) ? SPHERULE_BAD_TABLE : SPHERULE_OK;
}

}  // namespace

int spherule_abi(void) { return SPHERULE_ABI; }

const char *spherule_isa(void) { return kernels.isa; }

int spherule_vector_bits(void) { return kernels.vector_bits; }

int spherule_short_products(void) { return kernels.short_products; }

int spherule_attention_forward(const spherule_arc_table *table, const spherule_problem *p,
                               const spherule_strided *q, const spherule_strided *k,
                               const spherule_strided *v, const spherule_strided *out, void *lse) {
    if (!valid(*p))
        return SPHERULE_BAD_SIZES;
    if (!valid(*table, p->queries, p->keys))
        return SPHERULE_BAD_TABLE;
    return kernels.attention.forward(table, p, q, k, v, out, lse);
}

int spherule_attention_backward(const spherule_arc_table *table, const spherule_problem *p,
                                const spherule_strided *q, const spherule_strided *k,
                                const spherule_strided *v, const spherule_strided *out,
                                const void *lse, const spherule_strided *grad_out,
                                const void *grad_lse, const spherule_strided *dq,
                                const spherule_strided *dk, const spherule_strided *dv) {
    if (!valid(*p))
        return SPHERULE_BAD_SIZES;
    if (!valid(*table, p->queries, p->keys))
        return SPHERULE_BAD_TABLE;
    return kernels.attention.backward(table, p, q, k, v, out, lse, grad_out, grad_lse, dq, dk, dv);
}

int spherule_disco_shifts(const spherule_shifts *s, const spherule_fields *f, const void *x,
                          void *y) {
    const int status = checked(*s, *f);
    return status ? status : kernels.disco.shifts(s, f, x, y);
}

int spherule_disco_points(const spherule_points *s, const spherule_fields *f, const void *x,
                          void *y) {
    const int status = checked(*s, *f);
    return status ? status : kernels.disco.points(s, f, x, y);
}

int spherule_disco_depthwise(const spherule_shifts *s, const spherule_fields *f, const void *x,
                             const void *weight, void *y) {
    const int status = checked_depthwise(*s, *f);
    return status ? status : kernels.disco.depthwise(s, f, x, weight, y);
}

int spherule_disco_correlate(const spherule_shifts *s, const spherule_fields *f, const void *x,
                             const void *dy, void *dweight) {
    const int status = checked_depthwise(*s, *f);
    return status ? status : kernels.disco.correlate(s, f, x, dy, dweight);
}

int spherule_disco_mix(const spherule_mix *s, const spherule_fields *f, const void *weight,
                       const void *x, void *y) {
    const int status = checked(*s, *f);
    return status ? status : kernels.disco.mix(s, f, weight, x, y);
}

int spherule_disco_mix_weight(const spherule_mix *s, const spherule_fields *f, const void *dy,
                              const void *x, void *dweight) {
    const int status = checked(*s, *f);
    return status ? status : kernels.disco.mix_weight(s, f, dy, x, dweight);
}

int spherule_linear(const spherule_pointwise *p, const void *weight, const void *bias,
                    const spherule_channels *x, int64_t x_parts, const spherule_channels *y,
                    int64_t y_parts) {
    return valid(*p) && valid(x, x_parts, p->in, true) && valid(y, y_parts, p->out, true)
               ? kernels.pointwise.linear(p, weight, bias, x, x_parts, y, y_parts)
               : SPHERULE_BAD_SIZES;
}

int spherule_linear_backward(const spherule_pointwise *p, const void *transpose,
                             const spherule_channels *x, int64_t x_parts,
                             const spherule_channels *dy, int64_t y_parts,
                             const spherule_channels *dx, void *dweight, void *dbias) {
    if (!valid(*p) || !valid(x, x_parts, p->in, true) || !valid(dy, y_parts, p->out, true) ||
        (dx && !valid(dx, x_parts, p->in, true)))
        return SPHERULE_BAD_SIZES;
    return kernels.pointwise.linear_backward(p, transpose, x, x_parts, dy, y_parts, dx, dweight,
                                             dbias);
}

int spherule_mlp(const spherule_pointwise *p, const void *first, const void *bias,
                 const void *second, const spherule_channels *x, const spherule_channels *y) {
    return valid(*p, *x, *y) ? kernels.pointwise.mlp(p, first, bias, second, x, y)
                             : SPHERULE_BAD_SIZES;
}

int spherule_mlp_backward(const spherule_pointwise *p, const void *first,
                          const void *first_transpose, const void *bias,
                          const void *second_transpose, const spherule_channels *x,
                          const spherule_channels *dy, const spherule_channels *dx, void *dfirst,
                          void *dbias, void *dsecond) {
    if (!valid(*p, *x, *dy) || !valid(*p, *dx, *dy))
        return SPHERULE_BAD_SIZES;
    return kernels.pointwise.mlp_backward(p, first, first_transpose, bias, second_transpose, x, dy,
                                          dx, dfirst, dbias, dsecond);
}

int spherule_moments(const spherule_pointwise *p, const void *weights, int64_t stride,
                     const double *total, const spherule_channels *x, void *mean, void *variance) {
    return valid(*p, *x, *x) ? kernels.norm.moments(p, weights, stride, total, x, mean, variance)
                             : SPHERULE_BAD_SIZES;
}

int spherule_moments_backward(const spherule_pointwise *p, const void *weights, int64_t stride,
                              const double *total, const spherule_channels *x, const void *mean,
                              const void *dmean, const void *dvariance,
                              const spherule_channels *dx) {
    return valid(*p, *x, *dx) ? kernels.norm.moments_backward(p, weights, stride, total, x, mean,
                                                              dmean, dvariance, dx)
                              : SPHERULE_BAD_SIZES;
}

int spherule_standardize(const spherule_pointwise *p, const spherule_channels *x, const void *mean,
                         const void *scale, const void *shift, const spherule_channels *y) {
    return valid(*p, *x, *y) ? kernels.norm.standardize(p, x, mean, scale, shift, y)
                             : SPHERULE_BAD_SIZES;
}

int spherule_standardize_backward(const spherule_pointwise *p, const spherule_channels *x,
                                  const void *mean, const void *scale, const spherule_channels *dy,
                                  const spherule_channels *dx, void *dscale, void *total) {
    if (!valid(*p, *x, *dy) || !valid(*p, *x, *dx))
        return SPHERULE_BAD_SIZES;
    return kernels.norm.standardize_backward(p, x, mean, scale, dy, dx, dscale, total);
}

int spherule_instance_norm(const spherule_pointwise *p, const void *weights, int64_t stride,
                           const double *total, const double *eps, const spherule_channels *x,
                           const void *scale, const void *shift, const spherule_channels *y,
                           void *mean, void *inverse) {
    if (!valid(*p, *x, *y))
        return SPHERULE_BAD_SIZES;
    return kernels.norm.instance_norm(p, weights, stride, total, eps, x, scale, shift, y, mean,
                                      inverse);
}

int spherule_instance_norm_backward(const spherule_pointwise *p, const void *weights,
                                    int64_t stride, const double *total, const spherule_channels *x,
                                    const void *scale, const void *mean, const void *inverse,
                                    const spherule_channels *dy, const spherule_channels *dx,
                                    void *dscale, void *dshift) {
    if (!valid(*p, *x, *dy) || !valid(*p, *x, *dx))
        return SPHERULE_BAD_SIZES;
    return kernels.norm.instance_norm_backward(p, weights, stride, total, x, scale, mean, inverse,
                                               dy, dx, dscale, dshift);
}

int spherule_legendre_synthesis(const spherule_legendre *s, const void *coeffs, void *spectra) {
    const int status = checked_table(*s);
    return status ? status : kernels.legendre.synthesis(s, coeffs, spectra);
}

int spherule_legendre_analysis(const spherule_legendre *s, const void *spectra, void *coeffs) {
    const int status = checked_table(*s);
    return status ? status : kernels.legendre.analysis(s, spectra, coeffs);
}

int spherule_fold(const spherule_ring_spectra *s, const void *orders) {
    const int status = checked_table(*s);
    return status ? status : kernels.ring_spectra.fold(s, orders);
}

int spherule_unfold(const spherule_ring_spectra *s, void *orders) {
    const int status = checked_table(*s);
    return status ? status : kernels.ring_spectra.unfold(s, orders);
}

int spherule_shallow_water_quadratic(const spherule_shallow_water *s, const void *spectra,
                                     void *tendencies) {
    return valid_sizes(*s) ? kernels.shallow_water.quadratic(s, spectra, tendencies)
                           : SPHERULE_BAD_SIZES;
}

int spherule_sparse_map(const spherule_sparse *s, const void *x, void *y) {
    const int status = checked_table(*s);
    return status ? status : kernels.sparse.map(s, x, y);
}
