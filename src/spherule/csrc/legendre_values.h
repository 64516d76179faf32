// Functions Q_k of one order m on a block of rings, from which P_lm of two degrees follow each:
//
//     P_lm = cos(theta) Q_k for l = m + 2 k + 1,   P_lm = a_l+1 Q_k + a_l Q_k-1 for l = m + 2 k,
//
// a_l^2 = (l^2 - m^2) / (4 l^2 - 1). Divided by n_k, their value at the pole (without
// sin(theta)^m), they obey U (R_k+1 - R_k) = W (R_k - R_k-1) - z R_k, where z = sin(theta)^2;
// divided by that at the equator, which has the sign (-1)^k, the same with z = cos(theta)^2 and
// other numbers. So a recurrence of differences does not see the rounding of a number close to 1,
// neither near the pole nor near the equator: half of the rings take one, half the other. As W
// n_k^2 is the last step's U n_k-1^2, the differences are sums: t -= n_k^2 z R_k, R += t / (U
// n_k^2).
//
// sin(theta)^m underflows long before P_lm grows back with l, so values are q 2^(STEP e) with an
// exponent e <= 0 beside each, and count only where it is 0.
#pragma once
#include "legendre.h"
#include "powers.h"
#include "scratch.h"

namespace {

constexpr int VECTORS = 4, LANES = VECTORS * W<double>;  // rings of a block
constexpr int PIECE = 8;                                 // steps in which no value leaves its range
constexpr int CHUNK = 32;                                // steps whose values are kept at a time

INLINE int64_t steps_of(int64_t lmax, int64_t m) { return (lmax - m) / 2 + 1; }
INLINE int64_t whole_pieces(int64_t steps) { return (steps + PIECE - 1) / PIECE * PIECE; }

// One order's numbers: t -= drive z q, q += move t, and Q_k = scale q. At the start of a piece, q
// takes a power of two where the scale would leave 2^-20 to 2^20.
struct Recurrence {
    Buffer<double> memory;
    double *drive, *move, *scale, *shift, *a, *growth;
    explicit Recurrence(int64_t lmax) : memory(6 * (lmax + 1 + PIECE)) {
        const int64_t n = lmax + 1 + PIECE;
        drive = memory.data, move = drive + n, scale = move + n, shift = scale + n, a = shift + n;
        growth = a + n;
    }
    bool ok() const { return memory.data; }

    // a_l of l = m + i, and by what factor values grow in a piece at most, which is at the pole.
    // Indices are of 32 bits, which compilers make vectors of numbers of.
    void set_order(int64_t m, int64_t lmax) {
        const double o = double(m);
        for (int i = 0, n = int(lmax + 3 - m); i < n; i++) {
            const double l = o + double(i);
            a[i] = sqrt(double(i) * (l + o) / (4 * l * l - 1));
        }
        for (int i = 0, n = int(whole_pieces(steps_of(lmax, m)) / PIECE); i < n; i++) {
            double square = 1;
            for (int k = 2 * PIECE * i + 1; k < 2 * PIECE * (i + 1); k += 2)
                square *= (2 * o + double(k) + 1) * (2 * o + double(k) + 2) /
                          ((double(k) + 1) * (double(k) + 2));
            growth[i] = 4 * sqrt(square);
        }
    }

    // By the pole, or by the equator
    void set_kind(int64_t m, int64_t lmax, bool polar) {
        const int steps = int(whole_pieces(steps_of(lmax, m)));
        const double o = double(m), up_by = polar ? 2 * o + 1 : 2, down_by = 2 * o + 3 - up_by;
        for (int k = 0; k < steps; k++) {
            const double i = double(2 * k + 1), l = o + i;
            const double up = (l + o + 2) * (i + up_by), down = (i + 1) * (i + down_by);
            move[k] = (2 * l + 1) * (2 * l + 3) / up;              // 1 / U
            scale[k] = (up * (2 * l + 5)) / (down * (2 * l + 1));  // squared, of k + 1 by k
        }
        double square = 1;
        for (int first = 0; first < steps; first += PIECE) {
            int exponent;
            frexp(square, &exponent);
            exponent = exponent < -40 || exponent > 40 ? exponent / 2 : 0;
            shift[first / PIECE] = exponent ? ldexp(1, exponent) : 1;
            square = exponent ? ldexp(square, -2 * exponent) : square;
            for (int k = first; k < first + PIECE; k++)
                drive[k] = square, square *= scale[k];
        }
        for (int k = 0; k < steps; k++) {
            move[k] /= drive[k];
            scale[k] = sqrt(drive[k]);
        }
        for (int k = 1; k < steps && !polar; k += 2)
            scale[k] = -scale[k];
    }
};

inline double arcosh(double x) { return base2_log(x + sqrt(x * x - 1)) * LN2; }

// The highest order that counts on a ring, where some P_lm with l <= lmax is above 1e-21: before
// the turning point sin(theta) = m / L, L = lmax + 1/2, they fall as exp(-integral of sqrt(m^2 /
// sin^2 - L^2)).
inline int64_t highest_order(double y, int64_t lmax) {
    const double c = 1 - y, sine = sqrt(y * (2 - y)), degree = double(lmax) + 0.5;
    int64_t low = min(int64_t(degree * sine), lmax), high = lmax + 1;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        const double m = double(middle), turn = m / degree, other = sqrt(1 - turn * turn);
        const double fall = sine > 0 && other < c
                                ? m * arcosh(c / sine * (turn / other)) - degree * arcosh(c / other)
                                : (sine > 0 ? 0 : INFINITY);
        (fall > 48 ? high : low) = middle;
    }
    return low;
}

