// Sparse matrices, a vector of fields at a time. Compiled once per instruction set, under the name
// SPHERULE_ISA.
#include "sparse.h"
#include "isa.h"
#include "scratch.h"

namespace {

// A square of W fields and W points, of which so many are there, to its transpose and back
template <class T>
INLINE void load_square(const T *x, int64_t apart, int fields, int n, Vec<T> *v) {
    T some[W<T>] = {};
    UNROLL for (int f = 0; f < W<T>; f++) {
        if (n == W<T>) {
            v[f] = f < fields ? load(x + f * apart) : Vec<T>{};
        } else {
            for (int i = 0; i < n; i++)
                some[i] = f < fields ? x[f * apart + i] : T(0);
            v[f] = load(some);
        }
    }
    transpose<T>(v);
}
template <class T> INLINE void store_square(Vec<T> *v, T *y, int64_t apart, int fields, int n) {
    transpose<T>(v);
    for (int f = 0; f < fields; f++) {
        if (n == W<T>)
            store(y + f * apart, v[f]);
        else
            memcpy(y + f * apart, v + f, size_t(n) * sizeof(T));
    }
}

template <class T> int map(const spherule_sparse &s, const T *x, T *y) {
    const T *weight = (const T *)s.weight;
    // Fields next to each other, point by point
    const Buffer<Vec<T>> buffer(s.columns);
    Vec<T> *points = buffer.data;
    if (!points)
        return SPHERULE_NO_MEMORY;
#pragma omp parallel num_threads(s.threads)
    for (int64_t first = 0; first < s.fields; first += W<T>) {
        const int fields = int(min(s.fields - first, int64_t(W<T>)));
        Vec<T> v[W<T>];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < s.columns; i += W<T>) {
            const int n = int(min(s.columns - i, int64_t(W<T>)));
            load_square(x + first * s.columns + i, s.columns, fields, n, v);
            memcpy(points + i, v, size_t(n) * sizeof(Vec<T>));
        }
#pragma omp for schedule(static)
        for (int64_t r = 0; r < s.rows; r += W<T>) {
            const int n = int(min(s.rows - r, int64_t(W<T>)));
            for (int i = 0; i < n; i++) {
                Vec<T> sum = {};
                for (int64_t e = s.start[r + i]; e < s.start[r + i + 1]; e++)
                    sum += weight[e] * points[s.column[e]];
                v[i] = sum;
            }
            store_square(v, y + first * s.rows + r, s.rows, fields, n);
        }
    }
    return SPHERULE_OK;
}

int run_map(const spherule_sparse *s, const void *x, void *y) {
    if (s->dtype == SPHERULE_FLOAT64)
        return map(*s, (const double *)x, (double *)y);
    return map(*s, (const float *)x, (float *)y);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const SparseKernels SPHERULE_JOIN(sparse, SPHERULE_ISA) = {run_map};
