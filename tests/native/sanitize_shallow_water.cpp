// Drives the quadratic terms of shallow water through many sizes, for the sanitizers, and compares
// them with sums that are written out. Tables are random: the symmetries are the library's.
#include "shallow_water.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int runs = 0, failures = 0;

void expect(bool right, const char *what) {
    runs++;
    if (!right) {
        failures++;
        printf("failed: %s\n", what);
    }
}

// Any number of dimensions, the last padded with zeros where a row is given
template <class T> struct Table {
    std::vector<int64_t> shape;
    std::vector<T> data;
    Table(std::vector<int64_t> dims, int64_t row = 1) : shape(dims) {
        const int64_t last = shape.back();
        shape.back() = (last + row - 1) / row * row;
        int64_t size = 1;
        for (int64_t n : shape)
            size *= n;
        data.assign(size_t(size), 0);
        for (int64_t i = 0; i < size; i++)
            if (i % shape.back() < last)
                data[i] = T(rand()) / T(RAND_MAX) - T(0.5);
    }
    T operator()(std::vector<int64_t> index) const {
        int64_t at = 0;
        for (size_t d = 0; d < shape.size(); d++)
            at = at * shape[d] + index[d];
        return data.at(size_t(at));
    }
};

template <class T> void run(int64_t lmax, int64_t states, int64_t pairs, int64_t quarter) {
    const int64_t orders = lmax + 1, half = lmax / 2 + 1, row = SPHERULE_ROW;
    const Table<T> scalar({orders, orders, pairs}, row), wind({2, orders, orders, pairs}, row),
        analysis({2, orders, 3 * pairs, half}, row), to_points({2, 2, quarter, half}),
        to_orders({2, 2, half, quarter}), coriolis({orders, 2, orders});
    const Table<T> y({orders, 2, 3, states, orders});
    std::vector<std::vector<T>> results;
    for (int threads : {1, 3}) {
        const spherule_shallow_water s = {lmax,
                                          states,
                                          pairs,
                                          quarter,
                                          scalar.data.data(),
                                          wind.data.data(),
                                          analysis.data.data(),
                                          to_points.data.data(),
                                          to_orders.data.data(),
                                          coriolis.data.data(),
                                          sizeof(T) == 8 ? SPHERULE_FLOAT64 : SPHERULE_FLOAT32,
                                          threads};
        results.emplace_back(y.data.size(), T(7));
        expect(!spherule_shallow_water_quadratic(&s, y.data.data(), results.back().data()), "runs");
        spherule_shallow_water bad = s;
        bad.pairs = 0;
        expect(spherule_shallow_water_quadratic(&bad, y.data.data(), nullptr) == SPHERULE_BAD_SIZES,
               "no rings are refused");
        bad = s;
        bad.lmax = int64_t(1) << 40;
        expect(spherule_shallow_water_quadratic(&bad, y.data.data(), nullptr) == SPHERULE_BAD_SIZES,
               "too many degrees are refused");
    }
    expect(results[0] == results[1], "the same bits for any number of threads");

    // The sign of a function with this parity on the southern ring, of slopes the opposite
    const auto mirrored = [](int64_t parity, int64_t side) { return parity && side ? -1.0 : 1.0; };
    for (int64_t state = 0; state < states; state++) {
        std::vector<double> sums(size_t(orders * 2 * 3 * orders), 0);
        for (int64_t pair = 0; pair < pairs; pair++)
            for (int64_t side = 0; side < 2; side++)
                for (int64_t image = 0; image < 4; image++)
                    for (int64_t j = 0; j < quarter; j++) {
                        // Of an order's cosine and sine, at phi, pi - phi, -phi or pi + phi
                        const auto wave = [&](const Table<T> &table, int64_t m, int64_t part,
                                              bool points) {
                            const bool odd = m % 2;
                            const double x = points ? table({odd, part, j, m / 2})
                                                    : table({odd, part, m / 2, j});
                            const bool negative = (image == 1 || image == 2) && part;
                            const bool half_turn = (image == 1 || image == 3) && odd;
                            return negative != half_turn ? -x : x;
                        };
                        double value[4] = {};
                        for (int64_t m = 0; m < orders; m++)
                            for (int64_t l = m; l < orders; l++) {
                                const int64_t parity = (l - m) % 2;
                                const double p = scalar({m, l, pair}) * mirrored(parity, side),
                                             even = wind({0, m, l, pair}),
                                             odd = wind({1, m, l, pair}) * (side ? -1 : 1),
                                             shear = parity ? odd : even,
                                             slope = parity ? even : odd;
                                const auto c = [&](int64_t field, int64_t part) {
                                    return double(y({m, part, field, state, l}));
                                };
                                const double re = wave(to_points, m, 0, true),
                                             im = wave(to_points, m, 1, true);
                                value[0] += re * (slope * c(1, 0) - shear * c(2, 1)) +
                                            im * (slope * c(1, 1) + shear * c(2, 0));
                                value[1] += re * (-slope * c(2, 0) - shear * c(1, 1)) +
                                            im * (-slope * c(2, 1) + shear * c(1, 0));
                                value[2] += p * (re * c(0, 0) + im * c(0, 1));
                                value[3] += p * (re * (c(1, 0) + coriolis({m, 0, l})) +
                                                 im * (c(1, 1) + coriolis({m, 1, l})));
                            }
                        const double east = value[0], north = value[1], a = value[2], b = value[3],
                                     kinetic = east * east + north * north;
                        for (int64_t m = 0; m < orders; m++)
                            for (int64_t l = m; l < orders; l++) {
                                const int64_t parity = (l - m) % 2;
                                const auto table = [&](int64_t segment) {
                                    return analysis(
                                        {parity, m, segment * pairs + pair, (l - m) / 2});
                                };
                                const double shear = table(0) * mirrored(parity, side),
                                             slope = table(1) * mirrored(!parity, side),
                                             energy = table(2) * mirrored(parity, side),
                                             re = wave(to_orders, m, 0, false),
                                             im = wave(to_orders, m, 1, false);
                                const auto add = [&](int64_t part, int64_t field, double x) {
                                    sums[((m * 2 + part) * 3 + field) * orders + l] += x;
                                };
                                add(0, 0, shear * a * east * im + slope * a * north * re);
                                add(1, 0, -shear * a * east * re + slope * a * north * im);
                                add(0, 1, shear * b * east * im + slope * b * north * re);
                                add(1, 1, -shear * b * east * re + slope * b * north * im);
                                add(0, 2,
                                    -shear * b * north * im + slope * b * east * re +
                                        energy * kinetic * re);
                                add(1, 2,
                                    shear * b * north * re + slope * b * east * im +
                                        energy * kinetic * im);
                            }
                    }
        double largest = 0, error = 0;
        for (int64_t row = 0; row < orders * 6; row++)
            for (int64_t l = 0; l < orders; l++) {
                const double x = sums[row * orders + l];
                largest = std::fmax(largest, std::fabs(x));
                error = std::fmax(error,
                                  std::fabs(results[0][(row * states + state) * orders + l] - x));
            }
        expect(error <= (sizeof(T) == 8 ? 1e-12 : 1e-4) * largest, "sums that are written out");
    }
}

}  // namespace

int sanitize_shallow_water() {
    for (int64_t lmax : {1, 2, 5, 8})
        for (int64_t states : {0, 1, 2, 5}) {
            run<float>(lmax, states, 1 + rand() % 40, 1 + rand() % 9);
            run<double>(lmax, states, 1 + rand() % 20, 1 + rand() % 9);
        }
    run<float>(70, 1, 3, 2);
    run<double>(35, 1, 3, 2);
    printf("shallow water: %d runs, %d failed\n", runs, failures);
    return failures;
}
