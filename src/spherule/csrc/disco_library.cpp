// Chooses the DISCO kernels for this machine, once, when the library is loaded.
#include "disco.h"

extern const spherule_disco_kernels spherule_disco_baseline;
#ifdef SPHERULE_X86
extern const spherule_disco_kernels spherule_disco_v3, spherule_disco_v4;
#endif

namespace {

const spherule_disco_kernels &choose() {
#ifdef SPHERULE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
        return spherule_disco_v4;
    if (__builtin_cpu_supports("x86-64-v3"))
        return spherule_disco_v3;
#endif
    return spherule_disco_baseline;
}

const spherule_disco_kernels &kernels = choose();

}  // namespace

int spherule_disco_shifts(const spherule_shifts *s, const spherule_fields *f, const void *x,
                          void *y) {
    return kernels.shifts(s, f, x, y);
}
int spherule_disco_points(const spherule_points *s, const spherule_fields *f, const void *x,
                          void *y) {
    return kernels.points(s, f, x, y);
}
int spherule_disco_depthwise(const spherule_shifts *s, const spherule_fields *f, const void *x,
                             const void *weight, void *y) {
    return kernels.depthwise(s, f, x, weight, y);
}
int spherule_disco_correlate(const spherule_shifts *s, const spherule_fields *f, const void *x,
                             const void *dy, void *dweight) {
    return kernels.correlate(s, f, x, dy, dweight);
}
int spherule_disco_mix(const spherule_mix *s, const spherule_fields *f, const void *weight,
                       const void *x, void *y) {
    return kernels.mix(s, f, weight, x, y);
}
int spherule_disco_mix_weight(const spherule_mix *s, const spherule_fields *f, const void *dy,
                              const void *x, void *dweight) {
    return kernels.mix_weight(s, f, dy, x, dweight);
}
