#include "core/partial_sort.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace limelight {

constexpr uint32_t kSign = 0x80000000u;

// Flipping the sign bit of positive floats, and all bits of negative ones, makes them sort as integers.
uint64_t sort_key(float score, int32_t item) {
  score += 0.0f;  // -0 becomes 0: they are a tie
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  bits ^= bits & kSign ? ~0u : kSign;
  return static_cast<uint64_t>(bits) << 32 | ~static_cast<uint32_t>(item);
}

float key_score(uint64_t key) {
  auto bits = static_cast<uint32_t>(key >> 32);
  bits ^= bits & kSign ? kSign : ~0u;
  float score;
  std::memcpy(&score, &bits, sizeof(score));
  return score;
}

int32_t key_item(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

void select_largest(uint64_t* keys, int64_t n, int64_t k) {
  std::nth_element(keys, keys + k - 1, keys + n, std::greater<>());
}

void sort_descending(uint64_t* keys, int64_t n) { std::sort(keys, keys + n, std::greater<>()); }

float kth_largest(float* numbers, int64_t n, int64_t k) {
  std::nth_element(numbers, numbers + k - 1, numbers + n, std::greater<>());
  return numbers[k - 1];
}

}  // namespace limelight
