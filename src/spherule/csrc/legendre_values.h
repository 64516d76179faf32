// P_lm of one order m on a block of rings, for one degree after the other.
//
// With y = 1 - cos(theta), and R_l = P_l^m scaled to 1 at the pole, the recurrence is one of
// differences, (l + m) (R_l - R_l-1) = (l - m - 1) (R_l-1 - R_l-2) - (2 l - 1) y R_l-1: it does not
// see the rounding of a cosine near 1. sin(theta)^m underflows long before P_lm grows back with l,
// so values are p 2^(STEP e) with an exponent e <= 0 beside each, and count only where it is 0.
#pragma once
#include "legendre.h"
#include "powers.h"
#include "scratch.h"

namespace {

// The recurrence d = a d - b y p, p = g p + d from degree l to l + 1, for one order.
struct Recurrence {
    Buffer<double> memory;
    double *a, *b, *g;
    explicit Recurrence(int64_t lmax) : memory(3 * (lmax + 1)) {
        a = memory.data, b = a + lmax + 1, g = b + lmax + 1;
    }
    bool ok() const { return memory.data; }
    void set(int64_t m, int64_t lmax) {
        for (int64_t l = m; l <= lmax; l++) {
            const double n = double(l + 1), k = double(m);
            g[l] = sqrt((2 * n + 1) / (2 * n - 1) * ((n + k) / (n - k)));
            a[l] = g[l] / (n + k) * (n - k - 1);
            b[l] = g[l] / (n + k) * (2 * n - 1);
        }
    }
};

constexpr int VECTORS = 4, LANES = VECTORS * W<double>;  // rings of a block
constexpr int CHUNK = 64, CALM = 8;  // degrees at a time; no value leaves its range in CALM of them

class Values {
    static constexpr int STEP = 800;
    static constexpr double BIG = 0x1p400;
    typedef Vec<double> V;
    V y[VECTORS], p[VECTORS], d[VECTORS], counts[VECTORS];  // counts: 1 where e = 0, else 0
    V e[VECTORS];                                           // exponents, whole numbers
    bool scaled = false;

    // Works on copies, which stay in registers: what is written could be anything.
    template <bool SCALED> INLINE void steps(const Recurrence &r, int64_t l, int n, double *to) {
        V q[VECTORS], f[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) q[v] = p[v], f[v] = d[v];
        for (int k = 0; k < n; k++, to += LANES) {
            const V a = fill(r.a[l + k]), b = fill(r.b[l + k]), g = fill(r.g[l + k]);
            UNROLL for (int v = 0; v < VECTORS; v++) {
                store(to + v * W<double>, SCALED ? (counts[v] != 0 ? q[v] : V{}) : q[v]);
                f[v] = a * f[v] - b * y[v] * q[v];
                q[v] = g * q[v] + f[v];
            }
        }
        UNROLL for (int v = 0; v < VECTORS; v++) p[v] = q[v], d[v] = f[v];
    }

    // Brings values that have grown back into range, a value and its difference with one exponent.
    void rescale() {
        const V big = fill(BIG), small = fill(0x1p-800);
        scaled = false;
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const V size = p[v] < 0 ? -p[v] : p[v], change = d[v] < 0 ? -d[v] : d[v];
            const auto grown = (counts[v] == 0) & ((size > big) | (change > big));
            p[v] = grown ? p[v] * small : p[v];
            d[v] = grown ? d[v] * small : d[v];
            e[v] = grown ? e[v] + 1 : e[v];
            counts[v] = e[v] == 0 ? fill(1.0) : V{};
        }
        for (int i = 0; i < LANES; i++)
            scaled |= e[i / W<double>][i % W<double>] < 0;
    }

  public:
    // Pairs from `first` on, at degree m. Lanes past the last one hold zeros.
    void start(const spherule_legendre &s, int64_t first, int64_t m) {
        scaled = false;
        for (int i = 0; i < LANES; i++) {
            const int64_t pair = first + i;
            const bool there = pair < s.pairs;
            const double size = there ? (m ? double(m) * s.log2_sin[pair] : 0.0) : -INFINITY;
            const bool zero = !(size > -1e15);
            const double exponent = zero ? 0 : min(0.0, nearbyint(size / STEP));
            ((double *)e)[i] = exponent;
            ((double *)y)[i] = there ? s.y[pair] : 0.0;
            ((double *)p)[i] = zero ? 0.0 : s.start[m] * power_of_2(size - STEP * exponent);
            ((double *)d)[i] = 0.0;
            ((double *)counts)[i] = exponent == 0;
            scaled |= exponent < 0;
        }
    }

    // Values of degrees l to l + n - 1 as [degree][LANES]; whether one of them counts
    bool next(const Recurrence &r, int64_t l, int n, double *to) {
        int k = 0;
        bool any = false;
        for (; k < n && scaled; k += CALM) {
            UNROLL for (int v = 0; v < VECTORS; v++) any |= sum<double>(counts[v]) != 0;
            steps<true>(r, l + k, min(CALM, n - k), to + k * LANES);
            rescale();
        }
        if (k < n) {
            steps<false>(r, l + k, n - k, to + k * LANES);
            any = true;
        }
        return any;
    }
};

// Whether P_lm may count on one of a block's rings: beyond, all are below 1e-16 of the largest.
INLINE bool counts(const spherule_legendre &s, int64_t first, int64_t m) {
    const int64_t last = min(first + LANES, s.pairs) - 1;
    const double reach = double(s.lmax) * power_of_2(s.log2_sin[last]);
    return double(m) <= reach + max(120.0, 0.04 * double(s.lmax));
}

}  // namespace
