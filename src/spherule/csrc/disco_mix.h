// Products of a small matrix with long fields, and their gradient: y = weight x over the channels
// of each point. Libraries of dense products pack for square matrices; these have few rows and a
// hundred times as many columns, and are faster when blocks of points are copied once.
#pragma once
#include "disco.h"
#include "product.h"
#include "scratch.h"

namespace {

template <class T> struct Mix {
    static constexpr int64_t SIZE = Tile<T>::SIZE, POINTS = 128;  // a multiple of SIZE

    const spherule_mix &s;

    // A block of points of x (in, points) as [tile][in][SIZE], 0 past the end
    void pack(const T *x, int64_t count, T *packed) const {
        for (int64_t c = 0; c < s.in; c++, x += s.points)
            for (int64_t t = 0; t < POINTS / SIZE; t++) {
                T *to = packed + (t * s.in + c) * SIZE;
                const int64_t n = count - t * SIZE;
                if (n >= SIZE)
                    memcpy(to, x + t * SIZE, SIZE * sizeof(T));
                else
                    for (int64_t i = 0; i < SIZE; i++)
                        to[i] = i < n ? x[t * SIZE + i] : T(0);
            }
    }

    void block(const T *weight, const T *packed, int64_t count, T *y) const {
        for (int64_t o = 0; o < s.out; o += Tile<T>::ROWS)
            for (int64_t t = 0; t < count; t += SIZE)
                Tile<T>::template any<false>(s.out - o, {weight + o * s.in, s.in},
                                             packed + t * s.in, s.in, count - t, s.points,
                                             y + o * s.points + t);
    }
};

template <class T>
int mix(const spherule_mix &s, const spherule_fields &p, const T *weight, const T *x, T *y) {
    typedef Mix<T> M;
    const M w{s};
    const int64_t groups = p.channels, blocks = (s.points + M::POINTS - 1) / M::POINTS,
                  size = s.out * s.in;
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<T> packed(s.in * M::POINTS);
        failed = !packed.data;
#pragma omp for schedule(static)
        for (int64_t n = 0; n < p.batch * groups * blocks; n++) {
            if (failed)
                continue;
            const int64_t field = n / blocks, first = n % blocks * M::POINTS,
                          count = min(M::POINTS, s.points - first);
            w.pack(x + field * s.in * s.points + first, count, packed.data);
            w.block(weight + field % groups * size, packed.data, count,
                    y + field * s.out * s.points + first);
        }
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

// dweight[o][c] = sum over points of dy[o] x[c]. Points come in runs, which do not depend on the
// number of threads; their shares are added in order.
template <class T> struct MixWeight {
    static constexpr int64_t SIZE = Tile<T>::SIZE, POINTS = 256, RUNS = 16;
    static constexpr int64_t STEP = POINTS + 16;  // rows must not share the lines of a cache

    const spherule_mix &s;

    // Some rows of a field, a block of points each, to rows STEP apart
    void copy(const T *x, int64_t rows, int64_t count, T *to) const {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * STEP, x + i * s.points, size_t(count) * sizeof(T));
    }

    // A block of points of x (in, points) as [tile][point][SIZE of the channels]
    void pack(const T *x, int64_t count, T *packed) const {
        T rows[W<T> * STEP] = {};
        for (int64_t c = 0; c < s.in; c += W<T>) {
            T *to = packed + c / SIZE * count * SIZE + c % SIZE;
            copy(x + c * s.points, min(int64_t(W<T>), s.in - c), count, rows);
            for (int64_t q = 0; q < count; q += W<T>) {
                Vec<T> v[W<T>];
                UNROLL for (int i = 0; i < W<T>; i++) v[i] = load(rows + i * STEP + q);
                transpose<T>(v);
                if (q + W<T> <= count) {
                    UNROLL for (int i = 0; i < W<T>; i++) store(to + (q + i) * SIZE, v[i]);
                } else {
                    for (int64_t i = 0; i < count - q; i++)
                        store(to + (q + i) * SIZE, v[i]);
                }
            }
        }
    }

    void block(const T *rows, const T *packed, int64_t count, T *share) const {
        for (int64_t o = 0; o < s.out; o += Tile<T>::ROWS)
            for (int64_t c = 0; c < s.in; c += SIZE)
                Tile<T>::template any<true>(s.out - o, {rows + o * STEP, STEP}, packed + c * count,
                                            count, s.in - c, s.in, share + o * s.in + c);
    }
};

template <class T>
int mix_weight(const spherule_mix &s, const spherule_fields &p, const T *dy, const T *x,
               T *dweight) {
    typedef MixWeight<T> M;
    const M w{s};
    const int64_t groups = p.channels, size = s.out * s.in;
    const int64_t blocks = (s.points + M::POINTS - 1) / M::POINTS, total = p.batch * blocks;
    const int64_t runs = min(M::RUNS, total);
    Buffer<T> shares(runs * groups * size);
    if (!shares.data)
        return SPHERULE_NO_MEMORY;
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<T> rows(s.out * M::STEP), packed((s.in + M::SIZE) * M::POINTS);
        failed = !rows.data || !packed.data;
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < groups * runs; n++) {
            if (failed)
                continue;
            const int64_t g = n % groups, run = n / groups;
            T *share = shares.data + n * size;
            memset(share, 0, size_t(size) * sizeof(T));
            for (int64_t b = total * run / runs; b < total * (run + 1) / runs; b++) {
                const int64_t field = b / blocks * groups + g, first = b % blocks * M::POINTS,
                              count = min(M::POINTS, s.points - first);
                w.copy(dy + field * s.out * s.points + first, s.out, count, rows.data);
                w.pack(x + field * s.in * s.points + first, count, packed.data);
                w.block(rows.data, packed.data, count, share);
            }
        }
    }
    if (failed)
        return SPHERULE_NO_MEMORY;
    memset(dweight, 0, size_t(groups * size) * sizeof(T));
    for (int64_t run = 0; run < runs; run++)
        for (int64_t i = 0; i < groups * size; i++)
            dweight[i] += shares.data[run * groups * size + i];
    return SPHERULE_OK;
}

}  // namespace
