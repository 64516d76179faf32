// Drives the native library through many shapes, for the sanitizers (make sanitize): rings of equal
// and unequal length and any offset, rings of one point, soft edges, windows, masks, every dtype,
// odd dims, any strides. Every output must be finite; what is invalid must be refused.
#include "spherule.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int sanitize_disco();
int sanitize_pointwise();
int sanitize_shallow_water();

namespace {

struct Rings {
    std::vector<double> theta, phi0;
    std::vector<int64_t> nphi, ringstart;
    int64_t size = 0;
    Rings(int rings, int (*points)(int), double offset) {
        for (int r = 0; r < rings; r++) {
            theta.push_back((r + 0.5) * M_PI / rings);
            phi0.push_back(offset * r);
            nphi.push_back(points(r));
            ringstart.push_back(size);
            size += nphi.back();
        }
    }
    // Any rings: 1 to 40 points each, offsets of many turns.
    explicit Rings(int rings) : Rings(rings, [](int) { return 1 + rand() % 40; }, 0) {
        for (auto &phi : phi0)
            phi = 2000.0 * rand() / RAND_MAX - 1000;
        size = 0;
        for (size_t r = 0; r < nphi.size(); size += nphi[r++])
            ringstart[r] = size;
    }
    spherule_rings view() const {
        return {int64_t(theta.size()), theta.data(), nphi.data(), ringstart.data()};
    }
};

struct ArcTable {
    const Rings &query, &key;
    std::vector<int64_t> first, pairs = {0}, shift, reach, inner, start, count, order;
    std::vector<double> log_weight;
    double cutoff, edge;

