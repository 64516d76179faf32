// Drives the maps over channels, norms and the Legendre transforms through many shapes, for the
// sanitizers, and compares them with sums that are written out.
#include "legendre.h"
#include "norm.h"
#include "pointwise.h"
#include "ring_spectra.h"
#include "sparse.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

typedef std::vector<double> Doubles;
int runs = 0, failures = 0;

void expect(bool right, const char *what) {
    runs++;
    if (!right) {
        failures++;
        printf("failed: %s\n", what);
    }
}

// bfloat16, as the library is to round it
struct Short {
    uint16_t bits = 0;
    Short() = default;
    Short(double x) {
        const float f = float(x);
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        bits = uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator double() const {
        const uint32_t u = uint32_t(bits) << 16;
        float f;
        memcpy(&f, &u, sizeof f);
        return f;
    }
};

// What numbers of type T are summed in, and how they are called
template <class T> struct Kind {
    typedef T Sum;
    static constexpr int dtype = sizeof(T) == 4 ? SPHERULE_FLOAT32 : SPHERULE_FLOAT64;
    static constexpr double accuracy = sizeof(T) == 4 ? 1e-4 : 1e-12;
};
template <> struct Kind<Short> {
    typedef float Sum;
    static constexpr int dtype = SPHERULE_BFLOAT16;
    static constexpr double accuracy = 0.02;
};
template <class T> using Sum = typename Kind<T>::Sum;

template <class T> std::vector<T> noise(int64_t n) {
    std::vector<T> x(n);
    for (T &v : x)
        v = T(double(rand()) / RAND_MAX - 0.5);
    return x;
}

// A field (batch, channels, points) with room between its batches and channels, or points where it
// lies in rows; the last room is not there
template <class T> struct Field {
    int64_t channels, batch_stride, channel_stride, point_stride;
    std::vector<T> data;
    Field(int64_t batch, int64_t channels, int64_t points, bool rows = false)
        : channels(channels), batch_stride((channels + 1) * (points + 3)),
          channel_stride(rows ? 1 : points + 3), point_stride(rows ? channels + 1 : 1),
          data(noise<T>((batch - 1) * batch_stride + (channels - 1) * channel_stride +
                        (points - 1) * point_stride + 1)) {}
    spherule_channels view() {
        return {data.data(), channels, batch_stride, channel_stride, point_stride};
    }
    T &at(int64_t b, int64_t c, int64_t i) {
        return data[b * batch_stride + c * channel_stride + i * point_stride];
    }
};

// The same in parts, rows or not
template <class T> struct Parts {
    std::vector<Field<T>> fields;
    std::vector<spherule_channels> views;
    Parts(int64_t batch, int64_t channels, int64_t points) {
        for (int64_t left = channels, n; left; left -= n)
            fields.emplace_back(batch, n = 1 + rand() % left, points, rand() % 2);
        for (auto &field : fields)
            views.push_back(field.view());
    }
    int64_t size() const { return int64_t(views.size()); }
    T &at(int64_t b, int64_t c, int64_t i) {
        auto field = fields.begin();
        for (; c >= field->channels; field++)
            c -= field->channels;
        return field->at(b, c, i);
    }
};

template <class T> bool close(double a, double b) {
    return std::abs(a - b) <= Kind<T>::accuracy * (1 + std::abs(b));
}

double gelu(double a) { return a * 0.5 * std::erfc(-a * M_SQRT1_2); }
double slope(double a) {
    return 0.5 * std::erfc(-a * M_SQRT1_2) + a * std::exp(-a * a / 2) / std::sqrt(2 * M_PI);
}

template <class T>
void linear(int64_t batch, int64_t points, int64_t in, int64_t out, bool biased) {
    const spherule_pointwise p = {batch, points, in, 0, out, Kind<T>::dtype, 1 + rand() % 3};
    const auto weight = noise<T>(out * in);
    const auto bias = noise<Sum<T>>(out);
    std::vector<T> turned(in * out);
    std::vector<Sum<T>> dweight(out * in), dbias(out);
    for (int64_t i = 0; i < out * in; i++)
        turned[i % in * out + i / in] = weight[i];
    Parts<T> x(batch, in, points), y(batch, out, points), dx = x;
    for (size_t i = 0; i < dx.views.size(); i++)
        dx.views[i] = dx.fields[i].view();
    int status = spherule_linear(&p, weight.data(), biased ? bias.data() : nullptr, x.views.data(),
                                 x.size(), y.views.data(), y.size());
    bool right = true;
    Doubles dw(out * in), db(out);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < points; i++) {
                double sum = biased ? bias[o] : 0;
                for (int64_t c = 0; c < in; c++) {
                    sum += double(weight[o * in + c]) * x.at(n, c, i);
                    dw[o * in + c] += double(y.at(n, o, i)) * x.at(n, c, i);
                }
                db[o] += y.at(n, o, i);
                right &= close<T>(y.at(n, o, i), sum);
            }
    expect(right && !status, "linear");
    // its own output as the gradient
    const auto backward = [&](const spherule_channels *to, void *dw, void *db) {
        return spherule_linear_backward(&p, turned.data(), x.views.data(), x.size(), y.views.data(),
                                        y.size(), to, dw, db);
    };
    status = backward(dx.views.data(), dweight.data(), dbias.data());
    right = true;
    for (int64_t i = 0; i < out * in; i++)
        right &= close<T>(dweight[i], dw[i]);
    for (int64_t o = 0; o < out; o++)
        right &= close<T>(dbias[o], db[o]);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t c = 0; c < in; c++)
            for (int64_t i = 0; i < points; i++) {
                double sum = 0;
                for (int64_t o = 0; o < out; o++)
                    sum += double(weight[o * in + c]) * y.at(n, o, i);
                right &= close<T>(dx.at(n, c, i), sum);
            }
    expect(right && !status, "linear backward");
    expect(!backward(nullptr, nullptr, nullptr), "linear backward of nothing");
    for (int64_t more : {0, 1}) {
        spherule_pointwise bad = p;
        bad.in += more;
        bad.out += 1 - more;
        expect(spherule_linear(&bad, weight.data(), nullptr, x.views.data(), x.size(),
                               y.views.data(), y.size()) == SPHERULE_BAD_SIZES,
               "bad sizes");
    }
}

