// Norms over the sphere, a row of points at a time. Compiled once per instruction set, under the
// name SPHERULE_ISA.
#include "brain.h"
#include "isa.h"
#include "tensor.h"
#include <math.h>

namespace {

// Rows of several tensors at point i: as vectors, or one by one at the end. Fields may have 16
// bits.
template <class T> struct Many {
    int64_t i;
    INLINE Vec<T> operator()(const T *row) const { return load(row + i); }
    INLINE Vec<T> operator()(const Brain *row) const { return load_wide(row + i); }
    INLINE void set(T *row, Vec<T> value) const { store(row + i, value); }
    INLINE void set(Brain *row, Vec<T> value) const { store_short(row + i, value); }
};
template <class T> struct One {
    int64_t i;
    template <class F> INLINE T operator()(const F *row) const { return T(widen(row[i])); }
    template <class F> INLINE void set(F *row, T value) const { narrow(value, row + i); }
};

template <class T, class F> INLINE void each(int64_t n, const F &f) {
    int64_t i = 0;
    for (; i + W<T> <= n; i += W<T>)
        f(Many<T>{i});
    for (; i < n; i++)
        f(One<T>{i});
}

// The sum of term(at) over the points. Short runs add up in the fields' own precision, and they in
// double.
template <class T, class F> INLINE double total(int64_t n, const F &term) {
    constexpr int64_t RUN = 32 * W<T>;
    double sum_of_runs = 0;
    for (int64_t from = 0; from < n; from += RUN) {
        const int64_t to = min(n, from + RUN);
        Vec<T> a{}, b{};
        T rest = 0;
        int64_t i = from;
        for (; i + 2 * W<T> <= to; i += 2 * W<T>) {
            a += term(Many<T>{i});
            b += term(Many<T>{i + W<T>});
        }
        for (; i < to; i++)
            rest += term(One<T>{i});
        sum_of_runs += double(sum<T>(a + b)) + double(rest);
    }
    return sum_of_runs;
}

template <class F> F *row(const spherule_channels &x, int64_t sample, int64_t channel) {
    return (F *)x.data + sample * x.batch_stride + channel * x.channel_stride;
}

// body(a value of the fields' type, sample, channel, their index) of every channel of every sample
template <class F> int every(const spherule_pointwise *p, const F &body) {
    const auto rows = [&](auto t) {
#pragma omp parallel for num_threads(p->threads) schedule(static)
        for (int64_t i = 0; i < p->batch * p->in; i++)
            body(t, i / p->in, i % p->in, i);
    };
    if (p->dtype == SPHERULE_FLOAT64)
        rows(double());
    else if (p->dtype == SPHERULE_BFLOAT16)
        rows(Brain());
    else
        rows(float());
    return SPHERULE_OK;
}

template <class T> struct Moments {
    T mean;
    double variance;
    template <class F> Moments(const T *w, double weight, const F *x, int64_t n) {
        const double share = weight > 0 ? 1 / weight : 0;
        const T m = T(share * total<T>(n, [&](auto at) { return at(w) * at(x); }));
        mean = m;
        variance = share * total<T>(n, [&](auto at) {
                       const auto d = at(x) - m;
                       return at(w) * d * d;
                   });
    }
};

int run_moments(const spherule_pointwise *p, const void *weights, int64_t stride,
                const double *totals, const spherule_channels *x, void *mean, void *variance) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const T *w = (const T *)weights + sample * stride;
        const Moments<T> of(w, totals[sample], row<F>(*x, sample, channel), p->points);
        ((T *)mean)[i] = of.mean;
        ((T *)variance)[i] = T(of.variance);
    });
}

int run_moments_backward(const spherule_pointwise *p, const void *weights, int64_t stride,
                         const double *totals, const spherule_channels *x, const void *mean,
                         const void *dmean, const void *dvariance, const spherule_channels *dx) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const T *w = (const T *)weights + sample * stride;
        const F *from = row<F>(*x, sample, channel);
        F *to = row<F>(*dx, sample, channel);
        const double share = totals[sample] > 0 ? 1 / totals[sample] : 0;
        const T m = ((const T *)mean)[i], a = T(share * ((const T *)dmean)[i]),
                b = T(2 * share * ((const T *)dvariance)[i]);
        each<T>(p->points, [&](auto at) { at.set(to, at(w) * (a + b * (at(from) - m))); });
    });
}

