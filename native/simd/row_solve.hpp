// Exact solves of the normal equations, one row at a time, in the eigenbasis of what all rows share.
//
// In that basis the shared part a0 G + lambda_ex s s^T is diagonal, and so is
//     D = diag(eigenvalues) + regularization I.
// A long history solves the width x width system D + F^T F directly. A short one, with n rows in F,
// needs only an n x n system (Woodbury):
//     x = D^-1 (F^T z - p),   (I + F D^-1 F^T) z = 1 + F D^-1 p.
// A probe is a second right-hand side, the same for all rows, solved with the factor of the first.
#pragma once

#include "simd/cholesky.hpp"
#include "simd/history.hpp"
#include "simd/kernels.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kDepth = 128;  // rows of a history gathered at once

LIMELIGHT_INLINE int64_t solve_scratch(int64_t width) {
  const int64_t panels = width / kPanel;
  const int64_t gathered = width * (width > kDepth ? width : kDepth);
  return gathered + packed_offset(panels) + cholesky_scratch(panels) + 3 * width;
}

// The parts of a thread's scratch, the same for both ways to solve.
struct SolveScratch {
  float *gathered, *A, *y, *diagonal, *scale, *cholesky;

  SolveScratch(float* memory, int64_t width) {
    const int64_t panels = width / kPanel;
    gathered = memory;
    A = gathered + width * (width > kDepth ? width : kDepth);
    y = A + packed_offset(panels);
    diagonal = y + width;
    scale = diagonal + width;
    cholesky = scale + width;
  }
};

// The right-hand side before any of the history is added.
LIMELIGHT_INLINE void start_with_shift(const RowSolve& task, float* y) {
  for (int64_t c = 0; c < task.width; c += kLanes) store(y + c, task.shift ? -load(task.shift + c) : Vector{});
}

// Lays four rows, or the last few, into panels [panel][k][column] and adds them to y. Four at a time,
// because the sums would otherwise wait for each other in memory.
constexpr int kGathered = 4;

template <bool kAll>
LIMELIGHT_INLINE void gather_rows(const float* const* rows, int count, int64_t width, float* __restrict to,
                                  float* __restrict y) {
  for (int64_t c = 0; c < width; c += kPanel, to += kDepth * kPanel)
    for (int v = 0; v < kPanel; v += kLanes) {
      Vector part[kGathered];
#pragma GCC unroll 4
      for (int r = 0; r < kGathered; ++r) {
        part[r] = kAll || r < count ? load(rows[r] + c + v) : Vector{};
        store(to + r * kPanel + v, part[r]);
      }
      store(y + c + v, load(y + c + v) + ((part[0] + part[1]) + (part[2] + part[3])));
    }
}

static void gather(const float* factors, const int32_t* history, int64_t depth, int64_t left, int64_t width,
                   float* __restrict panels, float* __restrict y) {
  const float* rows[kGathered];
  int64_t k = 0;
  for (; k + kGathered <= depth; k += kGathered) {
    for (int r = 0; r < kGathered; ++r) rows[r] = factors + history[k + r] * width;
    for (int64_t ahead = k + 2 * kGathered; ahead < k + 3 * kGathered && ahead < left; ++ahead)
      prefetch_row(factors + history[ahead] * width, width);
    gather_rows<true>(rows, kGathered, width, panels + k * kPanel, y);
  }
  if (k < depth) {
    for (int r = 0; k + r < depth; ++r) rows[r] = factors + history[k + r] * width;
    gather_rows<false>(rows, static_cast<int>(depth - k), width, panels + k * kPanel, y);
  }
}

// The factor of the d x d system, used once more.
static void respond_long(const RowSolve& task, float* response, const SolveScratch& scratch) {
  memcpy(response, task.probe, task.width * sizeof(float));
  solve_again(task.width / kPanel, scratch.A, scratch.cholesky, response);
}

// The factor of the n x n system, used once more: D^-1 (F^T z + probe), (I + F D^-1 F^T) z = -F D^-1 probe.
static void respond_short(const RowSolve& task, const int32_t* history, int64_t n, float* response,
                          const SolveScratch& scratch) {
  const int64_t width = task.width, panels = (n + kPanel - 1) / kPanel, stride = width * kPanel;
  float *scaled_probe = response, *z = scratch.y;  // the response is free until the end
  for (int64_t c = 0; c < width; ++c) scaled_probe[c] = task.probe[c] * scratch.scale[c];
  memset(z, 0, panels * kPanel * sizeof(float));
  for (int64_t p = 0; p < panels; ++p)
    add_panel_product<-1>(width, scratch.gathered + p * stride, scaled_probe, z + p * kPanel);
  solve_again(panels, scratch.A, scratch.cholesky, z);

  memcpy(response, task.probe, width * sizeof(float));
  add_history(task.factors, history, n, width, z, response);
  for (int64_t c = 0; c < width; c += kLanes)
    store(response + c, load(response + c) * load(scratch.scale + c) * load(scratch.scale + c));
}

