// A first pass over the items as bytes, which leaves only items that may be among the k best to be scored exactly.
//
// Item j is s_j q_j + e_j with whole numbers q of 8 bits, and the user is t p + f with whole numbers p of 16 bits. By
// Cauchy and Schwarz the score x . y_j lies no further from t s_j (p . q_j) than
//   |x| |e_j| + s_j |f| |q_j|,  and its sum in 32 bits no further from it than  gamma |x| (s_j |q_j| + |e_j|).
// Divided by t s_j this is  w = alpha |e_j| / s_j + beta |q_j|,  where a panel's largest |e_j| / s_j and |q_j| stand
// for those of its items. So k items reach the k-th largest of s_j (p . q_j - w), and only panels with an item whose
// s_j (p . q_j + w) is not below that can hold one of the k best. These are scored as every search scores them.
#pragma once

#include "simd/kernels.hpp"
#include "simd/top_k.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int kMostByte = 127, kByteOffset = 128;
constexpr double kMargin = 1.0 + 0x1p-20;  // covers what bounds lose by rounding
// Numbers in this range have products that neither vanish nor overflow. An item below the least one counts as zero.
constexpr double kMostEntry = 0x1p30, kLeastEntry = 0x1p-30, kZeroEntry = 0x1p-80;
// Denormal numbers, which kernels take for zero, and items that count as zero change a score by less than
// kVanishing t a column, because t is at least 2^-45.
constexpr double kVanishing = 0x1p-48;
constexpr int64_t kQuickPanels = 128;  // whose bytes stay in cache while all rows are compared with them
// Groups of items from which a threshold is drawn. Their number is a power of two.
constexpr int64_t kLeastQuickGroups = 256, kMostQuickGroups = 1 << 14;

// Panels [begin, end) as bytes. Returns how many items have numbers that the bounds do not hold for.
static int64_t quantise(const float* panels, int64_t begin, int64_t end, int64_t width, const ItemBytes& out) {
  int64_t unfit = 0;
  for (int64_t panel = begin; panel < end; ++panel) {
    const float* from = panels + panel * kPanel * width;
    uint8_t* bytes = out.bytes + panel * kPanel * width;
    double errors = 0.0, norms = 0.0;
    for (int64_t item = 0; item < kPanel; ++item) {
      double most = 0.0;
      bool fits = true;
      for (int64_t c = 0; c < width; ++c) {
        const double size = fabs(static_cast<double>(from[c * kPanel + item]));
        fits = fits && size <= kMostEntry;
        most = size > most ? size : most;
      }
      unfit += !fits;
      const float scale = fits && most >= kZeroEntry ? static_cast<float>(most / kMostByte) : 0.0f;
      double error = 0.0, norm = 0.0;
      for (int64_t c = 0; c < width; ++c) {
        const double ratio = scale > 0.0f ? from[c * kPanel + item] / static_cast<double>(scale) : 0.0;
        const double whole = rint(ratio);
        error += (ratio - whole) * (ratio - whole);
        norm += whole * whole;
        bytes[c / 4 * 4 * kPanel + item * 4 + c % 4] = static_cast<uint8_t>(static_cast<int>(whole) + kByteOffset);
      }
      out.scales[panel * kPanel + item] = scale;
      errors = error > errors ? error : errors;
      norms = norm > norms ? norm : norms;
    }
    out.errors[panel] = static_cast<float>(sqrt(errors) * kMargin);
    out.norms[panel] = static_cast<float>(sqrt(norms) * kMargin);
  }
  return unfit;
}

// A user as numbers of 16 bits, and what bounds need to know of what that loses.
struct ByteQuery {
  int32_t* pairs;  // of each four columns: the first with the third, the second with the fourth
  int32_t offset;  // that bytes with kByteOffset added to them add to every sum
  float alpha, beta;
  double unit;  // t
};

