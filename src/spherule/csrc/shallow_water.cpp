// Quadratic terms of the shallow water equations. Compiled once per instruction set, under the name
// SPHERULE_ISA. Each sum is made by one thread, in an order that depends on nothing but the sizes.
#include "isa.h"
#include "product.h"
#include "scratch.h"

namespace {

enum { EAST, NORTH, GEOPOTENTIAL, VORTICITY, FIELDS };       // at the points
enum { A_EAST, A_NORTH, B_EAST, B_NORTH, KINETIC, FLUXES };  // their products
enum { SHEAR, SLOPE, ENERGY, SEGMENTS };                     // of a sum over pairs of rings
enum { RE, IM };

// A few states, which stay in the caches: spectra -> rings -> points -> rings -> spectra. What one
// stage writes the next one reads.
template <class T> class Chunk {
    typedef Tile<T> Inner;
    static constexpr int64_t SIZE = Inner::SIZE;
    static_assert(SPHERULE_ROW % SIZE == 0, "rows of tables are whole tiles");
    const spherule_shallow_water &s;
    int64_t orders, half;           // of all parities and of one
    int64_t padded, degrees;        // rows of tables: pairs, and degrees of a parity
    int64_t tiles, panel;           // of SIZE pairs, and all orders of a parity there
    int64_t first = 0, states = 0;  // of this chunk
    Buffer<T> rings, fluxes;        // what synthesis and products leave for the next stage

  public:
    static constexpr int64_t STATES = 2;

    // What a thread needs besides.
    struct Workspace {
        Buffer<T> coeffs, points, products, back, sums;
        explicit Workspace(const Chunk &c)
            : coeffs(3 * 4 * STATES * c.orders), points(FIELDS * 4 * c.s.quarter * SIZE),
              products(FLUXES * 4 * c.s.quarter * SIZE), back(2 * FLUXES * 4 * c.panel),
              sums(6 * STATES * SIZE) {}
        bool ok() const {
            return coeffs.data && points.data && products.data && back.data && sums.data;
        }
    };

    explicit Chunk(const spherule_shallow_water &s)
        : s(s), orders(s.lmax + 1), half(s.lmax / 2 + 1),
          padded((s.pairs + SPHERULE_ROW - 1) / SPHERULE_ROW * SPHERULE_ROW),
          degrees((half + SPHERULE_ROW - 1) / SPHERULE_ROW * SPHERULE_ROW),
          tiles((s.pairs + SIZE - 1) / SIZE), panel(half * SIZE),
          rings(tiles * 2 * 2 * FIELDS * STATES * 2 * panel),
          fluxes(orders * 2 * 6 * STATES * SEGMENTS * s.pairs) {}
    bool ok() const { return rings.data && fluxes.data; }

    void set(int64_t chunk) {
        first = chunk * STATES;
        states = min(STATES, s.states - first);
    }

    // Of `multiply`; the others have one an order.
    int64_t tasks() const { return tiles * states; }

    // An order of all fields at all rings
    void synthesize(int64_t m, const T *spectra, Workspace &w) const {
        const int64_t n = orders - m, rows = 4 * states;
        T *symmetric = w.coeffs.data, *antisymmetric = symmetric + rows * n,
          *scalars = antisymmetric + rows * n;
        load_winds(m, spectra, symmetric, antisymmetric);
        load_scalars(m, spectra, scalars);
        const T *scalar = (const T *)s.scalar + (m * orders + m) * padded,
                *wind = (const T *)s.wind + (m * orders + m) * padded;
        for (int64_t t = 0; t < tiles; t++, scalar += SIZE, wind += SIZE) {
            T *north = ring_panels(t, 0, m & 1) + m / 2 * SIZE,
              *south = ring_panels(t, 1, m & 1) + m / 2 * SIZE;
            product({symmetric, n}, rows, wind, padded, n, panel, north);
            product({antisymmetric, n}, rows, wind + orders * orders * padded, padded, n, panel,
                    south);
            // Even degrees, then odd ones
            const int64_t even = (n + 1) / 2, then = rows * panel;
            product({scalars, n}, rows, scalar, 2 * padded, even, panel, north + then);
            product({scalars + even, n}, rows, scalar + padded, 2 * padded, n / 2, panel,
                    south + then);
            for (int64_t i = 0; i < 2 * rows; i++)
                butterfly(north + i * panel, south + i * panel);
        }
    }

    // Products at the points of a tile of pairs of rings, and their sums over longitudes
    void multiply(int64_t task, Workspace &w) const {
        const int64_t t = task / states, state = task % states;
        for (int side = 0; side < 2; side++) {
            for (int field = 0; field < FIELDS; field++)
                for (int kind = 0; kind < 4; kind++) {
                    const int64_t parity = kind / 2, part = kind % 2;
                    product({(const T *)s.to_points + kind * s.quarter * half, half}, s.quarter,
                            ring_panels(t, side, parity) +
                                ((field * states + state) * 2 + part) * panel,
                            SIZE, orders_of(parity), SIZE, at(w.points, field, kind));
                }
            for (int64_t i = 0; i < s.quarter * SIZE; i += W<T>)
                multiply_points(w, i);
            for (int flux = 0; flux < FLUXES; flux++)
                for (int kind = 0; kind < 4; kind++)
                    product({(const T *)s.to_orders + kind * half * s.quarter, s.quarter},
                            orders_of(kind / 2), at(w.products, flux, kind), SIZE, s.quarter, SIZE,
                            back(w, side, flux, kind));
        }
        const int64_t count = min(SIZE, s.pairs - t * SIZE);
        for (int64_t m = 0; m < orders; m++)
            store_fluxes(m, t, state, count, w);
    }

    // All tendencies of an order
    void analyze(int64_t m, T *tendencies, Workspace &w) const {
        const int64_t rows = 6 * states, row = SEGMENTS * s.pairs;
        for (int64_t i = 0; i < 6; i++)
            memset(spectrum(tendencies, m, i % 2, i / 2, 0), 0,
                   size_t(states * orders) * sizeof(T));
        for (int parity = 0; parity < 2; parity++) {
            const int64_t n = (orders - m + 1 - parity) / 2;
            const T *x = flux_rows(m, parity), *spin = x + 4 * states * row;
            const T *table =
                (const T *)s.analysis + (parity * orders + m) * SEGMENTS * s.pairs * degrees;
            for (int64_t k = 0; k < n; k += SIZE, table += SIZE) {
                T *sums = w.sums.data;
                product({x, row}, rows, table, degrees, ENERGY * s.pairs, SIZE, sums);
                product<true>({spin + ENERGY * s.pairs, row}, 2 * states,
                              table + ENERGY * s.pairs * degrees, degrees, s.pairs, SIZE,
                              sums + 4 * states * SIZE);
                for (int64_t i = 0; i < rows; i++) {
                    T *to = spectrum(tendencies, m, i / states % 2, i / states / 2, i % states) +
                            m + parity + 2 * k;
                    for (int64_t j = 0; j < min(SIZE, n - k); j++)
                        to[2 * j] = sums[i * SIZE + j];
                }
            }
        }
    }

  private:
    int64_t orders_of(int64_t parity) const { return (orders + 1 - parity) / 2; }

    // (field, state, part, order, lane)
    T *ring_panels(int64_t tile, int64_t side, int64_t parity) const {
        return rings.data + ((tile * 2 + side) * 2 + parity) * FIELDS * states * 2 * panel;
    }
    // (field, part, state, segment, pair), where fields are tendencies
    T *flux_rows(int64_t m, int64_t parity) const {
        return fluxes.data + (m * 2 + parity) * 6 * states * SEGMENTS * s.pairs;
    }
    T *at(const Buffer<T> &values, int64_t field, int64_t kind) const {
        return values.data + (field * 4 + kind) * s.quarter * SIZE;
    }
    T *back(const Workspace &w, int64_t side, int64_t flux, int64_t kind) const {
        return w.back.data + ((side * FLUXES + flux) * 4 + kind) * panel;
    }
    template <class P>
    P *spectrum(P *spectra, int64_t m, int64_t part, int64_t field, int64_t state) const {
        return spectra + (((m * 2 + part) * 3 + field) * s.states + first + state) * orders;
    }

    // As many rows as fill the registers, in parts of about the same size
    template <bool ADD = false>
    static void product(typename Inner::Rows a, int64_t rows, const T *b, int64_t apart, int64_t n,
                        int64_t stride, T *to) {
        for (int64_t parts = (rows + Inner::ROWS - 1) / Inner::ROWS; parts > 0; parts--) {
            const int64_t now = (rows + parts - 1) / parts;
            Inner::template any<ADD>(now, a, b, n, SIZE, stride, to, apart);
            a.a += now * a.row;
            to += now * stride;
            rows -= now;
        }
    }

    // Sum and difference
    static INLINE void butterfly(T *x, T *y) {
        for (int64_t j = 0; j < SIZE; j += W<T>) {
            const Vec<T> a = load(x + j), b = load(y + j);
            store(x + j, a + b);
            store(y + j, a - b);
        }
    }

    // Wind = slope (vorticity, -divergence) + shear i (divergence, vorticity), rows (east or north,
    // state, part)
    void load_winds(int64_t m, const T *spectra, T *symmetric, T *antisymmetric) const {
        const int64_t n = orders - m;
        for (int64_t state = 0; state < states; state++) {
            const T *vr = spectrum(spectra, m, RE, 1, state) + m,
                    *vi = spectrum(spectra, m, IM, 1, state) + m,
                    *dr = spectrum(spectra, m, RE, 2, state) + m,
                    *di = spectrum(spectra, m, IM, 2, state) + m;
            const auto load_row = [&](int64_t row, const T *slope, T slope_sign, const T *shear,
                                      T shear_sign) {
                T *sym = symmetric + row * n, *anti = antisymmetric + row * n;
                for (int64_t l = 0; l < n; l++) {
                    const T x = slope_sign * slope[l], y = shear_sign * shear[l];
                    sym[l] = l % 2 ? x : y;
                    anti[l] = l % 2 ? y : x;
                }
            };
            const int64_t east = state * 2, north = (states + state) * 2;
            load_row(east + RE, vr, 1, di, -1);
            load_row(east + IM, vi, 1, dr, 1);
            load_row(north + RE, dr, -1, vi, -1);
            load_row(north + IM, di, -1, vr, 1);
        }
    }

    // Geopotential and absolute vorticity, rows (field, state, part): even degrees, then odd ones
    void load_scalars(int64_t m, const T *spectra, T *to) const {
        const int64_t n = orders - m, even = (n + 1) / 2;
        for (int64_t field = 0; field < 2; field++)
            for (int64_t state = 0; state < states; state++)
                for (int part = 0; part < 2; part++, to += n) {
                    const T *x = spectrum(spectra, m, part, field, state) + m;
                    const T *f = (const T *)s.coriolis + (m * 2 + part) * orders + m;
                    for (int64_t l = 0; l < n; l++)
                        to[l % 2 * even + l / 2] = field ? x[l] + f[l] : x[l];
                }
    }

    // At a longitude of each quadrant: phi, pi - phi, -phi, pi + phi
    static INLINE void images(const Vec<T> (&kind)[4], Vec<T> (&at)[4]) {
        const Vec<T> ce = kind[0], se = kind[1], co = kind[2], so = kind[3];
        at[0] = (ce + co) + (se + so);
        at[1] = (ce - co) - (se - so);
        at[2] = (ce + co) - (se + so);
        at[3] = (ce - co) + (se - so);
    }

    INLINE void multiply_points(const Workspace &w, int64_t i) const {
        Vec<T> values[FIELDS][4];
        UNROLL for (int field = 0; field < FIELDS; field++) {
            Vec<T> kind[4];
            UNROLL for (int k = 0; k < 4; k++) kind[k] = load(at(w.points, field, k) + i);
            images(kind, values[field]);
        }
        UNROLL for (int flux = 0; flux < FLUXES; flux++) {
            Vec<T> f[4];
            UNROLL for (int k = 0; k < 4; k++) {
                const Vec<T> east = values[EAST][k], north = values[NORTH][k],
                             a = values[GEOPOTENTIAL][k], b = values[VORTICITY][k];
                f[k] = flux == A_EAST    ? a * east
                       : flux == A_NORTH ? a * north
                       : flux == B_EAST  ? b * east
                       : flux == B_NORTH ? b * north
                                         : east * east + north * north;
            }
            store(at(w.products, flux, 0) + i, (f[0] + f[2]) + (f[1] + f[3]));
            store(at(w.products, flux, 1) + i, (f[0] - f[2]) - (f[1] - f[3]));
            store(at(w.products, flux, 2) + i, (f[0] + f[2]) - (f[1] + f[3]));
            store(at(w.products, flux, 3) + i, (f[0] - f[2]) + (f[1] - f[3]));
        }
    }

    // The terms of each tendency, with their signs: -i shear - slope, and the energy's.
    void store_fluxes(int64_t m, int64_t t, int64_t state, int64_t count,
                      const Workspace &w) const {
        const int64_t row = SEGMENTS * s.pairs;
        const auto put = [&](int tendency, int part, int segment, int flux, int of, T sign) {
            const int64_t kind = m % 2 * 2 + of;
            const T *north = back(w, 0, flux, kind) + m / 2 * SIZE,
                    *south = back(w, 1, flux, kind) + m / 2 * SIZE;
            const int64_t to =
                ((tendency * 2 + part) * states + state) * row + segment * s.pairs + t * SIZE;
            // What meets even degrees: the symmetric part, of slopes the antisymmetric one.
            T *symmetric = flux_rows(m, segment == SLOPE) + to,
              *antisymmetric = flux_rows(m, segment != SLOPE) + to;
            for (int64_t j = 0; j < count; j++) {
                symmetric[j] = sign * (north[j] + south[j]);
                antisymmetric[j] = sign * (north[j] - south[j]);
            }
        };
        const auto both = [&](int tendency, int shear, T sign, int slope) {
            put(tendency, RE, SHEAR, shear, IM, sign);
            put(tendency, IM, SHEAR, shear, RE, -sign);
            put(tendency, RE, SLOPE, slope, RE, 1);
            put(tendency, IM, SLOPE, slope, IM, 1);
        };
        both(0, A_EAST, 1, A_NORTH);
        both(1, B_EAST, 1, B_NORTH);
        both(2, B_NORTH, -1, B_EAST);
        put(2, RE, ENERGY, KINETIC, RE, 1);
        put(2, IM, ENERGY, KINETIC, IM, 1);
    }
};

template <class T>
int run_apart(const spherule_shallow_water &s, int64_t chunks, const T *spectra, T *tendencies) {
    int failed = 0;
#pragma omp parallel num_threads(s.threads) reduction(| : failed)
    {
        Chunk<T> chunk(s);
        typename Chunk<T>::Workspace w(chunk);
        failed = !chunk.ok() || !w.ok();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < chunks; i++) {
            if (failed)
                continue;
            chunk.set(i);
            for (int64_t m = 0; m <= s.lmax; m++)
                chunk.synthesize(m, spectra, w);
            for (int64_t n = 0; n < chunk.tasks(); n++)
                chunk.multiply(n, w);
            for (int64_t m = 0; m <= s.lmax; m++)
                chunk.analyze(m, tendencies, w);
        }
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int run_together(const spherule_shallow_water &s, int64_t chunks, const T *spectra, T *tendencies) {
    Chunk<T> chunk(s);
    int failed = !chunk.ok();
    for (int64_t i = 0; i < chunks && !failed; i++) {
        chunk.set(i);
#pragma omp parallel num_threads(s.threads) reduction(| : failed)
        {
            typename Chunk<T>::Workspace w(chunk);
            failed = !w.ok();
#pragma omp for schedule(dynamic)
            for (int64_t m = 0; m <= s.lmax; m++)
                if (!failed)
                    chunk.synthesize(m, spectra, w);
#pragma omp for schedule(dynamic)
            for (int64_t n = 0; n < chunk.tasks(); n++)
                if (!failed)
                    chunk.multiply(n, w);
#pragma omp for schedule(dynamic)
            for (int64_t m = 0; m <= s.lmax; m++)
                if (!failed)
                    chunk.analyze(m, tendencies, w);
        }
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

// A thread takes whole chunks; where there are fewer than threads, all work at one after the other.
template <class T> int run(const spherule_shallow_water &s, const void *spectra, void *tendencies) {
    const int64_t chunks = (s.states + Chunk<T>::STATES - 1) / Chunk<T>::STATES;
    return (chunks < s.threads ? run_together<T> : run_apart<T>)(s, chunks, (const T *)spectra,
                                                                 (T *)tendencies);
}

int any_quadratic(const spherule_shallow_water *s, const void *spectra, void *tendencies) {
    return s->dtype == SPHERULE_FLOAT64 ? run<double>(*s, spectra, tendencies)
                                        : run<float>(*s, spectra, tendencies);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const ShallowWaterKernels SPHERULE_JOIN(shallow_water, SPHERULE_ISA) = {any_quadratic};
