// The inverse of a symmetric matrix in its own place, block after block of rows.
//
// With K a block on the diagonal, C its columns and D = C K^-1, a step turns every other entry into A - D C^T, the
// columns into D and the block into -K^-1. Once every block has had its turn, the matrix is -A^-1. All steps are alike
// and nearly all of their work is one product. Only the lower triangle is kept.
#pragma once

#include "simd/kernels.hpp"
#include "simd/tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

LIMELIGHT_INLINE int64_t sweep_end(const Sweep& task, int64_t block) {
  return (block + 1) * kSweepRows < task.size ? (block + 1) * kSweepRows : task.size;
}

// C for the rows of a block, as panels [row / 16][column][row % 16]. Above the diagonal it stands transposed.
static void copy_columns(const Sweep& task, int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += kPanel) {
    float* panel = task.columns + first * task.depth;
    if (first > task.first) {
      const float* rows[kPanel];
      for (int r = 0; r < kPanel; ++r) rows[r] = task.matrix + (first + r) * task.size + task.first;
      pack_rows(rows, kPanel, task.depth, nullptr, panel);
    } else {
      for (int64_t k = 0; k < task.depth; ++k)
        memcpy(panel + k * kPanel, task.matrix + (task.first + k) * task.size + first, kPanel * sizeof(float));
    }
  }
}

// D into the place of C, from panels of the same form.
static void replace_columns(const Sweep& task, int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += kPanel) {
    const float* panel = task.products + first * task.depth;
    for (int64_t k = 0; k < task.depth; k += kPanel) {
      const float* rows[kPanel];
      for (int r = 0; r < kPanel; ++r) rows[r] = panel + (k + r) * kPanel;
      float turned[kTile];
      if (first > task.first) pack_rows(rows, kPanel, kPanel, nullptr, turned);
      for (int r = 0; r < kPanel; ++r) {
        if (first > task.first)
          memcpy(task.matrix + (first + r) * task.size + task.first + k, turned + r * kPanel, kPanel * sizeof(float));
        else memcpy(task.matrix + (task.first + k + r) * task.size + first, rows[r], kPanel * sizeof(float));
      }
    }
  }
}

// C and D for one block of rows, which is not K's own.
static void sweep_columns(const Sweep& task, int64_t block) {
  const int64_t begin = block * kSweepRows, end = sweep_end(task, block), step = kPanel * task.depth;
  copy_columns(task, begin, end);
  for (int64_t q = 0; q < task.depth; q += kPanel) {
    const float* inverse = task.inverse_panels + q * task.depth;
    int64_t first = begin;
    for (; first + 2 * kPanel <= end; first += 2 * kPanel) {
      const float* from = task.columns + first * task.depth;
      float* to = task.products + first * task.depth + q * kPanel;
      const float* const pair[2] = {from, from + step};
      const float* const nothing[2] = {nullptr, nullptr};
      float* const out[2] = {to, to + step};
      tile_pair<1>(task.depth, inverse, pair, nothing, out);
    }
    if (first < end)
      tile<1>(task.depth, inverse, task.columns + first * task.depth, nullptr,
              task.products + first * task.depth + q * kPanel);
  }
  replace_columns(task, begin, end);
}

// A - D C^T for one block of the lower triangle. The product is summed by itself first: subtracting its terms from A
// one by one would round at the size of A each time.
static void sweep_block(const Sweep& task, int64_t row_block, int64_t column_block) {
  const int64_t row_end = sweep_end(task, row_block), column_end = sweep_end(task, column_block);
  alignas(64) float sums[2 * kTile];
  for (int64_t row = row_block * kSweepRows; row < row_end; row += kPanel) {
    const int64_t last = row_block == column_block ? row + kPanel : column_end;
    for (int64_t column = column_block * kSweepRows; column < last; column += 2 * kPanel) {
      const int64_t width = column_end - column < 2 * kPanel ? kPanel : 2 * kPanel;
      const float* left = task.products + row * task.depth;
      const float* right = task.columns + column * task.depth;
      if (width == 2 * kPanel) {
        const float* const pair[2] = {right, right + kPanel * task.depth};
        const float* const nothing[2] = {nullptr, nullptr};
        float* const out[2] = {sums, sums + kPanel};
        tile_pair<1>(task.depth, left, pair, nothing, out, width);
      } else {
        tile<1>(task.depth, left, right, nullptr, sums, width);
      }
      for (int r = 0; r < kPanel; ++r) {
        float* to = task.matrix + (row + r) * task.size + column;
        for (int64_t c = 0; c < width; c += kLanes) store(to + c, load(to + c) - load(sums + r * width + c));
      }
    }
  }
}

}  // namespace limelight::LIMELIGHT_VARIANT
