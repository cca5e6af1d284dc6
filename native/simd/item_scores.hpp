// Scores that are sums over a history of the rows of a symmetric items x items matrix, and the best of them.
#pragma once

#include "simd/kernels.hpp"
#include "simd/top_k.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int kChains = 4;  // sums that run side by side, because each addition waits for the one before

// out_u = sum_{i in history u} w_ui matrix[i][columns] for one panel of 16 columns and all users. The panel is a copy
// that stays in cache. The matrix is symmetric, so the columns are read as rows.
template <bool kWeighted>
static void item_sums_of(const ItemSums& task, int64_t panel, float* scratch) {
  const int64_t first = panel * kPanel, left = task.n_columns - first;
  const int count = static_cast<int>(left < kPanel ? left : kPanel);
  const float* rows[kPanel];
  for (int r = 0; r < count; ++r) rows[r] = task.matrix + task.columns[first + r] * task.width;
  pack_rows(rows, count, task.width, nullptr, scratch);
  const auto part = [&](int64_t at, int v) {
    const Vector found = load(scratch + task.rows.indices[at] * int64_t{kPanel} + v * kLanes);
    if constexpr (kWeighted) return found * broadcast(task.rows.weights[at]);
    return found;
  };
  for (int64_t user = 0; user < task.n_users; ++user) {
    const int64_t end = task.rows.indptr[user + 1];
    int64_t at = task.rows.indptr[user];
    Vector sum[kChains][kVectors] = {};
    for (; at + kChains <= end; at += kChains)
#pragma GCC unroll 4
      for (int chain = 0; chain < kChains; ++chain)
        for (int v = 0; v < kVectors; ++v) sum[chain][v] += part(at + chain, v);
    for (; at < end; ++at)
      for (int v = 0; v < kVectors; ++v) sum[0][v] += part(at, v);
    float* out = task.sums + user * task.stride + first;
    for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]));
  }
}

static void item_sums(const ItemSums& task, int64_t panel, float* scratch) {
  task.rows.weights ? item_sums_of<true>(task, panel, scratch) : item_sums_of<false>(task, panel, scratch);
}

// score_j = history_j + gain_j sum_j - offset pull_j in the place of the sums, then the k best of each row.
static void rank_sums(const RankSums& task, int64_t begin, int64_t end, void* memory) {
  auto* keys = static_cast<uint64_t*>(memory);
  float maxima[kMostGroups];
  const TopK masks{nullptr, nullptr, task.n_columns, task.hidden, task.k, nullptr, nullptr, 0};
  for (int64_t user = begin; user < end; ++user) {
    float* scores = task.sums + user * task.stride;
    const Vector offset = broadcast(task.offsets[user]);
    for (int64_t c = 0; c < task.stride; c += kLanes)
      store(scores + c, load(task.gains + c) * load(scores + c) - offset * load(task.pulls + c));
    for (int64_t at = task.history.indptr[user]; at < task.history.indptr[user + 1]; ++at)
      scores[task.history.indices[at]] += task.history.weights ? task.history.weights[at] : 1.0f;
    int64_t cursor = task.hidden.indptr ? task.hidden.indptr[user] : 0;
    mask_scores(masks, user, 0, task.stride, &cursor, scores);
    BestItems best{keys, 0, first_threshold(scores, task.stride, task.k, maxima), 0};
    best.offer(scores, task.stride, 0, task.k);
    best.write(task.k, task.ids + user * task.k, task.scores + user * task.k);
  }
}

static int64_t rank_sums_bytes(int64_t k) { return (candidate_capacity(k) + kLanes) * sizeof(uint64_t); }

}  // namespace limelight::LIMELIGHT_VARIANT