// False for users that the bounds do not hold for, or for whom all scores are zero.
static bool make_query(const float* row, int64_t width, ByteQuery* query) {
  double most = 0.0;
  for (int64_t c = 0; c < width; ++c) {
    const double size = fabs(static_cast<double>(row[c]));
    if (!(size <= kMostEntry)) return false;
    most = size > most ? size : most;
  }
  // No sum of products with bytes may leave 32 bits.
  const int64_t room = INT32_MAX / (256 * width);
  const int64_t limit = room < INT16_MAX ? room : INT16_MAX;
  if (most < kLeastEntry || limit < kMostByte) return false;
  const double unit = most / static_cast<double>(limit);
  double all = 0.0, lost = 0.0, kept = 0.0;
  int64_t sum = 0;
  for (int64_t c = 0; c < width; c += 4) {
    uint16_t whole[4];
    for (int64_t i = 0; i < 4; ++i) {
      const double ratio = row[c + i] / unit, nearest = rint(ratio);
      all += ratio * ratio;
      lost += (ratio - nearest) * (ratio - nearest);
      kept += nearest * nearest;
      sum += static_cast<int64_t>(nearest);
      whole[i] = static_cast<uint16_t>(static_cast<int16_t>(nearest));
    }
    for (int64_t i = 0; i < 2; ++i)
      query->pairs[c / 2 + i] = static_cast<int32_t>(whole[i] | uint32_t{whole[i + 2]} << 16);
  }
  // Twice what sums of so many products in 32 bits lose, and some more than bounds themselves do.
  const double gamma = 2.0 * static_cast<double>(width) * 0x1p-24, length = sqrt(all);
  query->alpha = static_cast<float>(length * (1.0 + gamma) * kMargin);
  query->beta = static_cast<float>((sqrt(lost) + gamma * length + 0x1p-21 * sqrt(kept)) * kMargin);
  query->offset = static_cast<int32_t>(kByteOffset * sum);
  query->unit = unit;
  return true;
}

// What a first pass finds out about one row.
struct QuickRow {
  ByteQuery query;
  float* uppers;        // by panel: no score of its items, over t, is above this
  float* lowers;        // by group of items: one of them has a score, over t, of at least this
  int64_t cursor;       // the next entry of the history
  int64_t next_hidden;  // the item there, or the first one of the padding
  bool holds;           // whether bounds hold for this row

  void look_ahead(const TopK& task, int64_t row) {
    const bool is_left = task.history.indptr && cursor < task.history.indptr[row + 1];
    next_hidden = is_left ? task.history.indices[cursor] : task.n_items;
  }
};

LIMELIGHT_INLINE int64_t quick_groups(int64_t k) {
  int64_t groups = kLeastQuickGroups;
  while (groups < 8 * k && groups < kMostQuickGroups) groups *= 2;
  return groups;
}

// Bounds of a history's items, and of the padding behind the last item, become -infinity.
static void hide(const TopK& task, int64_t row, int64_t first, QuickRow* found, Vector* lower, Vector* upper) {
  float mask[kPanel] = {};
  mask_scores(task, row, first, kPanel, &found->cursor, mask);
  for (int v = 0; v < kVectors; ++v) {
    lower[v] += load(mask + v * kLanes);
    upper[v] += load(mask + v * kLanes);
  }
  found->look_ahead(task, row);
}

