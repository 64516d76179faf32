// GELU, exact, and its slope.
#pragma once
#include "brain.h"

namespace {

// erfc(z) = exp(-z^2) t Q(2 t - 1) with t = 1 / (1 + z / 2), z >= 0: Chebyshev's interpolation of Q
template <class T> struct Erfc;
template <> struct Erfc<float> {  // relative error 1e-8
    static constexpr float q[] = {0.510791357f,    0.343580319f,    0.139735734f,
                                  0.0182216694f,   -0.0107516262f,  -0.00324345192f,
                                  0.00152915716f,  0.000430670488f, -0.000299382712f,
                                  -3.66018769e-5f, 4.21611972e-5f};
};
template <> struct Erfc<double> {  // 1e-16
    static constexpr double q[] = {
        0.510791352621011525,    0.343580342206905137,   0.139736046278014751,
        0.0182211157534590399,   -0.0107553309440365314, -0.00323959253458206746,
        0.00154530601410132869,  0.00041864804327911113, -0.000331536576690146124,
        -1.71858318748897515e-5, 7.2234188295048068e-5,  -1.70737811338189144e-5,
        -1.08429853299644102e-5, 8.0578758671473404e-6,  -5.77642361151142675e-7,
        -1.81503550805416656e-6, 1.03056992152911054e-6, -1.37545082331859451e-8,
        -3.26246093529667201e-7, 1.78672294791685345e-7, 3.60008452920799344e-8,
        -6.96584294340913831e-8, 6.52043461440153958e-9, 1.32163255176326486e-8,
        -1.91117372860789394e-9, -1.05903331435717986e-9};
};

template <> struct Erfc<Brain> {  // 1e-4, in 32 bits
    static constexpr float q[] = {0.510827337f,  0.343592062f,    0.139080787f,
                                  0.0180091566f, -0.00889063423f, -0.00265921191f};
};

// (a Phi(a), Phi(a) + a phi(a)), with the normal distribution Phi and its density phi, as exactly
// as numbers of type Of can say
template <class Of> struct Gelu {
    typedef SumOf<Of> T;
    Vec<T> value, slope;
    INLINE explicit Gelu(Vec<T> a) {
        constexpr double root_half = 0.70710678118654752440, half_log2e = 0.72134752044448170368;
        const Vec<T> z = (a < 0 ? -a : a) * T(root_half);
        const Vec<T> t = T(1) / (T(1) + T(0.5) * z), u = T(2) * t - T(1);
        const Vec<T> gauss = exp2<T>(a * a * T(-half_log2e));
        constexpr int degree = int(sizeof(Erfc<Of>::q) / sizeof(T)) - 1;
        Vec<T> q = fill<T>(Erfc<Of>::q[degree]);
        UNROLL for (int i = degree - 1; i >= 0; i--) q = q * u + Erfc<Of>::q[i];
        const Vec<T> tail = T(0.5) * t * q * gauss;
        const Vec<T> phi = a < 0 ? tail : T(1) - tail;
        value = a * phi;
        slope = phi + a * gauss * T(0.39894228040143267794);
    }
};

}  // namespace
