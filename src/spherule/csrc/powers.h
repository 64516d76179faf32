// Logarithms and powers by functions that glibc has always had: its own log, log2 and exp2 are of
// 2.29, which wheels for older systems cannot ask for.
#pragma once
#include <math.h>

namespace {

constexpr double LOG2E = 1.4426950408889634074, LN2 = 0.69314718055994530942;

inline double base2_log(double x) {
    if (!(x > 0 && x < INFINITY))
        return x == 0 ? -INFINITY : x > 0 ? INFINITY : NAN;
    int exponent;
    const double part = frexp(x, &exponent);
    return exponent + log1p(part - 1) * LOG2E;
}

inline double power_of_2(double x) {
    if (x < -2000)  // below all numbers, -inf too, which is no integer
        return 0;
    const double whole = nearbyint(x);
    return ldexp(1 + expm1((x - whole) * LN2), int(whole));
}

}  // namespace
