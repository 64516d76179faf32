// How a call is cut into tasks for threads, and the memory they work in.
#pragma once
#include "block.h"
#include "scratch.h"
#include "tensor.h"

namespace {

constexpr int TILE = 128;  // centers of a task
constexpr int GROUP = 8;   // heads of a task, at most

// A piece of a ring of centers.
struct Span {
    int64_t ring, begin, end, start;  // start: index of the first point
    int size() const { return int(end - begin); }
};

// All pieces, the heaviest rings first.
struct Plan {
    Buffer<Span> spans;
    int64_t n = 0;
    explicit Plan(const spherule_arc_table &table) : spans(count(table)) {
        if (!spans.data)
            return;
        for (int64_t o = 0; o < table.query.rings; o++) {
            const int64_t r = table.order[o], nphi = table.query.nphi[r];
            for (int64_t i = 0; i < nphi; i += TILE)
                spans.data[n++] = {r, i, min(i + TILE, nphi), table.query.ringstart[r] + i};
        }
    }
    bool ok() const { return spans.data; }
    static int64_t count(const spherule_arc_table &table) {
        int64_t n = 0;
        for (int64_t o = 0; o < table.query.rings; o++)
            n += (table.query.nphi[table.order[o]] + TILE - 1) / TILE;
        return n;
    }
};

// A few heads of one batch, which share a walk.
struct Heads {
    int64_t batch, first, count;
};

// Heads that share a walk.
INLINE int64_t group_size(const spherule_problem &p) {
    return max(int64_t(1), min(min(p.heads, int64_t(GROUP)), 256 / (p.dim + p.value_dim)));
}

// A thread's memory: scores of a block, what belongs to the rows of a list, gradients of a task's
// keys and values.
template <class T> struct Workspace {
    Walk<T> walk;
    T s[SCORES], ds[SCORES], lse[REGION], delta[REGION];
    Buffer<T> dk, dv;
    Workspace(const spherule_problem &p, int64_t k_width, int64_t v_width)
        : dk(group_size(p) * TILE * k_width), dv(group_size(p) * TILE * v_width) {}
    bool ok() const { return dk.data && dv.data; }
};

// f(matrix, first point, points) for pieces of all matrices. To be called by all threads of a team,
// as those below.
template <class F> void for_pieces(const spherule_problem &p, int64_t points, const F &f) {
    const int64_t piece = 256, pieces = (points + piece - 1) / piece;
#pragma omp for schedule(static)
    for (int64_t n = 0; n < p.batch * p.heads * pieces; n++) {
        const int64_t first = n % pieces * piece;
        f(n / pieces, first, int(min(piece, points - first)));
    }
}

INLINE Matrix matrix_of(const spherule_problem &p, const spherule_strided *t, int64_t m, int dim) {
    return matrix(t, m / p.heads, m % p.heads, dim, p.dtype);
}

template <class T>
void pack(const spherule_problem &p, const spherule_strided *t, const Packed<T> &rows,
          double factor = 1) {
    for_pieces(p, rows.points, [&](int64_t m, int64_t first, int n) {
        with_type(p.dtype, T(), [&](auto s) {
            pack_as<decltype(s)>(matrix_of(p, t, m, rows.dim), first, n, T(factor),
                                 rows.row(m, first), rows.width);
        });
    });
}

template <class T>
void unpack(const spherule_problem &p, const spherule_strided *t, const Packed<T> &rows) {
    for_pieces(p, rows.points, [&](int64_t m, int64_t first, int n) {
        with_type(p.dtype, T(), [&](auto s) {
            unpack_as<decltype(s)>(matrix_of(p, t, m, rows.dim), first, n, rows.row(m, first),
                                   rows.width);
        });
    });
}

// dots = a . b - less, per point
template <class T>
void row_dots(const spherule_problem &p, const spherule_strided *a, const spherule_strided *b,
              const T *less, T *dots) {
    for_pieces(p, p.queries, [&](int64_t m, int64_t first, int n) {
        T *d = dots + m * p.queries + first;
        with_type(p.dtype, T(), [&](auto s) {
            row_dots_as<decltype(s)>(matrix_of(p, a, m, int(p.value_dim)),
                                     matrix_of(p, b, m, int(p.value_dim)), first, n, d);
        });
        for (int i = 0; less && i < n; i++)
            d[i] -= less[m * p.queries + first + i];
    });
}

// body(span, heads) for every piece of every ring and every group of heads; a thread that failed
// leaves its share
template <class Body>
void for_tasks(const Plan &plan, const spherule_problem &p, int failed, const Body &body) {
    const int64_t group = group_size(p), groups = (p.heads + group - 1) / group;
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < p.batch * groups * plan.n; n++) {
        if (failed)
            continue;
        const int64_t g = n / plan.n, first = g % groups * group;
        body(plan.spans.data[n % plan.n], Heads{g / groups, first, min(group, p.heads - first)});
    }
}

template <int N> struct Size {
    static constexpr int value = N;
};

// f for a block whose number of centers is known to the compiler
template <class F> INLINE void with_size(int n, const F &f) {
    if (n == 4)
        return f(Size<4>());
    if (n == 3)
        return f(Size<3>());
    if (n == 2)
        return f(Size<2>());
    f(Size<1>());
}

}  // namespace
