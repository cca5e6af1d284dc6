// The one micro-kernel: a 16 x 16 tile of a product, held in registers.
//
// Matrices are cut into panels of 16 rows or columns. A panel stores, for each k, its 16 entries side
// by side, so that the tile of two panels is a sum over k of outer products of two contiguous runs.
// Gramians, rotations, the normal equations, their Cholesky factors and the scores of the top-k search
// are all sums of such tiles. Widths are multiples of 16: callers pad with zeros, which change nothing.
#pragma once

#include "simd/simd.hpp"

namespace limelight::LIMELIGHT_VARIANT {

constexpr int kPanel = 16;
constexpr int kTile = kPanel * kPanel;
constexpr int kVectors = kPanel / kLanes;
// How many columns of a tile fit into the registers: 16 of 32, or 12 of 16, are accumulators.
constexpr int kColumns = kLanes == 16 ? 16 : kLanes == 8 ? 6 : 3;

// out[c][:] = in[c][:] + sign * sum_k a[k][c] * b[k][:] for kCount columns c; in == nullptr means zero.
template <int kCount, int kSign>
LIMELIGHT_INLINE void tile_columns(int64_t depth, const float* __restrict a, const float* __restrict b, const float* in,
                                   float* out, int64_t stride) {
  Vector sum[kCount][kVectors];
  for (int c = 0; c < kCount; ++c)
    for (int v = 0; v < kVectors; ++v) sum[c][v] = in ? load(in + c * stride + v * kLanes) : Vector{};
  for (int64_t k = 0; k < depth; ++k, a += kPanel, b += kPanel) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int c = 0; c < kCount; ++c) {
      const Vector left = broadcast(a[c]);
      for (int v = 0; v < kVectors; ++v) {
        if (kSign > 0) sum[c][v] += left * right[v];
        else sum[c][v] -= left * right[v];
      }
    }
  }
  for (int c = 0; c < kCount; ++c)
    for (int v = 0; v < kVectors; ++v) store(out + c * stride + v * kLanes, sum[c][v]);
}

// A whole tile, in as few groups of columns as the registers allow, the groups as equal as possible.
template <int kSign, int kFrom = 0>
LIMELIGHT_INLINE void tile(int64_t depth, const float* a, const float* b, const float* in, float* out,
                           int64_t stride = kPanel) {
  if constexpr (kFrom < kPanel) {
    constexpr int kLeft = kPanel - kFrom;
    constexpr int kGroups = (kLeft + kColumns - 1) / kColumns;
    constexpr int kCount = (kLeft + kGroups - 1) / kGroups;
    const int64_t skip = kFrom * stride;
    tile_columns<kCount, kSign>(depth, a + kFrom, b, in ? in + skip : nullptr, out + skip, stride);
    tile<kSign, kFrom + kCount>(depth, a, b, in, out, stride);
  }
}

// Two tiles that share their columns: the products of panel a with b[0] and with b[1].
//
// Where a row of a panel is one vector, a tile alone needs a load for every multiplication; two at
// once need half as many, and the multipliers decide instead of the loads.
template <int kSign>
LIMELIGHT_INLINE void tile_pair(int64_t depth, const float* a, const float* const b[2], const float* const in[2],
                                float* const out[2], int64_t stride = kPanel) {
  if constexpr (kVectors > 1) {
    for (int i = 0; i < 2; ++i) tile<kSign>(depth, a, b[i], in[i], out[i], stride);
  } else {
    constexpr int kHalf = kPanel / 2;
    for (int from = 0; from < kPanel; from += kHalf) {
      Vector sum[kHalf][2];
      for (int c = 0; c < kHalf; ++c)
        for (int i = 0; i < 2; ++i) sum[c][i] = in[i] ? load(in[i] + (from + c) * stride) : Vector{};
      for (int64_t k = 0; k < depth; ++k) {
        const Vector right[2] = {load(b[0] + k * kPanel), load(b[1] + k * kPanel)};
#pragma GCC unroll 8
        for (int c = 0; c < kHalf; ++c) {
          const Vector left = broadcast(a[k * kPanel + from + c]);
          for (int i = 0; i < 2; ++i) {
            if (kSign > 0) sum[c][i] += left * right[i];
            else sum[c][i] -= left * right[i];
          }
        }
      }
      for (int c = 0; c < kHalf; ++c)
        for (int i = 0; i < 2; ++i) store(out[i] + (from + c) * stride, sum[c][i]);
    }
  }
}

