// Drives the DISCO kernels through many shapes, for the sanitizers, and compares them with sums
// that are written out.
#include "disco.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

typedef std::vector<int64_t> Ints;

struct Sums {
    int runs = 0, failures = 0;
} sums;

int64_t below(int64_t n) { return rand() % n; }

template <class T> std::vector<T> noise(int64_t n) {
    std::vector<T> x(n);
    for (T &v : x)
        v = T(rand()) / T(RAND_MAX) - T(0.5);
    return x;
}

template <class T>
void compare(const char *what, const std::vector<T> &a, const std::vector<T> &b) {
    T most = 0, scale = 1;
    for (size_t i = 0; i < a.size(); i++) {
        most = std::isfinite(a[i]) ? std::max(most, std::abs(a[i] - b[i])) : T(INFINITY);
        scale = std::max(scale, std::abs(b[i]));
    }
    sums.runs++;
    if (!(most <= T(sizeof(T) == 4 ? 1e-4 : 1e-12) * scale)) {
        sums.failures++;
        printf("failed: %s differs by %g\n", what, double(most));
    }
}

template <class T> spherule_fields fields(int64_t batch, int64_t channels) {
    return {batch, channels, sizeof(T) == 4 ? SPHERULE_FLOAT32 : SPHERULE_FLOAT64,
            int32_t(1 + below(3))};
}

template <class T> void mix(int64_t in, int64_t out, int64_t points, int64_t groups) {
    const int64_t batch = 2;
    const auto f = fields<T>(batch, groups);
    const auto weight = noise<T>(groups * out * in), x = noise<T>(batch * groups * in * points),
               dy = noise<T>(batch * groups * out * points);
    std::vector<T> y(dy.size()), dw(weight.size()), y_(dy.size()), dw_(weight.size());
    const spherule_mix s = {in, out, points};
    int status = spherule_disco_mix(&s, &f, weight.data(), x.data(), y.data());
    status |= spherule_disco_mix_weight(&s, &f, dy.data(), x.data(), dw.data());
    for (int64_t n = 0; n < batch * groups; n++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t c = 0; c < in; c++)
                for (int64_t i = 0; i < points; i++) {
                    const int64_t w = (n % groups * out + o) * in + c,
                                  a = (n * in + c) * points + i, b = (n * out + o) * points + i;
                    y_[b] += weight[w] * x[a], dw_[w] += x[a] * dy[b];
                }
    sums.failures += status != 0;
    compare("mix", y, y_), compare("mix, weight", dw, dw_);
}

// Rows of `hats` parts of `rings` rings, each of `phases` rows of `period` points.
struct Rows {
    int64_t rings, phases, period, hats;
    int64_t count() const { return rings * phases * hats; }
    int64_t size() const { return rings * phases * period * hats; }
    Ints origins() const {
        Ints origin;
        for (int64_t m = 0; m < count(); m++)
            origin.push_back(m / hats / phases * phases * period + m / hats % phases +
                             m % hats * rings * phases * period);
        return origin;
    }
};

template <class T> void shifts(Rows target, Rows source, bool merged) {
    const int64_t hats = 5, parts = merged ? SPHERULE_PARTS : 1, n = target.period, channels = 11;
    Ints start = {0}, of, shift, hat;
    for (int64_t t = 0; t < target.count(); t++) {
        for (int64_t m = 0; m < source.count(); m++)
            for (int64_t q = -n / 2; q < n - n / 2; q++)
                if (below(9) == 0)
                    of.push_back(m), shift.push_back(q);
        start.push_back(int64_t(of.size()));
    }
    const int64_t entries = int64_t(of.size());
    Ints low(source.count()), high(source.count()), base = {0}, place, band = {0}, span, order;
    for (int64_t e = 0; e < entries; e++) {
        low[of[e]] = std::max(low[of[e]], -shift[e]);
        high[of[e]] = std::max(high[of[e]], shift[e]);
    }
    for (int64_t m = 0; m < source.count(); m++)
        base.push_back(base.back() + low[m] + n + high[m] + 16);
    for (int64_t e = 0; e < entries; e++)
        place.push_back(base[of[e]] + low[of[e]] + shift[e]);
    while (band.back() < target.count()) {
        const int64_t a = band.back(), b = std::min(a + 3, target.count());
        const auto begin = of.begin() + start[a], end = of.begin() + start[b];
        order.insert(order.begin(), int64_t(band.size()) - 1);
        span.push_back(begin < end ? *std::min_element(begin, end) : 0);
        span.push_back(begin < end ? *std::max_element(begin, end) : -1);
        band.push_back(b);
    }
    for (int64_t e = 0; e < entries * parts; e++)
        hat.push_back(below(hats));
    const auto value = noise<T>(entries * parts), weight = noise<T>(channels * hats);
    const auto x = noise<T>(2 * channels * source.size()),
               dy = noise<T>(2 * channels * target.size());
    const Ints to = target.origins(), from = source.origins();
    const spherule_shifts s = {n,
                               hats,
                               int64_t(order.size()),
                               target.phases,
                               source.phases,
                               target.size(),
                               source.size(),
                               to.data(),
                               from.data(),
                               band.data(),
                               span.data(),
                               order.data(),
                               base.data(),
                               low.data(),
                               start.data(),
                               place.data(),
                               merged ? hat.data() : nullptr,
                               value.data()};
    const auto f = fields<T>(2, channels);
    std::vector<T> y(dy.size()), y_(dy.size()), dw(weight.size()), dw_(weight.size());
    int status = merged ? spherule_disco_depthwise(&s, &f, x.data(), weight.data(), y.data())
                        : spherule_disco_shifts(&s, &f, x.data(), y.data());
    if (merged)
        status |= spherule_disco_correlate(&s, &f, x.data(), dy.data(), dw.data());
    for (int64_t b = 0; b < 2 * channels; b++)
        for (int64_t t = 0; t < target.count(); t++)
            for (int64_t e = start[t]; e < start[t + 1]; e++)
                for (int64_t q = 0; q < n; q++) {
                    const int64_t i = b * target.size() + to[t] + q * target.phases;
                    const T u =
                        x[b * source.size() + from[of[e]] + (q + shift[e] + n) % n * source.phases];
                    for (int64_t k = e * parts; k < (e + 1) * parts; k++) {
                        const int64_t w = b % channels * hats + hat[k];
                        y_[i] += value[k] * u * (merged ? weight[w] : T(1));
                        dw_[w] += merged ? value[k] * u * dy[i] : T(0);
                    }
                }
    sums.failures += status != 0;
    compare(merged ? "depthwise" : "shifts", y, y_), compare("correlate", dw, dw_);
    base.back() += INT64_C(1) << 33;  // a row that goes around for ever
    sums.failures += spherule_disco_shifts(&s, &f, x.data(), y.data()) != SPHERULE_BAD_TABLE;
}

