// Whether a call's sizes and tables can be walked without leaving them: asked once a call, of
// numbers of rings and pairs of rings and of entries of sparse matrices, never of points.
#pragma once
#include "legendre.h"
#include "pointwise.h"
#include "ring_spectra.h"
#include "shallow_water.h"
#include "sparse.h"
#include "spherule.h"

namespace {

// As rows and widths are 32 bits.
constexpr int64_t MOST = INT32_MAX, WIDEST = 1 << 20;
// Where there are none to be had, OpenMP ends the process.
constexpr int64_t THREADS = 1 << 12;

inline bool within(int64_t low, int64_t x, int64_t high) { return low <= x && x <= high; }

// Whether so many numbers, none of these sizes negative, have places that 64 bits can count
inline bool countable(int64_t a, int64_t b, int64_t c) {
    constexpr int64_t bytes = 2 * sizeof(double);  // of a complex number
    int64_t size;
    return !__builtin_mul_overflow(a, b, &size) && !__builtin_mul_overflow(size, c, &size) &&
           !__builtin_mul_overflow(size, bytes, &size);
}

inline bool valid(const spherule_problem &p) {
    int64_t size;
    const bool sizes = within(0, p.batch, MOST) && within(0, p.heads, MOST) &&
                       within(0, p.queries, MOST) && within(0, p.keys, MOST) &&
                       within(1, p.dim, WIDEST) && within(0, p.value_dim, WIDEST);
    if (!sizes || __builtin_mul_overflow(p.batch * p.heads, p.queries + p.keys, &size) ||
        __builtin_mul_overflow(size, 8 * (p.dim + p.value_dim + 64), &size))
        return false;
    return within(SPHERULE_FLOAT32, p.dtype, SPHERULE_BFLOAT16) && within(1, p.threads, THREADS);
}

// The rings of `points` points, one after the other
inline bool valid(const spherule_rings &rings, int64_t points) {
    int64_t size = 0;
    for (int64_t r = 0; r < rings.rings; r++) {
        if (rings.ringstart[r] != size || !within(1, rings.nphi[r], points - size))
            return false;
        size += rings.nphi[r];
    }
    return rings.rings >= 1 && size == points;
}

inline bool valid_columns(const spherule_arc_table &table) {
    for (int64_t i = 0; i < table.query.nphi[0]; i++)
        if (!within(0, table.column_start[i], table.key.nphi[0]) ||
            !within(0, table.column_count[i], table.key.nphi[0] - table.column_start[i]))
            return false;
    // Columns are those of every row.
    for (int64_t r = 0; r < table.query.rings; r++)
        if (table.query.nphi[r] != table.query.nphi[0])
            return false;
    for (int64_t s = 0; s < table.key.rings; s++)
        if (table.key.nphi[s] != table.key.nphi[0])
            return false;
    return true;
}

inline bool valid(const spherule_arc_table &table, int64_t queries, int64_t keys) {
    if (!valid(table.query, queries) || !valid(table.key, keys) || table.pairs[0] != 0)
        return false;
    // Before any arc is read: there are as many as the last of these says.
    for (int64_t r = 0; r < table.query.rings; r++)
        if (table.pairs[r + 1] < table.pairs[r])
            return false;
    for (int64_t r = 0; r < table.query.rings; r++) {
        const int64_t n = table.pairs[r + 1] - table.pairs[r], nq = table.query.nphi[r];
        if (!within(0, table.order[r], table.query.rings - 1) || n > table.key.rings ||
            !within(0, table.first[r], table.key.rings - n))
            return false;
        for (int64_t p = table.pairs[r]; p < table.pairs[r + 1] && !table.column_start; p++) {
            const int64_t nk = table.key.nphi[table.first[r] + p - table.pairs[r]];
            if (nq * nk >= INT64_C(1) << 33)
                return false;
            const int64_t half = SPHERULE_UNIT * nq * nk;
            if (!within(-half, table.shift[p], half) || !within(-1, table.reach[p], half) ||
                !within(-1, table.inner[p], table.reach[p]))
                return false;
        }
    }
    return !table.column_start || valid_columns(table);
}

inline bool valid(const spherule_pointwise &p) {
    return within(0, p.batch, MOST) && within(0, p.points, MOST) && within(1, p.in, WIDEST) &&
           within(0, p.hidden, WIDEST) && within(1, p.out, WIDEST) &&
           (within(SPHERULE_FLOAT32, p.dtype, SPHERULE_FLOAT64) || p.dtype == SPHERULE_BFLOAT16) &&
           within(1, p.threads, THREADS);
}

// So many channels in all parts of a field; points next to each other, or channels where `rows` are
// taken
inline bool valid(const spherule_channels *f, int64_t parts, int64_t channels, bool rows = false) {
    int64_t sum = 0;
    for (int64_t i = 0; i < parts; sum += f[i++].channels)
        if (!within(1, f[i].channels, WIDEST) || sum > WIDEST ||
            !(f[i].point_stride == 1 || (rows && f[i].channel_stride == 1)))
            return false;
    return sum == channels;
}

inline bool valid(const spherule_pointwise &p, const spherule_channels &x,
                  const spherule_channels &y) {
    return valid(p) && valid(&x, 1, p.in) && valid(&y, 1, p.out);
}

inline bool valid_sizes(const spherule_legendre &s) {
    return within(0, s.fields, MOST) && within(0, s.lmax, WIDEST) && within(0, s.rings, MOST) &&
           within(0, s.pairs, s.rings) && within(0, s.orders, MOST) &&
           countable(s.fields, s.lmax + 1, s.orders) && countable(s.fields, s.rings, s.orders) &&
           within(SPHERULE_FLOAT32, s.dtype, SPHERULE_FLOAT64) && within(1, s.threads, THREADS);
}

inline bool valid(const spherule_legendre &s) {
    constexpr double equator = 1 + 1e-15;  // rounded
    for (int64_t i = 0; i < s.pairs; i++)
        if (!within(-1, s.north[i], s.rings - 1) || !within(-1, s.south[i], s.rings - 1) ||
            !(s.y[i] >= (i ? s.y[i - 1] : 0) && s.y[i] <= equator))
            return false;
    for (int64_t i = 0; i < s.orders; i++)
        if (!within(0, s.order[i], s.lmax))
            return false;
    return true;
}

inline bool valid_sizes(const spherule_ring_spectra &s) {
    return within(0, s.fields, MOST) && within(0, s.rings, MOST) && within(0, s.orders, MOST) &&
           countable(s.fields, s.rings, s.orders) &&
           within(SPHERULE_FLOAT32, s.dtype, SPHERULE_FLOAT64) && within(1, s.threads, THREADS);
}

inline bool valid(const spherule_ring_spectra &s) {
    for (int64_t i = 0; i < s.rings; i++)
        if (!within(1, s.nphi[i], MOST) || !s.half[i] || s.stride[i] < s.nphi[i] / 2 + 1 ||
            !countable(s.fields, s.stride[i], 1))
            return false;
    return true;
}

inline bool valid_sizes(const spherule_sparse &s) {
    return within(0, s.fields, MOST) && within(0, s.rows, MOST) && within(0, s.columns, MOST) &&
           within(0, s.entries, MOST * WIDEST) && countable(s.fields, s.rows, 1) &&
           countable(s.fields, s.columns, 1) && countable(s.columns, 64, 1) &&
           within(SPHERULE_FLOAT32, s.dtype, SPHERULE_FLOAT64) && within(1, s.threads, THREADS);
}

inline bool valid(const spherule_sparse &s) {
    if (s.start[0] != 0 || s.start[s.rows] != s.entries)
        return false;
    for (int64_t r = 0; r < s.rows; r++)
        if (s.start[r + 1] < s.start[r])
            return false;
    for (int64_t e = 0; e < s.entries; e++)
        if (!within(0, s.column[e], s.columns - 1))
            return false;
    return true;
}

inline bool valid_sizes(const spherule_shallow_water &s) {
    return within(1, s.lmax, WIDEST) && within(0, s.states, MOST) && within(1, s.pairs, WIDEST) &&
           within(1, s.quarter, WIDEST) &&
           countable(12 * (s.lmax + 64), s.lmax + 1, s.states + 64) &&
           countable(16 * (s.lmax + 1), s.pairs + 64, s.lmax + 64) &&
           countable(16 * (s.lmax + 1), s.pairs + 64, 64) && countable(32, s.quarter, 64) &&
           within(SPHERULE_FLOAT32, s.dtype, SPHERULE_FLOAT64) && within(1, s.threads, THREADS);
}

}  // namespace