template <class T>
void mlp(int64_t batch, int64_t points, int64_t in, int64_t hidden, int64_t out) {
    const spherule_pointwise p = {batch, points, in, hidden, out, Kind<T>::dtype, 1 + rand() % 3};
    const auto first = noise<T>(hidden * in), second = noise<T>(out * hidden);
    const auto bias = noise<Sum<T>>(hidden);
    std::vector<T> first_t(first.size()), second_t(second.size());
    std::vector<Sum<T>> dfirst(first.size()), dbias(hidden), dsecond(second.size());
    for (int64_t i = 0; i < hidden * in; i++)
        first_t[i % in * hidden + i / in] = first[i];
    for (int64_t i = 0; i < out * hidden; i++)
        second_t[i % hidden * out + i / hidden] = second[i];
    Field<T> x(batch, in, points), y(batch, out, points), dx(batch, in, points);
    const auto from = x.view(), to = y.view(), back = dx.view();
    const int status =
        spherule_mlp(&p, first.data(), bias.data(), second.data(), &from, &to) |
        spherule_mlp_backward(&p, first.data(), first_t.data(), bias.data(), second_t.data(), &from,
                              &to, &back, dfirst.data(), dbias.data(), dsecond.data());
    Doubles d1(first.size()), db(hidden), d2(second.size());
    bool right = true;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < points; i++) {
            Doubles z(out), d(in);
            for (int64_t h = 0; h < hidden; h++) {
                double a = bias[h], da = 0;
                for (int64_t c = 0; c < in; c++)
                    a += double(first[h * in + c]) * x.at(n, c, i);
                for (int64_t o = 0; o < out; o++) {
                    z[o] += second[o * hidden + h] * gelu(a);
                    da += double(second[o * hidden + h]) * y.at(n, o, i);
                    d2[h * out + o] += y.at(n, o, i) * gelu(a);
                }
                da *= slope(a);
                db[h] += da;
                for (int64_t c = 0; c < in; c++) {
                    d[c] += first[h * in + c] * da;
                    d1[h * in + c] += da * x.at(n, c, i);
                }
            }
            for (int64_t o = 0; o < out; o++)
                right &= close<T>(y.at(n, o, i), z[o]);
            for (int64_t c = 0; c < in; c++)
                right &= close<T>(dx.at(n, c, i), d[c]);
        }
    for (size_t i = 0; i < d1.size(); i++)
        right &= close<T>(dfirst[i], d1[i]);
    for (size_t i = 0; i < d2.size(); i++)
        right &= close<T>(dsecond[i], d2[i]);
    for (int64_t h = 0; h < hidden; h++)
        right &= close<T>(dbias[h], db[h]);
    expect(right && !status, "mlp");
}

