// The normal equations of a row by a few conjugate-gradient steps: no matrix, for many factors.
//
// In the eigenbasis the system is D + F^T W F with a diagonal D, which is also its preconditioner. A step
// reads the history once. It is copied together first, so that the steps after the first find it near.
#pragma once

#include "simd/history.hpp"
#include "simd/kernels.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kNearFloats = 1 << 18;  // histories up to this are copied

LIMELIGHT_INLINE int64_t descent_scratch(int64_t width) { return 5 * width + kNearFloats; }

// The rows of one history. The first product reads them wherever they stand and, where they fit, copies
// them together on the way, times the roots of their weights; the products after it read the copy.
struct NearHistory {
  History history;
  bool fits;
  float* near;

  NearHistory(const RowSolve& task, int64_t i, float* memory)
      : history(task.rows, i, task.factors, task.width), fits((history.n + kGroup) * history.width <= kNearFloats),
        near(memory) {}

  // y += F^T W (F x - 1)
  void add_first_product(const float* x, float* y) const {
    if (!fits) add_history_product(history, x, -1.0f, y);
    else if (history.weights) copy_and_add<true>(x, y);
    else copy_and_add<false>(x, y);
  }

  template <bool kWeighted>
  void copy_and_add(const float* x, float* y) const {
    const int64_t width = history.width;
    const float* weights = history.weights;
    float* copy = near;
    for_each_group(history, [&](const float* const* rows, int count) __attribute__((always_inline)) {
      float coefficients[kLanes], roots[kGroup];
      if constexpr (kWeighted)
        for (int u = 0; u < kGroup; ++u) roots[u] = u < count ? sqrtf(weights[u]) : 0.0f;
      Vector sum[kGroup] = {};
      for (int64_t c = 0; c < width; c += kLanes) {
        const Vector part = load(x + c);
#pragma GCC unroll 8
        for (int u = 0; u < kGroup; ++u) {
          const Vector value = load(rows[u] + c);
          if constexpr (kWeighted) store(copy + u * width + c, value * roots[u]);
          else store(copy + u * width + c, value);
          sum[u] += part * value;
        }
      }
      store(coefficients, sum_each<kGroup>(sum));
      for (int u = 0; u < kGroup; ++u) coefficients[u] = u < count ? coefficients[u] - 1.0f : 0.0f;
      weigh<kWeighted>(weights, count, coefficients);
      // What fills the last group up must not count in the products to come either.
      memset(copy + count * width, 0, (kGroup - count) * width * sizeof(float));
      add_weighted(rows, coefficients, width, y);
      copy += kGroup * width;
    });
  }

  // y += F^T W F x
  void add_product(const float* x, float* y) const {
    if (fits) add_near_product(near, history.n, history.width, x, y);
    else add_history_product(history, x, 0.0f, y);
  }
};

// y = D x
LIMELIGHT_INLINE void scale(const float* diagonal, const float* x, int64_t width, float* y) {
  for (int64_t c = 0; c < width; c += kLanes) store(y + c, load(diagonal + c) * load(x + c));
}

static void descend_row(const RowDescent& task, int64_t i, float* scratch) {
  const int64_t width = task.solve.width;
  float *diagonal = scratch, *inverse = diagonal + width, *r = inverse + width, *p = r + width, *Ap = p + width;
  float* x = task.solve.out + i * width;
  const NearHistory history(task.solve, i, Ap + width);
  for (int64_t c = 0; c < width; c += kLanes) {
    const Vector d = load(task.solve.eigenvalues + c) + task.solve.regularization[i];
    store(diagonal + c, d);
    store(inverse + c, 1.0f / d);
  }

  scale(diagonal, x, width, Ap);
  history.add_first_product(x, Ap);
  Vector energy[1] = {};  // r^T D^-1 r
  for (int64_t c = 0; c < width; c += kLanes) {
    const Vector residual = -load(Ap + c) - (task.solve.shift ? load(task.solve.shift + c) : Vector{});
    const Vector direction = residual * load(inverse + c);
    energy[0] += residual * direction;
    store(r + c, residual);
    store(p + c, direction);
  }
  float left = sum_each<1>(energy)[0];
  for (int64_t step = 0; step < task.steps && left > __FLT_MIN__; ++step) {
    scale(diagonal, p, width, Ap);
    history.add_product(p, Ap);
    const float along = left / dot(p, Ap, width);
    energy[0] = Vector{};
    for (int64_t c = 0; c < width; c += kLanes) {
      store(x + c, load(x + c) + along * load(p + c));
      const Vector residual = load(r + c) - along * load(Ap + c);
      energy[0] += residual * residual * load(inverse + c);
      store(r + c, residual);
    }
    const float before = left;
    left = sum_each<1>(energy)[0];
    for (int64_t c = 0; c < width; c += kLanes)
      store(p + c, load(r + c) * load(inverse + c) + (left / before) * load(p + c));
  }
}

static void descend_rows(const RowDescent& task, int64_t begin, int64_t end, float* scratch) {
  for (int64_t i = begin; i < end; ++i) descend_row(task, i, scratch);
}

}  // namespace limelight::LIMELIGHT_VARIANT
