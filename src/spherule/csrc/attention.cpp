// Neighborhood attention, forward and backward. Compiled once per instruction set, under the name
// SPHERULE_ISA.
//
// Scores are kept in base 2: the queries of a block are copied times scale log2(e). Only (out, lse)
// is kept for the backward, which makes the weights again, once for all gradients. dq belongs to a
// task; what a band of queries adds to dk and dv is summed in a slab of its own, and slabs are
// added in order: no atomics, the same bits for any number of threads.
#include "isa.h"
#include "tasks.h"

namespace {

// Beyond this, in base 2, lse has too few digits in float32 for weights that add up to 1: the
// backward adds up what they are instead.
constexpr double LARGE = 128;

template <class T> struct Attention {
    const spherule_problem &p;
    Packed<T> q, k, v, out, dout, dq, dk, dv;  // out only forward, gradients only backward
    Packed<T> key_slabs, value_slabs;          // what all bands add to dk and dv
    T *lse, *delta;                            // per query; delta = dO . out - dlse
    explicit Attention(const spherule_problem &p, int64_t slabs = 0, int64_t points = 0)
        : p(p), q(p.batch * p.heads, p.queries, p.dim), k(p.batch * p.heads, p.keys, p.dim),
          v(p.batch * p.heads, p.keys, p.value_dim), out(p.batch * p.heads, p.queries, p.value_dim),
          dout(out), dq(q), dk(k), dv(v), key_slabs(slabs, points, p.dim),
          value_slabs(slabs, points, p.value_dim) {}

    const uint8_t *mask(const Heads &heads) const {
        return p.key_mask ? p.key_mask + heads.batch * p.key_mask_stride : nullptr;
    }
    int64_t matrix(const Heads &heads, int64_t h) const {
        return heads.batch * p.heads + heads.first + h;
    }

    // A block's queries, scaled
    template <int N> const T *queries(int64_t m, int64_t i, Workspace<T> &w) const {
        T factor[N];
        for (T &f : factor)
            f = T(p.scale * LOG2E);
        scale_rows<N>(q.row(m, i), q.width, factor, w.q);
        return w.q;
    }

    // body(number of centers, lists, head, matrix, first center) for every block of a span and
    // every head
    template <class Body>
    void walk(const spherule_arc_table &table, const uint8_t *mask, const Span &span,
              const Heads &heads, Workspace<T> &w, const Body &body) const {
        const int64_t rows_in_cache = 24576 / int64_t(max(k.width, v.width) * int(sizeof(T)));
        w.walk.start(table, mask, span.ring, max(int64_t(16), rows_in_cache));
        // Where lists are cheap, each head has a walk of its own, and its rows stay in the cache
        // from block to block.
        const int64_t together = w.walk.turns() ? 1 : heads.count;
        for (int64_t h0 = 0; h0 < heads.count; h0 += together)
            w.walk.blocks(
                span.begin, span.end, [&](int64_t first, int64_t last, const Lists<T> &lists) {
                    for (int64_t h = h0; h < h0 + together; h++)
                        for (int64_t i = first; i < last; i += BLOCK)
                            with_size(int(min(last - i, int64_t(BLOCK))), [&](auto n) {
                                body(n, lists, h, matrix(heads, h), span.start + i - span.begin);
                            });
                });
    }

    void forward(const spherule_arc_table &table, const Span &span, const Heads &heads,
                 Workspace<T> &w) const {
        Softmax<T> softmax[GROUP][TILE];
        for (int64_t h = 0; h < heads.count; h++) {
            for (auto &state : softmax[h])
                state = {T(-INFINITY), 0};
            memset(out.row(matrix(heads, h), span.start), 0,
                   size_t(span.size() * out.width) * sizeof(T));
        }
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<T> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 T factor[N], *sums = out.row(m, i);
                 block_dots<N, true>(queries<N>(m, i, w), k.row(m, 0), k.width, lists, w.s);
                 online_softmax<N>(w.s, lists, &softmax[h][i - span.start], factor);
                 for (int j = 0; j < N; j++)
                     if (factor[j] != 1)
                         for (int c = 0; c < v.width; c++)
                             sums[j * v.width + c] *= factor[j];
                 block_accumulate<N>(w.s, v.row(m, 0), v.width, lists, sums);
             });
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = matrix(heads, h);
            for (int i = 0; i < span.size(); i++) {
                const Softmax<T> &state = softmax[h][i];
                // No key left: zeros, and the logarithm of an empty sum.
                const bool none = state.max == T(-INFINITY) && state.sum == 0;
                const T inverse = none ? 0 : 1 / state.sum;
                T *row = out.row(m, span.start + i);
                for (int c = 0; c < v.width; c++)
                    row[c] *= inverse;
                lse[m * p.queries + span.start + i] =
                    none ? T(-INFINITY) : T((state.max + base2_log(state.sum)) * LN2);
            }
        }
    }

    // dq, and the queries' share of dk and dv, to the slabs of their band
    void backward(const spherule_arc_table &table, const Band &band, const Span &span,
                  const Heads &heads, Workspace<T> &w) const {
        for (int64_t h = 0; h < heads.count; h++)
            memset(dq.row(matrix(heads, h), span.start), 0,
                   size_t(span.size() * dq.width) * sizeof(T));
        T share[GROUP][TILE];
        normalize(table, span, heads, w, share);
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<T> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 T l[N];
                 for (int j = 0; j < N; j++)
                     l[j] = lse[m * p.queries + i + j] * T(LOG2E);
                 const T *x = queries<N>(m, i, w);
                 scale_rows<N>(dout.row(m, i), v.width, &share[h][i - span.start], w.dout);
                 block_dots<N, true>(x, k.row(m, 0), k.width, lists, w.s);
                 block_dots<N, false>(w.dout, v.row(m, 0), v.width, lists, w.ds);
                 block_differentiate<N>(w.s, w.ds, lists, l, delta + m * p.queries + i);
                 block_accumulate<N>(w.ds, k.row(m, 0), k.width, lists, dq.row(m, i));
                 block_scatter<N>(w.ds, x, k.width, lists, band.begin,
                                  key_slabs.row(heads.slab + h, band.slab));
                 block_scatter<N>(w.s, w.dout, v.width, lists, band.begin,
                                  value_slabs.row(heads.slab + h, band.slab));
             });
        for (int64_t h = 0; h < heads.count; h++) {
            T *rows = dq.row(matrix(heads, h), span.start);
            for (int c = 0; c < span.size() * dq.width; c++)
                rows[c] *= T(p.scale);
        }
    }

    void backward(const spherule_arc_table &table, const Band &band, const Heads &heads,
                  Workspace<T> &w) const {
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = heads.slab + h;
            memset(key_slabs.row(m, band.slab), 0,
                   size_t(band.size() * key_slabs.width) * sizeof(T));
            memset(value_slabs.row(m, band.slab), 0,
                   size_t(band.size() * value_slabs.width) * sizeof(T));
        }
        for (int64_t r = band.first; r < band.last; r++) {
            const int64_t nphi = table.query.nphi[r], start = table.query.ringstart[r];
            for (int64_t i = 0; i < nphi; i += TILE)
                backward(table, band, {r, i, min(i + TILE, nphi), start + i}, heads, w);
        }
    }

    bool large(int64_t m, int64_t i) const {
        return fabs(lse[m * p.queries + i] * T(LOG2E)) > LARGE;
    }

    // What all that is linear in a query's weights is to be multiplied by: 1 over their sum, where
    // that need not be 1. In delta it is.
    void normalize(const spherule_arc_table &table, const Span &span, const Heads &heads,
                   Workspace<T> &w, T (*share)[TILE]) const {
        bool any = false;
        for (int64_t h = 0; h < heads.count; h++)
            for (int i = 0; i < span.size(); i++) {
                share[h][i] = 1;
                any |= large(matrix(heads, h), span.start + i);
            }
        if (!any)
            return;
        T sums[GROUP][TILE] = {};
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<T> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 T l[N];
                 for (int j = 0; j < N; j++)
                     l[j] = lse[m * p.queries + i + j] * T(LOG2E);
                 block_dots<N, true>(queries<N>(m, i, w), k.row(m, 0), k.width, lists, w.s);
                 block_exponentiate<N>(w.s, lists, l, &sums[h][i - span.start]);
             });
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = matrix(heads, h);
            for (int i = 0; i < span.size(); i++) {
                if (!large(m, span.start + i) || !(sums[h][i] > 0))
                    continue;
                share[h][i] = 1 / sums[h][i];
                delta[m * p.queries + span.start + i] *= share[h][i];
            }
        }
    }
};