// Synthesis of P_lm beside a plain recurrence in cos(theta), and analysis as its transpose
void legendre(int64_t fields, int64_t lmax, int64_t pairs) {
    Doubles y(pairs), log2_sin(pairs), start(lmax + 1);
    std::vector<int64_t> north(pairs), south(pairs), order;
    for (int64_t i = 0; i < pairs; i++) {
        const double theta = (i + 0.3) / pairs * M_PI_2;
        y[i] = 1 - std::cos(theta), log2_sin[i] = std::log2(std::sin(theta));
        north[i] = i, south[i] = i % 3 == 2 ? -1 : 2 * pairs - 1 - i;
    }
    for (int64_t m = 0; m <= lmax; m++)
        start[m] = m ? -start[m - 1] * std::sqrt((2 * m + 1.0) / (2 * m)) : std::sqrt(0.25 / M_PI);
    for (int64_t m = lmax; m >= 0; m -= 2)
        order.push_back(m);
    const int64_t orders = int64_t(order.size()), rings = 2 * pairs;
    const spherule_legendre s = {fields,        lmax,         rings,           pairs,
                                 orders,        y.data(),     log2_sin.data(), north.data(),
                                 south.data(),  order.data(), start.data(),    SPHERULE_FLOAT64,
                                 1 + rand() % 3};
    const auto c = noise<double>(fields * (lmax + 1) * orders * 2);
    Doubles f(fields * rings * orders * 2), back(c.size());
    int status = spherule_legendre_synthesis(&s, c.data(), f.data());
    bool right = true;
    for (int64_t j = 0; j < orders; j++)
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t m = order[j];
            const double cos = 1 - y[i];
            double before = 0, p = start[m] * std::exp2(m * log2_sin[i]), up = 0, down = 0;
            for (int64_t l = m; l <= lmax; l++) {
                const double value = c[(l * orders + j) * 2] * p;
                up += value, down += (l - m) % 2 ? -value : value;
                const double n = l + 1, k = m;
                const double next =
                    std::sqrt((4 * n * n - 1) / (n * n - k * k)) *
                    (cos * p -
                     (l > m ? std::sqrt(((n - 1) * (n - 1) - k * k) / (4 * (n - 1) * (n - 1) - 1))
                            : 0) *
                         before);
                before = p, p = next;
            }
            right &= std::abs(f[(north[i] * orders + j) * 2] - up) < 1e-10;
            if (south[i] >= 0)
                right &= std::abs(f[(south[i] * orders + j) * 2] - down) < 1e-10;
        }
    expect(right && !status, "synthesis");
    for (int64_t i = 0; i < pairs; i++)  // what nobody writes
        if (south[i] < 0)
            for (int64_t n = 0; n < fields; n++)
                for (int64_t j = 0; j < 2 * orders; j++)
                    f[(n * rings + 2 * pairs - 1 - i) * orders * 2 + j] = 0;
    status = spherule_legendre_analysis(&s, f.data(), back.data());
    double there = 0, again = 0;
    for (double v : f)
        there += v * v;
    for (size_t i = 0; i < c.size(); i++)
        again += c[i] * back[i];
    expect(!status && std::abs(there - again) < 1e-11 * there, "analysis");
    spherule_legendre many = s;
    many.fields = many.orders = many.rings = INT32_MAX;
    expect(spherule_legendre_analysis(&many, f.data(), back.data()) == SPHERULE_BAD_SIZES, "many");
    y.back() = 1.5;
    expect(spherule_legendre_synthesis(&s, c.data(), f.data()) == SPHERULE_BAD_TABLE, "southern");
    y.back() = 1, order[0] = lmax + 1;
    expect(spherule_legendre_synthesis(&s, c.data(), f.data()) == SPHERULE_BAD_TABLE, "bad order");
}

