// The C interface of the native library. It knows nothing of Python or torch: pointers, strides,
// sizes.
#pragma once
#include <stdint.h>

// Changes with every struct and signature of the library's headers; whoever loads it compares.
#define SPHERULE_ABI 12

#define SPHERULE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum { SPHERULE_FLOAT32, SPHERULE_FLOAT64, SPHERULE_FLOAT16, SPHERULE_BFLOAT16 };
// What every function returns. It reads and writes nothing where its sizes or its table are bad.
enum { SPHERULE_OK, SPHERULE_NO_MEMORY, SPHERULE_BAD_SIZES, SPHERULE_BAD_TABLE };

// Longitudes of two rings with nq and nk points are compared in units of pi / (nq nk
// SPHERULE_UNIT).
#define SPHERULE_UNIT (INT64_C(1) << 28)

// (batch, heads, points, dim); strides in elements. data may be null where an argument is optional.
typedef struct {
    void *data;
    int64_t stride[4];
} spherule_strided;

typedef struct {
    int64_t rings;
    const double *theta;
    const int64_t *nphi;
    const int64_t *ringstart;
} spherule_rings;

// Which keys belong to a query: an arc of each ring. Query ring r meets the key rings first[r],
// first[r] + 1, ...; its pairs of rings are entries pairs[r] to pairs[r + 1] of shift, reach and
// inner. Key j belongs to query i if
//     |2 UNIT (j nq - i nk) + shift| <= reach    modulo 2 UNIT nq nk,
// with full weight up to `inner`, and with the linear taper of the soft edge beyond; nq nk < 2^33,
// |shift| and reach at most UNIT nq nk, half a turn.
// Windows on a plane have column_start and column_count (per query column) instead, and no
// wrap-around.
typedef struct {
    spherule_rings query, key;
    const int64_t *first, *pairs;
    const int64_t *shift, *reach, *inner;
    const int64_t *column_start, *column_count;
    const int64_t *order;          // query rings, most expensive first
    const double *key_log_weight;  // per ring, null for 0; -inf leaves the ring out
    double cutoff, edge_width;
} spherule_arc_table;

typedef struct {
    int64_t batch, heads, queries, keys, dim, value_dim;
    double scale;
    int32_t dtype;  // of q, k, v, out and their gradients; lse is float64 for float64, else float32
    int32_t threads;
    const uint8_t *key_mask;  // null, or 1 for the keys that count
    int64_t key_mask_stride;  // between batches
} spherule_problem;

// out = softmax average of v; lse (batch, heads, queries), contiguous, natural logarithm.
SPHERULE_API int spherule_attention_forward(const spherule_arc_table *, const spherule_problem *,
                                            const spherule_strided *q, const spherule_strided *k,
                                            const spherule_strided *v, const spherule_strided *out,
                                            void *lse);

// grad_lse may be null.
SPHERULE_API int spherule_attention_backward(const spherule_arc_table *, const spherule_problem *,
                                             const spherule_strided *q, const spherule_strided *k,
                                             const spherule_strided *v, const spherule_strided *out,
                                             const void *lse, const spherule_strided *grad_out,
                                             const void *grad_lse, const spherule_strided *dq,
                                             const spherule_strided *dk,
                                             const spherule_strided *dv);

SPHERULE_API int spherule_abi(void);

// The instruction set chosen for this machine.
SPHERULE_API const char *spherule_isa(void);

// The width of its vectors.
SPHERULE_API int spherule_vector_bits(void);

// Whether it has products of 16-bit numbers (bfloat16), so that maps and attention gain by them.
SPHERULE_API int spherule_short_products(void);

#ifdef __cplusplus
}
#endif
