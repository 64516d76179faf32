// Neighborhood attention, forward and backward. Compiled once per instruction set, under the name
// SPHERULE_ISA.
//
// Scores are kept in base 2: products times scale log2(e). Only (out, lse)
// is kept for the backward, which makes the weights again, once for all gradients. dq belongs to a
// task; what a band of queries adds to dk and dv is summed in a slab of its own, and slabs are
// added in order: no atomics, the same bits for any number of threads.
#include "isa.h"
#include "tasks.h"

namespace {

// Beyond this, in base 2, lse has too few digits in float32 for weights that add up to 1: the
// backward adds up what they are instead.
constexpr double LARGE = 128;

// Of numbers of type T, summed in S
template <class T> struct Attention {
    typedef SumOf<T> S;
    const spherule_problem &p;
    Packed<T> q, k, v, dout;
    Packed<S> key_slabs, value_slabs;  // what all bands add to the gradients of k and v
    S *lse, *delta = nullptr;          // per query; delta = dO . out - dlse
    Attention(const spherule_problem &p, const S *lse, int64_t slabs = 0, int64_t points = 0)
        : p(p), q(p.batch * p.heads, p.queries, p.dim), k(p.batch * p.heads, p.keys, p.dim),
          v(p.batch * p.heads, p.keys, p.value_dim),
          dout(p.batch * p.heads, p.queries, p.value_dim), key_slabs(slabs, points, p.dim, W<T>),
          value_slabs(slabs, points, p.value_dim, W<T>), lse((S *)lse) {}

    S factor() const { return S(p.scale * LOG2E); }
    const uint8_t *mask(const Heads &heads) const {
        return p.key_mask ? p.key_mask + heads.batch * p.key_mask_stride : nullptr;
    }
    int64_t matrix(const Heads &heads, int64_t h) const {
        return heads.batch * p.heads + heads.first + h;
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
                span.begin, span.end, [&](int64_t first, int64_t last, const Lists<S> &lists) {
                    for (int64_t h = h0; h < h0 + together; h++)
                        for (int64_t i = first; i < last; i += BLOCK)
                            with_size(int(min(last - i, int64_t(BLOCK))), [&](auto n) {
                                body(n, lists, h, matrix(heads, h), span.start + i - span.begin);
                            });
                });
    }

