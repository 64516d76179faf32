// The walk over a neighborhood: for blocks of neighboring points of one ring (the centers), lists
// of the rows of the other side that belong to them.
#pragma once
#include "powers.h"
#include "simd.h"
#include "spherule.h"

namespace {

constexpr int BLOCK = 4;   // centers in a block, at most
constexpr int LIST = 512;  // rows in a list, at most

// x / d, rounded down, for the queries of a block one after the other: only the first one divides.
struct Quotient {
    int64_t value, rest, d;
    INLINE Quotient(int64_t x, int64_t d, double inverse)
        : value(int64_t(double(x) * inverse)), rest(x - value * d), d(d) {
        const int64_t off = rest < 0 ? -1 : rest >= d ? 1 : 0;
        value += off, rest -= off * d;
    }
    INLINE void step(int64_t whole, int64_t part) {
        value += whole, rest += part;
        const bool carry = rest >= d;
        value += carry, rest -= carry ? d : 0;
    }
};

// Rows with an additive log2 weight each.
template <class T> struct Rows {
    int n = 0, padded = 0;
    int32_t row[LIST + 16], end[LIST + 16];  // end: of the row's ring
    T bias[LIST + 16];

    INLINE void add(int64_t first, int count, int64_t ring_end, T b) {
        // Whole groups of 8: what is written past the end is overwritten or ignored.
        for (int t = 0; t < count; t += 8) {
            for (int i = 0; i < 8; i++)
                row[n + t + i] = int32_t(first + t + i);
            for (int i = 0; i < 8; i++)
                end[n + t + i] = int32_t(ring_end);
            for (int i = 0; i < 8; i++)
                bias[n + t + i] = b;
        }
        n += count;
    }
    // Padding repeats a member with weight 0, so that it can bring in no NaN from outside.
    void pad() {
        padded = (n + PAD<T> - 1) / PAD<T> * PAD<T>;
        for (int t = n; t < padded; t++) {
            row[t] = row[n - 1];
            end[t] = end[n - 1];
            bias[t] = T(-INFINITY);
        }
    }
    void turn(int step, int nphi) {
        for (int t = 0; t < padded; t++) {
            const int32_t r = row[t] + step;
            row[t] = r >= end[t] ? r - nphi : r;
        }
    }
};

// The rows that all centers of a block share, and those that single centers have besides.
template <class T> struct Lists {
    Rows<T> common, extra[BLOCK];

    void clear() {
        common.n = 0;
        for (auto &e : extra)
            e.n = 0;
    }
    void pad() {
        common.pad();
        for (auto &e : extra)
            e.pad();
    }
    bool empty() const {
        int n = common.n;
        for (auto &e : extra)
            n += e.n;
        return n == 0;
    }
};

struct Arc {
    int64_t first, last, inner_first, inner_last;
};

template <class T> class Walk {
    spherule_arc_table table;
    const uint8_t *mask;  // of the rows
    Lists<T> lists;
    int64_t ring, nq, divisor, chunk;
    double inverse;

    static constexpr double log2e = 1.4426950408889634074;

    double row_bias(int64_t s) const {
        return table.key_log_weight ? table.key_log_weight[s] * log2e : 0;
    }

    bool whole(int64_t s, int64_t pair) const {
        return !table.column_start && table.inner[pair] >= SPHERULE_UNIT * nq * table.key.nphi[s];
    }

    // first and last of n centers' keys from i on, within `reach`
    INLINE void limits(int64_t i, int n, int64_t pair, int64_t nk, int64_t reach,
                       int64_t (*range)[2]) const {
        const int64_t middle = 2 * SPHERULE_UNIT * i * nk - table.shift[pair];
        const int64_t whole = nk / nq, part = 2 * SPHERULE_UNIT * (nk - whole * nq);
        Quotient first(middle - reach + divisor - 1, divisor, inverse),
            last(middle + reach, divisor, inverse);
        for (int q = 0; q < n; q++) {
            range[q][0] = first.value, range[q][1] = min(last.value, first.value + nk - 1);
            first.step(whole, part), last.step(whole, part);
        }
    }

    INLINE void arcs(int64_t i, int n, int64_t pair, int64_t nk, Arc *a) const {
        int64_t outer[BLOCK][2], inner[BLOCK][2];
        if (table.column_start) {
            for (int q = 0; q < n; q++) {
                const int64_t first = table.column_start[i + q],
                              last = first + table.column_count[i + q] - 1;
                a[q] = {first, last, first, last};
            }
            return;
        }
        limits(i, n, pair, nk, table.reach[pair], outer);
        const bool soft = table.inner[pair] != table.reach[pair], none = table.inner[pair] < 0;
        if (soft && !none)
            limits(i, n, pair, nk, table.inner[pair], inner);
        for (int q = 0; q < n; q++) {
            a[q] = {outer[q][0], outer[q][1], outer[q][0], outer[q][1]};
            if (none)
                a[q].inner_first = INT64_MAX, a[q].inner_last = INT64_MIN;
            if (soft && !none)
                a[q].inner_first = inner[q][0], a[q].inner_last = inner[q][1];
        }
    }

    // log2 of the soft edge's weight at key j of ring s
    double taper(int64_t i, int64_t j, int64_t s, int64_t pair) const {
        const int64_t nk = table.key.nphi[s];
        const double offset = double(2 * SPHERULE_UNIT * (j * nq - i * nk) + table.shift[pair]);
        const double dphi = offset * M_PI / (double(nq) * double(nk) * double(SPHERULE_UNIT));
        const double a = sin((table.query.theta[ring] - table.key.theta[s]) / 2), b = sin(dphi / 2);
        const double h = a * a + sin(table.query.theta[ring]) * sin(table.key.theta[s]) * b * b;
        const double distance = 2 * asin(sqrt(min(h, 1.0)));
        return base2_log(max(0.0, min(1.0, (table.cutoff - distance) / table.edge_width + 0.5)));
    }

    template <class Visit>
    void add(Rows<T> &list, int64_t first, int64_t last, int64_t s, const Visit &flush, double bias,
             int64_t i = 0, int64_t pair = -1, const Arc *own = nullptr) {
        const int64_t nk = table.key.nphi[s], start = table.key.ringstart[s], end = start + nk;
        // Nearly always: a short piece inside the ring, perhaps an empty one.
        if (!mask && !(own && table.edge_width > 0) && first >= 0 && last < nk &&
            list.n + last - first < LIST) {
            if (first <= last)
                list.add(start + first, int(last - first + 1), end, T(bias));
            return;
        }
        // The place on the ring; `first` itself may lie any number of turns away.
        int64_t j = first % nk;
        j += j < 0 ? nk : 0;
        while (first <= last) {
            if (list.n == LIST)
                flush();
            int64_t count = min(min(last - first + 1, nk - j), int64_t(LIST - list.n));
            const bool soft = own && table.edge_width > 0;
            if (mask || soft) {
                count = 1;
                const bool inside =
                    !soft || (own->inner_first <= first && first <= own->inner_last);
                const double b = !inside ? bias + taper(i, first, s, pair) : bias;
                if (b > -INFINITY && (!mask || mask[start + j]))
                    list.add(start + j, 1, end, T(b));
            } else {
                list.add(start + j, int(count), end, T(bias));
            }
            first += count, j += count;
            j = j < nk ? j : 0;
        }
    }

    template <class Flush> void build(int64_t i, int n, const Flush &flush) {
        lists.clear();
        for (int64_t p = table.pairs[ring]; p < table.pairs[ring + 1]; p++) {
            const int64_t s = table.first[ring] + p - table.pairs[ring], nk = table.key.nphi[s];
            const double bias = row_bias(s);
            if (bias == -INFINITY || whole(s, p))
                continue;
            Arc a[BLOCK], all = {0, 0, INT64_MIN, INT64_MAX};
            arcs(i, n, p, nk, a);
            for (int q = 0; q < n; q++) {
                all.inner_first = max(all.inner_first, a[q].inner_first);
                all.inner_last = min(all.inner_last, a[q].inner_last);
            }
            const bool shared = all.inner_first <= all.inner_last;
            if (shared)
                add(lists.common, all.inner_first, all.inner_last, s, flush, bias);
            for (int q = 0; q < n; q++) {
                const int64_t before = shared ? all.inner_first - 1 : a[q].last;
                add(lists.extra[q], a[q].first, before, s, flush, bias, i + q, p, &a[q]);
                if (shared)
                    add(lists.extra[q], all.inner_last + 1, a[q].last, s, flush, bias, i + q, p,
                        &a[q]);
            }
        }
    }

  public:
    void start(const spherule_arc_table &arc_table, const uint8_t *row_mask, int64_t center_ring,
               int64_t rows_in_cache) {
        table = arc_table, mask = row_mask, ring = center_ring,
        chunk = min(rows_in_cache, int64_t(LIST) / 2);
        nq = table.query.nphi[ring], divisor = 2 * SPHERULE_UNIT * nq,
        inverse = 1.0 / double(divisor);
    }

    // Where all rings have as many points, the lists of one block are those of the one before,
    // turned.
    bool turns() const {
        if (mask || table.column_start)
            return false;
        for (int64_t p = table.pairs[ring]; p < table.pairs[ring + 1]; p++)
            if (table.key.nphi[table.first[ring] + p - table.pairs[ring]] != nq)
                return false;
        return true;
    }

    // Calls visit(first, last, lists) for one block or for all that have the same lists, perhaps
    // several times, until all rows of the centers from begin to end have come.
    template <class Visit> void blocks(int64_t begin, int64_t end, const Visit &visit) {
        const auto size = [&](int64_t i) { return int(min(end - i, int64_t(BLOCK))); };

        // Rings that lie in the disk as a whole are the same for every center: as many rows at a
        // time as stay in the cache while all centers use them.
        const auto everywhere = [&] {
            if (!lists.common.n)
                return;
            lists.pad();
            visit(begin, end, lists);
            lists.clear();
        };
        lists.clear();
        for (int64_t p = table.pairs[ring]; p < table.pairs[ring + 1]; p++) {
            const int64_t s = table.first[ring] + p - table.pairs[ring];
            const double bias = row_bias(s);
            if (bias == -INFINITY || !whole(s, p))
                continue;
            for (int64_t j = 0; j < table.key.nphi[s]; j += chunk) {
                add(lists.common, j, min(j + chunk, table.key.nphi[s]) - 1, s, everywhere, bias);
                if (lists.common.n >= chunk)
                    everywhere();
            }
        }
        everywhere();

        bool again = false;
        for (int64_t i = begin; i < end; i += BLOCK) {
            if (again && size(i) == BLOCK) {
                lists.common.turn(BLOCK, int(nq));
                for (int q = 0; q < BLOCK; q++)
                    lists.extra[q].turn(BLOCK, int(nq));
            } else {
                bool flushed = false;
                build(i, size(i), [&] {
                    lists.pad();
                    visit(i, i + size(i), lists);
                    lists.clear();
                    flushed = true;
                });
                lists.pad();
                again = !flushed && turns();
            }
            if (!lists.empty())
                visit(i, i + size(i), lists);
        }
    }
};

}  // namespace
