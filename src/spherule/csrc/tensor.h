// Strided tensors of any dtype to packed rows [point][channel] of the computing type, and back.
#pragma once
#include "simd.h"
#include "spherule.h"

namespace {

struct Half {
    uint16_t bits;
};
INLINE float bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
INLINE uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

INLINE float widen(float x) { return x; }
INLINE double widen(double x) { return x; }
INLINE float widen(Brain x) { return bits_float(uint32_t(x.bits) << 16); }
INLINE float widen(Half x) {
    const uint32_t sign = uint32_t(x.bits & 0x8000) << 16, rest = uint32_t(x.bits & 0x7fff) << 13;
    // Multiplying by 2^112 moves the exponent's bias and makes subnormals normal.
    const float f =
        rest >= 0x0f800000 ? bits_float(rest | 0x7f800000) : bits_float(rest) * 0x1p112f;
    return bits_float(float_bits(f) | sign);
}

INLINE void narrow(Brain x, Brain *y) { *y = x; }
INLINE void narrow(float x, float *y) { *y = x; }
INLINE void narrow(double x, double *y) { *y = x; }
INLINE void narrow(float x, Brain *y) {
    const uint32_t u = float_bits(x);
    y->bits = x == x ? uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16) : 0x7fc0;
}
INLINE void narrow(float x, Half *y) {
    const uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) {
        y->bits = 0x7e00;
    } else if (a >= 0x477ff000) {  // rounds past the largest half
        y->bits = uint16_t(sign | 0x7c00);
    } else if (a < 0x38800000) {  // subnormal: let an addition do the rounding
        y->bits = uint16_t(sign | (float_bits(bits_float(a) + 0.5f) - 0x3f000000));
    } else {
        y->bits = uint16_t(sign | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13));
    }
}

// One (batch, head) of a tensor: a matrix (points, dim).
struct Matrix {
    char *data;
    int64_t point, channel;  // strides
    int dim, dtype;
};

INLINE int element_size(int dtype) {
    return dtype == SPHERULE_FLOAT64 ? 8 : dtype == SPHERULE_FLOAT32 ? 4 : 2;
}

INLINE Matrix matrix(const spherule_strided *t, int64_t batch, int64_t head, int64_t dim,
                     int dtype) {
    char *data =
        (char *)t->data + (batch * t->stride[0] + head * t->stride[1]) * element_size(dtype);
    return {data, t->stride[2], t->stride[3], int(dim), dtype};
}

// Channel by channel to point by point goes through a small patch, so that both sides move in whole
// cache lines whatever power of two lies between their rows.
constexpr int RUN = 128;                                            // points of the patch
template <class T> constexpr int CHANNELS = W<T> > 16 ? W<T> : 16;  // and its channels

// A number as it is computed with
template <class T, class S> INLINE T convert(S x) {
    if constexpr (sizeof(T) == 2)
        return x;
    else
        return T(widen(x));
}

template <class S, class T>
void pack_as(const Matrix &m, int64_t first, int n, T *rows, int width) {
    const S *source = (const S *)m.data + first * m.point;
    if (m.channel == 1) {
        for (int i = 0; i < n; i++) {
            T *row = rows + int64_t(i) * width;
            for (int c = 0; c < m.dim; c++)
                row[c] = convert<T>(source[i * m.point + c]);
            for (int c = m.dim; c < width; c++)
                row[c] = T{};
        }
        return;
    }
    T patch[CHANNELS<T>][RUN];
    for (int i0 = 0; i0 < n; i0 += RUN) {
        for (int c0 = 0; c0 < width; c0 += CHANNELS<T>) {
            const int points = min(RUN, n - i0), channels = min(CHANNELS<T>, width - c0);
            for (int c = 0; c < channels; c++) {
                const S *x = source + i0 * m.point + (c0 + c) * m.channel;
                const bool real = c0 + c < m.dim;
                if (real && m.point == 1) {
                    for (int i = 0; i < points; i++)
                        patch[c][i] = convert<T>(x[i]);
                } else {
                    for (int i = 0; i < points; i++)
                        patch[c][i] = real ? convert<T>(x[i * m.point]) : T{};
                }
            }
            for (int i = 0; i < points; i += W<T>) {
                for (int c = 0; c < channels; c += W<T>) {
                    Vec<T> v[W<T>];
                    UNROLL for (int j = 0; j < W<T>; j++) v[j] = load(&patch[c + j][i]);
                    transpose<T>(v);
                    for (int j = 0; j < min(W<T>, points - i); j++)
                        store(rows + int64_t(i0 + i + j) * width + c0 + c, v[j]);
                }
            }
        }
    }
}

