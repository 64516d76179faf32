// Memory of a call.
#pragma once
#include "simd.h"
#include "spherule.h"
#include <stdlib.h>
#include <sys/mman.h>

namespace {

template <class T> struct Buffer {
    T *data;
    explicit Buffer(int64_t n)
        : data((T *)aligned_alloc(64, size_t(n * int64_t(sizeof(T)) + 64) / 64 * 64)) {}
    ~Buffer() { free(data); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
};

// Memory for matrices of rows: our own, or where a caller's tensor has them already.
struct Area {
    int64_t matrices, points;
    int dim, width, number;  // numbers of a row, with its padding; bytes of a number
    void *data = nullptr;
    bool lent = false;
};

// Matrices, mostly one for each batch and head, as rows [matrix][point][channel], channels padded
// to whole vectors.
template <class T> struct Packed : Area {
    Packed(int64_t matrices, int64_t points, int64_t dim, int vector = W<T>)
        : Area{matrices, points, int(dim), int((dim + vector - 1) / vector * vector), sizeof(T)} {}
    T *row(int64_t matrix, int64_t point) const {
        return (T *)data + (matrix * points + point) * width;
    }
};

// One block for all packed tensors that need memory. The last one is kept for the next call, since
// fresh pages from the system cost a tenth of the time.
class Scratch {
    struct Block {
        size_t size;
    };
    static constexpr size_t header = 64, keep = size_t(256) << 20, page = size_t(2) << 20;
    static inline Block *kept = nullptr;
    Block *block;

  public:
    template <int N> explicit Scratch(Area *const (&tensors)[N]) {
        size_t size = header;
        size_t offset[N];
        for (int i = 0; i < N; i++) {
            offset[i] = size;
            if (tensors[i]->lent)
                continue;
            size_t bytes;
            // More than there is, rather than what is left of it.
            if (__builtin_mul_overflow(size_t(tensors[i]->matrices * tensors[i]->width) *
                                           size_t(tensors[i]->number),
                                       size_t(tensors[i]->points), &bytes) ||
                __builtin_add_overflow(size, (bytes + 63) / 64 * 64, &size))
                size = SIZE_MAX / 2;
        }
        block = __atomic_exchange_n(&kept, nullptr, __ATOMIC_ACQ_REL);
        if (!block || block->size < size) {
            free(block);
            const size_t whole = (size + page - 1) / page * page;
            block = (Block *)aligned_alloc(page, whole);
            if (!block)
                return;
#ifdef MADV_HUGEPAGE
            // Neighborhoods are spread over more small pages than a core remembers.
            madvise(block, whole, MADV_HUGEPAGE);
#endif
            block->size = size;
        }
        for (int i = 0; i < N; i++)
            if (!tensors[i]->lent)
                tensors[i]->data = (char *)block + offset[i];
    }
    ~Scratch() {
        if (block && block->size <= keep)
            block = __atomic_exchange_n(&kept, block, __ATOMIC_ACQ_REL);
        free(block);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    bool ok() const { return block; }
};

}  // namespace
