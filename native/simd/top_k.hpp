// Exact top-k: scores in blocks that stay in cache, and a threshold per row that turns most of them away.
#pragma once

#include "core/partial_sort.hpp"
#include "simd/kernels.hpp"
#include "simd/tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kTopRows = 128;          // rows that share a block of items while it is in cache
constexpr int64_t kCacheFloats = 1 << 17;  // half a megabyte of items

LIMELIGHT_INLINE int64_t items_at_once(int64_t width) {
  const int64_t items = kCacheFloats / width / kPanel * kPanel;
  return items < 8 * kPanel ? 8 * kPanel : items > 4096 ? 4096 : items;
}

constexpr int64_t kMostGroups = 1024;  // of scores, from which the first threshold is drawn

// Candidates kept before the k best are chosen, with room for one more vector.
LIMELIGHT_INLINE int64_t candidate_capacity(int64_t k) { return 4 * k < 128 ? 128 : 4 * k; }

static int64_t top_k_bytes(int64_t width, int64_t k) {
  const int64_t candidates = kTopRows * (candidate_capacity(k) + kLanes);
  const int64_t floats = kTopRows * width + kPanel * items_at_once(width);
  return candidates * sizeof(uint64_t) + floats * sizeof(float);
}

// The best items of one row so far.
struct BestItems {
  uint64_t* keys;
  int64_t count;
  float threshold;  // a score must exceed it to matter
  int64_t cursor;   // the next entry of the history

  void keep_best(int64_t k) {
    if (count <= k) return;
    select_largest(keys, count, k);
    count = k;
    threshold = key_score(keys[k - 1]);
  }

  void offer(const float* scores, int64_t n, int64_t first_item, int64_t k) {
    for (int64_t i = 0; i < n; i += kLanes) {
      unsigned better = greater_mask(load(scores + i), broadcast(threshold));
      for (; better; better &= better - 1) {
        const int64_t at = i + __builtin_ctz(better);
        keys[count++] = sort_key(scores[at], static_cast<int32_t>(first_item + at));
      }
      if (count >= candidate_capacity(k)) keep_best(k);
    }
  }

  void write(int64_t k, int32_t* ids, float* scores) {
    keep_best(k);
    sort_descending(keys, count);
    for (int64_t r = 0; r < k; ++r) {
      ids[r] = r < count ? key_item(keys[r]) : -1;
      scores[r] = r < count ? key_score(keys[r]) : -INFINITY;
    }
  }
};

// A number that at least k of the scores reach, found without looking at each: the scores are folded
// into a few groups, and the k-th largest of the groups' maxima is reached by k groups. Just below it,
// so that scores equal to it pass. -infinity where there are too few scores.
static float first_threshold(const float* scores, int64_t n, int64_t k, float* maxima) {
  const int64_t groups = (3 * k + kPanel - 1) / kPanel * kPanel;
  if (groups > n || groups > kMostGroups) return -INFINITY;
  for (int64_t g = 0; g < groups; g += kLanes) {
    Vector most = load(scores + g);
    for (int64_t i = g + groups; i < n; i += groups) most = larger(most, load(scores + i));
    store(maxima + g, most);
  }
  const float reached = kth_largest(maxima, groups, k);
  return reached - fmaxf(1e-6f * fabsf(reached), __FLT_MIN__);
}

// Items [begin, end), begin a multiple of 16, as panels; the last panel is filled up with zeros.
static void pack_items(const float* factors, int64_t begin, int64_t end, int64_t n_items, int64_t width,
                       float* panels) {
  for (int64_t first = begin; first < end; first += kPanel) {
    const int count = static_cast<int>(n_items - first < kPanel ? n_items - first : kPanel);
    const float* rows[kPanel];
    for (int r = 0; r < count; ++r) rows[r] = factors + (first + r) * width;
    pack_rows(rows, count, width, nullptr, panels + first * width);
  }
}

// Scores of a history's items, and of the padding behind the last item, become -infinity.
static void mask_scores(const TopK& task, int64_t row, int64_t first_item, int64_t n, int64_t* cursor, float* scores) {
  if (task.history.indptr) {
    const int64_t end = task.history.indptr[row + 1];
    for (; *cursor < end && task.history.indices[*cursor] < first_item + n; ++*cursor)
      scores[task.history.indices[*cursor] - first_item] = -INFINITY;
  }
  for (int64_t i = task.n_items - first_item; i < n; ++i) scores[i] = -INFINITY;
}

// How many rows at once are scored as they are. More than half of a tile is scored as a whole one.
constexpr int64_t kFewRows = kLanes / 2;
constexpr int64_t kHalfTile = kPanel / 2;