    int64_t arc(double c, size_t r, size_t s) const {
        const double points = double(query.nphi[r] * key.nphi[s] * SPHERULE_UNIT),
                     d = fabs(query.theta[r] - key.theta[s]);
        const double x =
            sin((c + d) / 2) * sin((c - d) / 2) / (sin(query.theta[r]) * sin(key.theta[s]));
        return d > c    ? -1
               : x >= 1 ? int64_t(points)
                        : int64_t(2 * asin(sqrt(fmax(x, 0))) * points / M_PI);
    }
    ArcTable(const Rings &query, const Rings &key, double cutoff, double edge, bool window)
        : query(query), key(key), cutoff(cutoff), edge(edge) {
        for (size_t r = 0; r < query.theta.size(); r++) {
            order.push_back(int64_t(r));
            bool met = false;
            for (size_t s = 0; s < key.theta.size(); s++) {
                if (!window && arc(cutoff + edge / 2, r, s) < 0)
                    continue;
                if (!met)
                    first.push_back(int64_t(s));
                met = true;
                const double turns = (key.phi0[s] - query.phi0[r]) / (2 * M_PI),
                             points = double(query.nphi[r] * key.nphi[s]);
                shift.push_back(
                    window ? 0
                           : llrint((turns - rint(turns)) * 2 * points * double(SPHERULE_UNIT)));
                reach.push_back(window ? 0 : arc(cutoff + edge / 2, r, s));
                inner.push_back(window ? 0 : arc(cutoff - edge / 2, r, s));
            }
            if (!met)
                first.push_back(0);
            pairs.push_back(int64_t(shift.size()));
        }
        log_weight.assign(key.theta.size(), -1.5);
        log_weight[0] = -INFINITY;
        for (int64_t i = 0; window && i < query.nphi[0]; i++) {
            start.push_back(i > 1 ? i - 1 : 0);
            count.push_back((i + 2 < key.nphi[0] ? i + 2 : key.nphi[0]) - start.back());
        }
    }
    spherule_arc_table view() const {
        return {query.view(),
                key.view(),
                first.data(),
                pairs.data(),
                shift.data(),
                reach.data(),
                inner.data(),
                start.empty() ? nullptr : start.data(),
                count.empty() ? nullptr : count.data(),
                order.data(),
                log_weight.data(),
                cutoff,
                edge};
    }
};

struct Tensor {
    std::vector<uint8_t> bytes;
    spherule_strided view;
    int64_t n;
    int dtype;
    // Random values small enough for every dtype, channels or points last.
    Tensor(int64_t batch, int64_t heads, int64_t points, int64_t dim, int dtype,
           bool channels_first)
        : n(batch * heads * points * dim), dtype(dtype) {
        const int size = dtype == SPHERULE_FLOAT64 ? 8 : dtype == SPHERULE_FLOAT32 ? 4 : 2;
        bytes.resize(size_t(n * size));
        for (int64_t i = 0; i < n; i++) {
            const float x = float(rand()) / float(RAND_MAX) - 0.5f;
            if (dtype == SPHERULE_FLOAT64)
                ((double *)bytes.data())[i] = x;
            if (dtype == SPHERULE_FLOAT32)
                ((float *)bytes.data())[i] = x;
            if (size == 2)
                ((uint16_t *)bytes.data())[i] = uint16_t(rand() % 0x3c00);
        }
        view = {bytes.data(),
                {heads * points * dim, points * dim, channels_first ? 1 : dim,
                 channels_first ? points : 1}};
    }
    bool finite() const {
        for (int64_t i = 0; i < n; i++) {
            if (dtype == SPHERULE_FLOAT64 && !std::isfinite(((double *)bytes.data())[i]))
                return false;
            if (dtype == SPHERULE_FLOAT32 && !std::isfinite(((float *)bytes.data())[i]))
                return false;
            const uint16_t h = dtype > SPHERULE_FLOAT64 ? ((uint16_t *)bytes.data())[i] : 0,
                           top = dtype == SPHERULE_FLOAT16 ? 0x7c00 : 0x7f80;
            if ((h & top) == top)
                return false;
        }
        return true;
    }
};

int failures = 0, runs = 0;

void run(const Rings &a, const Rings &b, double cutoff, double edge, bool window, int dtype,
         int dim, int value_dim, bool masked, bool channels_first) {
    const int64_t batch = 2, heads = 1 + dim % 4;
    const ArcTable arcs(a, b, cutoff, edge, window);
    const auto table = arcs.view();
    std::vector<uint8_t> mask(size_t(batch * b.size));
    for (auto &m : mask)
        m = rand() % 3 > 0;
    const spherule_problem p = {
        batch,     heads, a.size, b.size,         dim,
        value_dim, 0.5,   dtype,  1 + rand() % 3, masked ? mask.data() : nullptr,
        b.size};
    Tensor q(batch, heads, a.size, dim, dtype, channels_first),
        k(batch, heads, b.size, dim, dtype, channels_first);
    Tensor v(batch, heads, b.size, value_dim, dtype, !channels_first);
    Tensor out(batch, heads, a.size, value_dim, dtype, channels_first), grad = out;
    grad.view.data = grad.bytes.data();
    Tensor dq = q, dk = k, dv = v;
    dq.view.data = dq.bytes.data(), dk.view.data = dk.bytes.data(), dv.view.data = dv.bytes.data();
    std::vector<double> lse(size_t(batch * heads * a.size)), dlse(lse.size(), 0.25);
    std::vector<float> dlse_single(lse.size(), 0.25f);
    const void *grad_lse =
        dtype == SPHERULE_FLOAT64 ? (const void *)dlse.data() : (const void *)dlse_single.data();
    int status =
        spherule_attention_forward(&table, &p, &q.view, &k.view, &v.view, &out.view, lse.data());
    status |=
        spherule_attention_backward(&table, &p, &q.view, &k.view, &v.view, &out.view, lse.data(),
                                    &grad.view, grad_lse, &dq.view, &dk.view, &dv.view);
    runs++;
    if (status || !out.finite() || !dq.finite() || !dk.finite() || !dv.finite()) {
        failures++;
        printf("failed: cutoff %g edge %g window %d dtype %d dim %d value_dim %d\n", cutoff, edge,
               window, dtype, dim, value_dim);
    }
}

// One number of a table or a problem changed at random: refused or harmless, never out of bounds.
void disturb(const Rings &a, const Rings &b, bool window) {
    ArcTable n(a, b, 1.2, 0.3, window);
    const int64_t wild[] = {-1, 1, INT64_MAX, INT64_MIN, INT64_C(1) << 40, rand() % 100};
    const int64_t value = wild[rand() % 6];
    spherule_problem p = {1, 2, a.size, b.size, 3, 5, 0.5, SPHERULE_FLOAT32, 2, nullptr, 0};
    std::vector<int64_t> *tables[] = {&n.first, &n.pairs, &n.shift, &n.reach,
                                      &n.inner, &n.order, &n.start, &n.count};
    int64_t *sizes[] = {&p.batch, &p.heads, &p.queries, &p.keys, &p.dim, &p.value_dim};
    const int which = rand() % 14;
    Tensor q(1, 2, a.size, 3, p.dtype, false), k(1, 2, b.size, 3, p.dtype, false);
    Tensor v(1, 2, b.size, 5, p.dtype, false), out(1, 2, a.size, 5, p.dtype, false);
    if (which < 8 && !tables[which]->empty())
        (*tables[which])[size_t(rand()) % tables[which]->size()] = value;
    // Sizes that the tensors here have room for, or that no tensor has.
    if (which >= 8)
        *sizes[which - 8] = value <= 0 ? value : value < 200 ? *sizes[which - 8] : value;
    std::vector<float> lse(size_t(2 * a.size));
    const auto table = n.view();
    const int status =
        spherule_attention_forward(&table, &p, &q.view, &k.view, &v.view, &out.view, lse.data());
    runs++;
    const bool refused = status == SPHERULE_BAD_SIZES || status == SPHERULE_BAD_TABLE;
    const bool impossible = which >= 8 && value < 0;
    if ((status != SPHERULE_OK && !refused) || (impossible && !refused)) {
        failures++;
        printf("failed: %lld in table or size %d gave %d\n", (long long)value, which, status);
    }
}

}  // namespace

