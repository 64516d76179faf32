// The quadratic terms of the shallow water equations, from spectra to spectra.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rows of tables over pairs or degrees are padded with zeros to a multiple of so many numbers.
#define SPHERULE_ROW 32

// On a grid whose rings come in pairs that mirror each other at the equator, each with longitudes
// (j + 1/2) turn / (4 quarter). Parity is that of l - m. A symmetric function of a pair is the same
// on both rings: of P_lm and m P_lm / sin(theta) the even ones are, of dP_lm / dtheta the odd ones.
typedef struct {
    int64_t lmax, states, pairs, quarter;
    // (order, degree, pair): P_lm
    const void *scalar;
    // (2, order, degree, pair): what takes vorticity and divergence to winds, of each degree the
    // symmetric function, then the antisymmetric one
    const void *wind;
    // (parity, order, 3 pairs, degrees m + parity + 2 k), with weights: m P_lm / sin(theta),
    // -dP_lm / dtheta, and what makes the spin of twice the kinetic energy
    const void *analysis;
    // Over longitudes of a quadrant and orders m = 2 k + parity, k <= lmax / 2: (parity, 2,
    // quarter, k) of the cosines and minus the sines, twice for m > 0; and (parity, 2, k, quarter),
    // once
    const void *to_points, *to_orders;
    const void *coriolis;  // (order, part, degree)
    int32_t dtype;         // SPHERULE_FLOAT32 or SPHERULE_FLOAT64
    int32_t threads;
} spherule_shallow_water;

// Of spectra (order, part, 3, state, degree) of geopotential a, vorticity and divergence, with
// absolute vorticity b and wind V: those of -div(a V), -div(b V) and curl(b V) - laplacian |V|^2 /
// 2
SPHERULE_API int spherule_shallow_water_quadratic(const spherule_shallow_water *,
                                                  const void *spectra, void *tendencies);

#ifdef __cplusplus
}
#endif
