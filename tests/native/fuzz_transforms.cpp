// libFuzzer on the C interface of Legendre transforms and ring spectra (make fuzz): tables that are
// valid, or had a few of their numbers replaced. The library must refuse what it cannot walk, and
// read and write nothing beyond.
#include "fuzz_bytes.h"
#include "legendre.h"
#include "ring_spectra.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace {

typedef std::vector<int64_t> Ints;
typedef std::vector<double> Doubles;

// No array here is longer, in complex numbers; what is replaced is less, or far more.
constexpr int64_t MOST = 20000;

// A valid table is walked; sizes that nothing can have are refused, for nothing is there.
void expect(bool wrong, bool wild, int status) {
    if (wild ? status != SPHERULE_BAD_SIZES : !wrong && status)
        abort();
}

// As long as the sizes say, where that is possible at all
template <class T> void resize(std::vector<T> &x, int64_t n, T value) {
    x.resize(size_t(std::min(std::max(n, int64_t(0)), MOST)), value);
    x.shrink_to_fit();
}

// Real and imaginary parts of so many numbers, two to a double in single precision; `wild`: there
// are none
Doubles room(bool &wild, int32_t dtype, int64_t a, int64_t b, int64_t c) {
    wild = wild || std::min({a, b, c}) < 0 || std::max({a, b, c}) > MOST;
    return Doubles(size_t(wild ? 0 : a * b * c * (dtype == SPHERULE_FLOAT64 ? 2 : 1)), 0.25);
}

bool finite(const Doubles &x, int32_t dtype) {
    for (size_t i = 0; i < (dtype == SPHERULE_FLOAT64 ? x.size() : 0); i++)
        if (!std::isfinite(x[i]))
            return false;
    return true;
}

void legendre(Bytes &in) {
    const int64_t pairs = in.below(40), lmax = in.below(70);
    Ints sizes = {in.below(12), lmax, 2 * pairs, pairs, in.below(9)}, north, south, order;
    Doubles y, log2_sin, start;
    for (int64_t i = 0; i < pairs; i++) {
        const double theta = (double(i) + 0.3) / double(pairs) * M_PI_2;
        y.push_back(1 - cos(theta)), log2_sin.push_back(log2(sin(theta)));
        north.push_back(in.below(5) ? i : -1), south.push_back(in.below(5) ? pairs + i : -1);
    }
    for (int64_t i = 0; i < sizes[4]; i++)
        order.push_back(in.below(lmax + 1));
    for (int64_t m = 0; m <= lmax; m++)
        start.push_back(m % 2 ? -0.3 : 0.3);
    spherule_legendre s = {};
    s.dtype = int32_t(in.below(2)), s.threads = 1 + int32_t(in.below(3));
    const bool wrong = in.below(3) != 0;
    bool wild = false;
    for (int64_t i = in.below(3); wrong && i >= 0; i--) {
        const double odd[] = {-1, 0, 0.4, 1, 1.0001, 1.9, 2.5, NAN, INFINITY, -INFINITY};
        if (in.below(3))
            in.disturb({&sizes, &north, &south, &order});
        else if (pairs)
            (in.below(2) ? y : log2_sin)[size_t(in.below(pairs))] = odd[in.below(10)];
    }
    const int64_t degrees = sizes[1] < MOST ? sizes[1] + 1 : sizes[1];
    Doubles coeffs = room(wild, s.dtype, sizes[0], degrees, sizes[4]),
            spectra = room(wild, s.dtype, sizes[0], sizes[2], sizes[4]);
    resize(y, sizes[3], 1.0), resize(log2_sin, sizes[3], 0.0);
    resize(north, sizes[3], int64_t(-1)), resize(south, sizes[3], int64_t(-1));
    resize(order, sizes[4], int64_t(0)), resize(start, degrees, 0.3);
    s.fields = sizes[0], s.lmax = sizes[1], s.rings = sizes[2], s.pairs = sizes[3];
    s.orders = sizes[4];
    s.y = y.data(), s.log2_sin = log2_sin.data(), s.start = start.data();
    s.north = north.data(), s.south = south.data(), s.order = order.data();
    wild = wild || s.pairs > MOST || s.pairs < 0;
    expect(wrong, wild, spherule_legendre_synthesis(&s, coeffs.data(), spectra.data()));
    if (!wrong && !finite(spectra, s.dtype))
        abort();
    expect(wrong, wild, spherule_legendre_analysis(&s, spectra.data(), coeffs.data()));
    if (!wrong && !finite(coeffs, s.dtype))
        abort();
}

void ring_spectra(Bytes &in) {
    const int64_t rings = in.below(9);
    Ints sizes = {in.below(4), rings, in.below(50)}, nphi, stride;
    for (int64_t r = 0; r < rings; r++)
        nphi.push_back(1 + in.below(20)), stride.push_back(nphi.back() / 2 + 1 + in.below(3));
    spherule_ring_spectra s = {};
    s.both = int32_t(in.below(2)), s.dtype = int32_t(in.below(2));
    s.threads = 1 + int32_t(in.below(3));
    const bool wrong = in.below(3) != 0, turned = in.below(2);
    bool wild = false;
    for (int64_t i = in.below(3); wrong && i >= 0; i--)
        in.disturb({&sizes, &nphi, &stride});
    Doubles orders = room(wild, s.dtype, sizes[0], sizes[1], sizes[2]),
            phases = room(wild, s.dtype, 1, sizes[1], sizes[2]);
    resize(nphi, sizes[1], int64_t(1)), resize(stride, sizes[1], int64_t(1));
    std::vector<Doubles> half;
    std::vector<void *> places;
    for (size_t r = 0; r < nphi.size(); r++) {
        bool none = wild;  // null, then
        half.push_back(room(none, s.dtype, sizes[0], std::max(stride[r], int64_t(0)), 1));
        half.back().reserve(none ? 0 : 1);
        places.push_back(none ? nullptr : half.back().data());
    }
    s.fields = sizes[0], s.rings = sizes[1], s.orders = sizes[2];
    s.nphi = nphi.data(), s.stride = stride.data(), s.half = places.data();
    s.phases = turned ? phases.data() : nullptr;
    expect(wrong, wild, spherule_fold(&s, orders.data()));
    expect(wrong, wild, spherule_unfold(&s, orders.data()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes in{data, size};
    in.below(2) ? legendre(in) : ring_spectra(in);
    return 0;
}