// Folded orders beside the sum over them, and what is unfolded as its transpose
void ring_spectra(int64_t fields, int64_t rings, int64_t orders) {
    std::vector<int64_t> nphi(rings), stride(rings);
    std::vector<Doubles> half(rings);
    std::vector<void *> places(rings);
    for (int64_t r = 0; r < rings; r++) {
        nphi[r] = 1 + rand() % 12, stride[r] = nphi[r] / 2 + 1 + rand() % 2;
        half[r].assign(2 * stride[r] * fields, NAN), places[r] = half[r].data();
    }
    const auto f = noise<double>(fields * rings * orders * 2);
    auto phases = noise<double>(rings * orders * 2);
    const spherule_ring_spectra s = {fields,
                                     rings,
                                     orders,
                                     nphi.data(),
                                     places.data(),
                                     stride.data(),
                                     rand() % 2 ? phases.data() : nullptr,
                                     rand() % 2,
                                     SPHERULE_FLOAT64,
                                     1 + rand() % 3};
    int status = spherule_fold(&s, f.data());
    bool right = true;
    for (int64_t n = 0; n < fields * rings; n++) {
        const int64_t r = n % rings, points = nphi[r];
        const double *h = half[r].data() + 2 * stride[r] * (n / rings);
        for (int64_t i = 0; i < points; i++) {
            const double angle = 2 * M_PI * double(i) / double(points);
            double expected = 0, made = 0;
            for (int64_t m = 0; m < orders; m++) {
                const double *c = f.data() + 2 * (n * orders + m),
                             *p = phases.data() + 2 * (r * orders + m);
                const double re = s.phases ? c[0] * p[0] - c[1] * p[1] : c[0],
                             im = s.phases ? c[0] * p[1] + c[1] * p[0] : c[1];
                expected +=
                    (re * std::cos(m * angle) - im * std::sin(m * angle)) * (m && s.both ? 2 : 1);
            }
            for (int64_t k = 0; k <= points / 2; k++)
                made += (h[2 * k] * std::cos(k * angle) - h[2 * k + 1] * std::sin(k * angle)) *
                        (k && 2 * k != points ? 2 : 1);
            right &= std::abs(made - expected) < 1e-11;
        }
    }
    expect(right && !status, "fold");
    // The half spectrum of an impulse at the first point
    for (auto &h : half)
        for (size_t i = 0; i < h.size(); i++)
            h[i] = i % 2 ? 0 : 1;
    Doubles back(f.size(), NAN);
    status = spherule_unfold(&s, back.data());
    right = true;
    for (int64_t n = 0; n < fields * rings * orders; n++) {
        const int64_t m = n % orders, twice = m && s.both ? 2 : 1;
        const double *p = phases.data() + 2 * (n % (rings * orders));
        right &= std::abs(back[2 * n] - (m && s.phases ? p[0] : 1) * twice) < 1e-12;
        right &= std::abs(back[2 * n + 1] + (m && s.phases ? p[1] : 0) * twice) < 1e-12;
    }
    expect(right && !status, "unfold");
    spherule_ring_spectra many = s;
    many.fields = many.rings = many.orders = INT32_MAX;
    expect(spherule_fold(&many, f.data()) == SPHERULE_BAD_SIZES, "many");
    stride[0] = INT64_MAX / 8;
    expect(spherule_unfold(&s, back.data()) == SPHERULE_BAD_TABLE, "far apart");
    stride[0] = 7, nphi[0] = 0;
    expect(spherule_fold(&s, f.data()) == SPHERULE_BAD_TABLE, "no points");
}

