// libFuzzer on the C interface of DISCO (make fuzz): tables that are valid, or had a few of their
// numbers replaced. The library must refuse what it cannot walk, and read nothing beyond.
#include "disco.h"
#include "fuzz_bytes.h"
#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace {

typedef std::vector<int64_t> Ints;

constexpr int64_t MANY = 100000;

// Arrays are as long as the table says, so that what it reads beyond is seen: `n` times `each`, and
// `more`. The fuzzer's own lengths begin and end somewhere.
void resize(Ints &x, int64_t n, int64_t more = 0, int64_t each = 1) {
    x.resize(size_t(std::min(std::max(n, int64_t(0)), MANY) * each + more), 0);
    x.shrink_to_fit();
}

// How many entries the last of these says there are: no more than the fuzzer can have.
int64_t entries(Ints &x) { return x.back() = std::min(x.back(), MANY); }

spherule_fields fields(Bytes &in) {
    spherule_fields f = {1 + in.below(2), 1 + in.below(9), int32_t(in.below(2)), 1};
    if (in.below(16) == 0)  // sizes that no tensor has
        (in.below(2) ? f.batch : f.channels) = in.below(2) ? -1 : INT64_MAX - in.below(3);
    return f;
}

// Room for every dtype, where sizes are those of the table before it was made wrong
std::vector<double> room(const spherule_fields &f, int64_t size) {
    const bool wild = f.batch < 0 || f.batch > 2 || f.channels < 0 || f.channels > 9;
    return std::vector<double>(size_t(wild ? 1 : f.batch * f.channels * size), 0.25);
}

void expect(bool refused, int status) {
    if (!refused && status)
        abort();  // a valid table is walked
}

struct Shifts {
    Ints scalars, to, from, band = {0}, span, order, base = {0}, low, start = {0}, place, hat;
    int64_t targets, sources;

    explicit Shifts(Bytes &in) {
        const int64_t n = 1 + in.below(40), hats = 1 + in.below(4);
        const int64_t phases = 1 + in.below(3), steps = 1 + in.below(3);
        targets = (1 + in.below(3)) * phases, sources = (1 + in.below(3)) * steps;
        for (int64_t t = 0; t < targets; t++)
            to.push_back(t / phases * phases * n + t % phases);
        for (int64_t m = 0; m < sources; m++) {
            from.push_back(m / steps * steps * n + m % steps), low.push_back(n / 2);
            base.push_back(base.back() + n / 2 + n + n + 16);
        }
        while (band.back() < targets) {
            const int64_t begin = band.back(), end = std::min(targets, begin + 1 + in.below(3));
            const int64_t first = in.below(sources), last = first + in.below(sources - first);
            for (int64_t t = begin; t < end; t++) {
                for (int64_t e = in.below(4); e > 0; e--) {
                    const int64_t m = first + in.below(last - first + 1);
                    place.push_back(base[size_t(m)] + n / 2 + in.below(n) - n / 2);
                    for (int i = 0; i < SPHERULE_PARTS; i++)
                        hat.push_back(in.below(hats));
                }
                start.push_back(int64_t(place.size()));
            }
            order.push_back(int64_t(order.size())), band.push_back(end);
            span.push_back(first), span.push_back(last);
        }
        scalars = {n, hats, int64_t(order.size()), phases, steps, targets * n, sources * n};
    }

    void run(Bytes &in) {
        const bool wrong = in.below(3) != 0;
        const auto f = fields(in);
        const bool bad = wrong || f.batch > 2 || f.batch < 0 || f.channels > 9 || f.channels < 0;
        const int64_t hats = scalars[1];
        std::vector<double> x = room(f, scalars[6]), y = room(f, scalars[5]), w = room(f, hats);
        std::vector<double> value(hat.size() + 1, 0.5);
        const int64_t sizes[2] = {scalars[5], scalars[6]};
        for (int64_t i = in.below(3); wrong && i >= 0; i--)
            in.disturb(
                {&scalars, &to, &from, &band, &span, &order, &base, &low, &start, &place, &hat});
        // Fields, and so rows, are as large as the caller's; the rest follows the table.
        scalars[5] = std::min(scalars[5], sizes[0]), scalars[6] = std::min(scalars[6], sizes[1]);
        const int64_t n = scalars[0], rows = n > 0 ? scalars[5] / n : 0,
                      froms = n > 0 ? scalars[6] / n : 0, bands = scalars[2];
        scalars[1] = std::min(scalars[1], hats);
        resize(to, rows), resize(from, froms), resize(low, froms), resize(base, froms, 1);
        resize(band, bands, 1), resize(span, bands, 0, 2);
        resize(order, bands), resize(start, rows, 1);
        resize(place, entries(start)), resize(hat, entries(start), 0, SPHERULE_PARTS);
        value.resize(std::max(hat.size(), size_t(1)), 0.5);
        const int64_t none = 0, *hats_of = hat.empty() ? &none : hat.data();  // null: no depthwise
        const spherule_shifts s = {
            n,           scalars[1], bands,        scalars[3],   scalars[4],  scalars[5],
            scalars[6],  to.data(),  from.data(),  band.data(),  span.data(), order.data(),
            base.data(), low.data(), start.data(), place.data(), hats_of,     value.data()};
        expect(bad, spherule_disco_depthwise(&s, &f, x.data(), w.data(), y.data()));
        expect(bad, spherule_disco_correlate(&s, &f, x.data(), y.data(), w.data()));
        expect(bad, spherule_disco_shifts(&s, &f, x.data(), y.data()));
    }
};

