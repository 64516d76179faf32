// Legendre transforms: between the coefficients of spherical harmonics and the spectra of rings,
// order by order, with functions that are made where they are used and never stored.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rings come in pairs that mirror each other at the equator, from the pole on: P_lm there differ by
// a sign. Of each pair, y = 1 - cos(theta) and log2(sin(theta)) of its northern half, and the rings
// themselves, -1 for one that is not there.
typedef struct {
    int64_t fields, lmax, rings, pairs, orders;
    const double *y, *log2_sin;
    const int64_t *north, *south;
    const int64_t *order;  // those that are wanted, each at most lmax
    const double *start;   // P_mm / sin(theta)^m of m = 0 to lmax
    int32_t dtype;         // SPHERULE_FLOAT32 or SPHERULE_FLOAT64; all sums are in float64
    int32_t threads;
} spherule_legendre;

// spectra (fields, rings, orders) = sum over l of P_lm coeffs (fields, lmax + 1, orders), all of
// them pairs of a real and an imaginary part, contiguous
SPHERULE_API int spherule_legendre_synthesis(const spherule_legendre *, const void *coeffs,
                                             void *spectra);
// Its transpose; coefficients with l < m are 0.
SPHERULE_API int spherule_legendre_analysis(const spherule_legendre *, const void *spectra,
                                            void *coeffs);

#ifdef __cplusplus
}
#endif