// The scores of kRows rows for the items of kPanels panels, each the same sum in the same order as in a tile.
template <int64_t kRows, int kPanels>
LIMELIGHT_INLINE void score_few(int64_t width, const float* queries, const float* const* panels, float* scores,
                                int64_t stride) {
  Vector sum[kRows][kPanels][kVectors] = {};
  for (int64_t column = 0; column < width; ++column) {
    Vector right[kPanels][kVectors];
    for (int p = 0; p < kPanels; ++p)
      for (int v = 0; v < kVectors; ++v) right[p][v] = load(panels[p] + column * kPanel + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector left = broadcast(queries[column * kPanel + r]);
      for (int p = 0; p < kPanels; ++p)
        for (int v = 0; v < kVectors; ++v) sum[r][p][v] += left * right[p][v];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int p = 0; p < kPanels; ++p)
      for (int v = 0; v < kVectors; ++v) store(scores + r * stride + p * kPanel + v * kLanes, sum[r][p][v]);
}

// Few rows do not fill a tile. Several panels at once keep the multipliers busy instead, because each sum waits for
// its last addition.
template <int64_t kRows>
static void score_items_of_few(const TopK& task, const float* queries, int64_t item, int64_t n, float* scores) {
  constexpr int kAtOnce = 8 / (kRows * kVectors) > 0 ? 8 / (kRows * kVectors) : 1;
  const float* from = task.item_panels + item * task.width;
  const int64_t step = kPanel * task.width;
  int64_t at = 0;
  for (; at + kAtOnce * kPanel <= n; at += kAtOnce * kPanel) {
    const float* panels[kAtOnce];
    for (int p = 0; p < kAtOnce; ++p, from += step) panels[p] = from;
    score_few<kRows, kAtOnce>(task.width, queries, panels, scores + at, n);
  }
  for (; at < n; at += kPanel, from += step) score_few<kRows, 1>(task.width, queries, &from, scores + at, n);
}

// The scores of up to 16 rows for items [item, item + n), one row of n after the other.
static void score_items(const TopK& task, const float* queries, int64_t rows, int64_t item, int64_t n, float* scores) {
  if (rows <= kHalfTile) {
    for (int64_t r = 0; r < rows; r += kFewRows) {
      const int64_t left = rows - r;
      if (left == 1) score_items_of_few<1>(task, queries + r, item, n, scores + r * n);
      else if (left == 2 || kFewRows == 2) score_items_of_few<2>(task, queries + r, item, n, scores + r * n);
      else if (left <= 4 || kFewRows == 4) score_items_of_few<4>(task, queries + r, item, n, scores + r * n);
      else score_items_of_few<kHalfTile>(task, queries + r, item, n, scores + r * n);
    }
    return;
  }
  const float* panels = task.item_panels + item * task.width;
  const float* const nothing[2] = {nullptr, nullptr};
  int64_t at = 0;
  for (; at + 2 * kPanel <= n; at += 2 * kPanel) {
    const float* const pair[2] = {panels + at * task.width, panels + (at + kPanel) * task.width};
    float* const out[2] = {scores + at, scores + at + kPanel};
    tile_pair<1>(task.width, queries, pair, nothing, out, n);
  }
  if (at < n) tile<1>(task.width, queries, panels + at * task.width, nullptr, scores + at, n);
}

static void top_k_block(const TopK& task, int64_t begin, int64_t end, void* memory) {
  const int64_t width = task.width, at_once = items_at_once(width);
  auto* keys = static_cast<uint64_t*>(memory);
  auto* queries = reinterpret_cast<float*>(keys + kTopRows * (candidate_capacity(task.k) + kLanes));
  float* scores = queries + kTopRows * width;
  float maxima[kMostGroups];

  BestItems best[kTopRows];
  for (int64_t i = begin; i < end; ++i)
    best[i - begin] = {keys + (i - begin) * (candidate_capacity(task.k) + kLanes), 0, -INFINITY,
                       task.history.indptr ? task.history.indptr[i] : 0};
  for (int64_t first = begin; first < end; first += kPanel) {
    const int count = static_cast<int>(end - first < kPanel ? end - first : kPanel);
    const float* rows[kPanel];
    for (int r = 0; r < count; ++r) rows[r] = task.queries + (first + r) * width;
    pack_rows(rows, count, width, nullptr, queries + (first - begin) * width);
  }
  const int64_t padded_items = (task.n_items + kPanel - 1) / kPanel * kPanel;
  for (int64_t item = 0; item < padded_items; item += at_once) {
    const int64_t n = padded_items - item < at_once ? padded_items - item : at_once;
    for (int64_t first = begin; first < end; first += kPanel) {
      score_items(task, queries + (first - begin) * width, end - first, item, n, scores);
      for (int64_t i = first; i < end && i < first + kPanel; ++i) {
        BestItems& row = best[i - begin];
        float* own = scores + (i - first) * n;
        mask_scores(task, i, item, n, &row.cursor, own);
        if (item == 0) row.threshold = first_threshold(own, n, task.k, maxima);
        row.offer(own, n, item, task.k);
      }
    }
  }
  for (int64_t i = begin; i < end; ++i) best[i - begin].write(task.k, task.ids + i * task.k, task.scores + i * task.k);
}

static void top_k(const TopK& task, int64_t begin, int64_t end, void* memory) {
  for (int64_t first = begin; first < end; first += kTopRows)
    top_k_block(task, first, first + kTopRows < end ? first + kTopRows : end, memory);
}

}  // namespace limelight::LIMELIGHT_VARIANT
