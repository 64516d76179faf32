// A sparse matrix, by compressed rows, and many fields.
#pragma once
#include "spherule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t fields, rows, columns, entries;
    const int64_t *start;   // the first entry of each row, and the end of the last
    const int64_t *column;  // of each entry
    const void *weight;     // of each entry
    int32_t dtype;          // SPHERULE_FLOAT32 or SPHERULE_FLOAT64
    int32_t threads;
} spherule_sparse;

// y (fields, rows) = the matrix times x (fields, columns), field by field
SPHERULE_API int spherule_sparse_map(const spherule_sparse *, const void *x, void *y);

#ifdef __cplusplus
}
#endif
