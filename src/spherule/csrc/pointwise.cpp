// Maps over channels. Compiled once per instruction set, under the name SPHERULE_ISA.
#include "gelu.h"
#include "isa.h"
#include "pointwise_block.h"

namespace {

// body(piece, buffers) for n pieces of work; each thread has panels of its own for so many channels
template <class T, int N, class Body>
int share_out(int threads, int64_t n, const int64_t (&rooms)[N], const Body &body) {
    int64_t size = 0, at[N];
    for (int i = 0; i < N; i++) {
        at[i] = size;
        size += Panels<T>::room(rooms[i]);
    }
    int failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
    {
        Buffer<T> memory(size);
        failed = !memory.data;
        T *buffers[N];
        for (int i = 0; i < N; i++)
            buffers[i] = memory.data + at[i];
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < n; i++)
            if (!failed)
                body(i, buffers);
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int linear(const spherule_pointwise &p, const T *weight, const SumOf<T> *bias,
           const spherule_channels *x, int64_t x_parts, const spherule_channels *y,
           int64_t y_parts) {
    typedef Panels<T> P;
    const int64_t rooms[] = {p.in, p.out};
    return share_out<T>(p.threads, p.batch * P::per_field(p), rooms, [&](int64_t n, T **buffers) {
        const auto b = P::block(p, n);
        P::pack(b, x, x_parts, p.in, buffers[0]);
        P::multiply(b, p.in, weight, bias, buffers[0], y, y_parts, buffers[1]);
    });
}

template <class T>
int linear_backward(const spherule_pointwise &p, const T *transpose, const spherule_channels *x,
                    int64_t x_parts, const spherule_channels *dy, int64_t y_parts,
                    const spherule_channels *dx, SumOf<T> *dweight, SumOf<T> *dbias) {
    typedef Panels<T> P;
    typedef SumOf<T> S;
    const int64_t size = p.out * p.in;
    const Runs<T> runs(p, size + p.out);
    if (!runs.shares.data)
        return SPHERULE_NO_MEMORY;
    const int status =
        share_out<T>(p.threads, runs.n, {p.out, p.in, p.in}, [&](int64_t run, T **buffers) {
            T *gradient = buffers[0], *field = buffers[1], *turned = buffers[2];
            runs.walk(p, run, [&](const auto &b, S *share) {
                P::pack(b, dy, y_parts, p.out, gradient);
                if (dx)
                    P::multiply(b, p.out, transpose, (const S *)nullptr, gradient, dx, x_parts,
                                turned);
                if (dweight) {
                    P::pack(b, x, x_parts, p.in, field);
                    P::turn(b, p.in, field, turned);
                    P::correlate(b, p.out, p.in, gradient, turned, share);
                }
                if (dbias)
                    P::total(b, p.out, gradient, share + size);
            });
        });
    if (status == SPHERULE_OK) {
        runs.add(0, size, dweight);
        runs.add(size, p.out, dbias);
    }
    return status;
}

template <class T>
int mlp(const spherule_pointwise &p, const T *first, const SumOf<T> *bias, const T *second,
        const spherule_channels &x, const spherule_channels &y) {
    typedef Panels<T> P;
    typedef SumOf<T> S;
    const int64_t rooms[] = {p.in, p.hidden};
    return share_out<T>(p.threads, p.batch * P::per_field(p), rooms, [&](int64_t n, T **buffers) {
        T *field = buffers[0], *hidden = buffers[1];
        const auto b = P::block(p, n);
        P::pack(b, &x, 1, p.in, field);
        P::multiply(b, p.hidden, p.in, first, bias, field, hidden);
        for (int64_t i = 0; i < b.tiles() * p.hidden * P::SIZE; i += W<T>) {
            Wide<T> h(hidden + i);
            for (Vec<S> &v : h.v)
                v = Gelu<T>(v).value;
            h.keep(hidden + i);
        }
        P::multiply(b, p.hidden, second, (const S *)nullptr, hidden, &y, 1);
    });
}

template <class T>
int mlp_backward(const spherule_pointwise &p, const T *first, const T *first_transpose,
                 const SumOf<T> *bias, const T *second_transpose, const spherule_channels &x,
                 const spherule_channels &dy, const spherule_channels &dx, SumOf<T> *dfirst,
                 SumOf<T> *dbias, SumOf<T> *dsecond) {
    typedef Panels<T> P;
    typedef SumOf<T> S;
    const int64_t weights = p.hidden * p.in, second = weights + p.hidden;
    const Runs<T> runs(p, second + p.hidden * p.out);
    if (!runs.shares.data)
        return SPHERULE_NO_MEMORY;
    const int64_t rooms[] = {p.in, p.out, p.hidden, p.hidden, max(p.in, p.out)};
    const int status = share_out<T>(p.threads, runs.n, rooms, [&](int64_t run, T **buffers) {
        T *field = buffers[0], *gradient = buffers[1], *hidden = buffers[2], *slope = buffers[3],
          *turned = buffers[4];
        runs.walk(p, run, [&](const auto &b, S *share) {
            P::pack(b, &x, 1, p.in, field);
            P::pack(b, &dy, 1, p.out, gradient);
            P::multiply(b, p.hidden, p.in, first, bias, field, hidden);
            P::multiply(b, p.hidden, p.out, second_transpose, (const S *)nullptr, gradient, slope);
            for (int64_t i = 0; i < b.tiles() * p.hidden * P::SIZE; i += W<T>) {
                Wide<T> h(hidden + i), s(slope + i);
                for (int j = 0; j < h.N; j++) {
                    const Gelu<T> gelu(h.v[j]);
                    h.v[j] = gelu.value, s.v[j] *= gelu.slope;
                }
                h.keep(hidden + i), s.keep(slope + i);
            }
            P::multiply(b, p.hidden, first_transpose, (const S *)nullptr, slope, &dx, 1);
            P::turn(b, p.in, field, turned);
            P::correlate(b, p.hidden, p.in, slope, turned, share);
            P::total(b, p.hidden, slope, share + weights);
            P::turn(b, p.out, gradient, turned);
            P::correlate(b, p.hidden, p.out, hidden, turned, share + second);
        });
    });
    if (status == SPHERULE_OK) {
        runs.add(0, weights, dfirst);
        runs.add(weights, p.hidden, dbias);
        runs.add(second, p.hidden * p.out, dsecond);
    }
    return status;
}

// f(a value of the fields' type)
template <class F> int with_dtype(const spherule_pointwise *p, const F &f) {
    if (p->dtype == SPHERULE_BFLOAT16)
        return f(Brain());
    return p->dtype == SPHERULE_FLOAT64 ? f(double()) : f(float());
}

int run_linear(const spherule_pointwise *p, const void *weight, const void *bias,
               const spherule_channels *x, int64_t x_parts, const spherule_channels *y,
               int64_t y_parts) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return linear<T>(*p, (const T *)weight, (const SumOf<T> *)bias, x, x_parts, y, y_parts);
    });
}
int run_linear_backward(const spherule_pointwise *p, const void *transpose,
                        const spherule_channels *x, int64_t x_parts, const spherule_channels *dy,
                        int64_t y_parts, const spherule_channels *dx, void *dweight, void *dbias) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return linear_backward<T>(*p, (const T *)transpose, x, x_parts, dy, y_parts, dx,
                                  (SumOf<T> *)dweight, (SumOf<T> *)dbias);
    });
}
int run_mlp(const spherule_pointwise *p, const void *first, const void *bias, const void *second,
            const spherule_channels *x, const spherule_channels *y) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return mlp<T>(*p, (const T *)first, (const SumOf<T> *)bias, (const T *)second, *x, *y);
    });
}
int run_mlp_backward(const spherule_pointwise *p, const void *first, const void *first_transpose,
                     const void *bias, const void *second_transpose, const spherule_channels *x,
                     const spherule_channels *dy, const spherule_channels *dx, void *dfirst,
                     void *dbias, void *dsecond) {
    return with_dtype(p, [&](auto t) {
        typedef decltype(t) T;
        return mlp_backward<T>(*p, (const T *)first, (const T *)first_transpose,
                               (const SumOf<T> *)bias, (const T *)second_transpose, *x, *dy, *dx,
                               (SumOf<T> *)dfirst, (SumOf<T> *)dbias, (SumOf<T> *)dsecond);
    });
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const PointwiseKernels SPHERULE_JOIN(pointwise, SPHERULE_ISA) = {run_linear, run_linear_backward,
                                                                 run_mlp, run_mlp_backward};
