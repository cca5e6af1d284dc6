// Exact top-k: scores in blocks that stay in cache, and a threshold per row that turns most of them away.
#pragma once

#include "kernels.hpp"
#include "selection.hpp"
#include "tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int64_t kTopRows = 128;          // rows that share a block of items while it is in cache
constexpr int64_t kCacheFloats = 1 << 17;  // half a megabyte of items

LIMELIGHT_INLINE int64_t items_at_once(int64_t width) {
  const int64_t items = kCacheFloats / width / kPanel * kPanel;
  return items < 8 * kPanel ? 8 * kPanel : items > 4096 ? 4096 : items;
}

// Candidates kept before the k best are chosen, with room for one more vector.
LIMELIGHT_INLINE int64_t candidate_capacity(int64_t k) { return 4 * k < 256 ? 256 : 4 * k; }

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
    const int64_t full = candidate_capacity(k);
    for (int64_t i = 0; i < n; i += kLanes) {
      unsigned better = greater_mask(load(scores + i), broadcast(threshold));
      for (; better; better &= better - 1) {
        const int64_t at = i + __builtin_ctz(better);
        keys[count++] = sort_key(scores[at], static_cast<int32_t>(first_item + at));
      }
      if (count >= full) keep_best(k);
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
static void mask_scores(const TopK& task, int64_t row, int64_t first_item, int64_t n, int64_t* cursor,
                        float* scores) {
  if (task.history.indptr) {
    const int64_t end = task.history.indptr[row + 1];
    for (; *cursor < end && task.history.indices[*cursor] < first_item + n; ++*cursor)
      scores[task.history.indices[*cursor] - first_item] = -INFINITY;
  }
  for (int64_t i = task.n_items - first_item; i < n; ++i) scores[i] = -INFINITY;
}

static void top_k_block(const TopK& task, int64_t begin, int64_t end, void* memory) {
  const int64_t width = task.width, at_once = items_at_once(width);
  uint64_t* keys = static_cast<uint64_t*>(memory);
  float* queries = reinterpret_cast<float*>(keys + kTopRows * (candidate_capacity(task.k) + kLanes));
  float* scores = queries + kTopRows * width;

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
      for (int64_t p = 0; p < n; p += kPanel)
        tile<1>(width, queries + (first - begin) * width, task.item_panels + (item + p) * width, nullptr,
                scores + p, n);
      for (int64_t i = first; i < end && i < first + kPanel; ++i) {
        BestItems& row = best[i - begin];
        float* own = scores + (i - first) * n;
        mask_scores(task, i, item, n, &row.cursor, own);
        row.offer(own, n, item, task.k);
      }
    }
  }
  for (int64_t i = begin; i < end; ++i)
    best[i - begin].write(task.k, task.ids + i * task.k, task.scores + i * task.k);
}

static void top_k(const TopK& task, int64_t begin, int64_t end, void* memory) {
  for (int64_t first = begin; first < end; first += kTopRows)
    top_k_block(task, first, first + kTopRows < end ? first + kTopRows : end, memory);
}

}  // namespace limelight::LIMELIGHT_VARIANT
