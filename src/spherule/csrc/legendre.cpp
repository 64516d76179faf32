// Legendre transforms. Compiled once per instruction set, under the name SPHERULE_ISA. An order of
// a few fields is a task of one thread, which adds in a fixed order: the same bits for any number
// of threads.
#include "isa.h"
#include "legendre_values.h"

namespace {

typedef Vec<double> V;
constexpr int64_t FIELDS = 8;  // of a task: they share the values
constexpr int64_t ORDERS = 4;  // of a task: neighbors in memory

// A thread's memory.
struct Workspace {
    Recurrence recurrence;
    Buffer<double> values, coeffs, sums;
    explicit Workspace(int64_t lmax)
        : recurrence(lmax), values(CHUNK * LANES), coeffs(FIELDS * (lmax + 1) * 2),
          sums(FIELDS * (lmax + 1) * 2 * W<double>) {}
    bool ok() const { return recurrence.ok() && values.data && coeffs.data && sums.data; }
};

// A block's sums of one field: over even l - m, then over odd ones; real, then imaginary.
struct Parts {
    V part[2][2][VECTORS];
};

// Real and imaginary parts of one field
template <class T> struct Complex {
    T *data;
    int64_t rows, columns;
    T *at(int64_t field, int64_t row, int64_t column) const {
        return data + ((field * rows + row) * columns + column) * 2;
    }
};

// part += the values of degrees with one parity, times coefficients (degree, 2)
INLINE void synthesize(const double *values, const double *c, int n, V (&part)[2][VECTORS]) {
    V s[2][VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) s[0][v] = part[0][v], s[1][v] = part[1][v];
    for (int k = 0; k < n; k += 2, values += 2 * LANES, c += 4) {
        const V re = fill(c[0]), im = fill(c[1]);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const V p = load(values + v * W<double>);
            s[0][v] += re * p;
            s[1][v] += im * p;
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++) part[0][v] = s[0][v], part[1][v] = s[1][v];
}

// sums (degree, 2) += over the block's rings; lanes are added up later
INLINE void analyze(const double *values, const V (&part)[2][VECTORS], int n, double *sums) {
    V f[2][VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) f[0][v] = part[0][v], f[1][v] = part[1][v];
    for (int k = 0; k < n; k += 2, values += 2 * LANES, sums += 4 * W<double>) {
        V re = load(sums), im = load(sums + W<double>);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const V p = load(values + v * W<double>);
            re += f[0][v] * p;
            im += f[1][v] * p;
        }
        store(sums, re);
        store(sums + W<double>, im);
    }
}

// f(first degree less m, how many) for all degrees that count, whose values are in the workspace
template <class F>
INLINE void for_degrees(const spherule_legendre &s, Workspace &w, int64_t first, int64_t m,
                        const F &f) {
    Values values;
    values.start(s, first, m);
    for (int64_t l = m; l <= s.lmax; l += CHUNK) {
        const int n = int(min(int64_t(CHUNK), s.lmax + 1 - l));
        if (values.next(w.recurrence, l, n, w.values.data))
            f(l - m, n);
    }
}

template <class T>
void synthesis(const spherule_legendre &s, Workspace &w, int64_t field, int64_t fields,
               int64_t column, const Complex<const T> &coeffs, const Complex<T> &spectra) {
    const int64_t m = s.order[column], degrees = s.lmax + 1 - m;
    w.recurrence.set(m, s.lmax);
    for (int64_t i = 0; i < fields; i++)
        for (int64_t l = m; l <= s.lmax; l++)
            for (int j = 0; j < 2; j++)
                w.coeffs.data[(i * degrees + l - m) * 2 + j] = coeffs.at(field + i, l, column)[j];
    for (int64_t first = 0; first < s.pairs; first += LANES) {
        Parts parts[FIELDS];
        memset(parts, 0, sizeof(parts));
        if (counts(s, first, m))
            for_degrees(s, w, first, m, [&](int64_t k, int n) {
                for (int64_t i = 0; i < fields; i++)
                    for (int odd = 0; odd < 2; odd++)
                        synthesize(w.values.data + odd * LANES,
                                   w.coeffs.data + (i * degrees + k + odd) * 2, n - odd,
                                   parts[i].part[odd]);
            });
        for (int64_t i = 0; i < fields; i++)
            for (int64_t pair = first; pair < min(first + LANES, s.pairs); pair++)
                for (int j = 0; j < 2; j++) {
                    const double even = ((double *)parts[i].part[0][j])[pair - first],
                                 odd = ((double *)parts[i].part[1][j])[pair - first];
                    if (s.north[pair] >= 0)
                        spectra.at(field + i, s.north[pair], column)[j] = T(even + odd);
                    if (s.south[pair] >= 0)
                        spectra.at(field + i, s.south[pair], column)[j] = T(even - odd);
                }
    }
}