template <class S, class T>
void unpack_as(const Matrix &m, int64_t first, int n, const T *rows, int width) {
    S *target = (S *)m.data + first * m.point;
    if (m.channel == 1) {
        for (int i = 0; i < n; i++)
            for (int c = 0; c < m.dim; c++)
                narrow(rows[int64_t(i) * width + c], target + i * m.point + c);
        return;
    }
    T patch[CHANNELS<T>][RUN];
    for (int i0 = 0; i0 < n; i0 += RUN) {
        for (int c0 = 0; c0 < m.dim; c0 += CHANNELS<T>) {
            const int points = min(RUN, n - i0), channels = min(CHANNELS<T>, width - c0);
            for (int i = 0; i < points; i += W<T>) {
                for (int c = 0; c < channels; c += W<T>) {
                    Vec<T> v[W<T>] = {};
                    for (int j = 0; j < min(W<T>, points - i); j++)
                        v[j] = load(rows + int64_t(i0 + i + j) * width + c0 + c);
                    transpose<T>(v);
                    UNROLL for (int j = 0; j < W<T>; j++) store(&patch[c + j][i], v[j]);
                }
            }
            for (int c = 0; c < min(channels, m.dim - c0); c++) {
                S *x = target + i0 * m.point + (c0 + c) * m.channel;
                if (m.point == 1) {
                    for (int i = 0; i < points; i++)
                        narrow(patch[c][i], x + i);
                } else {
                    for (int i = 0; i < points; i++)
                        narrow(patch[c][i], x + i * m.point);
                }
            }
        }
    }
}

// dots[i] = a[i] . b[i]
template <class S, class T>
void row_dots_as(const Matrix &a, const Matrix &b, int64_t first, int n, T *dots) {
    const S *x = (const S *)a.data + first * a.point, *y = (const S *)b.data + first * b.point;
    if (a.channel == 1 && b.channel == 1) {
        for (int i = 0; i < n; i++, x += a.point, y += b.point) {
            T lanes[W<T>] = {};
            for (int c = 0; c < a.dim; c += W<T>)
                for (int j = 0; j < min(W<T>, a.dim - c); j++)
                    lanes[j] += T(widen(x[c + j])) * T(widen(y[c + j]));
            dots[i] = sum<T>(load(lanes));
        }
        return;
    }
    for (int i = 0; i < n; i++)
        dots[i] = 0;
    for (int c = 0; c < a.dim; c++)
        for (int i = 0; i < n; i++)
            dots[i] +=
                T(widen(x[i * a.point + c * a.channel])) * T(widen(y[i * b.point + c * b.channel]));
}

// f(a value of the tensors' type)
template <class F> INLINE void with_type(int dtype, double, const F &f) {
    (void)dtype, f(double());
}
template <class F> INLINE void with_type(int, Brain, const F &f) { f(Brain()); }
template <class F> INLINE void with_type(int dtype, float, const F &f) {
    if (dtype == SPHERULE_FLOAT32)
        f(float());
    if (dtype == SPHERULE_FLOAT16)
        f(Half());
    if (dtype == SPHERULE_BFLOAT16)
        f(Brain());
}

}  // namespace
