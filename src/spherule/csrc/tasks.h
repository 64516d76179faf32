// How a call is cut into tasks for threads, and the memory they work in.
#pragma once
#include "scratch.h"
#include "softmax.h"
#include "tensor.h"
#include <omp.h>

namespace {

constexpr int TILE = 128;   // centers of a task
constexpr int GROUP = 8;    // heads of a task, at most
constexpr int PIECE = 256;  // points that are packed or summed at a time

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

// Neighboring rings of queries, and the keys within their reach, whose gradients they have a part
// in.
struct Band {
    int64_t first, last;  // rings
    int64_t begin, end;   // keys
    int64_t slab;         // where the band's own sums for these keys begin
    int64_t size() const { return end - begin; }
};

// All bands. Their number follows from the table alone, so that sums of slabs do too.
struct Bands {
    Buffer<Band> bands;
    Buffer<int64_t> order;  // heaviest rings first
    int64_t n = 0, points = 0;
    explicit Bands(const spherule_arc_table &table)
        : bands(table.query.rings), order(table.query.rings) {
        if (!ok())
            return;
        const int64_t rings = table.query.rings;
        int64_t reach = 1;
        for (int64_t r = 0; r < rings; r++)
            reach = max(reach, table.pairs[r + 1] - table.pairs[r]);
        // As wide as their reach, slabs take twice the memory of the keys; but threads want tasks.
        const int64_t width = min(reach, (rings + 7) / 8);
        for (int64_t r = 0; r < rings; r += width) {
            Band band = {r, min(r + width, rings), INT64_MAX, 0, points};
            for (int64_t i = band.first; i < band.last; i++) {
                const int64_t s0 = table.first[i], s1 = s0 + table.pairs[i + 1] - table.pairs[i];
                if (s0 == s1)
                    continue;
                band.begin = min(band.begin, table.key.ringstart[s0]);
                band.end = max(band.end, table.key.ringstart[s1 - 1] + table.key.nphi[s1 - 1]);
            }
            band.begin = min(band.begin, band.end);
            points += band.size();
            bands.data[n++] = band;
        }
        int64_t placed = 0;
        for (int64_t o = 0; o < rings + n; o++) {
            // Whatever order the table has, every band has its turn.
            const int64_t b = o < rings ? table.order[o] / width : o - rings;
            bool seen = false;
            for (int64_t i = 0; i < placed; i++)
                seen |= order.data[i] == b;
            if (!seen)
                order.data[placed++] = b;
        }
    }
    bool ok() const { return bands.data && order.data; }
};

// A few heads of one batch, which share a walk.
struct Heads {
    int64_t batch, first, count;
    int64_t slab;  // the first one's among the slabs
};

// Heads that share a walk.
INLINE int64_t group_size(const spherule_problem &p) {
    return max(int64_t(1), min(min(p.heads, int64_t(GROUP)), 256 / (p.dim + p.value_dim)));
}

// A thread's memory: lists and scores of a block, these as factors, and the gradients of its
// queries, scaled.
template <class T> struct Workspace {
    typedef SumOf<T> S;
    static constexpr int SHORT = sizeof(T) == 2 ? SCORES : 1;
    Walk<S> walk;
    S s[SCORES], ds[SCORES];
    T tiles[SHORT], across[SHORT];
    T *dout;
    S *sums;  // of a task's results, or of a piece's
    Workspace(const Packed<T> &gradients, const Packed<S> &sums)
        : dout(gradients.row(omp_get_thread_num(), 0)), sums(sums.row(omp_get_thread_num(), 0)) {}
    // For Scratch: the rows of all threads
    static Packed<T> gradients(const spherule_problem &p) {
        return {p.threads, BLOCK, max(p.dim, p.value_dim)};
    }
    static Packed<S> results(const spherule_problem &p) {
        return {p.threads, max(int64_t(PIECE), group_size(p) * TILE), max(p.dim, p.value_dim),
                W<T>};
    }
};

// All groups of heads, and runs of them, one after the other, that have slabs at a time: as few as
// keep the threads at work, since slabs are larger than all else.
struct Groups {
    int64_t heads, size, each, n, run;  // size: heads of a group; each: groups of a batch
    Groups(const spherule_problem &p, int64_t tasks)
        : heads(p.heads), size(group_size(p)), each((p.heads + size - 1) / size), n(p.batch * each),
          run(min(n, 1 + 4 * p.threads / max(tasks, int64_t(1)))) {}
    int64_t matrix(int64_t g) const { return g / each * heads + g % each * size; }
    Heads operator()(int64_t g) const {
        const int64_t first = g % each * size;
        return {g / each, first, min(size, heads - first), g % run * size};
    }
    int64_t slab(int64_t m) const {
        return (m / heads * each + m % heads / size) % run * size + m % heads % size;
    }
};

// f(matrix, first point, points) for pieces of some matrices. To be called by all threads of a
// team, as those below.
template <class F> void for_pieces(int64_t begin, int64_t end, int64_t points, const F &f) {
    const int64_t pieces = (points + PIECE - 1) / PIECE;
#pragma omp for schedule(static)
    for (int64_t n = begin * pieces; n < end * pieces; n++) {
        const int64_t first = n % pieces * PIECE;
        f(n / pieces, first, int(min(int64_t(PIECE), points - first)));
    }
}

INLINE Matrix matrix_of(const spherule_problem &p, const spherule_strided *t, int64_t m, int dim) {
    return matrix(t, m / p.heads, m % p.heads, dim, p.dtype);
}

template <class T>
constexpr int dtype_of = sizeof(T) == 8   ? SPHERULE_FLOAT64
                         : sizeof(T) == 4 ? SPHERULE_FLOAT32
                                          : SPHERULE_BFLOAT16;

// Takes a tensor that lies in such rows for them.
template <class T>
void lend(const spherule_problem &p, const spherule_strided *t, Packed<T> &rows) {
    const int64_t matrix = rows.points * rows.width;
    rows.lent = p.dtype == dtype_of<T> && rows.dim == rows.width && t->stride[3] == 1 &&
                t->stride[2] == rows.width && (p.heads == 1 || t->stride[1] == matrix) &&
                (p.batch == 1 || t->stride[0] == p.heads * matrix);
    if (rows.lent)
        rows.data = t->data;
}

template <class T>
void pack(const spherule_problem &p, const spherule_strided *t, const Packed<T> &rows) {
    if (rows.lent)
        return;
    for_pieces(0, rows.matrices, rows.points, [&](int64_t m, int64_t first, int n) {
        with_type(p.dtype, T(), [&](auto s) {
            pack_as<decltype(s)>(matrix_of(p, t, m, rows.dim), first, n, rows.row(m, first),
                                 rows.width);
        });
    });
}

// A tensor to be filled: rows of sums for numbers of type T, which are made where they belong if it
// has such rows, else in a thread's room.
template <class T> struct Results : Packed<SumOf<T>> {
    typedef SumOf<T> S;
    const spherule_problem &p;
    const spherule_strided *tensor;
    Results(const spherule_problem &p, const spherule_strided *t, int64_t points, int64_t dim)
        : Packed<S>(p.batch * p.heads, points, dim, W<T>), p(p), tensor(t) {
        if (t)
            lend(p, t, *this);
    }
    S *rows(int64_t m, int64_t first, S *room) const {
        return this->lent ? this->row(m, first) : room;
    }
    // Rows of n points that are done
    void keep(int64_t m, int64_t first, int n, S *rows) const {
        order<T>(rows, n * this->width);
        if (this->lent)
            return;
        with_type(p.dtype, S(), [&](auto s) {
            unpack_as<decltype(s)>(matrix_of(p, tensor, m, this->dim), first, n, rows, this->width);
        });
    }
};

// The sums of all slabs of matrices begin to end, times factor
template <class T, class S>
void unpack_sums(const Results<T> &results, const Groups &groups, int64_t begin, int64_t end,
                 const Bands &bands, const Packed<S> &slabs, S factor, S *room) {
    const int64_t width = results.width;
    for_pieces(begin, end, results.points, [&](int64_t m, int64_t first, int n) {
        S *sums = results.rows(m, first, room);
        memset(sums, 0, size_t(n * width) * sizeof(S));
        for (int64_t b = 0; b < bands.n; b++) {
            const Band &band = bands.bands.data[b];
            const int64_t from = max(first, band.begin), to = min(first + n, band.end);
            if (from >= to)
                continue;
            const S *part = slabs.row(groups.slab(m), band.slab + from - band.begin);
            S *sum = sums + (from - first) * width;
            for (int64_t c = 0; c < (to - from) * width; c++)
                sum[c] += part[c] * factor;
        }
        results.keep(m, first, n, sums);
    });
}

// dots = a . b - less, per point
template <class T>
void row_dots(const spherule_problem &p, const spherule_strided *a, const spherule_strided *b,
              const T *less, T *dots) {
    for_pieces(0, p.batch * p.heads, p.queries, [&](int64_t m, int64_t first, int n) {
        T *d = dots + m * p.queries + first;
        with_type(p.dtype, T(), [&](auto s) {
            row_dots_as<decltype(s)>(matrix_of(p, a, m, int(p.value_dim)),
                                     matrix_of(p, b, m, int(p.value_dim)), first, n, d);
        });
        for (int i = 0; less && i < n; i++)
            d[i] -= less[m * p.queries + first + i];
    });
}

// body(a number below `tasks`, heads) for groups begin to end
template <class Body>
void for_tasks(const Groups &groups, int64_t begin, int64_t end, int64_t tasks, const Body &body) {
#pragma omp for schedule(dynamic)
    for (int64_t n = begin * tasks; n < end * tasks; n++)
        body(n % tasks, groups(n / tasks));
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
