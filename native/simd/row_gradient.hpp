// What exADMM's U-step and the measurements need of a row's history, without a matrix per row.
#pragma once

#include "simd/gramian.hpp"
#include "simd/history.hpp"
#include "simd/kernels.hpp"

namespace limelight::LIMELIGHT_VARIANT {

LIMELIGHT_INLINE int64_t gradient_scratch(int64_t width) { return 2 * kPanel * width; }

// out = X Q for at most 16 rows of X; `packed` takes them as a panel, so that out may be X.
LIMELIGHT_INLINE void rotate_panel(const float* X, int count, const float* panels, int64_t width, float* packed,
                                   float* out) {
  const float* rows[kPanel];
  for (int r = 0; r < count; ++r) rows[r] = X + r * width;
  pack_rows(rows, count, width, nullptr, packed);
  for (int64_t p = 0; p < width / kPanel; ++p)
    tile<1>(width, packed, panels + p * kPanel * width, nullptr, out + p * kPanel, width);
}

static void rotate(const float* X, const float* panels, float* out, int64_t begin, int64_t end, int64_t width,
                   float* scratch) {
  float *packed = scratch, *rotated = scratch + kPanel * width;
  for (int64_t first = begin; first < end; first += kPanel) {
    const int count = static_cast<int>(end - first < kPanel ? end - first : kPanel);
    // A whole panel goes straight to its place; the last, shorter one would write past the end.
    float* target = count == kPanel ? out + first * width : rotated;
    rotate_panel(X + first * width, count, panels, width, packed, target);
    if (target == rotated) memcpy(out + first * width, rotated, count * width * sizeof(float));
  }
}

static void shift_and_rotate(float* X, const float* step, const float* h, const float* panels, float* out,
                             int64_t begin, int64_t end, int64_t width, float* scratch) {
  for (int64_t first = begin; first < end; first += kPanel) {
    const int64_t last = first + kPanel < end ? first + kPanel : end;
    shift_rows(X, step, h, first, last, width);
    rotate(X, panels, out, first, last, width, scratch);
  }
}

// |F^T W F b| / |b| with b = F^T w: one power step towards the largest eigenvalue of F^T W F.
static float own_curvature(const History& history, float* b, float* y) {
  const int64_t width = history.width;
  const float* weights = history.weights;
  memset(b, 0, width * sizeof(float));
  memset(y, 0, width * sizeof(float));
  for_each_group(history, [&](const float* const* rows, int count) __attribute__((always_inline)) {
    float coefficients[kGroup];
    for (int u = 0; u < kGroup; ++u) coefficients[u] = u < count ? 1.0f : 0.0f;
    if (weights) weigh<true>(weights, count, coefficients);
    add_weighted(rows, coefficients, width, b);
  });
  add_history_product(history, b, 0.0f, y);
  const float norm = dot(b, b, width);
  return norm > 0.0f ? sqrtf(dot(y, y, width) / norm) : 0.0f;
}

static void gradient_step(const GradientStep& task, int64_t begin, int64_t end, float* scratch) {
  const int64_t width = task.width;
  float *packed = scratch, *gradients = scratch + kPanel * width;
  for (int64_t first = begin; first < end; first += kPanel) {
    const int count = static_cast<int>(end - first < kPanel ? end - first : kPanel);
    rotate_panel(task.rows_out + first * width, count, task.gramian_panels, width, packed, gradients);
    for (int r = 0; r < count; ++r) {
      const int64_t i = first + r;
      float *x = task.rows_out + i * width, *gradient = gradients + r * width;
      const History history(task.rows, i, task.factors, width);
      const float reg = task.regularization[i];
      if (task.curvature) {
        if (task.refresh_curvature) task.curvature[i] = own_curvature(history, packed, packed + width);
        task.step[i] = 1.0f / fmaxf(task.shared_curvature + reg + task.curvature[i], __FLT_MIN__);
      }
      add_history_product(history, x, -1.0f, gradient);
      const float step = task.step[i];
      for (int64_t c = 0; c < width; c += kLanes) {
        const Vector own = load(x + c);
        store(x + c, own - step * (load(gradient + c) + reg * own));
      }
    }
  }
}

static double squared_error(const SparseRows& rows, const float* X, const float* factors, int64_t begin, int64_t end,
                            int64_t width) {
  double sum = 0.0;
  for (int64_t i = begin; i < end; ++i) {
    const History history(rows, i, factors, width);
    const float* weights = history.weights;
    for_each_group(history, [&](const float* const* row, int count) __attribute__((always_inline)) {
      float score[kLanes];
      group_dots(row, X + i * width, width, score);
      if (weights) {
        for (int u = 0; u < count; ++u) sum += weights[u] * (1.0 - score[u]) * (1.0 - score[u]);
        weights += kGroup;
      } else {
        for (int u = 0; u < count; ++u) sum += (1.0 - score[u]) * (1.0 - score[u]);
      }
    });
  }
  return sum;
}

}  // namespace limelight::LIMELIGHT_VARIANT