// Bounds of all items of kCount panels.
template <int kCount>
LIMELIGHT_INLINE void bound_panels(const TopK& task, const ItemBytes& items, int64_t panel, int64_t row, int64_t groups,
                                   QuickRow* found) {
  const ByteQuery& query = found->query;
  const uint8_t* bytes = items.bytes + panel * kPanel * task.width;
  Ints sum[kCount][kVectors];
  for (int p = 0; p < kCount; ++p)
    for (int v = 0; v < kVectors; ++v) sum[p][v] = Ints{} - query.offset;
  for (int64_t c = 0; c < task.width; c += 4) {
    const Ints evens = Ints{} + query.pairs[c / 2], odds = Ints{} + query.pairs[c / 2 + 1];
    for (int p = 0; p < kCount; ++p)
      for (int v = 0; v < kVectors; ++v)
        sum[p][v] = add_byte_products(sum[p][v], bytes + (p * task.width + c) * kPanel + v * kLanes * 4, evens, odds);
  }
  for (int p = 0; p < kCount; ++p, ++panel) {
    const int64_t first = panel * kPanel;
    const float width = query.alpha * items.errors[panel] + query.beta * items.norms[panel];
    Vector lower[kVectors], upper[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const Vector scale = load(items.scales + first + v * kLanes), middle = __builtin_convertvector(sum[p][v], Vector);
      lower[v] = scale * (middle - width);
      upper[v] = scale * (middle + width);
    }
    if (found->next_hidden < first + kPanel) hide(task, row, first, found, lower, upper);
    float* group = found->lowers + (first & (groups - 1));
    Vector most = upper[0];
    for (int v = 0; v < kVectors; ++v) {
      store(group + v * kLanes, larger(load(group + v * kLanes), lower[v]));
      most = larger(most, upper[v]);
    }
    found->uppers[panel] = largest_lane(most);
  }
}

// A number that at least k of the groups' bounds exceed, not far below the k-th largest; -infinity if fewer are finite.
static float bar_of_groups(const float* lowers, int64_t groups, int64_t k) {
  const auto count_above = [&](float bar) {
    int64_t count = 0;
    for (int64_t g = 0; g < groups; g += kLanes)
      count += __builtin_popcount(greater_mask(load(lowers + g), broadcast(bar)));
    return count;
  };
  if (count_above(-INFINITY) < k) return -INFINITY;
  float least = INFINITY, most = -INFINITY;
  for (int64_t g = 0; g < groups; ++g) {
    most = lowers[g] > most ? lowers[g] : most;
    least = lowers[g] < least && lowers[g] > -INFINITY ? lowers[g] : least;
  }
  float low = least - (0x1p-20f * fabsf(least) + __FLT_MIN__), high = most;
  for (int step = 0; step < 16; ++step) {
    const float middle = low + 0.5f * (high - low);
    (count_above(middle) >= k ? low : high) = middle;
  }
  return low;
}

// Scores the panels that may hold one of the k best, and keeps these; false if there are too many such panels.
static bool score_left(const TopK& task, int64_t row, const QuickRow& found, int64_t groups, BestItems* best,
                       int32_t* left, float* query) {
  const int64_t n_panels = (task.n_items + kPanel - 1) / kPanel, most_left = n_panels / 4;
  const float reached_bar = bar_of_groups(found.lowers, groups, task.k);
  if (reached_bar == -INFINITY) return false;
  const double reached = reached_bar, doubt = static_cast<double>(task.width) * kVanishing;
  const auto bar = static_cast<float>(reached - 2.0 * doubt - fabs(reached) * 0x1p-20);
  int64_t n_left = 0;
  for (int64_t panel = 0; panel < n_panels; ++panel) {
    if (found.uppers[panel] < bar) continue;
    if (n_left == most_left) return false;
    left[n_left++] = static_cast<int32_t>(panel);
  }
  const double least = found.query.unit * (reached - doubt);
  best->threshold = static_cast<float>(least - fabs(least) * 0x1p-20 - __FLT_MIN__);
  best->cursor = task.history.indptr ? task.history.indptr[row] : 0;
  const int64_t end = task.history.indptr ? task.history.indptr[row + 1] : 0;
  const float* own = task.queries + row * task.width;
  pack_rows(&own, 1, task.width, nullptr, query);
  constexpr int kAtOnce = 8 / kVectors;
  for (int64_t at = 0; at < n_left; at += kAtOnce) {
    const float* panels[kAtOnce];
    for (int p = 0; p < kAtOnce; ++p)
      panels[p] = task.item_panels + left[at + p < n_left ? at + p : at] * kPanel * task.width;
    float scores[kAtOnce * kPanel];
    score_few<1, kAtOnce>(task.width, query, panels, scores, 0);
    for (int64_t p = 0; p < kAtOnce && at + p < n_left; ++p) {
      const int64_t first = left[at + p] * kPanel;
      while (best->cursor < end && task.history.indices[best->cursor] < first) ++best->cursor;
      mask_scores(task, row, first, kPanel, &best->cursor, scores + p * kPanel);
      best->offer(scores + p * kPanel, kPanel, first, task.k);
    }
  }
  return true;
}

