// Vectors of 16-bit numbers (bfloat16). A product takes pairs of terms, side by side in 32 bits,
// and adds both to a 32-bit sum.
//
// Two vectors of 16-bit numbers become pairs in halves: within every 16 bytes, the numbers of the
// first 8 bytes go to one vector of pairs and those of the last to the other. Sums come in the same
// halves, from which 16-bit numbers are put together in their own order again.
#pragma once
#include "simd.h"

namespace {

// Whether products of 16-bit numbers are worth it: where they are emulated, only tests want them.
#if defined(SPHERULE_PRODUCTS_OF_16_BITS) || defined(SPHERULE_EMULATED)
constexpr bool SHORT_PRODUCTS = true;
#else
constexpr bool SHORT_PRODUCTS = false;
#endif

typedef Simd<float>::I Pairs;

template <class V> struct Halves {
    V low, high;
};

template <int HIGH, int... I> INLINE Pairs interleave(Vec<Brain> a, Vec<Brain> b, Lanes<I...>) {
    constexpr int n = sizeof...(I);
    return (Pairs)__builtin_shufflevector(a, b, (I / 8 * 8 + HIGH * 4 + I % 8 / 2 + I % 2 * n)...);
}
// Each number of a with its neighbor of b
INLINE Halves<Pairs> pairs(Vec<Brain> a, Vec<Brain> b) {
    constexpr LanesOf<Vec<Brain>, Brain> lanes;
    return {interleave<0>(a, b, lanes), interleave<1>(a, b, lanes)};
}
INLINE Halves<Vec<float>> widen(Vec<Brain> x) {
    const Halves<Pairs> p = pairs(Vec<Brain>{}, x);
    return {(Vec<float>)p.low, (Vec<float>)p.high};
}

// Rounded to even, in the high 16 bits
INLINE Vec<Brain> rounded(Vec<float> x) {
    const Pairs u = (Pairs)x;
    const Pairs r = u + 0x7fff + (u >> 16 & 1), quiet = u | 0x400000;
    return (Vec<Brain>)(x == x ? r : quiet);
}
template <int... I> INLINE Vec<Brain> join(Vec<Brain> low, Vec<Brain> high, Lanes<I...>) {
    constexpr int n = sizeof...(I);
    return __builtin_shufflevector(low, high, (I / 8 * 8 + I % 4 * 2 + 1 + I % 8 / 4 * n)...);
}
INLINE Vec<Brain> narrow(Halves<Vec<float>> x) {
    return join(rounded(x.low), rounded(x.high), LanesOf<Vec<Brain>, Brain>());
}

// What sums of products have
template <class T> struct SumIn {
    typedef T type;
};
template <> struct SumIn<Brain> {
    typedef float type;
};
template <class T> using SumOf = typename SumIn<T>::type;

// A vector of numbers, as sums have them
template <class T> struct Wide {
    static constexpr int N = 1;
    Vec<T> v[N];
    INLINE explicit Wide(const T *from) : v{load(from)} {}
    INLINE void keep(T *to) const { store(to, v[0]); }
};
template <> struct Wide<Brain> {
    static constexpr int N = 2;
    Vec<float> v[N];
    INLINE explicit Wide(const Brain *from) {
        const Halves<Vec<float>> h = widen(load(from));
        v[0] = h.low, v[1] = h.high;
    }
    INLINE void keep(Brain *to) const { store(to, narrow({v[0], v[1]})); }
};

// Halves in the order of their numbers
template <int FROM, int... I>
INLINE Vec<float> in_order(Vec<float> low, Vec<float> high, Lanes<I...>) {
    constexpr int n = sizeof...(I);
    return __builtin_shufflevector(
        low, high, ((FROM * n + I) / 8 * 4 + I % 4 + (FROM * n + I) % 8 / 4 * n)...);
}
INLINE void store_in_order(float *to, Halves<Vec<float>> x) {
    constexpr LanesOf<Vec<float>, float> lanes;
    store(to, in_order<0>(x.low, x.high, lanes));
    store(to + W<float>, in_order<1>(x.low, x.high, lanes));
}

// As many numbers as a vector of sums has, in their order
typedef uint16_t HalfVector __attribute__((vector_size(SPHERULE_VECTOR_BYTES / 2)));
INLINE Vec<float> load_wide(const Brain *p) {
    HalfVector v;
    memcpy(&v, p, sizeof v);
    return (Vec<float>)(__builtin_convertvector(v, Pairs) << 16);
}
INLINE void store_short(Brain *p, Vec<float> x) {
    const HalfVector v = __builtin_convertvector((Pairs)rounded(x) >> 16, HalfVector);
    memcpy(p, &v, sizeof v);
}

// s + both products of pairs
INLINE Vec<float> plus_products(Vec<float> s, Pairs a, Pairs b) {
#ifdef SPHERULE_PRODUCTS_OF_16_BITS
    return (Vec<float>)_mm512_dpbf16_ps((__m512)s, (__m512bh)a, (__m512bh)b);
#else
    const int32_t high = int32_t(0xffff0000);
    return s + (Vec<float>)(a << 16) * (Vec<float>)(b << 16) +
           (Vec<float>)(a & high) * (Vec<float>)(b & high);
#endif
}

// s + a b, or of 16-bit numbers the sums of neighbors
template <class V> INLINE V plus_product(V s, V a, V b) { return s + a * b; }
INLINE Vec<float> plus_product(Vec<float> s, Vec<Brain> a, Vec<Brain> b) {
    return plus_products(s, (Pairs)a, (Pairs)b);
}

// Two numbers next to each other, in every lane
INLINE Pairs fill_pair(const Brain *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair - Pairs{};
}
INLINE Pairs fill_single(const Brain *p) { return int32_t(p->bits) - Pairs{}; }

}  // namespace