template <class T> void points(const Ints &target, const Ints &source, bool spread) {
    const int64_t hats = 5, batch = 2, channels = 1 + below(40);
    Ints tstart = {0}, sstart = {0}, pairs = {0}, first, nphi, phases, step, row = {0}, start = {0};
    std::vector<int32_t> column, hat;
    for (int64_t n : target)
        tstart.push_back(tstart.back() + n);
    for (int64_t n : source)
        sstart.push_back(sstart.back() + n);
    const int64_t targets = tstart.back(), sources = sstart.back();
    int64_t longest = 0;
    for (int64_t n : target) {
        int64_t most = 0;
        for (size_t s = below(2); s < source.size(); s++) {
            const int64_t period = std::gcd(n, source[s]);
            int64_t here = 0;
            first.push_back(sstart[s]), nphi.push_back(source[s]);
            phases.push_back(n / period), step.push_back(source[s] / period);
            for (int64_t phase = 0; phase < n / period; phase++) {
                for (int64_t i = below(4); i > 0; i--)
                    column.push_back(int32_t(below(source[s]))),
                        hat.push_back(int32_t(below(hats)));
                here = std::max(here, int64_t(column.size()) - start.back());
                start.push_back(int64_t(column.size()));
            }
            row.push_back(row.back() + n / period), most += here;
        }
        pairs.push_back(int64_t(first.size())), longest = std::max(longest, most);
    }
    const auto value = noise<T>(int64_t(column.size()));
    const int64_t into = spread ? 1 : hats, out = spread ? hats : 1;
    const auto x = noise<T>(batch * channels * into * sources);
    std::vector<T> y(batch * channels * out * targets), y_(y.size());
    const spherule_points s = {int64_t(target.size()),
                               hats,
                               targets,
                               sources,
                               longest,
                               target.data(),
                               tstart.data(),
                               pairs.data(),
                               first.data(),
                               nphi.data(),
                               phases.data(),
                               step.data(),
                               row.data(),
                               start.data(),
                               column.data(),
                               hat.data(),
                               value.data(),
                               spread};
    const auto f = fields<T>(batch, channels);
    sums.failures += spherule_disco_points(&s, &f, x.data(), y.data()) != 0;
    for (int64_t b = 0; b < batch * channels; b++)
        for (size_t r = 0; r < target.size(); r++)
            for (int64_t p = pairs[r]; p < pairs[r + 1]; p++)
                for (int64_t i = 0; i < target[r]; i++) {
                    const int64_t at = row[p] + i % phases[p];
                    for (int64_t e = start[at]; e < start[at + 1]; e++) {
                        const int64_t j =
                            first[p] + (column[e] + i / phases[p] * step[p]) % nphi[p];
                        y_[(b * out + (spread ? hat[e] : 0)) * targets + tstart[r] + i] +=
                            value[e] * x[(b * into + (spread ? 0 : hat[e])) * sources + j];
                    }
                }
    compare("points", y, y_);
}

template <class T> void all() {
    for (int64_t points : {1, 100, 300})
        for (int64_t out : {1, 7, 27})
            for (int64_t in : {1, 5, 33})
                mix<T>(in, out, points, 1 + below(3));
    for (int64_t period : {16, 37, 130})
        for (int64_t phases : {1, 2, 3})
            for (int64_t hats : {1, 4}) {
                shifts<T>({4, phases, period, hats}, {3, 1, period, 1}, false);
                shifts<T>({4, 1, period, 1}, {3, phases, period, hats}, false);
                shifts<T>({4, 1, period, 1}, {3, phases, period, 1}, true);
            }
    for (int spread : {0, 1}) {
        points<T>({1, 5, 20, 33}, {4, 8, 12, 7}, spread);
        points<T>({16, 16}, {8, 1, 40}, spread);
    }
}

}  // namespace

int sanitize_disco() {
    all<float>();
    all<double>();
    printf("disco: %d runs, %d failed\n", sums.runs, sums.failures);
    return sums.failures;
}
