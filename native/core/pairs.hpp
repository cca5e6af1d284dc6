// Pairs of users and items in file order, grouped to sorted rows that remember that order; rows with less in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/parallel.hpp"

namespace limelight {

struct Pairs {
  const int32_t* users;
  const int32_t* items;
  int64_t size;
};

// A pair of a row, as an item above its place in the file, and when it happened.
template <typename Time>
struct Dated {
  Time time;
  uint64_t key;

  uint32_t place() const { return static_cast<uint32_t>(key); }
  bool operator<(const Dated& other) const {
    return time < other.time || (time == other.time && place() < other.place());
  }
};

// Rows of distinct, ascending items; indices[row][order[row]] is a row in file order.
struct GroupedRows {
  int64_t* indptr;
  int32_t* indices;
  int32_t* order;
};

// Neighbouring users, so many that their pairs fit the cache and that writing to all stretches at once does too.
struct Stretches {
  static constexpr int64_t kMost = 512;
  int shift = 0;
  std::vector<int64_t> starts;
  int64_t longest = 0;

  Stretches(const Pairs& pairs, int64_t n_users, int64_t n_items) {
    while ((n_users >> shift) >= kMost) ++shift;
    starts.assign((n_users >> shift) + 2, 0);
    for (int64_t i = 0; i < pairs.size; ++i) {
      const int64_t user = pairs.users[i], item = pairs.items[i];
      if (user < 0 || user >= n_users || item < 0 || item >= n_items)
        throw std::invalid_argument("a user or an item of a pair is out of range");
      ++starts[(user >> shift) + 1];
    }
    longest = *std::max_element(starts.begin(), starts.end());
    // An item and a place in a row share a key of 64 bits.
    if (longest > INT32_MAX) throw std::invalid_argument("too many pairs of neighbouring users");
    for (int64_t s = 0; s < count(); ++s) starts[s + 1] += starts[s];
  }

  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t users() const { return int64_t{1} << shift; }
  int64_t scratch_bytes(int64_t bytes_of_time) const { return longest * (12 + bytes_of_time) + 2 * (users() + 1) * 8; }
};

// Writes one row from keys, each an item above its place; returns how many items are distinct.
inline int64_t write_row(uint64_t* keys, int64_t size, int32_t* slots, int32_t* indices, int32_t* order) {
  std::sort(keys, keys + size);
  int64_t kept = 0;
  for (int64_t k = 0; k < size; ++k) {
    const auto item = static_cast<int32_t>(keys[k] >> 32);
    // Of a repeated pair the first one counts; the sort has put it first.
    const bool is_new = kept == 0 || item != indices[kept - 1];
    slots[static_cast<uint32_t>(keys[k])] = is_new ? static_cast<int32_t>(kept) : -1;
    if (is_new) indices[kept++] = item;
  }
  for (int64_t place = 0; place < size; ++place)
    if (slots[place] >= 0) *order++ = slots[place];
  return kept;
}

// Numbers the places of a row in the order of time.
template <typename Time>
void put_in_time(Dated<Time>* dated, int64_t size, uint64_t* keys) {
  std::sort(dated, dated + size);
  for (int64_t k = 0; k < size; ++k) keys[k] = (dated[k].key >> 32 << 32) | static_cast<uint64_t>(k);
}

// Groups a stretch whose pairs stand in indices (the items) and order (the users) between begin and end.
template <typename Time>
int64_t group_stretch(const GroupedRows& rows, const Time* times, int64_t begin, int64_t end, int64_t first_user,
                      int64_t n_users, const Scratch& scratch) {
  auto* starts = static_cast<int64_t*>(scratch.raw());
  int64_t* next = starts + n_users + 1;
  auto* keys = reinterpret_cast<uint64_t*>(next + n_users + 1);
  auto* dated = reinterpret_cast<Dated<Time>*>(keys + (end - begin));
  auto* slots = reinterpret_cast<int32_t*>(dated + (times ? end - begin : 0));
  std::fill(starts, starts + n_users + 1, 0);
  for (int64_t i = begin; i < end; ++i) ++starts[rows.order[i] - first_user + 1];
  for (int64_t u = 0; u < n_users; ++u) starts[u + 1] += starts[u];
  std::copy(starts, starts + n_users, next);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t user = rows.order[i] - first_user, at = next[user]++;
    keys[at] = static_cast<uint64_t>(rows.indices[i]) << 32 | static_cast<uint64_t>(at - starts[user]);
    if (times) dated[at] = {times[i], keys[at]};
  }
  int64_t at = begin;
  for (int64_t u = 0; u < n_users; ++u) {
    const int64_t size = starts[u + 1] - starts[u];
    if (times) put_in_time(dated + starts[u], size, keys + starts[u]);
    const int64_t kept = write_row(keys + starts[u], size, slots, rows.indices + at, rows.order + at);
    rows.indptr[first_user + u + 1] = kept;
    at += kept;
  }
  return at - begin;
}

