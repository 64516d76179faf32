// A task of Legendre transforms: its memory, and its way from and to coefficients and ring spectra.
#pragma once
#include "legendre_values.h"

namespace {

typedef Vec<double> V;
constexpr int64_t FIELDS = 8;  // of a task: they share the values
constexpr int64_t ORDERS = 4;  // of a task: neighbors in memory

// A block's sums of one field and order: even, then odd about the equator; real, then imaginary.
struct Parts {
    V part[2][2][VECTORS];
};

// What a task does: some fields and some neighboring columns
struct Task {
    int64_t field, fields, column, columns;
};

// A thread's memory. Coefficients are (field, 2, step, 2): of Q_k in what is even about the
// equator, then in what is odd; real, then imaginary. There is room for whole pieces of steps.
struct Workspace {
    Recurrence recurrence;
    Buffer<double> values, coeffs;
    Buffer<double> rows;  // of all columns of a task: (field, degree, column, 2)
    Buffer<Parts> parts;
    int64_t blocks;
    explicit Workspace(const spherule_legendre &s)
        : recurrence(s.lmax), values(CHUNK * LANES), coeffs(FIELDS * room(s.lmax, 0)),
          rows(FIELDS * (s.lmax + 1) * ORDERS * 2), parts(FIELDS * ORDERS * Blocks::most(s)),
          blocks(Blocks::most(s)) {}
    bool ok() const {
        return recurrence.ok() && values.data && coeffs.data && rows.data && parts.data;
    }
    static int64_t room(int64_t lmax, int64_t m) { return 4 * whole_pieces(steps_of(lmax, m)); }
    double *row(int64_t lmax, int64_t m, int64_t field, int odd) const {
        return coeffs.data + (2 * field + odd) * room(lmax, m) / 2;
    }
    Parts &at(int64_t order, const Block &block, int64_t field) const {
        return parts.data[(order * blocks + block.index) * FIELDS + field];
    }
};

// Real and imaginary parts of one field
template <class T> struct Complex {
    T *data;
    int64_t rows, columns;
    T *at(int64_t field, int64_t row, int64_t column) const {
        return data + ((field * rows + row) * columns + column) * 2;
    }
};

// Coefficients of P_lm to those of Q_k, with its scale
template <class T>
void load_coeffs(const spherule_legendre &s, const Workspace &w, const Task &task, int64_t c,
                 const Complex<const T> &coeffs) {
    const int64_t column = task.column + c, m = s.order[column], steps = steps_of(s.lmax, m);
    const double *a = w.recurrence.a, *scale = w.recurrence.scale;
    const T zero[2] = {0, 0};
    for (int64_t i = 0; i < task.fields; i++) {
        double *to[] = {w.row(s.lmax, m, i, 0), w.row(s.lmax, m, i, 1)};
        const T *even = coeffs.at(task.field + i, m, column);
        for (int64_t k = 0; k < steps; k++) {
            const int64_t l = m + 2 * k;
            const T *odd = l + 1 <= s.lmax ? coeffs.at(task.field + i, l + 1, column) : zero;
            const T *above = l + 2 <= s.lmax ? coeffs.at(task.field + i, l + 2, column) : zero;
            const double own = scale[k] * a[2 * k + 1], next = scale[k] * a[2 * k + 2];
            UNROLL for (int j = 0; j < 2; j++) {
                to[0][2 * k + j] = own * double(even[j]) + next * double(above[j]);
                to[1][2 * k + j] = scale[k] * double(odd[j]);
            }
            even = above;
        }
    }
}

// The other way, to the rows of a task
template <class T>
void keep_coeffs(const spherule_legendre &s, const Workspace &w, const Task &task, int64_t c) {
    const int64_t m = s.order[task.column + c], steps = steps_of(s.lmax, m);
    const Complex<T> rows{(T *)w.rows.data, s.lmax + 1, ORDERS};
    const double *a = w.recurrence.a, zero[2] = {0, 0};
    for (int64_t i = 0; i < task.fields; i++) {
        const double *from = w.row(s.lmax, m, i, 0), *odd = w.row(s.lmax, m, i, 1), *below = zero;
        for (int64_t l = 0; l < m; l++)
            UNROLL for (int j = 0; j < 2; j++) rows.at(i, l, c)[j] = T(0);
        for (int64_t k = 0; k < steps; k++, from += 2, odd += 2) {
            const int64_t l = m + 2 * k;
            UNROLL for (int j = 0; j < 2; j++) rows.at(i, l, c)[j] =
                T(a[2 * k + 1] * from[j] + a[2 * k] * below[j]);
            for (int j = 0; j < 2 && l < s.lmax; j++)
                rows.at(i, l + 1, c)[j] = T(odd[j]);
            below = from;
        }
    }
}

// All columns of a row at once, which are neighbors: rows are far from each other in memory, and
// evict each other from the first cache.
template <class T>
void store_coeffs(const spherule_legendre &s, const Workspace &w, const Task &task,
                  const Complex<T> &coeffs) {
    const Complex<const T> rows{(const T *)w.rows.data, s.lmax + 1, ORDERS};
    for (int64_t i = 0; i < task.fields; i++)
        for (int64_t l = 0; l <= s.lmax; l++)
            memcpy(coeffs.at(task.field + i, l, task.column), rows.at(i, l, 0),
                   size_t(2 * task.columns) * sizeof(T));
}

// The rings of a task, from its sums: all columns of a ring at once, which are neighbors
template <class T>
void store_rings(const spherule_legendre &s, const Blocks &blocks, const Workspace &w,
                 const Task &task, const Complex<T> &spectra) {
    for (int64_t i = 0; i < task.fields; i++)
        for (const Block &block : blocks) {
            double half[2][ORDERS][2][LANES], x[LANES];
            for (int64_t lane = 0; lane < LANES; lane++)
                x[lane] = lane < block.pairs ? 1 - s.y[block.first + lane] : 0.0;
            for (int64_t c = 0; c < task.columns; c++)
                for (int j = 0; j < 2; j++)
                    UNROLL for (int v = 0; v < VECTORS; v++) {
                        const auto &part = w.at(c, block, i).part;
                        const V odd = part[1][j][v] * load(x + v * W<double>);
                        store(half[0][c][j] + v * W<double>, part[0][j][v] + odd);
                        store(half[1][c][j] + v * W<double>, part[0][j][v] - odd);
                    }
            for (int side = 0; side < 2; side++)
                for (int64_t lane = 0; lane < block.pairs; lane++) {
                    const int64_t ring = (side ? s.south : s.north)[block.first + lane];
                    T *to = ring < 0 ? nullptr : spectra.at(task.field + i, ring, task.column);
                    for (int64_t c = 0; c < task.columns && to; c++)
                        for (int j = 0; j < 2; j++)
                            to[2 * c + j] = T(half[side][c][j][lane]);
                }
        }
}

// The other way
template <class T>
void load_rings(const spherule_legendre &s, const Blocks &blocks, const Workspace &w,
                const Task &task, const Complex<const T> &spectra) {
    const T zeros[2 * ORDERS] = {};
    const auto at = [&](int64_t field, int64_t ring) {
        return ring < 0 ? zeros : spectra.at(field, ring, task.column);
    };
    for (int64_t i = 0; i < task.fields; i++)
        for (const Block &block : blocks)
            for (int64_t lane = 0; lane < LANES; lane++) {
                const bool there = lane < block.pairs;
                const int64_t pair = block.first + lane;
                const T *north = at(task.field + i, there ? s.north[pair] : -1),
                        *south = at(task.field + i, there ? s.south[pair] : -1);
                const double x = there ? 1 - s.y[pair] : 0.0;
                for (int64_t c = 0; c < task.columns; c++)
                    for (int j = 0; j < 2; j++) {
                        const double a = north[2 * c + j], b = south[2 * c + j];
                        auto &part = w.at(c, block, i).part;
                        ((double *)part[0][j])[lane] = a + b;
                        ((double *)part[1][j])[lane] = (a - b) * x;
                    }
            }
}

}  // namespace