template <class T>
int forward(const spherule_arc_table &table, const spherule_problem &p, const spherule_strided *q,
            const spherule_strided *k, const spherule_strided *v, const spherule_strided *out,
            T *lse) {
    Attention<T> a(p);
    const Plan plan(table);
    const Groups groups(p, plan.n);
    Packed<T> rooms = Workspace<T>::rooms(p);
    lend(p, q, a.q), lend(p, k, a.k), lend(p, v, a.v), lend(p, out, a.out);
    Scratch scratch({&a.q, &a.k, &a.v, &a.out, &rooms});
    if (!plan.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
    a.lse = lse;
#pragma omp parallel num_threads(p.threads)
    {
        Workspace<T> work(rooms);
        pack(p, q, a.q);
        pack(p, k, a.k);
        pack(p, v, a.v);
        for_tasks(groups, 0, groups.n, plan.n, [&](int64_t n, const Heads &heads) {
            a.forward(table, plan.spans.data[n], heads, work);
        });
        unpack(p, out, a.out);
    }
    return SPHERULE_OK;
}

template <class T>
int backward(const spherule_arc_table &table, const spherule_problem &p, const spherule_strided *q,
             const spherule_strided *k, const spherule_strided *v, const spherule_strided *out,
             const T *lse, const spherule_strided *dout, const T *dlse, const spherule_strided *dq,
             const spherule_strided *dk, const spherule_strided *dv) {
    const Bands bands(table);
    const Groups groups(p, bands.n);
    Attention<T> a(p, groups.run * groups.size, bands.points);
    Packed<T> delta(p.batch * p.heads, 1, p.queries), rooms = Workspace<T>::rooms(p);
    lend(p, q, a.q), lend(p, k, a.k), lend(p, v, a.v), lend(p, dout, a.dout);
    lend(p, dq, a.dq), lend(p, dk, a.dk), lend(p, dv, a.dv);
    Scratch scratch({&a.q, &a.k, &a.v, &a.dout, &a.dq, &a.dk, &a.dv, &a.key_slabs, &a.value_slabs,
                     &delta, &rooms});
    if (!bands.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
    a.lse = (T *)lse;
    a.delta = delta.data;
#pragma omp parallel num_threads(p.threads)
    {
        Workspace<T> work(rooms);
        pack(p, q, a.q);
        pack(p, k, a.k);
        pack(p, v, a.v);
        pack(p, dout, a.dout);
        row_dots(p, dout, out, dlse, a.delta);
        for (int64_t g = 0; g < groups.n; g += groups.run) {
            const int64_t end = min(g + groups.run, groups.n);
            for_tasks(groups, g, end, bands.n, [&](int64_t n, const Heads &heads) {
                a.backward(table, bands.bands.data[bands.order.data[n]], heads, work);
            });
            const int64_t m0 = groups.matrix(g), m1 = groups.matrix(end);
            // The scaled queries hold log2(e) besides the scale.
            unpack_sums(p, dk, groups, m0, m1, bands, a.key_slabs, T(LN2), a.dk);
            unpack_sums(p, dv, groups, m0, m1, bands, a.value_slabs, T(1), a.dv);
        }
        unpack(p, dq, a.dq);
    }
    return SPHERULE_OK;
}

int run_forward(const spherule_arc_table *table, const spherule_problem *p,
                const spherule_strided *q, const spherule_strided *k, const spherule_strided *v,
                const spherule_strided *out, void *lse) {
    if (p->dtype == SPHERULE_FLOAT64)
        return forward(*table, *p, q, k, v, out, (double *)lse);
    return forward(*table, *p, q, k, v, out, (float *)lse);
}

int run_backward(const spherule_arc_table *table, const spherule_problem *p,
                 const spherule_strided *q, const spherule_strided *k, const spherule_strided *v,
                 const spherule_strided *out, const void *lse, const spherule_strided *grad_out,
                 const void *grad_lse, const spherule_strided *dq, const spherule_strided *dk,
                 const spherule_strided *dv) {
    if (p->dtype == SPHERULE_FLOAT64)
        return backward(*table, *p, q, k, v, out, (const double *)lse, grad_out,
                        (const double *)grad_lse, dq, dk, dv);
    return backward(*table, *p, q, k, v, out, (const float *)lse, grad_out, (const float *)grad_lse,
                    dq, dk, dv);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const AttentionKernels SPHERULE_JOIN(attention, SPHERULE_ISA) = {run_forward, run_backward};
