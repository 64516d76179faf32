// The innermost loop of products over channels.
#pragma once
#include "brain.h"

// Rows of sums, of two vectors each, that leave registers for the factors.
#if defined(__AVX512F__) || defined(__aarch64__)
#define SPHERULE_TILE 12
#else
#define SPHERULE_TILE 6
#endif

namespace {

// One step of the loop: so many terms of SIZE sums
template <class T> struct Step {
    static constexpr int64_t TERMS = 1, SIZE = 2 * W<T>;
    Vec<T> b[2];
    INLINE Step(const T *from, int64_t, int64_t) : b{load(from), load(from + W<T>)} {}
    INLINE void add(const T *a, int64_t, Halves<Vec<T>> &sum) const {
        const Vec<T> w = fill(*a);
        sum.low += w * b[0], sum.high += w * b[1];
    }
    static INLINE void keep(Halves<Vec<T>> sum, T *to) {
        store(to, sum.low), store(to + W<T>, sum.high);
    }
};
// Of 16-bit numbers, two at a time; the last of an odd number is alone.
template <> struct Step<Brain> {
    static constexpr int64_t TERMS = 2, SIZE = W<Brain>;
    Halves<Pairs> b;
    INLINE explicit Step(Halves<Pairs> b) : b(b) {}
    INLINE Step(const Brain *from, int64_t step, int64_t left)
        : b(pairs(load(from), left > 1 ? load(from + step) : Vec<Brain>{})) {}
    INLINE void add(const Brain *a, int64_t left, Halves<Vec<float>> &sum) const {
        const Pairs w = left > 1 ? fill_pair(a) : fill_single(a);
        sum.low = plus_products(sum.low, w, b.low);
        sum.high = plus_products(sum.high, w, b.high);
    }
    static INLINE void keep(Halves<Vec<float>> sum, float *to) { store_in_order(to, sum); }
    static INLINE void keep(Halves<Vec<float>> sum, Brain *to) { store(to, narrow(sum)); }
};
// The same of what `Panels::turn` has made.
template <class T> struct TurnedStep : Step<T> {
    using Step<T>::Step;
};
// There, numbers that are multiplied together lie side by side.
template <> struct TurnedStep<Brain> : Step<Brain> {
    INLINE TurnedStep(const Brain *from, int64_t step, int64_t)
        : Step<Brain>({(Pairs)load(from), (Pairs)load(from + step)}) {}
    static INLINE void keep(Halves<Vec<float>> sum, float *to) {
        store(to, sum.low), store(to + W<float>, sum.high);
    }
};

// Sums of ROWS x SIZE numbers, which fill the registers.
template <class T> struct Tile {
    typedef SumOf<T> S;
    static constexpr int ROWS = SPHERULE_TILE;
    static constexpr int64_t SIZE = Step<T>::SIZE, TERMS = Step<T>::TERMS;

    struct Rows {
        const T *a;
        int64_t row;               // stride between rows
        const S *start = nullptr;  // what the sum of each row starts with, if not 0
        // A row may lie in panels of so many numbers each, so far apart.
        int64_t panel = INT64_MAX, apart = 0;
    };

    // to (R, count) of SIZE columns = or += sum over n of a[R][n] b[n][SIZE], b's rows so far apart
    template <int R, bool ADD, class Terms, class To>
    static INLINE void rows(Rows r, const T *b, int64_t n, int64_t count, int64_t stride, To *to,
                            int64_t step) {
        Halves<Vec<S>> sum[R] = {};
        if (r.start)
            UNROLL for (int i = 0; i < R; i++) sum[i] = {fill<S>(r.start[i]), fill<S>(r.start[i])};
        for (; n > 0; n -= r.panel, r.a += r.apart) {
            const T *a = r.a;
            int64_t left = min(n, r.panel);
            for (; left >= TERMS; left -= TERMS, a += TERMS, b += TERMS * step) {
                const Terms s(b, step, TERMS);
                UNROLL for (int i = 0; i < R; i++) s.add(a + i * r.row, TERMS, sum[i]);
            }
            if (TERMS > 1 && left) {
                const Terms s(b, step, 1);
                UNROLL for (int i = 0; i < R; i++) s.add(a + i * r.row, 1, sum[i]);
                b += step;
            }
        }
        UNROLL for (int i = 0; i < R; i++, to += stride) {
            if (!ADD && count >= SIZE) {
                Terms::keep(sum[i], to);
                continue;
            }
            To some[SIZE];
            Terms::keep(sum[i], some);
            if constexpr (!ADD) {
                memcpy(to, some, size_t(count) * sizeof *to);
            } else if (count >= SIZE) {
                for (int64_t j = 0; j < SIZE; j++)
                    to[j] += some[j];
            } else {
                for (int64_t j = 0; j < count; j++)
                    to[j] += some[j];
            }
        }
    }

    // the same for as many rows as are left, ROWS at the most
    template <bool ADD, class Terms = Step<T>, int R = ROWS, class To>
    static void any(int64_t left, Rows a, const T *b, int64_t n, int64_t count, int64_t stride,
                    To *to, int64_t step = SIZE) {
        if constexpr (R > 1)
            if (left < R)
                return any<ADD, Terms, R - 1>(left, a, b, n, count, stride, to, step);
        rows<R, ADD, Terms>(a, b, n, count, stride, to, step);
    }
};

}  // namespace
