// The arithmetic of a block: N centers against listed rows, channels in the lanes.
//
// Dot products come in tiles of N centers x R rows, and scores stay in tiles, [row / R][center][row
// % R]: first those of the rows that all centers share, then, for each center as if alone, those
// of its own rows. Numbers of type T are multiplied; scores and sums S have 32 bits at least.
#pragma once
#include "brain.h"
#include "walk.h"

namespace {

constexpr int REGION = LIST + 16;
constexpr int SCORES = 2 * BLOCK * REGION;

INLINE constexpr int own_scores(int q) { return (BLOCK + q) * REGION; }

// Rows of a tile
template <int N, class T> constexpr int ROWS = PAD<T> / (N == 3 ? 4 : N);
// Where the score of a center's row t lies
template <int N, class T> INLINE constexpr int place(int t, int q) {
    return t / ROWS<N, T> * PAD<T> + q * ROWS<N, T> + t % ROWS<N, T>;
}

// A tile of scores
template <class S> struct TileOf {
    typedef S V __attribute__((vector_size(PAD<S> * sizeof(S))));
    typedef S Load __attribute__((vector_size(PAD<S> * sizeof(S)), aligned(sizeof(S)), may_alias));
    typedef typename Count<PAD<S>>::type Lanes;
    V v;
    INLINE explicit TileOf(const S *s) : v(*(const Load *)s) {}
};

// to[center] = x[center] factor[center]
template <int N, class T>
INLINE void scale_rows(const T *x, int width, const SumOf<T> *factor, T *to) {
    for (int q = 0; q < N; q++)
        for (int c = 0; c < width; c += W<T>) {
            Wide<T> row(x + q * width + c);
            for (auto &v : row.v)
                v *= factor[q];
            row.keep(to + q * width + c);
        }
}

// s = s factor + the log weight of each score's row
template <int R, class S, int... I> INLINE void weigh(S *s, S factor, const S *bias, Lanes<I...>) {
    const TileOf<S> tile(s), b(bias);
    *(typename TileOf<S>::Load *)s =
        tile.v * factor + __builtin_shufflevector(b.v, b.v, (I % R)...);
}

// x[center] . data[row]; of scores, times factor, plus the rows' log weights
template <int N, bool Scores, class T, class S>
INLINE void dots(const T *x, const T *data, int width, const Rows<S> &rows, S factor, S *s) {
    constexpr int R = ROWS<N, S>, G = R < 8 ? R : 8;  // G rows at a time, whose addresses fit
    for (int t = 0; t < rows.padded; t += R, s += PAD<S>) {
        Vec<S> a[PAD<S>] = {};
        UNROLL for (int g = 0; g < R; g += G) {
            const T *r[G];
            UNROLL for (int j = 0; j < G; j++) r[j] = data + int64_t(rows.row[t + g + j]) * width;
            for (int c = 0; c < width; c += W<T>) {
                Vec<T> y[G];
                UNROLL for (int j = 0; j < G; j++) {
                    y[j] = load(r[j] + c);
                    if (N > 1)
                        KEEP(y[j]);
                }
                UNROLL for (int q = 0; q < N; q++) {
                    Vec<T> xq = load(x + q * width + c);
                    if (G > 1)
                        KEEP(xq);
                    UNROLL for (int j = 0; j < G; j++) a[q * R + g + j] =
                        plus_product(a[q * R + g + j], xq, y[j]);
                }
            }
        }
        lane_sums<PAD<S>>(a, s);
        if (Scores)
            weigh<R>(s, factor, rows.bias + t, typename TileOf<S>::Lanes());
    }
}

// Products of all pairs of the block
template <int N, bool Scores, class T, class S>
INLINE void block_dots(const T *x, const T *data, int width, const Lists<S> &lists, S factor,
                       S *s) {
    dots<N, Scores>(x, data, width, lists.common, factor, s);
    for (int q = 0; q < N; q++)
        dots<1, Scores>(x + q * width, data, width, lists.extra[q], factor, s + own_scores(q));
}

// a[q] += sum over t of s[q][t] data[row[t]], for C vectors of channels. U rows go to sums of their
// own, so that there are always eight chains of additions to hide their latency.
template <int N, int C, int U, class T>
INLINE void accumulate_channels(const T *s, const T *data, int width, const Rows<T> &rows, T *a) {
    constexpr int R = ROWS<N, T>, G = R < 4 ? R : 4;
    Vec<T> sum[U][N][C] = {};
    UNROLL for (int q = 0; q < N; q++) UNROLL for (int c = 0; c < C; c++) sum[0][q][c] =
        load(a + q * width + c * W<T>);
    for (int t = 0; t < rows.n; t += G) {
        const T *p = s + place<N, T>(t, 0);
        UNROLL for (int j = 0; j < G; j++) {
            const T *row = data + int64_t(rows.row[t + j]) * width;
            Vec<T> y[C];
            UNROLL for (int c = 0; c < C; c++) y[c] = load(row + c * W<T>);
            UNROLL for (int q = 0; q < N; q++) {
                const Vec<T> w = fill(p[q * R + j]);
                UNROLL for (int c = 0; c < C; c++) sum[j % U][q][c] += w * y[c];
            }
        }
    }
    UNROLL for (int q = 0; q < N; q++) {
        UNROLL for (int c = 0; c < C; c++) {
            UNROLL for (int u = 1; u < U; u++) sum[0][q][c] += sum[u][q][c];
            store(a + q * width + c * W<T>, sum[0][q][c]);
        }
    }
}

template <int N, class T>
INLINE void accumulate(const T *s, const T *data, int width, const Rows<T> &rows, T *a) {
    constexpr int C = N == 1 ? 4 : SPHERULE_SUMS / N, U = N == 1 ? 2 : 1;
    int c = 0;
    for (; c + C * W<T> <= width; c += C * W<T>)
        accumulate_channels<N, C, U>(s, data + c, width, rows, a + c);
    if (C > 2 && c + 2 * W<T> <= width) {
        accumulate_channels < N, 2, N<4 ? 2 : 1>(s, data + c, width, rows, a + c);
        c += 2 * W<T>;
    }
    for (; c < width; c += W<T>)
        accumulate_channels<N, 1, 2>(s, data + c, width, rows, a + c);
}

// The same of 16-bit rows, two at a time; sums are in halves.
template <int N, int C>
INLINE void accumulate_channels(const Brain *s, const Brain *data, int width,
                                const Rows<float> &rows, float *a) {
    Halves<Vec<float>> sum[N][C];
    UNROLL for (int q = 0; q < N; q++) UNROLL for (int c = 0; c < C; c++) {
        const float *from = a + q * width + c * W<Brain>;
        sum[q][c] = {load(from), load(from + W<float>)};
    }
    for (int t = 0; t < rows.n; t += 2) {
        const Brain *p = s + place<N, float>(t, 0);
        const Brain *row[] = {data + int64_t(rows.row[t]) * width,
                              data + int64_t(rows.row[t + 1]) * width};
        Halves<Pairs> y[C];
        UNROLL for (int c = 0; c < C; c++) y[c] =
            pairs(load(row[0] + c * W<Brain>), load(row[1] + c * W<Brain>));
        UNROLL for (int q = 0; q < N; q++) {
            const Pairs w = fill_pair(p + q * ROWS<N, float>);
            UNROLL for (int c = 0; c < C; c++) {
                sum[q][c].low = plus_products(sum[q][c].low, w, y[c].low);
                sum[q][c].high = plus_products(sum[q][c].high, w, y[c].high);
            }
        }
    }
    UNROLL for (int q = 0; q < N; q++) UNROLL for (int c = 0; c < C; c++) {
        float *to = a + q * width + c * W<Brain>;
        store(to, sum[q][c].low), store(to + W<float>, sum[q][c].high);
    }
}

template <int N>
INLINE void accumulate(const Brain *s, const Brain *data, int width, const Rows<float> &rows,
                       float *a) {
    constexpr int C = N == 1 ? 4 : SPHERULE_SUMS / (2 * N);
    int c = 0;
    for (; c + C * W<Brain> <= width; c += C * W<Brain>)
        accumulate_channels<N, C>(s, data + c, width, rows, a + c);
    for (; c < width; c += W<Brain>)
        accumulate_channels<N, 1>(s, data + c, width, rows, a + c);
}

template <int N, class T, class S>
INLINE void block_accumulate(const T *s, const T *data, int width, const Lists<S> &lists, S *a) {
    if (lists.common.n)
        accumulate<N>(s, data, width, lists.common, a);
    for (int q = 0; q < N; q++)
        if (lists.extra[q].n)
            accumulate<1>(s + own_scores(q), data, width, lists.extra[q], a + q * width);
}

// to[row[t] - first] += sum over q of s[q][t] x[q], for U rows from t on, whose weights stay in
// registers.
template <int N, int U, class T>
INLINE void scatter_rows(const T *s, const T *x, int width, const Rows<T> &rows, int t,
                         int64_t first, T *to) {
    T *row[U];
    Vec<T> p[U][N];
    UNROLL for (int j = 0; j < U; j++) {
        row[j] = to + (rows.row[t + j] - first) * width;
        UNROLL for (int q = 0; q < N; q++) p[j][q] = fill(s[place<N, T>(t + j, q)]);
    }
    for (int c = 0; c < width; c += W<T>) {
        Vec<T> sum[U];
        UNROLL for (int j = 0; j < U; j++) sum[j] = load(row[j] + c);
        UNROLL for (int q = 0; q < N; q++) {
            Vec<T> y = load(x + q * width + c);
            KEEP(y);
            UNROLL for (int j = 0; j < U; j++) sum[j] += p[j][q] * y;
        }
        UNROLL for (int j = 0; j < U; j++) store(row[j] + c, sum[j]);
    }
}

// The same of 16-bit weights and rows, two centers at a time; sums are in halves. Weights come as
// `across` has them, those of a single center as they are.
template <int N, int U>
INLINE void scatter_rows(const Brain *s, const Brain *x, int width, const Rows<float> &rows, int t,
                         int64_t first, float *to) {
    constexpr int P = (N + 1) / 2;  // pairs of centers
    float *row[U];
    Pairs p[U][P];
    UNROLL for (int j = 0; j < U; j++) {
        row[j] = to + (rows.row[t + j] - first) * width;
        UNROLL for (int q = 0; q < P; q++) p[j][q] =
            N == 1 ? fill_single(s + t + j) : fill_pair(s + (t + j) * 2 * P + 2 * q);
    }
    for (int c = 0; c < width; c += W<Brain>) {
        Halves<Vec<float>> sum[U];
        UNROLL for (int j = 0; j < U; j++) sum[j] = {load(row[j] + c), load(row[j] + c + W<float>)};
        UNROLL for (int q = 0; q < P; q++) {
            const Brain *from = x + 2 * q * width + c;
            const Halves<Pairs> y =
                pairs(load(from), 2 * q + 1 < N ? load(from + width) : Vec<Brain>{});
            UNROLL for (int j = 0; j < U; j++) {
                sum[j].low = plus_products(sum[j].low, p[j][q], y.low);
                sum[j].high = plus_products(sum[j].high, p[j][q], y.high);
            }
        }
        UNROLL for (int j = 0; j < U; j++) {
            store(row[j] + c, sum[j].low), store(row[j] + c + W<float>, sum[j].high);
        }
    }
}

template <int N, class T, class S>
INLINE void scatter(const T *s, const T *x, int width, const Rows<S> &rows, int64_t first, S *to) {
    constexpr int U = N == 1 ? 4 : SPHERULE_SUMS / 4;
    int t = 0;
    for (; t + U <= rows.n; t += U)
        scatter_rows<N, U>(s, x, width, rows, t, first, to);
    for (; t < rows.n; t++)
        scatter_rows<N, 1>(s, x, width, rows, t, first, to);
}

// What multiplies rows: the weights in their tiles for sums over rows, and for sums over centers.
template <class T> struct Factors {
    const T *tiles, *across;
};

template <int N, class T, class S>
INLINE void block_scatter(const Factors<T> &s, const T *x, int width, const Lists<S> &lists,
                          int64_t first, S *to) {
    scatter<N>(s.across, x, width, lists.common, first, to);
    for (int q = 0; q < N; q++)
        scatter<1>(s.tiles + own_scores(q), x + q * width, width, lists.extra[q], first, to);
}

typedef uint16_t ShortTile __attribute__((vector_size(PAD<float> * 2)));
typedef int32_t LongTile __attribute__((vector_size(PAD<float> * 4)));

// In 16 bits, `tiles` as they are and `across` as [row][center], an even number of centers, of
// which one that is not there weighs nothing.
template <int N, int... I>
INLINE void shorten(const float *s, const Rows<float> &rows, Brain *tiles, Brain *across,
                    Lanes<I...>) {
    constexpr int R = ROWS<N, float>, M = PAD<float> / R;
    for (int x = 0; x < rows.padded / R * PAD<float>; x += PAD<float>) {
        const TileOf<float> tile(s + x);
        const LongTile u = (LongTile)tile.v, r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        const ShortTile b =
            __builtin_convertvector(tile.v == tile.v ? r : (u >> 16 | 0x40), ShortTile);
        memcpy(tiles + x, &b, sizeof b);
        if (N > 1) {
            const ShortTile turned = __builtin_shufflevector(
                b, ShortTile{}, (I % M < N ? I % M * R + I / M : int(sizeof...(I)))...);
            memcpy(across + x, &turned, sizeof turned);
        }
    }
}

template <int N>
INLINE Factors<Brain> block_factors(const float *s, const Lists<float> &lists, Brain *tiles,
                                    Brain *across) {
    constexpr TileOf<float>::Lanes lanes;
    shorten<N>(s, lists.common, tiles, across, lanes);
    for (int q = 0; q < N; q++)
        shorten<1>(s + own_scores(q), lists.extra[q], tiles + own_scores(q), across, lanes);
    return {tiles, N == 1 ? tiles : across};
}
template <int N, class T> INLINE Factors<T> block_factors(const T *s, const Lists<T> &, T *, T *) {
    return {s, s};
}

// Rows of sums in the order of their channels
template <class T, class S> INLINE void order(S *row, int width) {
    if constexpr (sizeof(T) == 2)
        for (int c = 0; c < width; c += W<T>)
            store_in_order(row + c, {load(row + c), load(row + c + W<S>)});
}

}  // namespace
