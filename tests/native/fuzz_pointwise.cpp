// libFuzzer on the C interface of maps over channels and of norms (make fuzz): sizes that fit their
// arrays, or one of them replaced. The library must refuse what does not fit, and read and write
// nothing beyond.
#include "fuzz_bytes.h"
#include "norm.h"
#include <cmath>
#include <cstdlib>

namespace {

typedef std::vector<int64_t> Ints;

// What numbers of a dtype are summed in
int32_t wide(int32_t dtype) { return dtype == SPHERULE_BFLOAT16 ? SPHERULE_FLOAT32 : dtype; }

// Arrays of any dtype, just as long as they are said to be
struct Room {
    std::vector<double> doubles;
    std::vector<float> floats;
    std::vector<uint16_t> shorts;
    Room(int32_t dtype, int64_t size) {
        if (dtype == SPHERULE_FLOAT64)
            doubles.assign(size_t(size), 0.25);
        else if (dtype == SPHERULE_BFLOAT16)
            shorts.assign(size_t(size), 0x3e80);  // 0.25
        else
            floats.assign(size_t(size), 0.25F);
    }
    void *data() {
        return !doubles.empty()  ? (void *)doubles.data()
               : !shorts.empty() ? (void *)shorts.data()
                                 : (void *)floats.data();
    }
    bool finite() const {
        for (double x : doubles)
            if (!std::isfinite(x))
                return false;
        for (float x : floats)
            if (!std::isfinite(x))
                return false;
        for (uint16_t x : shorts)
            if ((x & 0x7f80) == 0x7f80)
                return false;
        return true;
    }
};

// (batch, channels, points) with gaps, the last of which is not there, perhaps in rows
struct Field {
    int64_t channels, channel_stride, point_stride, batch_stride;
    Room room;
    Field(Bytes &in, int32_t dtype, int64_t batch, int64_t channels, int64_t points, bool rows)
        : channels(channels), channel_stride(rows ? 1 : points + in.below(3)),
          point_stride(rows ? channels + in.below(3) : 1),
          batch_stride(channels * channel_stride + points * point_stride + in.below(3)),
          room(dtype, batch && points
                          ? (batch - 1) * batch_stride + (channels - 1) * channel_stride +
                                (points - 1) * point_stride + 1
                          : 0) {}
    spherule_channels view() {
        return {room.data(), channels, batch_stride, channel_stride, point_stride};
    }
};

void expect(bool refused, int status) {
    if (refused ? status != SPHERULE_BAD_SIZES : status != SPHERULE_OK)
        abort();
}

// One size becomes another: whether it must be refused
bool disturb(Bytes &in, spherule_pointwise &p, std::vector<spherule_channels *> fields) {
    if (in.below(3))
        return false;
    const int64_t wild[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 33, (1 << 20) + 1};
    Ints sizes = {p.batch, p.points, p.in, p.out, p.dtype, p.threads};
    for (const auto *field : fields)
        sizes.push_back(field->channels);
    const size_t place = size_t(in.below(int64_t(sizes.size())));
    const bool channels = place == 2 || place == 3 || place > 5;  // two numbers that must agree
    sizes[place] = channels && in.below(2) ? sizes[place] + 1 : wild[in.below(place < 2 ? 4 : 5)];
    p = {sizes[0], sizes[1], sizes[2], p.hidden, sizes[3], p.dtype, p.threads};
    if (place == 4)
        p.dtype = in.below(2)   ? -1
                  : in.below(2) ? SPHERULE_FLOAT16
                                : SPHERULE_BFLOAT16 + 1 + int32_t(in.below(8));
    if (place == 5)
        p.threads = in.below(2) ? -int32_t(in.below(3)) : INT32_MAX;
    for (size_t i = 0; i < fields.size(); i++)
        fields[i]->channels = sizes[6 + i];
    return true;
}

spherule_pointwise problem(Bytes &in) {
    const int64_t points[] = {0, 1, 7, 31, 127, 128, 129, 300};
    const int32_t dtypes[] = {SPHERULE_FLOAT32, SPHERULE_FLOAT64, SPHERULE_BFLOAT16};
    const int32_t dtype = dtypes[in.below(3)], threads = 1 + int32_t(in.below(2));
    return {in.below(4), points[in.below(8)], 1 + in.below(20), 0, 1 + in.below(20), dtype,
            threads};
}

void linear(Bytes &in) {
    spherule_pointwise p = problem(in);
    const auto cut = [&](int64_t left) {
        std::vector<Field> parts;
        for (int64_t n; left; left -= n)
            parts.emplace_back(in, p.dtype, p.batch, n = 1 + in.below(left), p.points, in.below(2));
        return parts;
    };
    std::vector<Field> x = cut(p.in), dx = x, y = cut(p.out);
    const auto views = [](std::vector<Field> &parts) {
        std::vector<spherule_channels> views;
        for (Field &part : parts)
            views.push_back(part.view());
        return views;
    };
    auto from = views(x), back = views(dx), to = views(y);
    std::vector<spherule_channels *> fields;
    for (auto *all : {&from, &to})
        for (auto &part : *all)
            fields.push_back(&part);
    const int32_t sums = wide(p.dtype);
    Room weight(p.dtype, p.out * p.in), dweight(sums, p.out * p.in), bias(sums, p.out),
        dbias = bias;
    const bool biased = in.below(2), wanted = in.below(2);
    const bool bad = disturb(in, p, fields);
    const int64_t x_parts = int64_t(x.size()), y_parts = int64_t(y.size());
    expect(bad, spherule_linear(&p, weight.data(), biased ? bias.data() : nullptr, from.data(),
                                x_parts, to.data(), y_parts));
    expect(bad, spherule_linear_backward(&p, weight.data(), from.data(), x_parts, to.data(),
                                         y_parts, wanted ? back.data() : nullptr,
                                         wanted ? dweight.data() : nullptr,
                                         biased ? dbias.data() : nullptr));
    if (bad || !wanted)
        return;
    for (Field &part : dx)
        if (!part.room.finite())
            abort();
    if (!dweight.finite() || !dbias.finite())
        abort();
}

void mlp(Bytes &in) {
    spherule_pointwise p = problem(in);
    p.hidden = 1 + in.below(20);
    Field x(in, p.dtype, p.batch, p.in, p.points, false),
        dx(in, p.dtype, p.batch, p.in, p.points, false),
        y(in, p.dtype, p.batch, p.out, p.points, false);
    const int32_t sums = wide(p.dtype);
    Room first(p.dtype, p.hidden * p.in), turned = first, dfirst(sums, p.hidden * p.in);
    Room second(p.dtype, p.out * p.hidden), dsecond(sums, p.out * p.hidden);
    Room bias(sums, p.hidden), dbias = bias;
    spherule_channels from = x.view(), back = dx.view(), to = y.view();
    const bool bad = disturb(in, p, {&from, &to});
    expect(bad, spherule_mlp(&p, first.data(), bias.data(), second.data(), &from, &to));
    expect(bad,
           spherule_mlp_backward(&p, first.data(), turned.data(), bias.data(), second.data(), &from,
                                 &to, &back, dfirst.data(), dbias.data(), dsecond.data()));
    if (!bad && !(y.room.finite() && dx.room.finite() && dfirst.finite() && dsecond.finite()))
        abort();
}

void norm(Bytes &in) {
    spherule_pointwise p = problem(in);
    p.out = p.in;
    Field x(in, p.dtype, p.batch, p.in, p.points, false),
        y(in, p.dtype, p.batch, p.in, p.points, false);
    const int64_t stride = in.below(2) ? p.points : 0;
    const int32_t of_sums = wide(p.dtype);
    Room weights(of_sums, stride ? p.batch * p.points : p.points);
    Room mean(of_sums, p.batch * p.in), variance = mean, dscale = mean, sums = mean;
    Room shift(of_sums, p.in);
    std::vector<double> total;
    for (int64_t i = 0; i < p.batch; i++)
        total.push_back(in.below(3) ? 0.25 * double(p.points) : 0.0);
    spherule_channels from = x.view(), to = y.view();
    const bool bad = disturb(in, p, {&from, &to});
    const bool sizes = bad && from.channels == p.in && p.in == p.out && to.channels != p.in;
    // The moments have no second field.
    expect(bad && !sizes, sizes ? SPHERULE_OK
                                : spherule_moments(&p, weights.data(), stride, total.data(), &from,
                                                   mean.data(), variance.data()));
    expect(bad, spherule_standardize(&p, &from, mean.data(), variance.data(), shift.data(), &to));
    expect(bad, spherule_standardize_backward(&p, &from, mean.data(), variance.data(), &from, &to,
                                              dscale.data(), sums.data()));
    expect(bad, spherule_moments_backward(&p, weights.data(), stride, total.data(), &from,
                                          mean.data(), dscale.data(), sums.data(), &to));
    const double eps = 1e-5;
    expect(bad,
           spherule_instance_norm(&p, weights.data(), stride, total.data(), &eps, &from,
                                  shift.data(), shift.data(), &to, mean.data(), variance.data()));
    expect(bad, spherule_instance_norm_backward(&p, weights.data(), stride, total.data(), &from,
                                                shift.data(), mean.data(), variance.data(), &from,
                                                &to, dscale.data(), sums.data()));
    if (!bad && !(mean.finite() && variance.finite() && y.room.finite()))
        abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes in{data, size};
    switch (in.below(3)) {
    case 0:
        linear(in);
        break;
    case 1:
        mlp(in);
        break;
    default:
        norm(in);
    }
    return 0;
}
