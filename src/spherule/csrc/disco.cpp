// DISCO convolutions. Compiled once per instruction set, under the name SPHERULE_ISA. Every number
// is written by one task, which adds in a fixed order: the same bits for any number of threads.
#include "disco_mix.h"
#include "disco_points.h"
#include "disco_shifts.h"
#include "isa.h"

namespace {

// f(a value of the fields' type)
template <class F> int with_dtype(const spherule_fields *p, const F &f) {
    return p->dtype == SPHERULE_FLOAT64 ? f(double()) : f(float());
}

int run_shifts(const spherule_shifts *s, const spherule_fields *p, const void *x, void *y) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return shifts<T>(*s, *p, (const T *)x, (T *)y);
    });
}
int run_points(const spherule_points *s, const spherule_fields *p, const void *x, void *y) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return points<T>(*s, *p, (const T *)x, (T *)y);
    });
}
int run_depthwise(const spherule_shifts *s, const spherule_fields *p, const void *x,
                  const void *weight, void *y) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return depthwise<T>(*s, *p, (const T *)x, (const T *)weight, (T *)y);
    });
}
int run_correlate(const spherule_shifts *s, const spherule_fields *p, const void *x, const void *dy,
                  void *dweight) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return correlate<T>(*s, *p, (const T *)x, (const T *)dy, (T *)dweight);
    });
}
int run_mix(const spherule_mix *s, const spherule_fields *p, const void *weight, const void *x,
            void *y) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return mix<T>(*s, *p, (const T *)weight, (const T *)x, (T *)y);
    });
}
int run_mix_weight(const spherule_mix *s, const spherule_fields *p, const void *dy, const void *x,
                   void *dweight) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return mix_weight<T>(*s, *p, (const T *)dy, (const T *)x, (T *)dweight);
    });
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const DiscoKernels SPHERULE_JOIN(disco, SPHERULE_ISA) = {run_shifts,    run_points, run_depthwise,
                                                         run_correlate, run_mix,    run_mix_weight};