int run_standardize(const spherule_pointwise *p, const spherule_channels *x, const void *mean,
                    const void *scale, const void *shift, const spherule_channels *y) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const F *from = row<F>(*x, sample, channel);
        F *to = row<F>(*y, sample, channel);
        const T m = ((const T *)mean)[i], a = ((const T *)scale)[i],
                b = ((const T *)shift)[channel];
        each<T>(p->points, [&](auto at) { at.set(to, (at(from) - m) * a + b); });
    });
}

int run_standardize_backward(const spherule_pointwise *p, const spherule_channels *x,
                             const void *mean, const void *scale, const spherule_channels *dy,
                             const spherule_channels *dx, void *dscale, void *totals) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const F *from = row<F>(*x, sample, channel), *g = row<F>(*dy, sample, channel);
        F *to = row<F>(*dx, sample, channel);
        const T m = ((const T *)mean)[i], a = ((const T *)scale)[i];
        each<T>(p->points, [&](auto at) { at.set(to, at(g) * a); });
        ((T *)dscale)[i] = T(total<T>(p->points, [&](auto at) { return at(g) * (at(from) - m); }));
        ((T *)totals)[i] = T(total<T>(p->points, [&](auto at) { return at(g); }));
    });
}

int run_instance_norm(const spherule_pointwise *p, const void *weights, int64_t stride,
                      const double *totals, const double *eps, const spherule_channels *x,
                      const void *scale, const void *shift, const spherule_channels *y, void *mean,
                      void *inverse) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const T *w = (const T *)weights + sample * stride;
        const F *from = row<F>(*x, sample, channel);
        F *to = row<F>(*y, sample, channel);
        const Moments<T> of(w, totals[sample], from, p->points);
        const T m = of.mean, r = T(1 / sqrt(of.variance + *eps)),
                a = r * ((const T *)scale)[channel], b = ((const T *)shift)[channel];
        each<T>(p->points, [&](auto at) { at.set(to, (at(from) - m) * a + b); });
        ((T *)mean)[i] = m;
        ((T *)inverse)[i] = r;
    });
}

int run_instance_norm_backward(const spherule_pointwise *p, const void *weights, int64_t stride,
                               const double *totals, const spherule_channels *x, const void *scale,
                               const void *mean, const void *inverse, const spherule_channels *dy,
                               const spherule_channels *dx, void *dscale, void *dshift) {
    return every(p, [&](auto t, int64_t sample, int64_t channel, int64_t i) {
        typedef decltype(t) F;
        typedef SumOf<F> T;
        const T *w = (const T *)weights + sample * stride;
        const F *from = row<F>(*x, sample, channel), *g = row<F>(*dy, sample, channel);
        F *to = row<F>(*dx, sample, channel);
        const T m = ((const T *)mean)[i], r = ((const T *)inverse)[i],
                a = r * ((const T *)scale)[channel];
        const double along = total<T>(p->points, [&](auto at) { return at(g) * (at(from) - m); }),
                     whole = total<T>(p->points, [&](auto at) { return at(g); }),
                     share = totals[sample] > 0 ? 1 / totals[sample] : 0;
        // What mean and variance take away
        const T b = T(share * whole), c = T(share * along * double(r) * double(r));
        each<T>(p->points,
                [&](auto at) { at.set(to, a * (at(g) - at(w) * (b + c * (at(from) - m)))); });
        ((T *)dscale)[i] = T(along * double(r));
        ((T *)dshift)[i] = T(whole);
    });
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const NormKernels SPHERULE_JOIN(norm, SPHERULE_ISA) = {
    run_moments,       run_moments_backward,      run_standardize, run_standardize_backward,
    run_instance_norm, run_instance_norm_backward};