    void forward(const spherule_arc_table &table, const Span &span, const Heads &heads,
                 const Results<T> &out, Workspace<T> &w) const {
        Softmax<S> softmax[GROUP][TILE];
        S *rows[GROUP];
        for (int64_t h = 0; h < heads.count; h++) {
            for (auto &state : softmax[h])
                state = {S(-INFINITY), 0};
            rows[h] = start(out, span, heads, h, w);
        }
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<S> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 S scale[N], *sums = rows[h] + (i - span.start) * out.width;
                 block_dots<N, true>(q.row(m, i), k.row(m, 0), k.width, lists, factor(), w.s);
                 online_softmax<N>(w.s, lists, &softmax[h][i - span.start], scale);
                 for (int j = 0; j < N; j++)
                     if (scale[j] != 1)
                         for (int c = 0; c < v.width; c++)
                             sums[j * v.width + c] *= scale[j];
                 const auto weights = block_factors<N>(w.s, lists, w.tiles, w.across);
                 block_accumulate<N>(weights.tiles, v.row(m, 0), v.width, lists, sums);
             });
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = matrix(heads, h);
            for (int i = 0; i < span.size(); i++) {
                const Softmax<S> &state = softmax[h][i];
                // No key left: zeros, and the logarithm of an empty sum.
                const bool none = state.max == S(-INFINITY) && state.sum == 0;
                const S inverse = none ? 0 : 1 / state.sum;
                for (int c = 0; c < v.width; c++)
                    rows[h][i * v.width + c] *= inverse;
                lse[m * p.queries + span.start + i] =
                    none ? S(-INFINITY) : S((state.max + base2_log(state.sum)) * LN2);
            }
            out.keep(m, span.start, span.size(), rows[h]);
        }
    }

    // A head's rows of a span, with nothing in them yet
    S *start(const Results<T> &results, const Span &span, const Heads &heads, int64_t h,
             Workspace<T> &w) const {
        S *rows = results.rows(matrix(heads, h), span.start, w.sums + h * TILE * results.width);
        memset(rows, 0, size_t(span.size() * results.width) * sizeof(S));
        return rows;
    }

    // dq, and the queries' share of dk and dv, to the slabs of their band
    void backward(const spherule_arc_table &table, const Band &band, const Span &span,
                  const Heads &heads, const Results<T> &dq, Workspace<T> &w) const {
        S *rows[GROUP];
        for (int64_t h = 0; h < heads.count; h++)
            rows[h] = start(dq, span, heads, h, w);
        S share[GROUP][TILE];
        normalize(table, span, heads, w, share);
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<S> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 S l[N];
                 for (int j = 0; j < N; j++)
                     l[j] = lse[m * p.queries + i + j] * S(LOG2E);
                 const T *x = q.row(m, i);
                 scale_rows<N>(dout.row(m, i), v.width, &share[h][i - span.start], w.dout);
                 block_dots<N, true>(x, k.row(m, 0), k.width, lists, factor(), w.s);
                 block_dots<N, false>(w.dout, v.row(m, 0), v.width, lists, S(1), w.ds);
                 block_differentiate<N>(w.s, w.ds, lists, l, delta + m * p.queries + i);
                 const auto ds = block_factors<N>(w.ds, lists, w.tiles, w.across);
                 block_accumulate<N>(ds.tiles, k.row(m, 0), k.width, lists,
                                     rows[h] + (i - span.start) * dq.width);
                 block_scatter<N>(ds, x, k.width, lists, band.begin,
                                  key_slabs.row(heads.slab + h, band.slab));
                 const auto weights = block_factors<N>(w.s, lists, w.tiles, w.across);
                 block_scatter<N>(weights, w.dout, v.width, lists, band.begin,
                                  value_slabs.row(heads.slab + h, band.slab));
             });
        for (int64_t h = 0; h < heads.count; h++) {
            for (int c = 0; c < span.size() * dq.width; c++)
                rows[h][c] *= S(p.scale);
            dq.keep(matrix(heads, h), span.start, span.size(), rows[h]);
        }
    }

    void backward(const spherule_arc_table &table, const Band &band, const Heads &heads,
                  const Results<T> &dq, Workspace<T> &w) const {
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = heads.slab + h;
            memset(key_slabs.row(m, band.slab), 0,
                   size_t(band.size() * key_slabs.width) * sizeof(S));
            memset(value_slabs.row(m, band.slab), 0,
                   size_t(band.size() * value_slabs.width) * sizeof(S));
        }
        for (int64_t r = band.first; r < band.last; r++) {
            const int64_t nphi = table.query.nphi[r], start = table.query.ringstart[r];
            for (int64_t i = 0; i < nphi; i += TILE)
                backward(table, band, {r, i, min(i + TILE, nphi), start + i}, heads, dq, w);
        }
    }

    bool large(int64_t m, int64_t i) const {
        return fabs(lse[m * p.queries + i] * S(LOG2E)) > LARGE;
    }

    // What all that is linear in a query's weights is to be multiplied by: 1 over their sum, where
    // that need not be 1. In delta it is.
    void normalize(const spherule_arc_table &table, const Span &span, const Heads &heads,
                   Workspace<T> &w, S (*share)[TILE]) const {
        bool any = false;
        for (int64_t h = 0; h < heads.count; h++)
            for (int i = 0; i < span.size(); i++) {
                share[h][i] = 1;
                any |= large(matrix(heads, h), span.start + i);
            }
        if (!any)
            return;
        S sums[GROUP][TILE] = {};
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<S> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 S l[N];
                 for (int j = 0; j < N; j++)
                     l[j] = lse[m * p.queries + i + j] * S(LOG2E);
                 block_dots<N, true>(q.row(m, i), k.row(m, 0), k.width, lists, factor(), w.s);
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
            SumOf<T> *lse) {
    typedef SumOf<T> S;
    Attention<T> a(p, lse);
    const Results<T> results(p, out, p.queries, p.value_dim);
    const Plan plan(table);
    const Groups groups(p, plan.n);
    Packed<T> gradients = Workspace<T>::gradients(p);
    Packed<S> sums = Workspace<T>::results(p);
    lend(p, q, a.q), lend(p, k, a.k), lend(p, v, a.v);
    Scratch scratch({&a.q, &a.k, &a.v, &gradients, &sums});
    if (!plan.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
#pragma omp parallel num_threads(p.threads)
    {
        Workspace<T> work(gradients, sums);
        pack(p, q, a.q);
        pack(p, k, a.k);
        pack(p, v, a.v);
        for_tasks(groups, 0, groups.n, plan.n, [&](int64_t n, const Heads &heads) {
            a.forward(table, plan.spans.data[n], heads, results, work);
        });
    }
    return SPHERULE_OK;
}

template <class T>
int backward(const spherule_arc_table &table, const spherule_problem &p, const spherule_strided *q,
             const spherule_strided *k, const spherule_strided *v, const spherule_strided *out,
             const SumOf<T> *lse, const spherule_strided *dout, const SumOf<T> *dlse,
             const spherule_strided *dq, const spherule_strided *dk, const spherule_strided *dv) {
    typedef SumOf<T> S;
    const Bands bands(table);
    const Groups groups(p, bands.n);
    Attention<T> a(p, lse, groups.run * groups.size, bands.points);
    const Results<T> to_q(p, dq, p.queries, p.dim), to_k(p, dk, p.keys, p.dim),
        to_v(p, dv, p.keys, p.value_dim);
    Packed<S> delta(p.batch * p.heads, 1, p.queries), sums = Workspace<T>::results(p);
    Packed<T> gradients = Workspace<T>::gradients(p);
    lend(p, q, a.q), lend(p, k, a.k), lend(p, v, a.v), lend(p, dout, a.dout);
    Scratch scratch(
        {&a.q, &a.k, &a.v, &a.dout, &a.key_slabs, &a.value_slabs, &delta, &gradients, &sums});
    if (!bands.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
    a.delta = delta.row(0, 0);
#pragma omp parallel num_threads(p.threads)
    {
        Workspace<T> work(gradients, sums);
        pack(p, q, a.q);
        pack(p, k, a.k);
        pack(p, v, a.v);
        pack(p, dout, a.dout);
        row_dots(p, dout, out, dlse, a.delta);
        for (int64_t g = 0; g < groups.n; g += groups.run) {
            const int64_t end = min(g + groups.run, groups.n);
            for_tasks(groups, g, end, bands.n, [&](int64_t n, const Heads &heads) {
                a.backward(table, bands.bands.data[bands.order.data[n]], heads, to_q, work);
            });
            const int64_t m0 = groups.matrix(g), m1 = groups.matrix(end);
            unpack_sums(to_k, groups, m0, m1, bands, a.key_slabs, S(p.scale), work.sums);
            unpack_sums(to_v, groups, m0, m1, bands, a.value_slabs, S(1), work.sums);
        }
    }
    return SPHERULE_OK;
}

// f(a value of the type that is multiplied): 16 bits where there are products for them, unless rows
// would be mostly padding.
template <class F> int with_products(const spherule_problem *p, const F &f) {
    if (p->dtype == SPHERULE_FLOAT64)
        return f(double());
    if (SHORT_PRODUCTS && p->dtype == SPHERULE_BFLOAT16 && min(p->dim, p->value_dim) > W<float>)
        return f(Brain());
    return f(float());
}

int run_forward(const spherule_arc_table *table, const spherule_problem *p,
                const spherule_strided *q, const spherule_strided *k, const spherule_strided *v,
                const spherule_strided *out, void *lse) {
    return with_products(p, [&](auto t) {
        typedef decltype(t) T;
        return forward<T>(*table, *p, q, k, v, out, (SumOf<T> *)lse);
    });
}

int run_backward(const spherule_arc_table *table, const spherule_problem *p,
                 const spherule_strided *q, const spherule_strided *k, const spherule_strided *v,
                 const spherule_strided *out, const void *lse, const spherule_strided *grad_out,
                 const void *grad_lse, const spherule_strided *dq, const spherule_strided *dk,
                 const spherule_strided *dv) {
    return with_products(p, [&](auto t) {
        typedef decltype(t) T;
        return backward<T>(*table, *p, q, k, v, out, (const SumOf<T> *)lse, grad_out,
                           (const SumOf<T> *)grad_lse, dq, dk, dv);
    });
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const AttentionKernels SPHERULE_JOIN(attention, SPHERULE_ISA) = {run_forward, run_backward};
