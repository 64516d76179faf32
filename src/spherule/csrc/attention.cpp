// Neighborhood attention, forward and backward. Compiled once per instruction set, under the name
// SPHERULE_ISA.
//
// Scores are kept in base 2: queries are packed times scale log2(e). Only (out, lse) is kept for
// the backward, which recomputes the weights in two walks: over the queries for dq, over the keys
// by the transposed neighborhood for dk and dv. Every number is written by one task, in a fixed
// order: no atomics, the same bits for any number of threads.
#include "isa.h"
#include "tasks.h"

namespace {

// Beyond this, in base 2, lse has too few digits in float32 for weights that add up to 1: the
// backward adds up what they are instead.
constexpr double LARGE = 128;

template <class T> struct Attention {
    const spherule_problem &p;
    Packed<T> q, k, v, out, dout,
        dq;          // q is scaled; out only forward, its gradient and dq only backward
    T *lse, *delta;  // per query; delta = dO . out - dlse
    explicit Attention(const spherule_problem &p)
        : p(p), q(p.queries, p.dim), k(p.keys, p.dim), v(p.keys, p.value_dim),
          out(p.queries, p.value_dim), dout(p.queries, p.value_dim), dq(p.queries, p.dim) {}

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
                 block_dots<N, true>(q.row(m, i), k.row(m, 0), k.width, lists, w.s);
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

    void backward_queries(const spherule_arc_table &table, const Span &span, const Heads &heads,
                          Workspace<T> &w) const {
        T sums[GROUP][TILE] = {};  // of the weights, where they need not add up to 1
        for (int64_t h = 0; h < heads.count; h++)
            memset(dq.row(matrix(heads, h), span.start), 0,
                   size_t(span.size() * dq.width) * sizeof(T));
        walk(table, mask(heads), span, heads, w,
             [&](auto n, const Lists<T> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 const T *d = delta + m * p.queries + i;
                 T l[N];
                 bool large = false;
                 for (int j = 0; j < N; j++) {
                     l[j] = lse[m * p.queries + i + j] * T(LOG2E);
                     large |= fabs(l[j]) > LARGE;
                 }
                 block_dots<N, true>(q.row(m, i), k.row(m, 0), k.width, lists, w.s);
                 block_dots<N, false>(dout.row(m, i), v.row(m, 0), v.width, lists, w.ds);
                 differentiate_queries<N>(w.s, w.ds, lists.common, l, d);
                 for (int j = 0; j < N; j++)
                     differentiate_queries<1>(w.s + own_scores(j), w.ds + own_scores(j),
                                              lists.extra[j], l + j, d + j);
                 block_accumulate<N>(w.ds, k.row(m, 0), k.width, lists, dq.row(m, i));
                 if (large)
                     block_exponentiate<N>(w.s, lists, l, &sums[h][i - span.start]);
             });
        for (int64_t h = 0; h < heads.count; h++) {
            const int64_t m = matrix(heads, h);
            T *rows = dq.row(m, span.start);
            for (int c = 0; c < span.size() * dq.width; c++)
                rows[c] *= T(p.scale);
            for (int i = 0; i < span.size(); i++)
                if (fabs(lse[m * p.queries + span.start + i] * T(LOG2E)) > LARGE && sums[h][i] > 0)
                    normalize(m, span.start + i, 1 / sums[h][i]);
        }
    }

    // All that is linear in a query's weights, for both walks; this task alone reads it by now.
    void normalize(int64_t m, int64_t i, T factor) const {
        for (int c = 0; c < dq.width; c++)
            dq.row(m, i)[c] *= factor;
        for (int c = 0; c < dout.width; c++)
            dout.row(m, i)[c] *= factor;
        delta[m * p.queries + i] *= factor;
    }

    // The gradients take the places of k and v, which this task alone still reads.
    void backward_keys(const spherule_arc_table &table, const Span &span, const Heads &heads,
                       Workspace<T> &w) const {
        memset(w.dk.data, 0, size_t(heads.count * TILE * k.width) * sizeof(T));
        memset(w.dv.data, 0, size_t(heads.count * TILE * v.width) * sizeof(T));
        walk(table, nullptr, span, heads, w,
             [&](auto n, const Lists<T> &lists, int64_t h, int64_t m, int64_t i) {
                 constexpr int N = decltype(n)::value;
                 const int64_t at = h * TILE + i - span.start;
                 block_dots<N, true>(k.row(m, i), q.row(m, 0), q.width, lists, w.s);
                 block_dots<N, false>(v.row(m, i), dout.row(m, 0), v.width, lists, w.ds);
                 const auto gather = [&](const Rows<T> &rows) {
                     for (int t = 0; t < rows.padded; t++) {
                         w.lse[t] = lse[m * p.queries + rows.row[t]] * T(LOG2E);
                         w.delta[t] = delta[m * p.queries + rows.row[t]];
                     }
                 };
                 gather(lists.common);
                 differentiate_keys<N>(w.s, w.ds, lists.common, w.lse, w.delta);
                 for (int j = 0; j < N; j++) {
                     gather(lists.extra[j]);
                     differentiate_keys<1>(w.s + own_scores(j), w.ds + own_scores(j),
                                           lists.extra[j], w.lse, w.delta);
                 }
                 block_accumulate<N>(w.s, dout.row(m, 0), v.width, lists, w.dv.data + at * v.width);
                 block_accumulate<N>(w.ds, q.row(m, 0), q.width, lists, w.dk.data + at * k.width);
             });
        const uint8_t *kept = mask(heads);
        for (int64_t h = 0; h < heads.count; h++) {
            for (int i = 0; i < span.size(); i++) {
                const bool keep = !kept || kept[span.start + i];
                const T *dk = w.dk.data + (h * TILE + i) * k.width,
                        *dv = w.dv.data + (h * TILE + i) * v.width;
                T *k_row = k.row(matrix(heads, h), span.start + i),
                  *v_row = v.row(matrix(heads, h), span.start + i);
                // The packed queries hold log2(e) besides the scale.
                for (int c = 0; c < k.width; c++)
                    k_row[c] = keep ? dk[c] * T(LN2) : 0;
                for (int c = 0; c < v.width; c++)
                    v_row[c] = keep ? dv[c] : 0;
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
    Scratch scratch(p, {&a.q, &a.k, &a.v, &a.out});
    if (!plan.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
    a.lse = lse;
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Workspace<T> work(p, 0, 0);
        failed = !work.ok();
        pack(p, q, a.q, p.scale * LOG2E);
        pack(p, k, a.k);
        pack(p, v, a.v);
        for_tasks(plan, p, failed,
                  [&](const Span &s, const Heads &h) { a.forward(table, s, h, work); });
        unpack(p, out, a.out);
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int backward(const spherule_arc_table &table, const spherule_arc_table &transpose,
             const spherule_problem &p, const spherule_strided *q, const spherule_strided *k,
             const spherule_strided *v, const spherule_strided *out, const T *lse,
             const spherule_strided *dout, const T *dlse, const spherule_strided *dq,
             const spherule_strided *dk, const spherule_strided *dv) {
    Attention<T> a(p);
    const Plan plan(table), plan_transpose(transpose);
    Packed<T> delta(1, p.queries);
    Scratch scratch(p, {&a.q, &a.k, &a.v, &a.dout, &a.dq, &delta});
    if (!plan.ok() || !plan_transpose.ok() || !scratch.ok())
        return SPHERULE_NO_MEMORY;
    a.lse = (T *)lse;
    a.delta = delta.data;
    int failed = 0;
#pragma omp parallel num_threads(p.threads) reduction(| : failed)
    {
        Workspace<T> work(p, a.k.width, a.v.width);
        failed = !work.ok();
        pack(p, q, a.q, p.scale * LOG2E);
        pack(p, k, a.k);
        pack(p, v, a.v);
        pack(p, dout, a.dout);
        row_dots(p, dout, out, dlse, a.delta);
        for_tasks(plan, p, failed,
                  [&](const Span &s, const Heads &h) { a.backward_queries(table, s, h, work); });
        for_tasks(plan_transpose, p, failed,
                  [&](const Span &s, const Heads &h) { a.backward_keys(transpose, s, h, work); });
        unpack(p, dq, a.dq);
        unpack(p, dk, a.k);
        unpack(p, dv, a.v);
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

int run_forward(const spherule_arc_table *table, const spherule_problem *p,
                const spherule_strided *q, const spherule_strided *k, const spherule_strided *v,
                const spherule_strided *out, void *lse) {
    if (p->dtype == SPHERULE_FLOAT64)
        return forward(*table, *p, q, k, v, out, (double *)lse);
    return forward(*table, *p, q, k, v, out, (float *)lse);
}

int run_backward(const spherule_arc_table *table, const spherule_arc_table *transpose,
                 const spherule_problem *p, const spherule_strided *q, const spherule_strided *k,
                 const spherule_strided *v, const spherule_strided *out, const void *lse,
                 const spherule_strided *grad_out, const void *grad_lse, const spherule_strided *dq,
                 const spherule_strided *dk, const spherule_strided *dv) {
    if (p->dtype == SPHERULE_FLOAT64)
        return backward(*table, *transpose, *p, q, k, v, out, (const double *)lse, grad_out,
                        (const double *)grad_lse, dq, dk, dv);
    return backward(*table, *transpose, *p, q, k, v, out, (const float *)lse, grad_out,
                    (const float *)grad_lse, dq, dk, dv);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const AttentionKernels SPHERULE_JOIN(attention, SPHERULE_ISA) = {run_forward, run_backward};
