// The walk where all rings shift into each other: lanes are longitudes, and an entry is one shifted
// load and one multiply-add for each vector of them.
//
// A task is one field and one band of target rings. It copies the sources that the band needs with
// their wrap-around, once, and then goes over them in blocks of longitudes, so that they stay in
// the first cache.
#pragma once
#include "disco.h"
#include "scratch.h"
#include "simd.h"

namespace {

template <class T> struct Shifts {
    const spherule_shifts &s;

    int64_t first(int64_t band) const { return s.band_source[2 * band]; }
    int64_t extent() const {
        int64_t most = 0;
        for (int64_t b = 0; b < s.bands; b++)
            most = max(most, s.base[s.band_source[2 * b + 1] + 1] - s.base[first(b)]);
        return most;
    }
    int64_t entries() const {
        int64_t most = 0;
        for (int64_t b = 0; b < s.bands; b++)
            most = max(most, s.start[s.band_target[b + 1]] - s.start[s.band_target[b]]);
        return most;
    }

    // The band's sources of one field x. The result is what places count from.
    const T *copy(int64_t band, const T *x, T *memory) const {
        const int64_t n = s.period, origin = s.base[first(band)];
        for (int64_t m = first(band); m <= s.band_source[2 * band + 1]; m++) {
            T *row = memory + s.base[m] - origin, *core = row + s.low[m];
            const T *source = x + s.source_origin[m];
            const int64_t stride = s.source_stride, size = s.base[m + 1] - s.base[m];
            if (stride == 1)
                memcpy(core, source, size_t(n) * sizeof(T));
            else if (stride == 2)
                for (int64_t q = 0; q < n; q++)
                    core[q] = source[2 * q];
            else
                for (int64_t q = 0; q < n; q++)
                    core[q] = source[q * stride];
            for (int64_t q = 0; q < s.low[m]; q++)
                row[q] = row[q + n];
            // What lies past the last shift is read by the lanes past the ring's end, and dropped.
            for (int64_t q = s.low[m] + n; q < size; q++)
                row[q] = row[q - n];
        }
        return memory - origin;
    }

    // Values of an entry are STEP apart: those of other channels lie between.
    template <int N, int STEP>
    INLINE void block(int64_t band, const T *padded, const T *value, int64_t q, int64_t count,
                      T *y) const {
        const int64_t first_value = s.start[s.band_target[band]];
        for (int64_t t = s.band_target[band]; t < s.band_target[band + 1]; t++) {
            Vec<T> sum[N] = {};
            for (int64_t e = s.start[t]; e < s.start[t + 1]; e++) {
                const Vec<T> v = fill<T>(value[(e - first_value) * STEP]);
                const T *source = padded + s.place[e] + q;
                UNROLL for (int i = 0; i < N; i++) sum[i] += v * load(source + i * W<T>);
            }
            T *target = y + s.target_origin[t] + q * s.target_stride;
            if (s.target_stride == 1 && count == N * W<T>) {
                UNROLL for (int i = 0; i < N; i++) store(target + i * W<T>, sum[i]);
            } else {
                T lanes[N * W<T>];
                UNROLL for (int i = 0; i < N; i++) store(lanes + i * W<T>, sum[i]);
                for (int64_t i = 0; i < count; i++)
                    target[i * s.target_stride] = lanes[i];
            }
        }
    }

    // Values count from the band's first entry.
    template <int STEP> void walk(int64_t band, const T *padded, const T *value, T *y) const {
        int64_t q = 0, left = s.period;
        for (; left >= 8 * W<T>; q += 8 * W<T>, left -= 8 * W<T>)
            block<8, STEP>(band, padded, value, q, 8 * W<T>, y);
        for (; left >= 4 * W<T>; q += 4 * W<T>, left -= 4 * W<T>)
            block<4, STEP>(band, padded, value, q, 4 * W<T>, y);
        for (; left > 0; q += W<T>, left -= W<T>)
            block<1, STEP>(band, padded, value, q, min(left, int64_t(W<T>)), y);
    }

    // The values [entry][lane] of a band's entries for the weights [hat][lane] of a vector of
    // channels.
    void merge(int64_t band, const T *weight, T *merged) const {
        const int64_t begin = s.start[s.band_target[band]], end = s.start[s.band_target[band + 1]];
        for (int64_t e = begin; e < end; e++, merged += W<T>) {
            const T *value = (const T *)s.value + e * SPHERULE_PARTS;
            const int64_t *hat = s.hat + e * SPHERULE_PARTS;
            Vec<T> sum = {};
            UNROLL for (int i = 0; i < SPHERULE_PARTS; i++) sum +=
                load(weight + hat[i] * W<T>) * value[i];
            store(merged, sum);
        }
    }

    // The transpose of that: from what belongs to entries to what belongs to hats. Two accumulators
    // take turns, since neighboring entries mostly lie under the same hats and would wait for each
    // other.
    static constexpr int TURNS = 2;
    void split(int64_t band, const T *sums, T *turn) const {
        const int64_t begin = s.start[s.band_target[band]], end = s.start[s.band_target[band + 1]];
        const int64_t size = s.hats * W<T>;
        memset(turn, 0, size_t(TURNS * size) * sizeof(T));
        for (int64_t e = begin; e < end; e++, sums += W<T>) {
            const T *value = (const T *)s.value + e * SPHERULE_PARTS;
            const int64_t *hat = s.hat + e * SPHERULE_PARTS;
            T *mine = turn + (e - begin) % TURNS * size;
            const Vec<T> sum = load(sums);
            UNROLL for (int i = 0; i < SPHERULE_PARTS; i++) {
                T *to = mine + hat[i] * W<T>;
                store(to, load(to) + sum * value[i]);
            }
        }
        for (int64_t i = 0; i < size; i++)
            for (int t = 1; t < TURNS; t++)
                turn[i] += turn[t * size + i];
    }

    // dots += sum over q of target * shifted source, for N entries of a row, a vector apart
    template <int N>
    INLINE void dots(const T *padded, const T *target, const int64_t *place, T *dots) const {
        Vec<T> sum[8] = {};
        int64_t q = 0;
        for (; q + W<T> <= s.period; q += W<T>) {
            const Vec<T> g = load(target + q);
            UNROLL for (int i = 0; i < N; i++) sum[i] += g * load(padded + place[i] + q);
        }
        T total[8];
        lane_sums<8>(sum, total);
        for (; q < s.period; q++)
            for (int i = 0; i < N; i++)
                total[i] += target[q] * padded[place[i] + q];
        for (int i = 0; i < N; i++)
            dots[i * W<T>] += total[i];
    }

    void correlate(int64_t band, const T *padded, const T *dy, T *row, T *sums) const {
        const int64_t begin = s.start[s.band_target[band]];
        for (int64_t t = s.band_target[band]; t < s.band_target[band + 1]; t++) {
            for (int64_t q = 0; q < s.period; q++)
                row[q] = dy[s.target_origin[t] + q * s.target_stride];
            int64_t e = s.start[t];
            for (; e + 8 <= s.start[t + 1]; e += 8)
                dots<8>(padded, row, s.place + e, sums + (e - begin) * W<T>);
            for (; e < s.start[t + 1]; e++)
                dots<1>(padded, row, s.place + e, sums + (e - begin) * W<T>);
        }
    }
};

// f(field or channel, band) for all of them, heavy bands first, by the threads of a team
template <class F> void for_bands(const spherule_shifts &s, int64_t fields, const F &f) {
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < fields * s.bands; n++)
        f(n % fields, s.order[n / fields]);
}

