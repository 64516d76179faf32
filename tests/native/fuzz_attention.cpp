// libFuzzer on the C interface of attention (make fuzz): tables that are valid, or had a few of
// their numbers replaced. The library must refuse what it cannot walk, and read nothing beyond.
#include "fuzz_bytes.h"
#include "spherule.h"
#include <cstdlib>

namespace {

struct Rings {
    std::vector<double> theta;
    std::vector<int64_t> nphi, start;
    int64_t points = 0;
    explicit Rings(Bytes &in) {
        const int64_t rings = 1 + in.below(5);
        for (int64_t r = 0; r < rings; r++) {
            theta.push_back((double(r) + 0.5) * 3.1415 / double(rings));
            nphi.push_back(1 + in.below(12));
            start.push_back(points);
            points += nphi.back();
        }
    }
    spherule_rings view() const {
        return {int64_t(theta.size()), theta.data(), nphi.data(), start.data()};
    }
};

struct Table {
    Rings &query, &key;
    std::vector<int64_t> first, pairs = {0}, shift, reach, inner, order;
    Table(Bytes &in, Rings &query, Rings &key) : query(query), key(key) {
        const int64_t keys = int64_t(key.nphi.size());
        for (size_t r = 0; r < query.nphi.size(); r++) {
            order.push_back(int64_t(r));
            first.push_back(in.below(keys));
            const int64_t count = in.below(keys - first.back() + 1);
            for (int64_t s = first.back(); s < first.back() + count; s++) {
                const int64_t half = SPHERULE_UNIT * query.nphi[r] * key.nphi[size_t(s)];
                shift.push_back(half / 32768 * (in.below(65536) - 32768));
                reach.push_back(half / 65535 * in.below(65536) - 1);
                inner.push_back(in.below(2) ? reach.back() : -1);
            }
            pairs.push_back(int64_t(shift.size()));
        }
    }
    // One number is another one. The table is as long as its last pair says.
    void disturb(Bytes &in) {
        in.disturb({&first, &pairs, &shift, &reach, &inner, &order, &query.nphi, &key.nphi,
                    &query.start, &key.start});
        const size_t length = size_t(pairs.back() < 0 ? 0 : pairs.back() > 25 ? 25 : pairs.back());
        for (auto *arcs : {&shift, &reach, &inner}) {
            arcs->resize(length);
            arcs->shrink_to_fit();
        }
    }
    spherule_arc_table view() const {
        return {query.view(), key.view(),   first.data(), pairs.data(), shift.data(),
                reach.data(), inner.data(), nullptr,      nullptr,      order.data(),
                nullptr,      1.0,          0.0};
    }
};

struct Tensor {
    std::vector<double> values;  // room for every dtype
    spherule_strided view;
    Tensor(int64_t points, int64_t dim)
        : values(size_t(points * dim), 0.25),
          view{values.data(), {points * dim, points * dim, dim, 1}} {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes in{data, size};
    Rings a(in), b(in);
    const int64_t queries = a.points, keys = b.points, dim = 1 + in.below(9),
                  wide = 1 + in.below(9);
    Table arcs(in, a, b);
    const int64_t wrong = in.below(3);
    for (int64_t i = 0; i < wrong; i++)
        arcs.disturb(in);
    spherule_problem p = {1, 1, queries, keys, dim, wide, 0.5, int32_t(in.below(4)), 1, nullptr, 0};
    if (in.below(8) == 0)  // sizes that no tensor has
        (in.below(2) ? p.dim : p.keys) = in.below(2) ? 0 : INT64_MAX - in.below(3);
    Tensor q(queries, dim), k(keys, dim), v(keys, wide), out(queries, wide), grad(queries, wide);
    Tensor dq(queries, dim), dk(keys, dim), dv(keys, wide);
    std::vector<double> lse(size_t(queries), 0.0);
    const auto table = arcs.view();
    const int there =
        spherule_attention_forward(&table, &p, &q.view, &k.view, &v.view, &out.view, lse.data());
    const int back =
        spherule_attention_backward(&table, &p, &q.view, &k.view, &v.view, &out.view, lse.data(),
                                    &grad.view, nullptr, &dq.view, &dk.view, &dv.view);
    if (!wrong && p.dim == dim && p.keys == keys && (there || back))
        abort();  // a valid table is walked
    return 0;
}