static int64_t quick_top_k_bytes(int64_t n_items, int64_t width, int64_t k) {
  const int64_t n_panels = (n_items + kPanel - 1) / kPanel;
  const int64_t keys = (candidate_capacity(k) + kLanes) * sizeof(uint64_t);
  const int64_t words = kQuickRows * (width / 2 + n_panels + quick_groups(k)) + n_panels + kPanel * width;
  const int64_t quick = keys + words * static_cast<int64_t>(sizeof(float)), plain = top_k_bytes(width, k);
  return quick > plain ? quick : plain;
}

// Rows [begin, end), at most kQuickRows. Returns how many the first pass was of use to; the others are searched
// plainly.
static int64_t quick_top_k(const TopK& task, const ItemBytes& items, int64_t begin, int64_t end, void* memory) {
  const int64_t n_panels = (task.n_items + kPanel - 1) / kPanel, groups = quick_groups(task.k);
  auto* keys = static_cast<uint64_t*>(memory);
  auto* floats = reinterpret_cast<float*>(keys + candidate_capacity(task.k) + kLanes);
  const auto take = [&](int64_t count) { return floats += count, floats - count; };
  float* query = take(kPanel * task.width);
  auto* left = reinterpret_cast<int32_t*>(take(n_panels));
  QuickRow rows[kQuickRows];
  for (int64_t i = begin; i < end; ++i) {
    QuickRow& row = rows[i - begin];
    row.query.pairs = reinterpret_cast<int32_t*>(take(task.width / 2));
    row.uppers = take(n_panels);
    row.lowers = take(groups);
    row.cursor = task.history.indptr ? task.history.indptr[i] : 0;
    row.look_ahead(task, i);
    row.holds = make_query(task.queries + i * task.width, task.width, &row.query);
    for (int64_t g = 0; g < groups; ++g) row.lowers[g] = -INFINITY;
  }
  for (int64_t first = 0; first < n_panels; first += kQuickPanels) {
    const int64_t last = first + kQuickPanels < n_panels ? first + kQuickPanels : n_panels;
    for (int64_t i = begin; i < end; ++i) {
      QuickRow& row = rows[i - begin];
      if (!row.holds) continue;
      constexpr int kAtOnce = kLanes / 4;
      int64_t panel = first;
      for (; panel + kAtOnce <= last; panel += kAtOnce) bound_panels<kAtOnce>(task, items, panel, i, groups, &row);
      for (; panel < last; ++panel) bound_panels<1>(task, items, panel, i, groups, &row);
    }
  }
  int64_t of_use = 0;
  for (int64_t i = begin; i < end; ++i) {
    BestItems best{keys, 0, -INFINITY, 0};
    rows[i - begin].holds = rows[i - begin].holds && score_left(task, i, rows[i - begin], groups, &best, left, query);
    if (!rows[i - begin].holds) continue;
    best.write(task.k, task.ids + i * task.k, task.scores + i * task.k);
    ++of_use;
  }
  for (int64_t i = begin; i < end; ++i)
    if (!rows[i - begin].holds) top_k_block(task, i, i + 1, memory);
  return of_use;
}

}  // namespace limelight::LIMELIGHT_VARIANT
