// The same of DISCO: asked once a call, of rows and their entries, which many points and all fields
// share.
#pragma once
#include "disco.h"
#include "valid.h"

namespace {

// Values past the end of a copied row, for the lanes past the end of its ring.
constexpr int64_t SLACK = 16, FARTHEST = INT64_C(1) << 48;

inline bool valid(const spherule_fields &f) {
    return within(0, f.batch, MOST) && within(0, f.channels, MOST) &&
           within(SPHERULE_FLOAT32, f.dtype, SPHERULE_FLOAT64) && within(1, f.threads, THREADS);
}

// Whether there are so many bytes at all
inline bool fits(int64_t fields, int64_t values) {
    int64_t size;
    return !__builtin_mul_overflow(fields, values, &size) && within(0, size, FARTHEST);
}

inline bool valid(const spherule_mix &m) {
    return within(1, m.in, WIDEST) && within(0, m.out, WIDEST) && within(1, m.points, MOST);
}

inline bool ascends(const int64_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (x[i + 1] < x[i])
            return false;
    return x[0] == 0 && x[n] <= FARTHEST;
}

template <class I> bool all_within(int64_t low, const I *x, int64_t n, int64_t high) {
    bool good = true;
    for (int64_t i = 0; i < n; i++)
        good &= within(low, x[i], high);
    return good;
}

// Rows of a field, a row of `period` points for each origin
inline bool valid_rows(const int64_t *origin, int64_t period, int64_t stride, int64_t size) {
    const int64_t last = (period - 1) * stride;
    return within(1, stride, MOST) && within(0, size, FARTHEST) && size % period == 0 &&
           all_within(0, origin, size / period, size - 1 - last);
}

inline bool valid(const spherule_shifts &s) {
    const int64_t n = s.period;
    if (!within(1, n, MOST) || !within(1, s.hats, WIDEST) || !within(1, s.bands, MOST) ||
        !valid_rows(s.target_origin, n, s.target_stride, s.target_size) ||
        !valid_rows(s.source_origin, n, s.source_stride, s.source_size))
        return false;
    const int64_t targets = s.target_size / n, sources = s.source_size / n;
    if (!ascends(s.band_target, s.bands) || s.band_target[s.bands] != targets ||
        !all_within(0, s.order, s.bands, s.bands - 1) || !ascends(s.base, sources) ||
        !ascends(s.start, targets))
        return false;
    // A row wraps around once at most on either side: more would ask for any amount of memory.
    for (int64_t m = 0; m < sources; m++) {
        const int64_t wrapped = s.base[m + 1] - s.base[m] - n;
        if (!within(0, s.low[m], n) || !within(s.low[m], wrapped, s.low[m] + n + SLACK))
            return false;
    }
    for (int64_t b = 0; b < s.bands; b++) {
        const int64_t first = s.band_source[2 * b], last = s.band_source[2 * b + 1];
        const int64_t begin = s.start[s.band_target[b]], end = s.start[s.band_target[b + 1]];
        if (!within(0, first, sources) || !within(first - 1, last, sources - 1) ||
            !all_within(s.base[first], s.place + begin, end - begin, s.base[last + 1] - n - SLACK))
            return false;
    }
    return !s.hat || all_within(0, s.hat, s.start[targets] * SPHERULE_PARTS, s.hats - 1);
}

// A ring's entries: as many as `longest` at most for a point
inline bool valid_ring(const spherule_points &s, int64_t r) {
    int64_t most = 0;
    for (int64_t p = s.pairs[r]; p < s.pairs[r + 1]; p++) {
        const int64_t phases = s.phases[p];
        if (!within(1, phases, s.nphi[r]) || s.nphi[r] % phases || s.source_start[p] < 0 ||
            !within(1, s.source_nphi[p], s.sources - s.source_start[p]) ||
            !within(0, s.step[p], MOST) || s.nphi[r] / phases * s.step[p] != s.source_nphi[p])
            return false;
        int64_t longest = 0;
        for (int64_t row = s.row[p]; row < s.row[p] + phases; row++) {
            const int64_t begin = s.start[row], n = s.start[row + 1] - begin;
            longest = n > longest ? n : longest;
            if (!all_within(0, s.column + begin, n, s.source_nphi[p] - 1) ||
                !all_within(0, s.hat + begin, n, s.hats - 1))
                return false;
        }
        most += longest;
    }
    return most <= s.longest;
}

inline bool valid(const spherule_points &s) {
    const spherule_rings rings = {s.rings, nullptr, s.nphi, s.ringstart};
    if (!within(1, s.hats, WIDEST) || !within(0, s.longest, MOST) || !within(0, s.sources, MOST) ||
        !within(0, s.targets, MOST) || !within(0, s.spread, 1) || !valid(rings, s.targets) ||
        !ascends(s.pairs, s.rings))
        return false;
    // Before any entry is read: there are as many rows as the phases say, one pair after the other.
    int64_t rows = 0;
    for (int64_t p = 0; p < s.pairs[s.rings]; p++) {
        if (s.row[p] != rows || !within(1, s.phases[p], MOST))
            return false;
        rows += s.phases[p];
    }
    if (!ascends(s.start, rows))
        return false;
    for (int64_t r = 0; r < s.rings; r++)
        if (!valid_ring(s, r))
            return false;
    return true;
}

// Values of a field, or of what is made for each channel
inline int64_t size(const spherule_shifts &s) {
    return s.source_size + s.target_size + s.bands * s.hats;
}
inline int64_t size(const spherule_points &s) { return (s.sources + s.targets) * s.hats; }
inline int64_t size(const spherule_mix &m) { return (m.in + m.out) * (m.points + m.in); }

template <class Table> int checked(const Table &table, const spherule_fields &f) {
    if (!valid(f))
        return SPHERULE_BAD_SIZES;
    if (!valid(table))
        return SPHERULE_BAD_TABLE;
    return fits(f.batch * f.channels, size(table)) && fits(f.channels, size(table))
               ? SPHERULE_OK
               : SPHERULE_BAD_SIZES;
}

}  // namespace