template <class T>
void analysis(const spherule_legendre &s, Workspace &w, int64_t field, int64_t fields,
              int64_t column, const Complex<const T> &spectra, const Complex<T> &coeffs) {
    const int64_t m = s.order[column], degrees = s.lmax + 1 - m, width = 2 * W<double>;
    w.recurrence.set(m, s.lmax);
    memset(w.sums.data, 0, size_t(fields * degrees * width) * sizeof(double));
    for (int64_t first = 0; first < s.pairs; first += LANES) {
        if (!counts(s, first, m))
            continue;
        Parts parts[FIELDS];
        memset(parts, 0, sizeof(parts));
        for (int64_t i = 0; i < fields; i++)
            for (int64_t pair = first; pair < min(first + LANES, s.pairs); pair++)
                for (int j = 0; j < 2; j++) {
                    const int64_t up = s.north[pair], down = s.south[pair];
                    const double north = up < 0 ? 0 : spectra.at(field + i, up, column)[j],
                                 south = down < 0 ? 0 : spectra.at(field + i, down, column)[j];
                    ((double *)parts[i].part[0][j])[pair - first] = north + south;
                    ((double *)parts[i].part[1][j])[pair - first] = north - south;
                }
        for_degrees(s, w, first, m, [&](int64_t k, int n) {
            for (int64_t i = 0; i < fields; i++)
                for (int odd = 0; odd < 2; odd++)
                    analyze(w.values.data + odd * LANES, parts[i].part[odd], n - odd,
                            w.sums.data + (i * degrees + k + odd) * width);
        });
    }
    for (int64_t i = 0; i < fields; i++)
        for (int64_t l = 0; l <= s.lmax; l++)
            for (int j = 0; j < 2; j++)
                coeffs.at(field + i, l, column)[j] =
                    l < m ? T(0)
                          : T(sum<double>(
                                load(w.sums.data + (i * degrees + l - m) * width + j * W<double>)));
}

// body(workspace, first field, fields, column) for all tasks; low orders, which are long, first
template <class Body> int for_orders(const spherule_legendre &s, const Body &body) {
    const int64_t groups = (s.fields + FIELDS - 1) / FIELDS,
                  columns = (s.orders + ORDERS - 1) / ORDERS;
    int failed = 0;
#pragma omp parallel num_threads(s.threads) reduction(| : failed)
    {
        Workspace w(s.lmax);
        failed = !w.ok();
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < groups * columns; n++) {
            const int64_t field = n % groups * FIELDS, first = n / groups * ORDERS;
            for (int64_t c = first; c < min(first + ORDERS, s.orders) && !failed; c++)
                body(w, field, min(FIELDS, s.fields - field), c);
        }
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int run_synthesis(const spherule_legendre &s, const void *coeffs, void *spectra) {
    const Complex<const T> from{(const T *)coeffs, s.lmax + 1, s.orders};
    const Complex<T> to{(T *)spectra, s.rings, s.orders};
    return for_orders(s, [&](Workspace &w, int64_t field, int64_t fields, int64_t column) {
        synthesis(s, w, field, fields, column, from, to);
    });
}

template <class T> int run_analysis(const spherule_legendre &s, const void *spectra, void *coeffs) {
    const Complex<const T> from{(const T *)spectra, s.rings, s.orders};
    const Complex<T> to{(T *)coeffs, s.lmax + 1, s.orders};
    return for_orders(s, [&](Workspace &w, int64_t field, int64_t fields, int64_t column) {
        analysis(s, w, field, fields, column, from, to);
    });
}

int any_synthesis(const spherule_legendre *s, const void *coeffs, void *spectra) {
    return s->dtype == SPHERULE_FLOAT64 ? run_synthesis<double>(*s, coeffs, spectra)
                                        : run_synthesis<float>(*s, coeffs, spectra);
}
int any_analysis(const spherule_legendre *s, const void *spectra, void *coeffs) {
    return s->dtype == SPHERULE_FLOAT64 ? run_analysis<double>(*s, spectra, coeffs)
                                        : run_analysis<float>(*s, spectra, coeffs);
}

}  // namespace

SPHERULE_KERNELS(SPHERULE_ISA);
const LegendreKernels SPHERULE_JOIN(legendre, SPHERULE_ISA) = {any_synthesis, any_analysis};
