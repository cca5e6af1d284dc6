// The normal equations of rows whose histories arrive in blocks: every block is added to them and let
// go; the solve comes at the end. A row of sums holds the packed triangle of F^T W F, then F^T w.
#pragma once

#include "simd/row_solve.hpp"

namespace limelight::LIMELIGHT_VARIANT {

LIMELIGHT_INLINE int64_t sums_floats(int64_t width) { return packed_offset(width / kPanel) + width; }

static void add_rows(const RowSums& task, int64_t begin, int64_t end, float* memory) {
  const SolveScratch scratch(memory, task.width);
  for (int64_t i = begin; i < end; ++i) {
    float *A = task.sums + i * sums_floats(task.width), *y = A + packed_offset(task.width / kPanel);
    add_history_system(History(task.rows, i, task.factors, task.width), A, A, y, scratch);
  }
}

static int64_t solve_sums(const SumSolve& task, int64_t begin, int64_t end, float* memory) {
  const SolveScratch scratch(memory, task.width);
  const int64_t panels = task.width / kPanel;
  int64_t failed = 0;
  for (int64_t i = begin; i < end; ++i) {
    float *A = task.sums + i * sums_floats(task.width), *y = A + packed_offset(panels);
    for (int64_t c = 0; c < task.width; ++c) A[packed_index(c)] += task.eigenvalues[c] + task.regularization[i];
    failed += !cholesky_solve(panels, A, y, scratch.cholesky);
    memcpy(task.out + i * task.width, y, task.width * sizeof(float));
  }
  return failed;
}

}  // namespace limelight::LIMELIGHT_VARIANT
