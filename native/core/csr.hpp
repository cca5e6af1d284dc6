// A sparse matrix that has been checked, so that the kernels need not check it again.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace limelight {

// Throws unless indptr and indices describe rows of ascending, distinct columns below n_columns.
inline void check_csr(const int64_t* indptr, int64_t n_rows, const int32_t* indices, int64_t n_entries,
                      int64_t n_columns) {
  if (indptr[0] != 0 || indptr[n_rows] != n_entries)
    throw std::invalid_argument("indptr must start at 0 and end at the number of indices");
  for (int64_t i = 0; i < n_rows; ++i)
    if (indptr[i + 1] < indptr[i] || indptr[i + 1] > n_entries)
      throw std::invalid_argument("indptr must not decrease: row " + std::to_string(i));
  for (int64_t i = 0; i < n_rows; ++i)
    for (int64_t at = indptr[i]; at < indptr[i + 1]; ++at) {
      if (indices[at] < 0 || indices[at] >= n_columns)
        throw std::invalid_argument("column out of range: " + std::to_string(indices[at]));
      if (at > indptr[i] && indices[at] <= indices[at - 1])
        throw std::invalid_argument("columns must ascend in every row: row " + std::to_string(i));
    }
}

// Throws unless every weight is finite and above 0.
inline void check_weights(const float* weights, int64_t n_entries) {
  for (int64_t at = 0; at < n_entries; ++at)
    if (!(weights[at] > 0.0f && std::isfinite(weights[at])))
      throw std::invalid_argument("weights must be finite and positive: entry " + std::to_string(at));
}

// The transposed matrix by counting; rows are visited in order, so the new columns ascend. Weights, where there
// are any, go with their entries.
inline void transpose_csr(const int64_t* indptr, int64_t n_rows, const int32_t* indices, int64_t n_columns,
                          const float* weights, int64_t* out_indptr, int32_t* out_indices, float* out_weights) {
  for (int64_t c = 0; c <= n_columns; ++c) out_indptr[c] = 0;
  for (int64_t at = 0; at < indptr[n_rows]; ++at) ++out_indptr[indices[at] + 1];
  for (int64_t c = 0; c < n_columns; ++c) out_indptr[c + 1] += out_indptr[c];
  std::vector<int64_t> next(out_indptr, out_indptr + n_columns);
  for (int64_t i = 0; i < n_rows; ++i)
    for (int64_t at = indptr[i]; at < indptr[i + 1]; ++at) {
      const int64_t to = next[indices[at]]++;
      out_indices[to] = static_cast<int32_t>(i);
      if (weights) out_weights[to] = weights[at];
    }
}

}  // namespace limelight
