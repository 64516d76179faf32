// The kernels are compiled once for each instruction set: one table of them for each.
#pragma once
#include "disco.h"
#include "legendre.h"
#include "norm.h"
#include "pointwise.h"
#include "ring_spectra.h"
#include "shallow_water.h"
#include "sparse.h"
#include "spherule.h"

#define SPHERULE_JOIN_(a, b) a##_##b
#define SPHERULE_JOIN(a, b)  SPHERULE_JOIN_(a, b)

struct AttentionKernels {
    decltype(&spherule_attention_forward) forward;
    decltype(&spherule_attention_backward) backward;
};

struct DiscoKernels {
    decltype(&spherule_disco_shifts) shifts;
    decltype(&spherule_disco_points) points;
    decltype(&spherule_disco_depthwise) depthwise;
    decltype(&spherule_disco_correlate) correlate;
    decltype(&spherule_disco_mix) mix;
    decltype(&spherule_disco_mix_weight) mix_weight;
};

struct LegendreKernels {
    decltype(&spherule_legendre_synthesis) synthesis;
    decltype(&spherule_legendre_analysis) analysis;
};

struct NormKernels {
    decltype(&spherule_moments) moments;
    decltype(&spherule_moments_backward) moments_backward;
    decltype(&spherule_standardize) standardize;
    decltype(&spherule_standardize_backward) standardize_backward;
    decltype(&spherule_instance_norm) instance_norm;
    decltype(&spherule_instance_norm_backward) instance_norm_backward;
};

struct PointwiseKernels {
    decltype(&spherule_linear) linear;
    decltype(&spherule_linear_backward) linear_backward;
    decltype(&spherule_mlp) mlp;
    decltype(&spherule_mlp_backward) mlp_backward;
};

struct RingSpectraKernels {
    decltype(&spherule_fold) fold;
    decltype(&spherule_unfold) unfold;
};

struct ShallowWaterKernels {
    decltype(&spherule_shallow_water_quadratic) quadratic;
};

struct SparseKernels {
    decltype(&spherule_sparse_map) map;
};

#define SPHERULE_KERNELS(isa)                                                                      \
    extern const AttentionKernels SPHERULE_JOIN(attention, isa);                                   \
    extern const DiscoKernels SPHERULE_JOIN(disco, isa);                                           \
    extern const LegendreKernels SPHERULE_JOIN(legendre, isa);                                     \
    extern const NormKernels SPHERULE_JOIN(norm, isa);                                             \
    extern const PointwiseKernels SPHERULE_JOIN(pointwise, isa);                                   \
    extern const RingSpectraKernels SPHERULE_JOIN(ring_spectra, isa);                              \
    extern const ShallowWaterKernels SPHERULE_JOIN(shallow_water, isa);                            \
    extern const SparseKernels SPHERULE_JOIN(sparse, isa)