// A packed lower triangle: panel p of rows holds columns 0 .. 16 (p + 1), tile after tile.
LIMELIGHT_INLINE int64_t packed_offset(int64_t panel) { return kTile * (panel * (panel + 1) / 2); }
LIMELIGHT_INLINE int64_t packed_index(int64_t i) { return packed_offset(i / kPanel) + i * kPanel + i % kPanel; }

// The lower triangle of sum_k s_k s_k^T, added to `in` (zero where it is null), for panels of rows.
static void add_outer_products(int64_t panels, int64_t depth, const float* rows, int64_t panel_stride, const float* in,
                               float* out) {
  const auto at = [](const float* triangle, int64_t p, int64_t q) {
    return triangle ? triangle + packed_offset(p) + q * kTile : nullptr;
  };
  for (int64_t p = 0; p < panels; p += 2) {
    const float* const pair[2] = {rows + p * panel_stride, rows + (p + 1) * panel_stride};
    for (int64_t q = 0; q <= p && p + 1 < panels; ++q) {
      const float* const from[2] = {at(in, p, q), at(in, p + 1, q)};
      float* const to[2] = {const_cast<float*>(at(out, p, q)), const_cast<float*>(at(out, p + 1, q))};
      tile_pair<1>(depth, rows + q * panel_stride, pair, from, to);
    }
    if (p + 1 < panels) {
      tile<1>(depth, pair[1], pair[1], at(in, p + 1, p + 1), out + packed_offset(p + 1) + (p + 1) * kTile);
    } else {
      for (int64_t q = 0; q <= p; ++q)
        tile<1>(depth, rows + q * panel_stride, pair[0], at(in, p, q), out + packed_offset(p) + q * kTile);
    }
  }
}

// Up to 16 rows of a matrix, their columns multiplied by `scale` and the rows by `roots` where they are given, as
// one panel [column][row].
template <bool kWeighted = false>
static void pack_rows(const float* const* rows, int count, int64_t width, const float* scale, float* __restrict panel,
                      const float* roots = nullptr) {
  for (int64_t c = 0; c < width; c += kLanes) {
    const Vector factor = scale ? load(scale + c) : broadcast(1.0f);
    for (int first = 0; first < kPanel; first += kLanes) {
      Vector square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] = first + i < count ? load(rows[first + i] + c) * factor : Vector{};
        if constexpr (kWeighted)
          if (first + i < count) square[i] *= roots[first + i];
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) store(panel + (c + i) * kPanel + first, square[i]);
    }
  }
}

// A square matrix as panels of 16 columns [panel][row][column].
static void pack_columns(const float* matrix, int64_t width, float* __restrict panels) {
  for (int64_t p = 0; p < width / kPanel; ++p)
    for (int64_t k = 0; k < width; ++k, panels += kPanel)
      memcpy(panels, matrix + k * width + p * kPanel, kPanel * sizeof(float));
}

// One row of a matrix, laid into row k of every panel [panel][k][column].
LIMELIGHT_INLINE void place_row(const float* row, int64_t width, int64_t k, int64_t panel_stride,
                                float* __restrict panels) {
  for (int64_t c = 0; c < width; c += kPanel, panels += panel_stride)
    for (int v = 0; v < kVectors; ++v) store(panels + k * kPanel + v * kLanes, load(row + c + v * kLanes));
}

}  // namespace limelight::LIMELIGHT_VARIANT