int main() {
    const Rings grids[] = {
        Rings(
            6, [](int) { return 13; }, 0.0),
        Rings(
            5, [](int r) { return 1 + 3 * r; }, 0.1),
        Rings(4, [](int) { return 40; }, 0.3), Rings(1, [](int) { return 700; }, 0.0)};
    const int dims[] = {1, 3, 8, 17, 40};
    for (const Rings &a : grids)
        for (const Rings &b : grids)
            for (double cutoff : {0.9, 2.0, M_PI})
                for (double edge : {0.0, 0.5})
                    for (int dtype = 0; dtype < 4; dtype++)
                        run(a, b, cutoff, cutoff < 3 ? edge : 0, false, dtype, dims[rand() % 5],
                            dims[rand() % 5], rand() % 2, rand() % 2);
    for (int dtype = 0; dtype < 4; dtype++)
        for (int dim : dims)
            run(grids[0], grids[0], 1, 0, true, dtype, dim, 9, dim % 2, dim % 3);
    for (int i = 0; i < 500; i++) {
        const Rings a(1 + rand() % 6), b(1 + rand() % 6);
        run(a, b, 0.3 + rand() % 28 / 10.0, i % 2 ? 0.2 : 0, false, rand() % 4, dims[rand() % 5],
            dims[rand() % 5], rand() % 2, rand() % 2);
        disturb(a, b, false), disturb(a, b, false);
        disturb(grids[0], grids[0], true);
    }
    for (int none = 0; none < 3; none++) {
        const spherule_problem p = {none != 0, none != 1, 78, 78,      3, 2 * (none != 2),
                                    0.5,       0,         2,  nullptr, 0};
        const ArcTable n(grids[0], grids[0], 1.2, 0, false);
        const auto table = n.view();
        Tensor q(1, 1, 78, 3, 0, false), out(1, 1, 78, 2, 0, false);
        std::vector<float> lse(78);
        failures += spherule_attention_forward(&table, &p, &q.view, &q.view, &q.view, &out.view,
                                               lse.data()) != SPHERULE_OK;
    }
    printf("%s: %d runs, %d failed\n", spherule_isa(), runs, failures);
    return failures || sanitize_disco() || sanitize_pointwise() || sanitize_shallow_water() ? 1 : 0;
}
