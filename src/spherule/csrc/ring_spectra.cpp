// Ring spectra. Compiled once per instruction set, under the name SPHERULE_ISA. A ring of a field
// is a task: it alone writes its numbers.
#include "isa.h"
#include "simd.h"

namespace {

template <class T> struct Number {
    T re, im;
};
template <class T> INLINE Number<T> times(Number<T> a, Number<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> INLINE Number<T> conj(Number<T> a) { return {a.re, -a.im}; }

// f(order, place) for all orders > 0 that stand in the half spectrum, g for those whose conjugates
// do: m = 1 to n / 2 is found at m, then back down to n - 1 at 1, then up again from n at 0.
template <class F, class G>
INLINE void for_orders(int64_t n, int64_t orders, const F &f, const G &g) {
    for (int64_t base = 0; base < orders; base += n) {
        for (int64_t m = max(base, int64_t(1)); m < min(base + n / 2 + 1, orders); m++)
            f(m, m - base);
        for (int64_t m = base + n / 2 + 1; m < min(base + n, orders); m++)
            g(m, base + n - m);
    }
}

template <class T, bool TURNED>
void fold(const Number<T> *orders, const Number<T> *phases, int64_t count, int64_t n, bool both,
          Number<T> *half) {
    const auto turned = [&](int64_t m) { return TURNED ? times(orders[m], phases[m]) : orders[m]; };
    memset((void *)half, 0, size_t(n / 2 + 1) * sizeof(*half));
    for_orders(
        n, count,
        [&](int64_t m, int64_t p) {
            const Number<T> f = turned(m);
            half[p].re += f.re, half[p].im += f.im;
        },
        [&](int64_t m, int64_t p) {
            const Number<T> f = turned(m);
            half[p].re += f.re, half[p].im -= f.im;
        });
    // The FFT adds its conjugate to what has a mirror image, and only to that.
    const T with = T(both ? 1 : 0.5), alone = T(both ? 2 : 1);
    const T first = half[0].re, last = half[n / 2].re;
    if (!both)
        for (int64_t p = 0; p <= n / 2; p++)
            half[p].re *= with, half[p].im *= with;
    if (n % 2 == 0)
        half[n / 2] = {alone * last, 0};
    half[0] = {(count ? turned(0).re : 0) + alone * first, 0};
}

template <class T, bool TURNED>
void unfold(const Number<T> *half, const Number<T> *phases, int64_t count, int64_t n, bool both,
            Number<T> *orders) {
    const T twice = T(both ? 2 : 1);
    const auto put = [&](int64_t m, Number<T> f) {
        const Number<T> g = TURNED ? times(f, conj(phases[m])) : f;
        orders[m] = {twice * g.re, twice * g.im};
    };
    if (count)
        orders[0] = {half[0].re, 0};
    for_orders(
        n, count, [&](int64_t m, int64_t p) { put(m, half[p]); },
        [&](int64_t m, int64_t p) { put(m, conj(half[p])); });
}

// f(orders, phases or null, points, half spectrum) for all rings of all fields
template <class T, class F>
int for_rings(const spherule_ring_spectra &s, void *orders, const F &f) {
#pragma omp parallel for schedule(static) num_threads(s.threads)
    for (int64_t i = 0; i < s.fields * s.rings; i++) {
        const int64_t field = i / s.rings, ring = i % s.rings;
        const auto *phases = (const Number<T> *)s.phases;
        f((Number<T> *)orders + i * s.orders, phases ? phases + ring * s.orders : nullptr,
          s.nphi[ring], (Number<T> *)s.half[ring] + field * s.stride[ring]);
    }
    return SPHERULE_OK;
}

template <class T> int run_fold(const spherule_ring_spectra &s, void *orders) {
    return for_rings<T>(s, orders, [&](auto *f, auto *phases, int64_t n, auto *half) {
        (phases ? fold<T, true> : fold<T, false>)(f, phases, s.orders, n, s.both, half);
    });
}
template <class T> int run_unfold(const spherule_ring_spectra &s, void *orders) {
    return for_rings<T>(s, orders, [&](auto *f, auto *phases, int64_t n, auto *half) {
        (phases ? unfold<T, true> : unfold<T, false>)(half, phases, s.orders, n, s.both, f);
    });
}

int any_fold(const spherule_ring_spectra *s, const void *orders) {
    void *from = const_cast<void *>(orders);
    return s->dtype == SPHERULE_FLOAT64 ? run_fold<double>(*s, from) : run_fold<float>(*s, from);
}
int any_unfold(const spherule_ring_spectra *s, void *orders) {
    return s->dtype == SPHERULE_FLOAT64 ? run_unfold<double>(*s, orders)
                                        : run_unfold<float>(*s, orders);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const RingSpectraKernels SPHERULE_JOIN(ring_spectra, SPHERULE_ISA) = {any_fold, any_unfold};
