// Exact solves of the normal equations, one row at a time, in the eigenbasis of what all rows share.
//
// In that basis the shared part a0 G + lambda_ex s s^T is diagonal, and so is
//     D = diag(eigenvalues) + regularization I.
// A long history solves the width x width system D + F^T F directly. A short one, with n rows in F,
// needs only an n x n system (Woodbury):
//     x = D^-1 (F^T z - p),   (I + F D^-1 F^T) z = r + F D^-1 p.
// The rows of F are those of the history times r, the roots of their weights.
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
  return gathered + packed_offset(panels) + cholesky_scratch(panels) + 3 * width + (width > kDepth ? width : kDepth);
}

// The parts of a thread's scratch, the same for both ways to solve.
struct SolveScratch {
  float *gathered, *A, *y, *diagonal, *scale, *roots, *cholesky;

  SolveScratch(float* memory, int64_t width) {
    const int64_t panels = width / kPanel;
    gathered = memory;
    A = gathered + width * (width > kDepth ? width : kDepth);
    y = A + packed_offset(panels);
    diagonal = y + width;
    scale = diagonal + width;
    roots = scale + width;
    cholesky = roots + (width > kDepth ? width : kDepth);
  }
};

// The right-hand side before any of the history is added.
LIMELIGHT_INLINE void start_with_shift(const RowSolve& task, float* y) {
  for (int64_t c = 0; c < task.width; c += kLanes) store(y + c, task.shift ? -load(task.shift + c) : Vector{});
}

LIMELIGHT_INLINE void take_roots(const float* weights, int64_t n, float* __restrict roots) {
  for (int64_t k = 0; k < n; ++k) roots[k] = sqrtf(weights[k]);
}

// Lays four rows, or the last few, each times the root of its weight, into panels [panel][k][column] and adds
// them, times their weights, to y. Four at a time, because the sums would otherwise wait for each other in memory.
constexpr int kGathered = 4;

template <bool kAll, bool kWeighted>
LIMELIGHT_INLINE void gather_rows(const float* const* rows, int count, int64_t width, const float* roots,
                                  float* __restrict to, float* __restrict y) {
  for (int64_t c = 0; c < width; c += kPanel, to += kDepth * kPanel)
    for (int v = 0; v < kPanel; v += kLanes) {
      Vector part[kGathered];
#pragma GCC unroll 4
      for (int r = 0; r < kGathered; ++r) {
        part[r] = kAll || r < count ? load(rows[r] + c + v) : Vector{};
        if constexpr (kWeighted)
          if (kAll || r < count) part[r] *= roots[r];
        store(to + r * kPanel + v, part[r]);
        if constexpr (kWeighted)
          if (kAll || r < count) part[r] *= roots[r];
      }
      store(y + c + v, load(y + c + v) + ((part[0] + part[1]) + (part[2] + part[3])));
    }
}

template <bool kWeighted>
static void gather_slice(const History& history, int64_t begin, int64_t end, const float* roots,
                         float* __restrict panels, float* __restrict y) {
  const float* rows[kGathered];
  int64_t k = begin;
  for (; k + kGathered <= end; k += kGathered, roots += kGathered) {
    for (int r = 0; r < kGathered; ++r) rows[r] = history.row(k + r);
    for (int64_t ahead = k + 2 * kGathered; ahead < k + 3 * kGathered && ahead < history.n; ++ahead)
      prefetch_row(history.row(ahead), history.width);
    gather_rows<true, kWeighted>(rows, kGathered, history.width, roots, panels + (k - begin) * kPanel, y);
  }
  if (k < end) {
    const int count = static_cast<int>(end - k);
    for (int r = 0; r < count; ++r) rows[r] = history.row(k + r);
    gather_rows<false, kWeighted>(rows, count, history.width, roots, panels + (k - begin) * kPanel, y);
  }
}

// Adds up the outer products of a history, in slices of kDepth rows, on top of `in`, and its rows on top of y.
static void add_history_system(const History& history, const float* in, float* A, float* y,
                               const SolveScratch& scratch) {
  for (int64_t first = 0; first < history.n; first += kDepth, in = A) {
    const int64_t end = history.n - first < kDepth ? history.n : first + kDepth;
    if (history.weights) {
      take_roots(history.weights + first, end - first, scratch.roots);
      gather_slice<true>(history, first, end, scratch.roots, scratch.gathered, y);
    } else {
      gather_slice<false>(history, first, end, scratch.roots, scratch.gathered, y);
    }
    add_outer_products(history.width / kPanel, end - first, scratch.gathered, kDepth * kPanel, in, A);
  }
}

// The factor of the d x d system, used once more.
static void respond_long(const RowSolve& task, float* response, const SolveScratch& scratch) {
  memcpy(response, task.probe, task.width * sizeof(float));
  solve_again(task.width / kPanel, scratch.A, scratch.cholesky, response);
}

// y += F^T z, with z used up.
LIMELIGHT_INLINE void add_back(const History& history, const float* roots, float* z, float* y) {
  if (history.weights)
    for (int64_t k = 0; k < history.n; ++k) z[k] *= roots[k];
  add_history(history, z, y);
}

