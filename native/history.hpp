// Products with the rows of a history, a few rows at a time so that their sums run side by side.
#pragma once

#include "simd.hpp"

namespace limelight::LIMELIGHT_VARIANT {

LIMELIGHT_INLINE float dot(const float* a, const float* b, int64_t width) {
  Vector sum[1] = {};
  for (int64_t c = 0; c < width; c += kLanes) sum[0] += load(a + c) * load(b + c);
  return sum_each<1>(sum)[0];
}

constexpr int kGroup = kLanes < 8 ? kLanes : 8;

// A group of rows; where the history ends early, its first row stands in and counts nothing.
struct Group {
  const float* rows[kGroup];
  int count;

  LIMELIGHT_INLINE Group(const float* factors, const int32_t* history, int64_t n, int64_t first, int64_t width) {
    count = static_cast<int>(n - first < kGroup ? n - first : kGroup);
    for (int u = 0; u < kGroup; ++u) rows[u] = factors + history[first + (u < count ? u : 0)] * width;
    for (int64_t j = first + 2 * kGroup; j < first + 3 * kGroup && j < n; ++j)
      prefetch_row(factors + history[j] * width, width);
  }

  // The products rows[u] . x, in the first kGroup lanes.
  LIMELIGHT_INLINE void dots(const float* x, int64_t width, float* out) const {
    Vector sum[kGroup] = {};
    for (int64_t c = 0; c < width; c += kLanes) {
      const Vector part = load(x + c);
      for (int u = 0; u < kGroup; ++u) sum[u] += part * load(rows[u] + c);
    }
    store(out, sum_each<kGroup>(sum));
  }

  // y += sum_u weights[u] rows[u] over the rows that count.
  LIMELIGHT_INLINE void add_weighted(float* weights, int64_t width, float* y) const {
    for (int u = count; u < kGroup; ++u) weights[u] = 0.0f;
    for (int64_t c = 0; c < width; c += kLanes) {
      Vector even = load(y + c), odd = {};
      for (int u = 0; u < kGroup; u += 2) {
        even += weights[u] * load(rows[u] + c);
        odd += weights[u + 1] * load(rows[u + 1] + c);
      }
      store(y + c, even + odd);
    }
  }
};

// y += sum_j f_j (f_j . x + offset)
static void add_history_product(const float* factors, const int32_t* history, int64_t n, int64_t width,
                                const float* x, float offset, float* y) {
  for (int64_t first = 0; first < n; first += kGroup) {
    const Group group(factors, history, n, first, width);
    float weights[kLanes];
    group.dots(x, width, weights);
    for (int u = 0; u < kGroup; ++u) weights[u] += offset;
    group.add_weighted(weights, width, y);
  }
}

}  // namespace limelight::LIMELIGHT_VARIANT