// Up to LANES pairs, all closer to the pole than to the equator or none
struct Block {
    int64_t index, first, pairs;
    bool polar;
    int64_t highest;  // order that counts
};

struct Blocks {
    Buffer<Block> block;
    int64_t count = 0;
    explicit Blocks(const spherule_legendre &s) : block(most(s)) {
        for (int64_t first = 0; first < s.pairs && block.data; count++) {
            const bool polar = is_polar(s.y[first]);
            int64_t end = first;
            while (end < s.pairs && end < first + LANES && is_polar(s.y[end]) == polar)
                end++;
            const int64_t highest = highest_order(s.y[end - 1], s.lmax);
            block.data[count] = {count, first, end - first, polar, highest};
            first = end;
        }
    }
    // Rings come in order, so there is one block more at most.
    static int64_t most(const spherule_legendre &s) { return s.pairs / LANES + 2; }
    static bool is_polar(double y) { return y * (2 - y) < 0.5; }
    const Block *begin() const { return block.data; }
    const Block *end() const { return block.data + count; }
};

class Values {
    static constexpr int STEP = 600, LEAST = -200;
    typedef Vec<double> V;
    V z[VECTORS], q[VECTORS], t[VECTORS];
    V e[VECTORS];                        // exponents, whole numbers
    bool scaled = false, awake = false;  // awake: some value is large enough to count

    // n pieces. Works on copies, which stay in registers: what is written could be anything.
    template <bool SCALED> INLINE void steps(const Recurrence &r, int64_t k, int n, double *to) {
        V p[VECTORS], d[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) p[v] = q[v], d[v] = t[v];
        for (int i = 0; i < n * PIECE; i++, to += LANES) {
            const V drive = fill(r.drive[k + i]), move = fill(r.move[k + i]);
            UNROLL for (int v = 0; v < VECTORS; v++) {
                store(to + v * W<double>, SCALED ? (e[v] == 0 ? p[v] : V{}) : p[v]);
                d[v] -= drive * z[v] * p[v];
                p[v] += move * d[v];
            }
        }
        UNROLL for (int v = 0; v < VECTORS; v++) q[v] = p[v], t[v] = d[v];
    }

    void shift(double by) {
        const V up = fill(by), down = fill(1 / by);
        UNROLL for (int v = 0; v < VECTORS; v++) q[v] *= up, t[v] *= down;
    }

    // Brings values that have grown back into range, a value and its difference with one exponent.
    void rescale() {
        const V big = fill(0x1p400), small = fill(0x1p-600);
        scaled = false;
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const V size = q[v] < 0 ? -q[v] : q[v], change = t[v] < 0 ? -t[v] : t[v];
            const auto grown = (e[v] != 0) & ((size > big) | (change > big));
            q[v] = grown ? q[v] * small : q[v];
            t[v] = grown ? t[v] * small : t[v];
            e[v] = grown ? e[v] + 1 : e[v];
        }
        for (int i = 0; i < LANES; i++)
            scaled |= e[i / W<double>][i % W<double>] < 0;
    }

    // Whether a value could reach 2^-80 in the next piece: no P_lm grows faster than at the pole
    bool wakes(const Recurrence &r, int64_t k) const {
        const double least = 0x1p-80 / (r.growth[k / PIECE] * fabs(r.scale[k]));
        for (int i = 0; i < LANES; i++)
            if (((double *)e)[i] == 0 && fabs(((double *)q)[i]) > least)
                return true;
        return false;
    }

  public:
    // At degree m. Lanes past the last pair hold zeros.
    void start(const spherule_legendre &s, const Block &block, int64_t m) {
        const V at_equator = fill(s.start[m] * sqrt(2 * double(m) + 3));
        V size[VECTORS];
        scaled = awake = false;
        for (int i = 0; i < LANES; i++) {
            const int64_t pair = block.first + i;
            const bool there = i < block.pairs;
            const double log2 = there ? (m ? double(m) * s.log2_sin[pair] : 0.0) : -INFINITY;
            const bool zero = !(log2 > -1e15);
            const double exponent = zero || log2 > LEAST ? 0 : floor((log2 - LEAST) / STEP);
            const double y = there ? s.y[pair] : 0.0;
            ((double *)e)[i] = exponent;
            ((double *)z)[i] = block.polar ? y * (2 - y) : (1 - y) * (1 - y);
            ((double *)size)[i] = log2 - STEP * exponent;
            scaled |= exponent < 0;
        }
        UNROLL for (int v = 0; v < VECTORS; v++) {
            q[v] = at_equator * exp2<double>(size[v]);
            t[v] = V{};
        }
    }

    // Values of steps k to k + n - 1 and the rest of a piece, k a multiple of CHUNK, as
    // [step][LANES]; from which step on they count
    int next(const Recurrence &r, int64_t k, int n, double *to) {
        int asleep = 0;
        for (int i = 0, pieces; i < n; i += pieces * PIECE) {
            const double *shifts = r.shift + (k + i) / PIECE;
            pieces = 1;
            if (*shifts != 1)
                shift(*shifts);
            if (scaled)
                rescale();
            awake = awake || wakes(r, k + i);
            while (awake && !scaled && i + pieces * PIECE < n && shifts[pieces] == 1)
                pieces++;
            if (!awake)
                asleep = i + PIECE;
            if (scaled)
                steps<true>(r, k + i, pieces, to + i * LANES);
            else
                steps<false>(r, k + i, pieces, to + i * LANES);
        }
        return asleep;
    }
};

}  // namespace