// The d x d system: gather the history in slices, add up its outer products, factorise.
static bool solve_long(const RowSolve& task, const int32_t* history, int64_t n, float* x, const SolveScratch& scratch) {
  const int64_t width = task.width, panels = width / kPanel, stride = kDepth * kPanel;
  float* y = scratch.y;
  start_with_shift(task, y);
  for (int64_t first = 0; first < n; first += kDepth) {
    const int64_t depth = n - first < kDepth ? n - first : kDepth;
    gather(task.factors, history + first, depth, n - first, width, scratch.gathered, y);
    add_outer_products(panels, depth, scratch.gathered, stride, first ? scratch.A : nullptr, scratch.A);
  }
  for (int64_t i = 0; i < width; ++i) scratch.A[packed_index(i)] += scratch.diagonal[i];
  const bool solved = cholesky_solve(panels, scratch.A, y, scratch.cholesky);
  memcpy(x, y, width * sizeof(float));
  return solved;
}

// The n x n system of the history's rows scaled by D^-1/2.
static bool solve_short(const RowSolve& task, const int32_t* history, int64_t n, float* x,
                        const SolveScratch& scratch) {
  const int64_t width = task.width, panels = (n + kPanel - 1) / kPanel, stride = width * kPanel;
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t first = p * kPanel;
    const int count = static_cast<int>(n - first < kPanel ? n - first : kPanel);
    const float* rows[kPanel];
    for (int r = 0; r < count; ++r) rows[r] = task.factors + history[first + r] * width;
    for (int64_t r = first + kPanel; r < first + 2 * kPanel && r < n; ++r)
      prefetch_row(task.factors + history[r] * width, width);
    pack_rows(rows, count, width, scratch.scale, scratch.gathered + p * stride);
  }
  add_outer_products(panels, width, scratch.gathered, stride, nullptr, scratch.A);
  for (int64_t i = 0; i < panels * kPanel; ++i) {
    scratch.A[packed_index(i)] += 1.0f;
    scratch.y[i] = i < n ? 1.0f : 0.0f;
  }
  if (task.shift) {
    float* scaled_shift = x;  // x is free until the end
    for (int64_t c = 0; c < width; ++c) scaled_shift[c] = task.shift[c] * scratch.scale[c];
    for (int64_t p = 0; p < panels; ++p)
      add_panel_product<1>(width, scratch.gathered + p * stride, scaled_shift, scratch.y + p * kPanel);
  }
  const bool solved = cholesky_solve(panels, scratch.A, scratch.y, scratch.cholesky);

  start_with_shift(task, x);
  add_history(task.factors, history, n, width, scratch.y, x);
  for (int64_t c = 0; c < width; c += kLanes)
    store(x + c, load(x + c) * load(scratch.scale + c) * load(scratch.scale + c));
  return solved;
}

static int64_t solve_rows(const RowSolve& task, int64_t begin, int64_t end, float* memory) {
  const SolveScratch scratch(memory, task.width);
  int64_t failed = 0;
  for (int64_t i = begin; i < end; ++i) {
    const int32_t* history = task.rows.indices + task.rows.indptr[i];
    const int64_t n = task.rows.indptr[i + 1] - task.rows.indptr[i];
    float* x = task.out + i * task.width;
    // Whole panels decide: the short way must leave at least one panel out to be worth its packing.
    const bool is_short = (n + kPanel - 1) / kPanel < task.width / kPanel;
    unsigned unsolvable = 0;
    for (int64_t c = 0; c < task.width; c += kLanes) {
      const Vector d = load(task.eigenvalues + c) + task.regularization[i];
      store(scratch.diagonal + c, d);
      if (is_short) {
        unsolvable |= ~greater_mask(d, Vector{}) & kAllLanes;
        store(scratch.scale + c, inverse_sqrt(d));
      }
    }
    const bool solved = is_short ? solve_short(task, history, n, x, scratch) : solve_long(task, history, n, x, scratch);
    failed += unsolvable != 0 || !solved;
    if (task.probe) {
      float* response = task.response + i * task.width;
      if (is_short) respond_short(task, history, n, response, scratch);
      else respond_long(task, response, scratch);
    }
  }
  return failed;
}

}  // namespace limelight::LIMELIGHT_VARIANT