template <class T>
int shifts(const spherule_shifts &s, const spherule_fields &p, const T *x, T *y) {
    const Shifts<T> w{s};
    const int64_t extent = w.extent();
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<T> memory(extent);
        failed = !memory.data;
        for_bands(s, p.batch * p.channels, [&](int64_t n, int64_t band) {
            if (failed)
                return;
            const T *padded = w.copy(band, x + n * s.source_size, memory.data);
            w.template walk<1>(band, padded, (const T *)s.value + s.start[s.band_target[band]],
                               y + n * s.target_size);
        });
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

// Channels of a task of a depthwise convolution: their values of an entry are a vector.
template <class T> int64_t vectors(const spherule_fields &p) {
    return (p.channels + W<T> - 1) / W<T>;
}

template <class T>
int depthwise(const spherule_shifts &s, const spherule_fields &p, const T *x, const T *weight,
              T *y) {
    const Shifts<T> w{s};
    const int64_t extent = w.extent(), entries = w.entries();
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<T> memory(extent), merged(entries * W<T>), wide(s.hats * W<T>);
        failed = !memory.data || !merged.data || !wide.data;
        for_bands(s, vectors<T>(p), [&](int64_t v, int64_t band) {
            if (failed)
                return;
            const int64_t first = v * W<T>, lanes = min(int64_t(W<T>), p.channels - first);
            for (int64_t h = 0; h < s.hats; h++)
                for (int64_t l = 0; l < W<T>; l++)
                    wide.data[h * W<T> + l] = l < lanes ? weight[(first + l) * s.hats + h] : T(0);
            w.merge(band, wide.data, merged.data);
            for (int64_t b = 0; b < p.batch; b++)
                for (int64_t l = 0; l < lanes; l++) {
                    const int64_t n = b * p.channels + first + l;
                    const T *padded = w.copy(band, x + n * s.source_size, memory.data);
                    w.template walk<W<T>>(band, padded, merged.data + l, y + n * s.target_size);
                }
        });
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int correlate(const spherule_shifts &s, const spherule_fields &p, const T *x, const T *dy,
              T *dweight) {
    const Shifts<T> w{s};
    const int64_t extent = w.extent(), entries = w.entries(), parts = p.channels * s.hats;
    // Each band's share, added in the order of bands whichever thread made it.
    Buffer<T> shares(s.bands * parts);
    int failed = !shares.data;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Buffer<T> memory(extent), sums(entries * W<T>), row(s.period),
            turn(Shifts<T>::TURNS * s.hats * W<T>);
        failed = !shares.data || !memory.data || !sums.data || !row.data || !turn.data;
        for_bands(s, vectors<T>(p), [&](int64_t v, int64_t band) {
            if (failed)
                return;
            const int64_t first = v * W<T>, lanes = min(int64_t(W<T>), p.channels - first);
            const int64_t begin = s.start[s.band_target[band]],
                          end = s.start[s.band_target[band + 1]];
            memset(sums.data, 0, size_t((end - begin) * W<T>) * sizeof(T));
            for (int64_t b = 0; b < p.batch; b++)
                for (int64_t l = 0; l < lanes; l++) {
                    const int64_t n = b * p.channels + first + l;
                    const T *padded = w.copy(band, x + n * s.source_size, memory.data);
                    w.correlate(band, padded, dy + n * s.target_size, row.data, sums.data + l);
                }
            w.split(band, sums.data, turn.data);
            for (int64_t l = 0; l < lanes; l++)
                for (int64_t h = 0; h < s.hats; h++)
                    shares.data[band * parts + (first + l) * s.hats + h] = turn.data[h * W<T> + l];
        });
    }
    if (failed)
        return SPHERULE_NO_MEMORY;
    for (int64_t i = 0; i < parts; i++) {
        T sum = 0;
        for (int64_t band = 0; band < s.bands; band++)
            sum += shares.data[band * parts + i];
        dweight[i] = sum;
    }
    return SPHERULE_OK;
}

}  // namespace
