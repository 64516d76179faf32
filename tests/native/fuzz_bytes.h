// What a fuzzer's input is read with.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

// The input, number by number; zeros when it has ended.
struct Bytes {
    const uint8_t *data;
    size_t size;
    int64_t below(int64_t n) {
        uint16_t x = 0;
        const size_t take = size < 2 ? size : 2;
        memcpy(&x, data, take);
        data += take, size -= take;
        return n > 0 ? x % n : 0;
    }
    // One number of one of these becomes another.
    void disturb(const std::vector<std::vector<int64_t> *> &all) {
        const int64_t wild[] = {-1, 0, 1, 2, 7, INT64_MAX, INT64_MIN, INT64_C(1) << 33};
        std::vector<int64_t> &one = *all[size_t(below(int64_t(all.size())))];
        if (one.empty())
            return;
        int64_t &number = one[size_t(below(int64_t(one.size())))];
        number = below(2) ? wild[below(8)] : int64_t(uint64_t(number) + uint64_t(below(5)) - 2);
    }
};
