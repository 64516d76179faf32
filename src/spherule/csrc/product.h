// The innermost loop of products over channels.
#pragma once
#include "simd.h"

namespace {

// Sums of ROWS x SIZE numbers, which fill the registers.
template <class T> struct Tile {
    static constexpr int ROWS = 6, COLS = 2;
    static constexpr int64_t SIZE = COLS * W<T>;

    struct Rows {
        const T *a;
        int64_t row;               // stride between rows
        const T *start = nullptr;  // what the sum of each row starts with, if not 0
        // A row may lie in panels of so many numbers each, so far apart.
        int64_t panel = INT64_MAX, apart = 0;
    };

    // to (R, count) of SIZE columns = or += sum over n of a[R][n] b[n][SIZE], b's rows so far apart
    template <int R, bool ADD>
    static INLINE void rows(Rows r, const T *b, int64_t n, int64_t count, int64_t stride, T *to,
                            int64_t step = SIZE) {
        Vec<T> sum[R][COLS] = {};
        if (r.start)
            UNROLL for (int i = 0; i < R; i++) UNROLL for (int j = 0; j < COLS; j++) sum[i][j] =
                fill<T>(r.start[i]);
        for (; n > 0; n -= r.panel, r.a += r.apart) {
            const T *a = r.a;
            for (const T *end = a + min(n, r.panel); a < end; a++, b += step) {
                Vec<T> v[COLS];
                UNROLL for (int j = 0; j < COLS; j++) v[j] = load(b + j * W<T>);
                UNROLL for (int i = 0; i < R; i++) {
                    const Vec<T> w = fill<T>(a[i * r.row]);
                    UNROLL for (int j = 0; j < COLS; j++) sum[i][j] += w * v[j];
                }
            }
        }
        UNROLL for (int i = 0; i < R; i++, to += stride) {
            if (count >= SIZE) {
                UNROLL for (int j = 0; j < COLS; j++)
                    store(to + j * W<T>, ADD ? load(to + j * W<T>) + sum[i][j] : sum[i][j]);
            } else {
                T lanes[SIZE];
                UNROLL for (int j = 0; j < COLS; j++) store(lanes + j * W<T>, sum[i][j]);
                for (int64_t j = 0; j < count; j++)
                    to[j] = ADD ? to[j] + lanes[j] : lanes[j];
            }
        }
    }

    template <bool ADD>
    static void any(int64_t left, Rows a, const T *b, int64_t n, int64_t count, int64_t stride,
                    T *to, int64_t step = SIZE) {
        switch (min(int64_t(ROWS), left)) {
        case 6:
            return rows<6, ADD>(a, b, n, count, stride, to, step);
        case 5:
            return rows<5, ADD>(a, b, n, count, stride, to, step);
        case 4:
            return rows<4, ADD>(a, b, n, count, stride, to, step);
        case 3:
            return rows<3, ADD>(a, b, n, count, stride, to, step);
        case 2:
            return rows<2, ADD>(a, b, n, count, stride, to, step);
        default:
            return rows<1, ADD>(a, b, n, count, stride, to, step);
        }
    }
};

}  // namespace