// A sparse matrix beside the sum over its entries
template <class T> void sparse(int64_t fields, int64_t rows, int64_t columns, int64_t most) {
    std::vector<int64_t> start(1), column;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t e = rand() % (most + 1); e > 0; e--)
            column.push_back(rand() % columns);
        start.push_back(int64_t(column.size()));
    }
    const auto weight = noise<T>(int64_t(column.size())), x = noise<T>(fields * columns);
    std::vector<T> y(fields * rows);
    spherule_sparse s = {fields,        rows,          columns,        start.back(),  start.data(),
                         column.data(), weight.data(), Kind<T>::dtype, 1 + rand() % 3};
    const int status = spherule_sparse_map(&s, x.data(), y.data());
    bool right = true;
    for (int64_t f = 0; f < fields; f++)
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0;
            for (int64_t e = start[r]; e < start[r + 1]; e++)
                sum += double(weight[e]) * x[f * columns + column[e]];
            right &= close<T>(y[f * rows + r], sum);
        }
    expect(right && !status, "sparse");
    s.entries++;
    expect(spherule_sparse_map(&s, x.data(), y.data()) == SPHERULE_BAD_TABLE, "an entry more");
    s.entries--, s.columns = 0;
    expect(column.empty() || spherule_sparse_map(&s, x.data(), y.data()) == SPHERULE_BAD_TABLE,
           "no columns");
    s.fields = s.rows = s.columns = INT32_MAX;
    expect(spherule_sparse_map(&s, x.data(), y.data()) == SPHERULE_BAD_SIZES, "many");
}

template <class T> void shapes() {
    for (int64_t points : {1, 5, 31, 128, 130, 300})
        for (int64_t in : {1, 3, 6, 17})
            for (int64_t out : {1, 2, 7, 20}) {
                linear<T>(1 + rand() % 3, points, in, out, rand() % 2);
                mlp<T>(1 + rand() % 2, points, in, 1 + rand() % 20, out);
            }
}

