// Vectors by compiler extension: one source for every instruction set. Widths follow the target
// flags.
#pragma once
#include <stdint.h>
#include <string.h>
#if defined(__AVX512BF16__) && !defined(SPHERULE_VECTOR_BYTES)
#include <immintrin.h>  // products of 16 bits, the one thing that compilers' vectors lack
#define SPHERULE_PRODUCTS_OF_16_BITS
#endif

#ifdef SPHERULE_VECTOR_BYTES
#define SPHERULE_EMULATED  // tests of other widths than the machine's
#elif defined(__AVX512F__)
#define SPHERULE_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SPHERULE_VECTOR_BYTES 32
#else
#define SPHERULE_VECTOR_BYTES 16
#endif

// Keeps a loaded value in a register: compilers would rather load it again for every product.
#if defined(__AVX512F__)
#define KEEP(v) asm("" : "+v"(v))
#elif defined(__x86_64__)
#define KEEP(v) asm("" : "+x"(v))
#elif defined(__aarch64__)
#define KEEP(v) asm("" : "+w"(v))
#endif
#if !defined(KEEP) || defined(SPHERULE_EMULATED)
#undef KEEP
#define KEEP(v) (void)(v)
#endif

// Vectors of sums in a loop: half of the registers.
#if defined(__AVX512F__) || defined(__aarch64__)
#define SPHERULE_SUMS 16
#else
#define SPHERULE_SUMS 8
#endif

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

