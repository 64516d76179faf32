// Between the orders of ring spectra and the half spectra of real FFTs: orders beyond a ring's
// Nyquist alias.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t fields, rings, orders;
    const int64_t *nphi;    // points of each ring
    void *const *half;      // each ring's half spectrum, nphi / 2 + 1 complex numbers, of one field
    const int64_t *stride;  // from there to the next field's, in complex numbers
    const void *phases;     // exp(i m phi0) (rings, orders), or null for 1
    int32_t both;           // whether order m > 0 stands for -m too
    int32_t dtype;          // SPHERULE_FLOAT32 or SPHERULE_FLOAT64
    int32_t threads;
} spherule_ring_spectra;

// half: what the inverse FFT makes Re(sum over m of F_m exp(i m phi)) of, F = orders (fields,
// rings, orders), both: F_m twice for m > 0
SPHERULE_API int spherule_fold(const spherule_ring_spectra *, const void *orders);
// orders = sum over points of u exp(-i m phi), half being u's FFT; both: twice for m > 0
SPHERULE_API int spherule_unfold(const spherule_ring_spectra *, void *orders);

#ifdef __cplusplus
}
#endif