// The factor of the n x n system, used once more: D^-1 (F^T z + probe), (I + F D^-1 F^T) z = -F D^-1 probe.
static void respond_short(const RowSolve& task, const History& history, float* response, const SolveScratch& scratch) {
  const int64_t width = task.width, panels = (history.n + kPanel - 1) / kPanel, stride = width * kPanel;
  float *scaled_probe = response, *z = scratch.y;  // the response is free until the end
  for (int64_t c = 0; c < width; ++c) scaled_probe[c] = task.probe[c] * scratch.scale[c];
  memset(z, 0, panels * kPanel * sizeof(float));
  for (int64_t p = 0; p < panels; ++p)
    add_panel_product<-1>(width, scratch.gathered + p * stride, scaled_probe, z + p * kPanel);
  solve_again(panels, scratch.A, scratch.cholesky, z);

  memcpy(response, task.probe, width * sizeof(float));
  add_back(history, scratch.roots, z, response);
  for (int64_t c = 0; c < width; c += kLanes)
    store(response + c, load(response + c) * load(scratch.scale + c) * load(scratch.scale + c));
}

// The d x d system: gather the history in slices, add up its outer products, factorise.
static bool solve_long(const RowSolve& task, const History& history, float* x, const SolveScratch& scratch) {
  const int64_t width = task.width;
  float* y = scratch.y;
  start_with_shift(task, y);
  add_history_system(history, nullptr, scratch.A, y, scratch);
  for (int64_t i = 0; i < width; ++i) scratch.A[packed_index(i)] += scratch.diagonal[i];
  const bool solved = cholesky_solve(width / kPanel, scratch.A, y, scratch.cholesky);
  memcpy(x, y, width * sizeof(float));
  return solved;
}

// The n x n system of the history's rows scaled by D^-1/2.
static bool solve_short(const RowSolve& task, const History& history, float* x, const SolveScratch& scratch) {
  const int64_t n = history.n, width = task.width, panels = (n + kPanel - 1) / kPanel, stride = width * kPanel;
  if (history.weights) take_roots(history.weights, n, scratch.roots);
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t first = p * kPanel;
    const int count = static_cast<int>(n - first < kPanel ? n - first : kPanel);
    const float* rows[kPanel];
    for (int r = 0; r < count; ++r) rows[r] = history.row(first + r);
    for (int64_t r = first + kPanel; r < first + 2 * kPanel && r < n; ++r) prefetch_row(history.row(r), width);
    float* panel = scratch.gathered + p * stride;
    if (history.weights) pack_rows<true>(rows, count, width, scratch.scale, panel, scratch.roots + first);
    else pack_rows(rows, count, width, scratch.scale, panel);
  }
  add_outer_products(panels, width, scratch.gathered, stride, nullptr, scratch.A);
  for (int64_t i = 0; i < panels * kPanel; ++i) {
    scratch.A[packed_index(i)] += 1.0f;
    scratch.y[i] = i >= n ? 0.0f : history.weights ? scratch.roots[i] : 1.0f;
  }
  if (task.shift) {
    float* scaled_shift = x;  // x is free until the end
    for (int64_t c = 0; c < width; ++c) scaled_shift[c] = task.shift[c] * scratch.scale[c];
    for (int64_t p = 0; p < panels; ++p)
      add_panel_product<1>(width, scratch.gathered + p * stride, scaled_shift, scratch.y + p * kPanel);
  }
  const bool solved = cholesky_solve(panels, scratch.A, scratch.y, scratch.cholesky);

  start_with_shift(task, x);
  add_back(history, scratch.roots, scratch.y, x);
  for (int64_t c = 0; c < width; c += kLanes)
    store(x + c, load(x + c) * load(scratch.scale + c) * load(scratch.scale + c));
  return solved;
}

static int64_t solve_rows(const RowSolve& task, int64_t begin, int64_t end, float* memory) {
  const SolveScratch scratch(memory, task.width);
  int64_t failed = 0;
  for (int64_t i = begin; i < end; ++i) {
    const History history(task.rows, i, task.factors, task.width);
    float* x = task.out + i * task.width;
    // Whole panels decide: the short way must leave at least one panel out to be worth its packing.
    const bool is_short = (history.n + kPanel - 1) / kPanel < task.width / kPanel;
    unsigned unsolvable = 0;
    for (int64_t c = 0; c < task.width; c += kLanes) {
      const Vector d = load(task.eigenvalues + c) + task.regularization[i];
      store(scratch.diagonal + c, d);
      if (is_short) {
        unsolvable |= ~greater_mask(d, Vector{}) & kAllLanes;
        store(scratch.scale + c, inverse_sqrt(d));
      }
    }
    const bool solved = is_short ? solve_short(task, history, x, scratch) : solve_long(task, history, x, scratch);
    failed += unsolvable != 0 || !solved;
    if (task.probe) {
      float* response = task.response + i * task.width;
      if (is_short) respond_short(task, history, response, scratch);
      else respond_long(task, response, scratch);
    }
  }
  return failed;
}

}  // namespace limelight::LIMELIGHT_VARIANT