// Fills rows, whose arrays have room for every pair; returns how many pairs are distinct. Where times are given, a
// row's order is that of its times, and of the file where they are equal.
template <typename Time>
int64_t group_pairs(const Pairs& pairs, const Time* times, int64_t n_users, int64_t n_items, const GroupedRows& rows,
                    int threads) {
  const Stretches stretches(pairs, n_users, n_items);
  // The arrays of the result hold the pairs by stretch, so that no third copy of them is needed.
  std::vector<int64_t> next(stretches.starts), kept(stretches.count());
  const std::unique_ptr<Time[]> dates(times ? new Time[pairs.size] : nullptr);
  for (int64_t i = 0; i < pairs.size; ++i) {
    const int64_t at = next[pairs.users[i] >> stretches.shift]++;
    rows.order[at] = pairs.users[i];
    rows.indices[at] = pairs.items[i];
    if (times) dates[at] = times[i];
  }
  const int64_t bytes = stretches.scratch_bytes(times ? sizeof(Dated<Time>) : 0);
  for_each_block(stretches.count(), threads, bytes, [&](int64_t s, const Scratch& scratch) {
    const int64_t first = s * stretches.users(), users = std::min(stretches.users(), n_users - first);
    kept[s] = group_stretch(rows, dates.get(), stretches.starts[s], stretches.starts[s + 1], first, users, scratch);
  });
  int64_t end = 0;
  for (int64_t s = 0; s < stretches.count(); ++s) {
    std::memmove(rows.indices + end, rows.indices + stretches.starts[s], kept[s] * sizeof(int32_t));
    std::memmove(rows.order + end, rows.order + stretches.starts[s], kept[s] * sizeof(int32_t));
    end += kept[s];
  }
  rows.indptr[0] = 0;
  for (int64_t u = 0; u < n_users; ++u) rows.indptr[u + 1] += rows.indptr[u];
  return end;
}

// Checked rows that are only read; order may be null.
struct OrderedRows {
  int64_t n_users;
  const int64_t* indptr;
  const int32_t* indices;
  const int32_t* order;
};

// Counts, by user and by item, the pairs of which both are kept.
inline void count_pairs(const OrderedRows& rows, const bool* keep_users, const bool* keep_items, int64_t n_items,
                        int64_t* by_user, int64_t* by_item) {
  std::fill(by_user, by_user + rows.n_users, 0);
  std::fill(by_item, by_item + n_items, 0);
  for (int64_t u = 0; u < rows.n_users; ++u) {
    if (!keep_users[u]) continue;
    for (int64_t at = rows.indptr[u]; at < rows.indptr[u + 1]; ++at) {
      const int32_t item = rows.indices[at];
      by_user[u] += keep_items[item];
      by_item[item] += keep_items[item];
    }
  }
}

// Copies the pairs of kept users whose items have a new number from 0 up; new numbers ascend like the old ones.
inline void keep_pairs(const OrderedRows& rows, const bool* keep_users, const int32_t* item_numbers, int32_t* indices,
                       int32_t* order, int64_t capacity) {
  std::vector<int32_t> slots;
  int64_t end = 0;
  for (int64_t u = 0; u < rows.n_users; ++u) {
    if (!keep_users[u]) continue;
    const int64_t begin = rows.indptr[u], size = rows.indptr[u + 1] - begin, start = end;
    slots.assign(size, -1);
    for (int64_t k = 0; k < size; ++k) {
      const int32_t number = item_numbers[rows.indices[begin + k]];
      if (number < 0) continue;
      if (end == capacity) throw std::invalid_argument("more pairs are kept than there is room for");
      slots[k] = static_cast<int32_t>(end - start);
      indices[end++] = number;
    }
    if (!rows.order) continue;
    int64_t at = start;
    for (int64_t k = 0; k < size; ++k) {
      const int32_t slot = rows.order[begin + k];
      if (slot < 0 || slot >= size) throw std::invalid_argument("order must hold places in its row");
      if (slots[slot] >= 0) order[at++] = slots[slot];
      slots[slot] = -1;
    }
    if (at != end) throw std::invalid_argument("order must hold every place of its row once");
  }
  if (end != capacity) throw std::invalid_argument("fewer pairs are kept than there is room for");
}

// Sorts the values of each row from the largest down, equal ones as they stood, and writes where each stood in its
// row. Values are numbers, and rows shorter than 2^32.
inline void sort_rows(const int64_t* indptr, int64_t n_rows, float* values, int32_t* order, int threads) {
  constexpr int64_t kRows = 64;
  int64_t longest = 0;
  for (int64_t row = 0; row < n_rows; ++row) longest = std::max(longest, indptr[row + 1] - indptr[row]);
  const auto sort_row = [&](int64_t row, uint64_t* keys) {
    const int64_t begin = indptr[row], size = indptr[row + 1] - begin;
    for (int64_t i = 0; i < size; ++i) {
      // The bits of a float, with the sign turned, ascend as the numbers do; their complement descends.
      uint32_t bits;
      std::memcpy(&bits, values + begin + i, sizeof bits);
      bits = (bits & 0x80000000U) ? bits : ~bits & 0x7fffffffU;
      keys[i] = uint64_t{bits} << 32 | static_cast<uint32_t>(i);
    }
    std::sort(keys, keys + size);
    for (int64_t i = 0; i < size; ++i) {
      uint32_t bits = static_cast<uint32_t>(keys[i] >> 32);
      bits = (bits & 0x80000000U) ? bits : ~bits & 0x7fffffffU;
      std::memcpy(values + begin + i, &bits, sizeof bits);
      order[begin + i] = static_cast<int32_t>(keys[i] & 0xffffffffU);
    }
  };
  for_each_block((n_rows + kRows - 1) / kRows, threads, longest * static_cast<int64_t>(sizeof(uint64_t)),
                 [&](int64_t block, const Scratch& scratch) {
                   const int64_t end = std::min((block + 1) * kRows, n_rows);
                   for (int64_t row = block * kRows; row < end; ++row)
                     sort_row(row, static_cast<uint64_t*>(scratch.raw()));
                 });
}

}  // namespace limelight