namespace {

// Everything below is in an unnamed namespace: this header is compiled for several instruction
// sets, and a function shared between them by the linker could be one that this machine cannot run.

template <class T> struct Simd;
template <> struct Simd<float> {
    typedef float V __attribute__((vector_size(SPHERULE_VECTOR_BYTES)));
    typedef int32_t I __attribute__((vector_size(SPHERULE_VECTOR_BYTES)));
    typedef float Load __attribute__((vector_size(SPHERULE_VECTOR_BYTES), aligned(4), may_alias));
    static constexpr int mantissa = 23, bias = 127;
    static constexpr float round = 0x1.8p23f;
    // 2^f on [-1/2, 1/2], relative error 2e-9
    static constexpr float exp2[] = {1.0f,
                                     0.693147206702832f,
                                     0.240226509222887f,
                                     0.055503272266703f,
                                     0.00961805667852f,
                                     0.00134004281776f,
                                     0.000154614446985691f};
};
template <> struct Simd<double> {
    typedef double V __attribute__((vector_size(SPHERULE_VECTOR_BYTES)));
    typedef int64_t I __attribute__((vector_size(SPHERULE_VECTOR_BYTES)));
    typedef double Load __attribute__((vector_size(SPHERULE_VECTOR_BYTES), aligned(8), may_alias));
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr double round = 0x1.8p52;
    // relative error 3e-18
    static constexpr double exp2[] = {1.0,
                                      0.69314718055994530925,
                                      0.24022650695910159567,
                                      0.055504108664821627039,
                                      0.0096181291075872566681,
                                      0.0013333558146406470697,
                                      0.00015403530463724354209,
                                      1.5252733841556772589e-5,
                                      1.3215432535912376166e-6,
                                      1.0178057087733941105e-7,
                                      7.0741942972885210056e-9,
                                      4.455817908336064493e-10};
};

// bfloat16: 16-bit numbers that are stored and multiplied, and summed in 32 bits
struct Brain {
    uint16_t bits;
};
template <> struct Simd<Brain> {
    typedef uint16_t V __attribute__((vector_size(SPHERULE_VECTOR_BYTES)));
    typedef uint16_t Load
        __attribute__((vector_size(SPHERULE_VECTOR_BYTES), aligned(2), may_alias));
};

template <class T> using Vec = typename Simd<T>::V;
template <class T> constexpr int W = SPHERULE_VECTOR_BYTES / int(sizeof(T));
// Dot products come in tiles of so many: whole vectors, to which lists of rows are padded.
template <class T> constexpr int PAD = W<T> > 8 ? W<T> : 8;

template <class T> INLINE Vec<T> load(const T *p) { return *(const typename Simd<T>::Load *)p; }
template <class T> INLINE void store(T *p, Vec<T> v) { *(typename Simd<T>::Load *)p = v; }
template <class T> INLINE Vec<T> fill(T x) { return x - Vec<T>{}; }
template <class T> INLINE T max(T a, T b) { return a > b ? a : b; }
template <class T> INLINE T min(T a, T b) { return a < b ? a : b; }

// 2^x, x <= 128: 0 below the normal numbers and for -inf, NaN stays NaN. Rounding by a large addend
// leaves the exponent of the result in the low bits of r.
template <class T> INLINE Vec<T> exp2(Vec<T> x) {
    typedef Simd<T> S;
    const Vec<T> lowest = fill<T>(-S::bias), magic = fill<T>(S::round + S::bias);
    x = x < lowest ? lowest : x;
    const Vec<T> r = x + magic;
    const Vec<T> f = x - (r - magic);
    constexpr int degree = int(sizeof(S::exp2) / sizeof(T)) - 1;
    Vec<T> p = fill<T>(S::exp2[degree]);
    UNROLL for (int i = degree - 1; i >= 0; i--) p = p * f + S::exp2[i];
    return p * (Vec<T>)((typename S::I)r << S::mantissa);
}

template <class T> INLINE T sum(Vec<T> v) {
    T s[W<T>];
    store(s, v);
    for (int w = W<T> / 2; w; w /= 2)
        for (int i = 0; i < w; i++)
            s[i] += s[i + w];
    return s[0];
}

template <class T> INLINE T largest(Vec<T> v) {
    T m = v[0];
    for (int i = 1; i < W<T>; i++)
        m = max(m, T(v[i]));
    return m;
}

template <int... I> struct Lanes {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> {
    typedef Lanes<I...> type;
};
template <class V, class T> using LanesOf = typename Count<int(sizeof(V) / sizeof(T))>::type;

// In every segment of 2 H lanes, the sum of a's halves in the first half, of b's in the second.
template <int H, class V, int... I> INLINE V fold(V a, V b, Lanes<I...>) {
    constexpr int n = sizeof...(I);
    return __builtin_shufflevector(a, b, (I & H ? I + n : I)...) +
           __builtin_shufflevector(a, b, (I & H ? I + n - H : I + H)...);
}
// In every 16 bytes, the sums of a's neighboring lanes, then of b's.
template <int P, class V, int... I> INLINE V neighbors(V a, V b, Lanes<I...>) {
    constexpr int n = sizeof...(I);
    return __builtin_shufflevector(a, b, (I / P * P + (I % P * 2) % P + (I % P * 2 / P) * n)...) +
           __builtin_shufflevector(a, b,
                                   (I / P * P + (I % P * 2) % P + (I % P * 2 / P) * n + 1)...);
}

// The sums of N vectors. First within 16 bytes, which is cheap, then across.
template <int N, class T> INLINE void lane_sums(Vec<T> *v, T *s) {
    typedef Vec<T> V;
    typedef LanesOf<V, T> L;
    constexpr int P = 16 / int(sizeof(T));
    static_assert(N % 8 == 0, "sums come eight at a time");
    int n = N;
    if constexpr (P == 4) {
        n /= 2;
        UNROLL for (int i = 0; i < n; i++) v[i] = fold<2>(v[2 * i], v[2 * i + 1], L());
    }
    n /= 2;
    UNROLL for (int i = 0; i < n; i++) v[i] = neighbors<P>(v[2 * i], v[2 * i + 1], L());
    if constexpr (sizeof(V) >= 32) {
        n /= 2;
        UNROLL for (int i = 0; i < n; i++) v[i] = fold<P>(v[2 * i], v[2 * i + 1], L());
    }
    if constexpr (sizeof(V) == 64 && N % W<T> == 0) {
        n /= 2;
        UNROLL for (int i = 0; i < n; i++) v[i] = fold<2 * P>(v[2 * i], v[2 * i + 1], L());
    }
    if constexpr (N % W<T> == 0) {
        UNROLL for (int i = 0; i < N / W<T>; i++) store(s + i * W<T>, v[i]);
    } else {  // both halves of one vector are parts of the same sums
        typedef T H __attribute__((vector_size(sizeof(V) / 2)));
        H half[2];
        memcpy(half, v, sizeof(V));
        half[0] += half[1];
        memcpy(s, half, sizeof(H));
    }
}

// A square of W rows becomes its transpose.
template <int H, class T, int... I> INLINE void transpose_step(Vec<T> *v, Lanes<I...> l) {
    constexpr int n = sizeof...(I);
    UNROLL for (int i = 0; i < n; i++) {
        if (i & H)
            continue;
        const Vec<T> a = v[i], b = v[i + H];
        v[i] = __builtin_shufflevector(a, b, (I & H ? I + n - H : I)...);
        v[i + H] = __builtin_shufflevector(a, b, (I & H ? I + n : I + H)...);
    }
    if constexpr (H > 1)
        transpose_step<H / 2, T>(v, l);
}
template <class T> INLINE void transpose(Vec<T> *v) {
    transpose_step<W<T> / 2, T>(v, LanesOf<Vec<T>, T>());
}

}  // namespace
