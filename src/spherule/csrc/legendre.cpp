// Legendre transforms. Compiled once per instruction set, under the name SPHERULE_ISA. A few
// orders of a few fields are a task of one thread, which adds in a fixed order: the same bits for
// any number of threads.
#include "isa.h"
#include "legendre_task.h"

namespace {

// part += values times coefficients (step, 2)
INLINE void synthesize(const double *values, const double *c, int n, V (&part)[2][VECTORS]) {
    V s[2][VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) s[0][v] = part[0][v], s[1][v] = part[1][v];
    for (int k = 0; k < n; k++, values += LANES, c += 2) {
        const V re = fill(c[0]), im = fill(c[1]);
        UNROLL for (int v = 0; v < VECTORS; v++) {
            V p = load(values + v * W<double>);
            KEEP(p);
            s[0][v] += re * p;
            s[1][v] += im * p;
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++) part[0][v] = s[0][v], part[1][v] = s[1][v];
}

// coefficients (step, 2) += scale times the sum over the block's rings. Four steps at a time, and
// the last ones' values go on to the end of a piece.
INLINE void analyze(const double *values, const V (&part)[2][VECTORS], int n, const double *scale,
                    double *c) {
    V f[2][VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) f[0][v] = part[0][v], f[1][v] = part[1][v];
    for (int k = 0; k < n; k += 4, scale += 4, c += 8) {
        V s[8] = {};
        UNROLL for (int j = 0; j < 4; j++, values += LANES) {
            UNROLL for (int v = 0; v < VECTORS; v++) {
                V p = load(values + v * W<double>);
                KEEP(p);
                s[2 * j] += f[0][v] * p;
                s[2 * j + 1] += f[1][v] * p;
            }
        }
        double total[8];
        lane_sums<8, double>(s, total);
        UNROLL for (int j = 0; j < 8; j++) c[j] += scale[j / 2] * total[j];
    }
}

// f(first step, how many, their values) for all steps that count
template <class F>
INLINE void for_steps(const spherule_legendre &s, Workspace &w, const Block &block, int64_t m,
                      const F &f) {
    const int64_t steps = steps_of(s.lmax, m);
    Values values;
    values.start(s, block, m);
    for (int64_t k = 0; k < steps; k += CHUNK) {
        const int n = int(min(int64_t(CHUNK), steps - k));
        const int asleep = values.next(w.recurrence, k, n, w.values.data);
        if (asleep < n)
            f(k + asleep, n - asleep, w.values.data + asleep * LANES);
    }
}

template <class T>
void synthesis(const spherule_legendre &s, const Blocks &blocks, Workspace &w, const Task &task,
               int64_t c, const Complex<const T> &coeffs) {
    const int64_t m = s.order[task.column + c];
    w.recurrence.set_order(m, s.lmax);
    for (const Block &block : blocks) {
        if (block.index == 0 || block.polar != (&block)[-1].polar) {
            w.recurrence.set_kind(m, s.lmax, block.polar);
            load_coeffs(s, w, task, c, coeffs);
        }
        memset((void *)&w.at(c, block, 0), 0, size_t(task.fields) * sizeof(Parts));
        if (m <= block.highest)
            for_steps(s, w, block, m, [&](int64_t k, int n, const double *values) {
                for (int64_t i = 0; i < task.fields; i++)
                    for (int odd = 0; odd < 2; odd++)
                        synthesize(values, w.row(s.lmax, m, i, odd) + 2 * k, n,
                                   w.at(c, block, i).part[odd]);
            });
    }
}

template <class T>
void analysis(const spherule_legendre &s, const Blocks &blocks, Workspace &w, const Task &task,
              int64_t c) {
    const int64_t m = s.order[task.column + c];
    w.recurrence.set_order(m, s.lmax);
    memset(w.coeffs.data, 0, size_t(task.fields * w.room(s.lmax, m)) * sizeof(double));
    for (const Block &block : blocks) {
        if (block.index == 0 || block.polar != (&block)[-1].polar)
            w.recurrence.set_kind(m, s.lmax, block.polar);
        if (m <= block.highest)
            for_steps(s, w, block, m, [&](int64_t k, int n, const double *values) {
                for (int64_t i = 0; i < task.fields; i++)
                    for (int odd = 0; odd < 2; odd++)
                        analyze(values, w.at(c, block, i).part[odd], n, w.recurrence.scale + k,
                                w.row(s.lmax, m, i, odd) + 2 * k);
            });
    }
    keep_coeffs<T>(s, w, task, c);
}

// body(blocks, workspace, task) for all tasks; low orders, which are long, first
template <class Body> int for_tasks(const spherule_legendre &s, const Body &body) {
    const int64_t groups = (s.fields + FIELDS - 1) / FIELDS,
                  columns = (s.orders + ORDERS - 1) / ORDERS;
    const Blocks blocks(s);
    if (!blocks.block.data)
        return SPHERULE_NO_MEMORY;
    int failed = 0;
#pragma omp parallel num_threads(s.threads) reduction(| : failed)
    {
        Workspace w(s);
        failed = !w.ok();
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < groups * columns; n++) {
            const int64_t field = n % groups * FIELDS, first = n / groups * ORDERS;
            const Task task = {field, min(FIELDS, s.fields - field), first,
                               min(ORDERS, s.orders - first)};
            if (!failed)
                body(blocks, w, task);
        }
    }
    return failed ? SPHERULE_NO_MEMORY : SPHERULE_OK;
}

template <class T>
int run_synthesis(const spherule_legendre &s, const void *coeffs, void *spectra) {
    const Complex<const T> from{(const T *)coeffs, s.lmax + 1, s.orders};
    const Complex<T> to{(T *)spectra, s.rings, s.orders};
    return for_tasks(s, [&](const Blocks &blocks, Workspace &w, const Task &task) {
        for (int64_t c = 0; c < task.columns; c++)
            synthesis(s, blocks, w, task, c, from);
        store_rings(s, blocks, w, task, to);
    });
}

template <class T> int run_analysis(const spherule_legendre &s, const void *spectra, void *coeffs) {
    const Complex<const T> from{(const T *)spectra, s.rings, s.orders};
    const Complex<T> to{(T *)coeffs, s.lmax + 1, s.orders};
    return for_tasks(s, [&](const Blocks &blocks, Workspace &w, const Task &task) {
        load_rings(s, blocks, w, task, from);
        for (int64_t c = 0; c < task.columns; c++)
            analysis<T>(s, blocks, w, task, c);
        store_coeffs(s, w, task, to);
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