struct Points {
    Ints scalars, nphi, ringstart, pairs = {0}, first, around, phases, step, row = {0}, start = {0},
                                   column, hat;

    explicit Points(Bytes &in) {
        const int64_t hats = 1 + in.below(4), rings = 1 + in.below(3), others = 1 + in.below(3);
        Ints source;
        int64_t targets = 0, sources = 0, longest = 0;
        for (int64_t s = 0; s < others; s++)
            source.push_back(1 + in.below(12)), sources += source.back();
        for (int64_t r = 0; r < rings; r++) {
            const int64_t n = 1 + in.below(12);
            int64_t begin = 0, most = 0;
            nphi.push_back(n), ringstart.push_back(targets), targets += n;
            for (int64_t s = 0; s < others; begin += source[size_t(s++)]) {
                const int64_t ns = source[size_t(s)], period = std::gcd(n, ns);
                int64_t here = 0;
                first.push_back(begin), around.push_back(ns);
                phases.push_back(n / period), step.push_back(ns / period);
                row.push_back(row.back() + n / period);
                for (int64_t phase = 0; phase < n / period; phase++) {
                    for (int64_t e = in.below(4); e > 0; e--)
                        column.push_back(in.below(ns)), hat.push_back(in.below(hats));
                    here = std::max(here, int64_t(column.size()) - start.back());
                    start.push_back(int64_t(column.size()));
                }
                most += here;
            }
            pairs.push_back(int64_t(first.size())), longest = std::max(longest, most);
        }
        scalars = {rings, hats, targets, sources, longest, in.below(2)};
    }

    void run(Bytes &in) {
        const bool wrong = in.below(3) != 0;
        const auto f = fields(in);
        const bool bad = wrong || f.batch > 2 || f.batch < 0 || f.channels > 9 || f.channels < 0;
        const Ints before = scalars;
        std::vector<double> x = room(f, before[1] * before[3]), y = room(f, before[1] * before[2]);
        for (int64_t i = in.below(3); wrong && i >= 0; i--)
            in.disturb({&scalars, &nphi, &ringstart, &pairs, &first, &around, &phases, &step, &row,
                        &start, &column, &hat});
        for (size_t i : {1, 2, 3})  // no more than the fields have
            scalars[i] = std::min(scalars[i], before[i]);
        const int64_t rings = scalars[0];
        resize(nphi, rings), resize(ringstart, rings), resize(pairs, rings, 1);
        const int64_t count = entries(pairs);
        for (Ints *x : {&first, &around, &phases, &step})
            resize(*x, count);
        resize(row, count, 1);
        int64_t rows = 0;
        for (int64_t n : phases)
            rows += std::min(std::max(n, int64_t(0)), int64_t(1000));
        resize(start, rows, 1);
        resize(column, entries(start)), resize(hat, entries(start));
        const std::vector<int32_t> columns(column.begin(), column.end()),
            hats(hat.begin(), hat.end());
        const std::vector<double> value(column.size() + 1, 0.5);
        const spherule_points s = {rings,        scalars[1],    scalars[2],       scalars[3],
                                   scalars[4],   nphi.data(),   ringstart.data(), pairs.data(),
                                   first.data(), around.data(), phases.data(),    step.data(),
                                   row.data(),   start.data(),  columns.data(),   hats.data(),
                                   value.data(), scalars[5]};
        expect(bad, spherule_disco_points(&s, &f, x.data(), y.data()));
    }
};

void mix(Bytes &in) {
    const auto f = fields(in);
    spherule_mix m = {1 + in.below(20), in.below(20), 1 + in.below(40)};
    std::vector<double> x = room(f, m.in * m.points), y = room(f, m.out * m.points);
    std::vector<double> w = room(f, m.in * m.out);
    const bool wrong = in.below(4) == 0,
               bad = wrong || f.batch > 2 || f.batch < 0 || f.channels > 9 || f.channels < 0;
    if (wrong)
        (in.below(2) ? m.in : m.points) = in.below(2) ? 0 : INT64_MAX - in.below(3);
    expect(bad, spherule_disco_mix(&m, &f, w.data(), x.data(), y.data()));
    expect(bad, spherule_disco_mix_weight(&m, &f, y.data(), x.data(), w.data()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes in{data, size};
    switch (in.below(3)) {
    case 0:
        Shifts(in).run(in);
        break;
    case 1:
        Points(in).run(in);
        break;
    default:
        mix(in);
    }
    return 0;
}