// Mean, variance and what is made of them; every second sample has no weight at all.
template <class T> void norm(int64_t batch, int64_t channels, int64_t points) {
    const spherule_pointwise p = {batch, points, channels, 0, channels, Kind<T>::dtype, 2};
    Field<T> x(batch, channels, points), y = x, dx = x, dy(batch, channels, points);
    const spherule_channels from = x.view(), to = y.view(), gradient = dy.view(), back = dx.view();
    typedef Sum<T> S;
    std::vector<S> weights = noise<S>(batch * points);
    Doubles total(batch);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < points; i++)
            total[b] += weights[b * points + i] = b % 2 ? S(0) : weights[b * points + i] + S(0.6);
    const int64_t rows = batch * channels;
    std::vector<S> mean(rows), variance(rows), dscale(rows), sums(rows), shift = noise<S>(channels);
    expect(!spherule_moments(&p, weights.data(), points, total.data(), &from, mean.data(),
                             variance.data()),
           "moments run");
    expect(!spherule_standardize(&p, &from, mean.data(), variance.data(), shift.data(), &to),
           "standardize runs");
    expect(!spherule_standardize_backward(&p, &from, mean.data(), variance.data(), &gradient, &back,
                                          dscale.data(), sums.data()),
           "its gradients run");
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++) {
            const int64_t row = b * channels + c;
            double m = 0, v = 0, ds = 0, s = 0;
            for (int64_t i = 0; i < points && total[b] > 0; i++)
                m += weights[b * points + i] / total[b] * x.at(b, c, i);
            for (int64_t i = 0; i < points; i++) {
                const double d = x.at(b, c, i) - m;
                v += total[b] > 0 ? weights[b * points + i] / total[b] * d * d : 0;
                ds += dy.at(b, c, i) * d;
                s += dy.at(b, c, i);
            }
            expect(close<T>(mean[row], m) && close<T>(variance[row], v), "mean and variance");
            expect(close<T>(dscale[row], ds) && close<T>(sums[row], s), "sums of gradients");
            for (int64_t i = 0; i < points; i++) {
                expect(close<T>(y.at(b, c, i), (x.at(b, c, i) - m) * v + shift[c]), "standardized");
                expect(close<T>(dx.at(b, c, i), dy.at(b, c, i) * v), "gradient of a field");
            }
        }
    expect(!spherule_moments_backward(&p, weights.data(), points, total.data(), &from, mean.data(),
                                      dscale.data(), sums.data(), &back),
           "gradients of moments run");
    const std::vector<S> scale = noise<S>(channels);
    std::vector<S> inverse(rows);
    const double eps = 0.01;
    expect(!spherule_instance_norm(&p, weights.data(), points, total.data(), &eps, &from,
                                   scale.data(), shift.data(), &to, mean.data(), inverse.data()),
           "instance norm runs");
    expect(!spherule_instance_norm_backward(&p, weights.data(), points, total.data(), &from,
                                            scale.data(), mean.data(), inverse.data(), &gradient,
                                            &back, dscale.data(), sums.data()),
           "its gradients run");
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++) {
            const int64_t row = b * channels + c;
            const double m = mean[row], r = 1 / std::sqrt(variance[row] + eps);
            double along = 0, whole = 0;
            for (int64_t i = 0; i < points; i++) {
                along += dy.at(b, c, i) * (x.at(b, c, i) - m);
                whole += dy.at(b, c, i);
            }
            expect(close<T>(inverse[row], r) && close<T>(dscale[row], along * r) &&
                       close<T>(sums[row], whole),
                   "what is kept, and sums of gradients");
            for (int64_t i = 0; i < points; i++) {
                const double d = x.at(b, c, i) - m,
                             share = total[b] > 0 ? weights[b * points + i] / total[b] : 0;
                expect(close<T>(y.at(b, c, i), d * r * scale[c] + shift[c]), "normalized");
                expect(
                    close<T>(dx.at(b, c, i),
                             r * scale[c] * (dy.at(b, c, i) - share * (whole + along * r * r * d))),
                    "gradient of what is normalized");
            }
        }
    spherule_pointwise bad = p;
    bad.in++;
    expect(spherule_moments(&bad, weights.data(), points, total.data(), &from, mean.data(),
                            variance.data()) == SPHERULE_BAD_SIZES,
           "wrong sizes are refused");
}

}  // namespace

int sanitize_pointwise() {
    for (int64_t points : {1, 5, 31, 300})
        for (int64_t channels : {1, 3}) {
            norm<float>(3, channels, points);
            norm<double>(2, channels, points);
            norm<Short>(2, channels, points);
        }
    shapes<float>();
    shapes<double>();
    shapes<Short>();
    for (int64_t fields : {0, 1, 3, 16, 21})
        for (int64_t rows : {1, 4, 33})
            for (int64_t columns : {1, 8, 37}) {
                sparse<float>(fields, rows, columns, rand() % 9);
                sparse<double>(fields, rows, columns, rand() % 9);
            }
    for (int64_t lmax : {0, 1, 7, 63, 64, 65, 150})
        for (int64_t pairs : {1, 2, 9, 40})
            legendre(1 + rand() % 10, lmax, pairs);
    for (int64_t orders : {0, 1, 2, 5, 13, 40})
        for (int64_t rings : {1, 2, 9})
            ring_spectra(1 + rand() % 3, rings, orders);
    printf("maps over channels, norms, sparse maps, Legendre transforms, ring spectra: %d runs, %d "
           "failed\n",
           runs, failures);
    return failures;
}
