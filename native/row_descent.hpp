// The normal equations of a row by a few conjugate-gradient steps: no matrix, for many factors.
//
// In the eigenbasis the system is D + F^T F with a diagonal D, which is also its preconditioner. A step
// reads the history once. It is copied together first, so that the steps after the first find it near.
#pragma once

#include "history.hpp"
#include "kernels.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kNearFloats = 1 << 16;  // histories up to 256 KiB are copied

LIMELIGHT_INLINE int64_t descent_scratch(int64_t width) {
  return 5 * width + kNearFloats + kNearFloats / width;
}

// The rows of one history, wherever they stand.
struct NearHistory {
  const float* factors;
  const int32_t* rows;
  int64_t n;
  int64_t width;

  NearHistory(const RowSolve& task, int64_t i, float* memory)
      : factors(task.factors),
        rows(task.rows.indices + task.rows.indptr[i]),
        n(task.rows.indptr[i + 1] - task.rows.indptr[i]),
        width(task.width) {
    if (n * width > kNearFloats) return;
    int32_t* numbers = reinterpret_cast<int32_t*>(memory + kNearFloats);
    for (int64_t j = 0; j < n; ++j) {
      if (j + 8 < n) prefetch_row(factors + rows[j + 8] * width, width);
      memcpy(memory + j * width, factors + rows[j] * width, width * sizeof(float));
      numbers[j] = static_cast<int32_t>(j);
    }
    factors = memory;
    rows = numbers;
  }

  // y = D x + F^T (F x + offset)
  void multiply(const float* diagonal, const float* x, float offset, float* y) const {
    for (int64_t c = 0; c < width; c += kLanes) store(y + c, load(diagonal + c) * load(x + c));
    add_history_product(factors, rows, n, width, x, offset, y);
  }
};

static void descend_row(const RowDescent& task, int64_t i, float* scratch) {
  const int64_t width = task.solve.width;
  float *diagonal = scratch, *r = diagonal + width, *z = r + width, *p = z + width, *Ap = p + width;
  float* x = task.solve.out + i * width;
  const NearHistory history(task.solve, i, Ap + width);
  for (int64_t c = 0; c < width; ++c)
    diagonal[c] = task.solve.eigenvalues[c] + task.solve.regularization[i];

  history.multiply(diagonal, x, -1.0f, Ap);
  for (int64_t c = 0; c < width; ++c) {
    r[c] = -Ap[c] - (task.solve.shift ? task.solve.shift[c] : 0.0f);
    p[c] = r[c] / diagonal[c];
  }
  float energy = dot(r, p, width);
  for (int64_t step = 0; step < task.steps && energy > __FLT_MIN__; ++step) {
    history.multiply(diagonal, p, 0.0f, Ap);
    const float along = energy / dot(p, Ap, width);
    for (int64_t c = 0; c < width; ++c) {
      x[c] += along * p[c];
      r[c] -= along * Ap[c];
      z[c] = r[c] / diagonal[c];
    }
    const float left = dot(r, z, width), turn = left / energy;
    energy = left;
    for (int64_t c = 0; c < width; ++c) p[c] = z[c] + turn * p[c];
  }
}

static void descend_rows(const RowDescent& task, int64_t begin, int64_t end, float* scratch) {
  for (int64_t i = begin; i < end; ++i) descend_row(task, i, scratch);
}

}  // namespace limelight::LIMELIGHT_VARIANT
