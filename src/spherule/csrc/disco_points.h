// The walk for any rings: lanes are fields, and the entries of a point are a list of source rows.
#pragma once
#include "disco.h"
#include "scratch.h"
#include "simd.h"

namespace {

template <class T> struct Points {
    static constexpr int64_t TILE =
        16;  // target points of a task: what is written of a field is a cache line
    static constexpr int64_t MOST = 8 * W<T>;

    const spherule_points &s;
    const int64_t fields, lanes, blocks, source_rows, target_parts;
    Points(const spherule_points &s, const spherule_fields &p)
        : s(s), fields(p.batch * p.channels),
          lanes(min(MOST, max(int64_t(1), (fields + W<T> - 1) / W<T>) * W<T>)),
          blocks((fields + lanes - 1) / lanes), source_rows(s.sources * (s.spread ? 1 : s.hats)),
          target_parts(s.spread ? s.hats : 1) {}

    struct Entry {
        int64_t row;
        int32_t hat;
        T value;
    };
    struct Tile {
        int64_t ring, begin, end;
    };

    // x (fields, source rows) to [block][source row][lane], lanes past the last field 0
    void pack(const T *x, T *packed) const {
#pragma omp for schedule(static)
        for (int64_t n = 0; n < blocks * ((source_rows + TILE - 1) / TILE); n++) {
            const int64_t block = n % blocks, j = n / blocks * TILE,
                          end = min(j + TILE, source_rows);
            T *rows = packed + block * source_rows * lanes;
            for (int64_t l = 0; l < lanes; l++) {
                const int64_t f = block * lanes + l;
                for (int64_t i = j; i < end; i++)
                    rows[i * lanes + l] = f < fields ? x[f * source_rows + i] : T(0);
            }
        }
    }

    // The entries of target point i of ring r.
    int64_t list(int64_t r, int64_t i, Entry *entries) const {
        int64_t n = 0;
        for (int64_t p = s.pairs[r]; p < s.pairs[r + 1]; p++) {
            const int64_t row = s.row[p] + i % s.phases[p], move = i / s.phases[p] * s.step[p];
            for (int64_t e = s.start[row]; e < s.start[row + 1]; e++) {
                int64_t j = s.column[e] + move;
                if (j >= s.source_nphi[p])
                    j -= s.source_nphi[p];
                j += s.source_start[p] + (s.spread ? 0 : s.hat[e] * s.sources);
                entries[n++] = {j * lanes, s.hat[e], ((const T *)s.value)[e]};
            }
        }
        return n;
    }

    template <int N>
    INLINE void gather(const Entry *entries, int64_t n, const T *rows, T *sums) const {
        Vec<T> sum[N] = {};
        for (int64_t e = 0; e < n; e++) {
            const Vec<T> v = fill<T>(entries[e].value);
            UNROLL for (int i = 0; i < N; i++) sum[i] += v * load(rows + entries[e].row + i * W<T>);
        }
        UNROLL for (int i = 0; i < N; i++) store(sums + i * W<T>, sum[i]);
    }

    void spread(const Entry *entries, int64_t n, const T *rows, T *sums) const {
        memset(sums, 0, size_t(s.hats * lanes) * sizeof(T));
        for (int64_t e = 0; e < n; e++) {
            const Vec<T> v = fill<T>(entries[e].value);
            const T *source = rows + entries[e].row;
            T *sum = sums + entries[e].hat * lanes;
            for (int64_t l = 0; l < lanes; l += W<T>)
                store(sum + l, load(sum + l) + v * load(source + l));
        }
    }

    // sums: [point of the tile][hat][lane]
    void walk(const Tile &tile, int64_t block, const T *packed, Entry *entries, T *sums,
              T *y) const {
        const T *rows = packed + block * source_rows * lanes;
        const int64_t width = target_parts * lanes;
        for (int64_t i = tile.begin; i < tile.end; i++) {
            const int64_t n = list(tile.ring, i, entries);
            T *sum = sums + (i - tile.begin) * width;
            if (s.spread) {
                spread(entries, n, rows, sum);
            } else {
                int64_t l = 0;
                for (; l + 8 * W<T> <= lanes; l += 8 * W<T>)
                    gather<8>(entries, n, rows + l, sum + l);
                for (; l + 4 * W<T> <= lanes; l += 4 * W<T>)
                    gather<4>(entries, n, rows + l, sum + l);
                for (; l < lanes; l += W<T>)
                    gather<1>(entries, n, rows + l, sum + l);
            }
        }
        const int64_t first = s.ringstart[tile.ring] + tile.begin, count = tile.end - tile.begin;
        for (int64_t l = 0; l < min(lanes, fields - block * lanes); l++)
            for (int64_t k = 0; k < target_parts; k++) {
                T *target = y + ((block * lanes + l) * target_parts + k) * s.targets + first;
                for (int64_t i = 0; i < count; i++)
                    target[i] = sums[i * width + k * lanes + l];
            }
    }
};

template <class T>
int points(const spherule_points &s, const spherule_fields &p, const T *x, T *y) {
    typedef Points<T> P;
    const P w(s, p);
    int64_t tiles = 0;
    for (int64_t r = 0; r < s.rings; r++)
        tiles += (s.nphi[r] + P::TILE - 1) / P::TILE;
    Buffer<typename P::Tile> tile(tiles);
    Buffer<T> packed(w.blocks * w.source_rows * w.lanes);
    if (!tile.data || !packed.data)
        return SPHERULE_NO_MEMORY;
    for (int64_t r = 0, n = 0; r < s.rings; r++)
        for (int64_t i = 0; i < s.nphi[r]; i += P::TILE)
            tile.data[n++] = {r, i, min(i + P::TILE, s.nphi[r])};
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<typename P::Entry> entries(s.longest);
        Buffer<T> sums(P::TILE * w.target_parts * w.lanes);
        failed = !entries.data || !sums.data;
        w.pack(x, packed.data);
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < tiles * w.blocks; n++)
            if (!failed)
                w.walk(tile.data[n % tiles], n / tiles, packed.data, entries.data, sums.data, y);
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

}  // namespace
