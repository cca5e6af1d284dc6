// How often two items stand in the same history, or by which weight, as a dense matrix without a dense history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "simd/kernels.hpp"

namespace limelight {

// The lower triangle of rows [begin, end) of D (X^T X) D, with ones on the diagonal and zeros behind it to the
// end of the block that the inversion looks at. Histories without weights are counted in whole numbers, and weights
// are added up in doubles, so next to nothing is rounded before the scales.
template <typename Sum>
inline void co_occurrences(const SparseRows& users, const SparseRows& items, int64_t n_items, const double* scale,
                           int64_t begin, int64_t end, int64_t size, Sum* sums, float* matrix) {
  for (int64_t i = begin; i < end; ++i) {
    float* row = matrix + i * size;
    std::fill(row, row + std::min(size, (i / kSweepRows + 1) * kSweepRows), 0.0f);
    if (i < n_items) {
      std::fill(sums, sums + i, Sum{0});
      for (int64_t at = items.indptr[i]; at < items.indptr[i + 1]; ++at) {
        const int64_t start = users.indptr[items.indices[at]];
        const int32_t* j = users.indices + start;
        // The loops end at i itself, which is in the history.
        if constexpr (std::is_integral_v<Sum>) {
          for (; *j < i; ++j) ++sums[*j];
        } else {
          const Sum own = items.weights[at];
          for (const float* weight = users.weights + start; *j < i; ++j, ++weight) sums[*j] += own * *weight;
        }
      }
      for (int64_t j = 0; j < i; ++j) row[j] = static_cast<float>(sums[j] * scale[i] * scale[j]);
    }
    row[i] = 1.0f;
  }
}

// -D A D for the lower triangle of rows [begin, end), and the same above the diagonal.
inline void unscale_and_mirror(const double* scale, int64_t begin, int64_t end, int64_t size, float* matrix) {
  constexpr int64_t kSquare = 16;
  for (int64_t left = 0; left < end; left += kSquare)
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = left; j < std::min(left + kSquare, i + 1); ++j)
        matrix[j * size + i] = matrix[i * size + j] = static_cast<float>(-scale[i] * scale[j] * matrix[i * size + j]);
}

}  // namespace limelight
