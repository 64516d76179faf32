// A block of points, as panels [tile of SIZE points][channel][SIZE]: what the products read and
// write, so that one's output is the next one's input.
#pragma once
#include "pointwise.h"
#include "product.h"
#include "scratch.h"

namespace {

template <class T> struct Panels {
    typedef Tile<T> Inner;
    typedef SumOf<T> S;
    static constexpr int64_t SIZE = Inner::SIZE, POINTS = 512 / sizeof(T);  // a multiple of SIZE
    static constexpr int64_t AHEAD = 8;                                     // rows of points

    struct Block {
        int64_t batch, first, count;  // points of one field
        int64_t tiles() const { return (count + SIZE - 1) / SIZE; }
        T *row(const spherule_channels &f, int64_t channel) const {
            return (T *)f.data + batch * f.batch_stride + channel * f.channel_stride +
                   first * f.point_stride;
        }
    };

    // Block n of a call
    static Block block(const spherule_pointwise &p, int64_t n) {
        const int64_t blocks = per_field(p), first = n % blocks * POINTS;
        return {n / blocks, first, min(POINTS, p.points - first)};
    }
    static int64_t per_field(const spherule_pointwise &p) {
        return (p.points + POINTS - 1) / POINTS;
    }

    // 0 past the end
    static void pack(const Block &b, const spherule_channels *parts, int64_t n, int64_t channels,
                     T *to) {
        for (; n > 0; n--, to += parts->channels * SIZE, parts++) {
            if (parts->point_stride != 1) {
                pack_rows(b, *parts, channels, to);
                continue;
            }
            for (int64_t c = 0; c < parts->channels; c++) {
                const T *x = b.row(*parts, c);
                // Processors do not read ahead from row to row, which lie pages apart.
                const T *later = b.row(*parts, min(c + AHEAD, parts->channels - 1));
                for (int64_t i = 0; i < b.count; i += 64 / int64_t(sizeof(T)))
                    __builtin_prefetch(later + i);
                for (int64_t t = 0; t < b.tiles(); t++, x += SIZE) {
                    T *panel = to + (t * channels + c) * SIZE;
                    const int64_t left = b.count - t * SIZE;
                    if (left >= SIZE)
                        memcpy(panel, x, SIZE * sizeof(T));
                    else
                        for (int64_t i = 0; i < SIZE; i++)
                            panel[i] = i < left ? x[i] : T{};
                }
            }
        }
    }

    static void pack_rows(const Block &b, const spherule_channels &f, int64_t channels, T *to) {
        const T *rows = b.row(f, 0);
        for (int64_t i = 0; i < b.tiles() * SIZE; i += W<T>)
            for (int64_t c = 0; c < f.channels; c += W<T>) {
                const int64_t points = b.count - i, some = f.channels - c;
                const T *from = rows + i * f.point_stride + c;
                T *panel = to + (i / SIZE * channels + c) * SIZE + i % SIZE;
                // Processors stop reading ahead at the end of a page, which a few rows fill.
                for (int64_t j = W<T>; j < min(points, int64_t(2 * W<T>)); j++)
                    __builtin_prefetch(from + j * f.point_stride);
                turn_square({from, f.point_stride, points, some}, {panel, SIZE, some, W<T>});
            }
    }

    // A tile's panel of all channels of a field, to its rows
    static void unpack_rows(const Block &b, int64_t tile, T *panel, const spherule_channels &f) {
        T *rows = b.row(f, 0);
        for (int64_t i = tile * SIZE; i < (tile + 1) * SIZE; i += W<T>)
            for (int64_t c = 0; c < f.channels; c += W<T>) {
                const int64_t points = b.count - i, some = f.channels - c;
                turn_square({panel + c * SIZE + i % SIZE, SIZE, some, W<T>},
                            {rows + i * f.point_stride + c, f.point_stride, points, some});
            }
    }

    // So many lines of so many numbers, of which W at the most count
    template <class Number> struct Square {
        Number *data;
        int64_t stride, lines, numbers;
        bool whole() const { return lines >= W<T> && numbers >= W<T>; }
        template <class F> void each(const F &f) {
            for (int64_t i = 0; i < min(int64_t(W<T>), lines); i++)
                for (int64_t j = 0; j < min(int64_t(W<T>), numbers); j++)
                    f(data[i * stride + j], i, j);
        }
    };

    // The transpose; what is not there is 0.
    static INLINE void turn_square(Square<const T> from, Square<T> to) {
        if (from.whole() && to.whole()) {
            Vec<T> v[W<T>];
            UNROLL for (int i = 0; i < W<T>; i++) v[i] = load(from.data + i * from.stride);
            transpose<T>(v);
            UNROLL for (int i = 0; i < W<T>; i++) store(to.data + i * to.stride, v[i]);
            return;
        }
        T square[W<T>][W<T>] = {};
        from.each([&](T x, int64_t i, int64_t j) { square[j][i] = x; });
        to.each([&](T &x, int64_t i, int64_t j) { x = square[i][j]; });
    }

    // y (out) = weight (out, in) x + bias (null for 0), panels to panels
    static void multiply(const Block &b, int64_t out, int64_t in, const T *weight, const S *bias,
                         const T *x, T *y) {
        for (int64_t o = 0; o < out; o += Inner::ROWS)
            for (int64_t t = 0; t < b.tiles(); t++)
                Inner::template any<false>(out - o, {weight + o * in, in, bias ? bias + o : bias},
                                           x + t * in * SIZE, in, SIZE, SIZE,
                                           y + (t * out + o) * SIZE);
    }

    // the same, to the parts of a field; `room` is for a tile's panel of those that lie in rows
    static void multiply(const Block &b, int64_t in, const T *weight, const S *bias, const T *x,
                         const spherule_channels *y, int64_t parts, T *room = nullptr) {
        const auto tile = [&](int64_t t, int64_t o, int64_t left, int64_t count, int64_t stride,
                              T *to) {
            Inner::template any<false>(left, {weight + o * in, in, bias ? bias + o : bias},
                                       x + t * in * SIZE, in, count, stride, to);
        };
        const spherule_channels *end = y + parts;
        for (int64_t first = 0; y < end;) {
            if (y->point_stride == 1) {
                for (int64_t o = 0; o < y->channels; o += Inner::ROWS)
                    for (int64_t t = 0; t < b.tiles(); t++)
                        tile(t, first + o, y->channels - o, b.count - t * SIZE, y->channel_stride,
                             b.row(*y, o) + t * SIZE);
                first += y++->channels;
                continue;
            }
            // Heads are few channels each: all that follow are one product.
            const spherule_channels *next = y;
            int64_t out = 0;
            for (; next < end && next->point_stride != 1; next++)
                out += next->channels;
            for (int64_t t = 0; t < b.tiles(); t++) {
                for (int64_t o = 0; o < out; o += Inner::ROWS)
                    tile(t, first + o, out - o, SIZE, SIZE, room + o * SIZE);
                T *panel = room;
                for (const spherule_channels *part = y; part < next; part++) {
                    unpack_rows(b, t, panel, *part);
                    panel += part->channels * SIZE;
                }
            }
            first += out;
            y = next;
        }
    }

    // Panels as [tile of SIZE channels][point][SIZE]; of 16-bit numbers, [pair of points][SIZE][2]
    static void turn(const Block &b, int64_t channels, const T *x, T *to) {
        constexpr int64_t TERMS = Inner::TERMS, N = W<S>;  // N channels, N times TERMS points
        for (int64_t c = 0; c < channels; c += N)
            for (int64_t q = 0; q < b.tiles() * SIZE; q += N * TERMS) {
                const T *from = x + (q / SIZE * channels + c) * SIZE + q % SIZE;
                Vec<S> v[N];
                UNROLL for (int i = 0; i < N; i++) v[i] =
                    c + i < channels ? (Vec<S>)load(from + i * SIZE) : Vec<S>{};
                transpose<S>(v);
                T *at = to + (c / SIZE * POINTS + q) * SIZE + c % SIZE * TERMS;
                UNROLL for (int i = 0; i < N; i++) store(at + i * SIZE * TERMS, (Vec<T>)v[i]);
            }
    }

    // sums (rows, channels) += over points, rows from panels and channels from what was turned
    static void correlate(const Block &b, int64_t rows, int64_t channels, const T *x,
                          const T *turned, S *sums) {
        for (int64_t c = 0; c < channels; c += SIZE)
            for (int64_t r = 0; r < rows; r += Inner::ROWS)
                Inner::template any<true, TurnedStep<T>>(
                    rows - r, {x + r * SIZE, SIZE, nullptr, SIZE, rows * SIZE}, turned + c * POINTS,
                    b.count, channels - c, channels, sums + r * channels + c);
    }

    // sums (channels) += over points
    static void total(const Block &b, int64_t channels, const T *x, S *sums) {
        for (int64_t c = 0; c < channels; c++) {
            Vec<S> s = {};
            for (int64_t t = 0; t < b.tiles(); t++)
                for (int64_t i = 0; i < SIZE; i += W<T>)
                    for (Vec<S> v : Wide<T>(x + (t * channels + c) * SIZE + i).v)
                        s += v;
            sums[c] += sum<S>(s);
        }
    }

    // Room for panels of so many channels, turned or not
    static int64_t room(int64_t channels) { return (channels + SIZE) * POINTS; }
};

// Sums over all points. Blocks come in runs that do not depend on the number of threads, and what
// the runs have summed is added in order: the same bits for any number of threads.
template <class T> struct Runs {
    static constexpr int64_t MOST = 32;
    typedef SumOf<T> S;
    int64_t blocks, n, size;
    Buffer<S> shares;
    Runs(const spherule_pointwise &p, int64_t size)
        : blocks(p.batch * Panels<T>::per_field(p)), n(min(MOST, blocks)), size(size),
          shares(n * size) {}

    S *share(int64_t run) const { return shares.data + run * size; }

    // body(block, share) for all blocks of a run
    template <class Body>
    void walk(const spherule_pointwise &p, int64_t run, const Body &body) const {
        S *s = share(run);
        memset(s, 0, size_t(size) * sizeof(S));
        for (int64_t b = blocks * run / n; b < blocks * (run + 1) / n; b++)
            body(Panels<T>::block(p, b), s);
    }

    // to = the sum over runs of count numbers of a share, from its place `at` on
    void add(int64_t at, int64_t count, void *to) const {
        S *sums = (S *)to;
        if (!sums)
            return;
        memset(sums, 0, size_t(count) * sizeof(S));
        for (int64_t run = 0; run < n; run++)
            for (int64_t i = 0; i < count; i++)
                sums[i] += share(run)[at + i];
    }
};

}  // namespace
