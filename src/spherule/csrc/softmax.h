// The softmax of a block: tiles of scores become weights, and gradients of weights those of scores.
#pragma once
#include "block.h"

namespace {

template <class T> struct Softmax {
    T max, sum;
};

// f(sum) over tiled scores of N centers, in the lanes of a tile; `largest` and `add_to` join them
// for each center.
template <int N, class T> struct PerCenter {
    static constexpr int vectors = PAD<T> / W<T>, lanes = PAD<T>, R = ROWS<N, T>;
    Vec<T> v[vectors];

    explicit PerCenter(const T *values) {
        T lane[lanes];
        for (int i = 0; i < lanes; i++)
            lane[i] = values[min(i / R, N - 1)];
        UNROLL for (int u = 0; u < vectors; u++) v[u] = load(lane + u * W<T>);
    }
    void largest(T *values) const {
        T lane[lanes];
        UNROLL for (int u = 0; u < vectors; u++) store(lane + u * W<T>, v[u]);
        for (int i = 0; i < lanes; i++)
            if (i / R < N)
                values[i / R] = max(values[i / R], lane[i]);
    }
    void add_to(T *values) const {
        T lane[lanes];
        UNROLL for (int u = 0; u < vectors; u++) store(lane + u * W<T>, v[u]);
        for (int i = 0; i < lanes; i++)
            if (i / R < N)
                values[i / R] += lane[i];
    }
};

template <int N, class T> INLINE void find_largest(const T *s, const Rows<T> &rows, T *top) {
    PerCenter<N, T> m(top);
    for (int x = 0; x < rows.padded / ROWS<N, T> * PAD<T>; x += m.lanes) {
        UNROLL for (int u = 0; u < m.vectors; u++) {
            const Vec<T> y = load(s + x + u * W<T>);
            m.v[u] = y > m.v[u] ? y : m.v[u];
        }
    }
    m.largest(top);
}

template <int N, class T>
INLINE void exponentiate(T *s, const Rows<T> &rows, const T *base, T *total) {
    const T zero[N] = {};
    const PerCenter<N, T> b(base);
    PerCenter<N, T> sums(zero);
    for (int x = 0; x < rows.padded / ROWS<N, T> * PAD<T>; x += b.lanes) {
        UNROLL for (int u = 0; u < b.vectors; u++) {
            const Vec<T> p = exp2<T>(load(s + x + u * W<T>) - b.v[u]);
            store(s + x + u * W<T>, p);
            sums.v[u] += p;
        }
    }
    sums.add_to(total);
}

template <int N, class T>
INLINE void block_exponentiate(T *s, const Lists<T> &lists, const T *base, T *total) {
    exponentiate<N>(s, lists.common, base, total);
    for (int q = 0; q < N; q++)
        exponentiate<1>(s + own_scores(q), lists.extra[q], base + q, total + q);
}

// Turns scores into weights relative to the running maximum; factor is what earlier sums are to be
// multiplied by.
template <int N, class T>
INLINE void online_softmax(T *s, const Lists<T> &lists, Softmax<T> *state, T *factor) {
    T top[N], base[N], total[N];
    for (int q = 0; q < N; q++)
        top[q] = state[q].max;
    find_largest<N>(s, lists.common, top);
    for (int q = 0; q < N; q++)
        find_largest<1>(s + own_scores(q), lists.extra[q], top + q);
    for (int q = 0; q < N; q++) {
        base[q] = top[q] > T(-INFINITY) ? top[q] : 0;
        factor[q] = top[q] > state[q].max ? exp2<T>(fill<T>(state[q].max - top[q]))[0] : T(1);
        total[q] = state[q].sum * factor[q];
    }
    block_exponentiate<N>(s, lists, base, total);
    for (int q = 0; q < N; q++)
        state[q] = {top[q], total[q]};
}

// Scores s and dP = dO . v become weights P and dS = P (dP - delta).
template <int N, class T>
INLINE void differentiate(T *s, T *ds, const Rows<T> &rows, const T *lse, const T *delta) {
    const PerCenter<N, T> l(lse), d(delta);
    for (int x = 0; x < rows.padded / ROWS<N, T> * PAD<T>; x += l.lanes) {
        UNROLL for (int u = 0; u < l.vectors; u++) {
            const int at = x + u * W<T>;
            const Vec<T> p = exp2<T>(load(s + at) - l.v[u]);
            store(s + at, p);
            store(ds + at, p * (load(ds + at) - d.v[u]));
        }
    }
}

template <int N, class T>
INLINE void block_differentiate(T *s, T *ds, const Lists<T> &lists, const T *lse, const T *delta) {
    differentiate<N>(s, ds, lists.common, lse, delta);
    for (int q = 0; q < N; q++)
        differentiate<1>(s + own_scores(q), ds + own_scores(q), lists.extra[q], lse + q, delta + q);
}

}  // namespace
