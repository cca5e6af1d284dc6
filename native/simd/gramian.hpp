// Sums over the rows of a factor matrix.
#pragma once

#include "simd/tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kSlice = 128;  // rows laid into panels at once

LIMELIGHT_INLINE int64_t gramian_scratch(int64_t width) { return kSlice * width; }

static void gramian(const float* X, int64_t begin, int64_t end, int64_t width, float* packed, float* scratch) {
  for (int64_t first = begin; first < end; first += kSlice) {
    const int64_t depth = end - first < kSlice ? end - first : kSlice;
    for (int64_t k = 0; k < depth; ++k) place_row(X + (first + k) * width, width, k, kSlice * kPanel, scratch);
    add_outer_products(width / kPanel, depth, scratch, kSlice * kPanel, first > begin ? packed : nullptr, packed);
  }
}

static void column_sums(const float* X, const float* weights, int64_t begin, int64_t end, int64_t width, float* sums) {
  memset(sums, 0, width * sizeof(float));
  for (int64_t i = begin; i < end; ++i) {
    const float weight = weights ? weights[i] : 1.0f;
    for (int64_t c = 0; c < width; c += kLanes) store(sums + c, load(sums + c) + weight * load(X + i * width + c));
  }
}

static void shift_rows(float* X, const float* step, const float* h, int64_t begin, int64_t end, int64_t width) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t c = 0; c < width; c += kLanes) {
      float* at = X + i * width + c;
      store(at, load(at) - step[i] * load(h + c));
    }
}

}  // namespace limelight::LIMELIGHT_VARIANT
