// The largest of a few hundred keys. The functions are compiled in a unit of their own, because they use templates of
// the standard library, which simd/ must not (simd/simd.hpp says why).
#pragma once

#include <cstdint>

namespace limelight {

// A score and an item in one number that sorts by score and then by the lower item.
uint64_t sort_key(float score, int32_t item);
float key_score(uint64_t key);
int32_t key_item(uint64_t key);

// Moves the k largest of n keys to the front, in no order; the smallest of them stands at k - 1.
void select_largest(uint64_t* keys, int64_t n, int64_t k);
void sort_descending(uint64_t* keys, int64_t n);

// The k-th largest of n numbers, which are reordered.
float kth_largest(float* numbers, int64_t n, int64_t k);

}  // namespace limelight
