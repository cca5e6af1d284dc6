// Products with the rows of a history, eight rows at a time so that their sums run side by side.
#pragma once

#include "simd/kernels.hpp"
#include "simd/simd.hpp"

namespace limelight::LIMELIGHT_VARIANT {

// The rows of a factor matrix that one history names, each with its weight.
struct History {
  const float* factors;
  const int32_t* items;
  const float* weights;  // nullptr: all are 1
  int64_t n;
  int64_t width;

  History(const SparseRows& rows, int64_t i, const float* factors, int64_t width)
      : factors(factors), items(rows.indices + rows.indptr[i]),
        weights(rows.weights ? rows.weights + rows.indptr[i] : nullptr), n(rows.indptr[i + 1] - rows.indptr[i]),
        width(width) {}

  const float* row(int64_t k) const { return factors + items[k] * width; }
};

constexpr int kGroup = kLanes < 8 ? kLanes : 8;

LIMELIGHT_INLINE float dot(const float* a, const float* b, int64_t width) {
  Vector sum[1] = {};
  for (int64_t c = 0; c < width; c += kLanes) sum[0] += load(a + c) * load(b + c);
  return sum_each<1>(sum)[0];
}

// The products rows[u] . x of a group of rows.
LIMELIGHT_INLINE void group_dots(const float* const* rows, const float* x, int64_t width, float* out) {
  Vector sum[kGroup] = {};
  for (int64_t c = 0; c < width; c += kLanes) {
    const Vector part = load(x + c);
#pragma GCC unroll 8
    for (int u = 0; u < kGroup; ++u) sum[u] += part * load(rows[u] + c);
  }
  store(out, sum_each<kGroup>(sum));
}

// y += sum_u weights[u] rows[u]
LIMELIGHT_INLINE void add_weighted(const float* const* rows, const float* weights, int64_t width, float* y) {
  Vector weight[kGroup];
#pragma GCC unroll 8
  for (int u = 0; u < kGroup; ++u) weight[u] = broadcast(weights[u]);
  for (int64_t c = 0; c < width; c += kLanes) {
    Vector even = load(y + c), odd = {};
#pragma GCC unroll 4
    for (int u = 0; u < kGroup; u += 2) {
      even += weight[u] * load(rows[u] + c);
      odd += weight[u + 1] * load(rows[u + 1] + c);
    }
    store(y + c, even + odd);
  }
}

// Calls visit(rows, count) for group after group of a history's rows. Where the history ends inside a
// group, its first row fills up and `count` says how many are meant.
template <typename Visit>
LIMELIGHT_INLINE void for_each_group(const History& history, const Visit& visit) {
  const int64_t n = history.n;
  const float* rows[kGroup];
  int64_t first = 0;
  for (; first + kGroup <= n; first += kGroup) {
    for (int u = 0; u < kGroup; ++u) rows[u] = history.row(first + u);
    if (first + 3 * kGroup <= n)
      for (int u = 0; u < kGroup; ++u) prefetch_row(history.row(first + 2 * kGroup + u), history.width);
    visit(rows, kGroup);
  }
  if (first < n) {
    const int count = static_cast<int>(n - first);
    for (int u = 0; u < kGroup; ++u) rows[u] = history.row(first + (u < count ? u : 0));
    visit(rows, count);
  }
}

// y += sum_j coefficients_j f_j; those behind the last row, to a whole group, are overwritten.
LIMELIGHT_INLINE void add_history(const History& history, float* coefficients, float* y) {
  for_each_group(history, [&](const float* const* rows, int count) __attribute__((always_inline)) {
    for (int u = count; u < kGroup; ++u) coefficients[u] = 0.0f;
    add_weighted(rows, coefficients, history.width, y);
    coefficients += kGroup;
  });
}

// Multiplies the coefficients of a group of rows by their weights, and goes on to the next group's.
template <bool kWeighted>
LIMELIGHT_INLINE void weigh(const float*& weights, int count, float* coefficients) {
  if constexpr (kWeighted) {
    for (int u = 0; u < count; ++u) coefficients[u] *= weights[u];
    weights += kGroup;
  }
}

// y += sum_j w_j f_j (f_j . x + offset)
template <bool kWeighted>
static void add_products(const History& history, const float* x, float offset, float* y) {
  const float* weights = history.weights;
  for_each_group(history, [&](const float* const* rows, int count) __attribute__((always_inline)) {
    float coefficients[kLanes];
    group_dots(rows, x, history.width, coefficients);
    for (int u = 0; u < kGroup; ++u) coefficients[u] = u < count ? coefficients[u] + offset : 0.0f;
    weigh<kWeighted>(weights, count, coefficients);
    add_weighted(rows, coefficients, history.width, y);
  });
}

LIMELIGHT_INLINE void add_history_product(const History& history, const float* x, float offset, float* y) {
  if (history.weights) add_products<true>(history, x, offset, y);
  else add_products<false>(history, x, offset, y);
}

// y += sum_j f_j (f_j . x) for rows that stand one behind the other, filled up to a group with zeros.
static void add_near_product(const float* rows, int64_t n, int64_t width, const float* x, float* y) {
  for (int64_t first = 0; first < n; first += kGroup, rows += kGroup * width) {
    const float* group[kGroup];
    for (int u = 0; u < kGroup; ++u) group[u] = rows + u * width;
    float weights[kLanes];
    group_dots(group, x, width, weights);
    add_weighted(group, weights, width, y);
  }
}

}  // namespace limelight::LIMELIGHT_VARIANT
