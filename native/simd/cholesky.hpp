// Solves A x = y for a packed symmetric positive definite A, by a blocked left-looking Cholesky.
//
// Column after column of tiles is updated, its diagonal tile factorised and inverted, and the tiles
// below multiplied by that inverse. The forward solve runs along. So the only chain of operations that
// wait for each other is the one inside a diagonal tile, and that stays in registers.
#pragma once

#include "simd/tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

// Floats that `cholesky_solve` needs beside A and y: the inverses of the diagonal tiles.
LIMELIGHT_INLINE int64_t cholesky_scratch(int64_t panels) { return panels * kTile; }

// The entries of a column below row c, its first lane being row `first`; zeros above.
LIMELIGHT_INLINE Vector below(Vector column, int first, int c) {
  using Lanes = int32_t __attribute__((vector_size(sizeof(Vector))));
  Lanes row;
  for (int i = 0; i < kLanes; ++i) row[i] = first + i;
  return row > c ? column : Vector{};
}

// Factorises a diagonal tile L L^T (entry [c][r] is row r of column c), writes L^-1 (entry [r][c]) and
// replaces y by L^-1 y. L itself is not needed any more. False where a pivot is not positive.
static bool factor_diagonal(const float* tile, float* __restrict inverse, float* __restrict y) {
  bool positive = true;
  Vector column[kPanel][kVectors], right[kVectors];
  float scales[kPanel];
  for (int c = 0; c < kPanel; ++c)
    for (int v = 0; v < kVectors; ++v) column[c][v] = load(tile + c * kPanel + v * kLanes);
  for (int v = 0; v < kVectors; ++v) right[v] = load(y + v * kLanes);
  memset(inverse, 0, kTile * sizeof(float));
#pragma GCC unroll 16
  for (int c = 0; c < kPanel; ++c) {
    const Vector pivot = broadcast_lane(column[c][c / kLanes], c % kLanes);
    const Vector scale = inverse_sqrt(pivot);
    const Vector solved = broadcast_lane(right[c / kLanes], c % kLanes) * scale;
    positive &= pivot[0] > 0.0f;
    scales[c] = scale[0];
    Vector inverse_row[kVectors];
    inverse[c * kPanel + c] = 1.0f;
    for (int v = 0; v < kVectors; ++v) {
      column[c][v] *= scale;
      right[v] -= solved * below(column[c][v], v * kLanes, c);
      inverse_row[v] = load(inverse + c * kPanel + v * kLanes) * scale;
      store(inverse + c * kPanel + v * kLanes, inverse_row[v]);
    }
#pragma GCC unroll 16
    for (int e = c + 1; e < kPanel; ++e) {
      const Vector factor = broadcast_lane(column[c][e / kLanes], e % kLanes);
      for (int v = e / kLanes; v < kVectors; ++v) column[e][v] -= factor * column[c][v];
      for (int v = 0; v <= c / kLanes; ++v) {
        float* at = inverse + e * kPanel + v * kLanes;
        store(at, load(at) - factor * inverse_row[v]);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) store(y + v * kLanes, right[v] * load(scales + v * kLanes));
  return positive;
}

// X <- X L^-T for a tile X below the diagonal tile L; L^-1 is lower triangular.
static void divide_by_diagonal(float* below, const float* inverse) {
  for (int v = 0; v < kPanel; v += kLanes) {
    Vector column[kPanel];
    for (int k = 0; k < kPanel; ++k) column[k] = load(below + k * kPanel + v);
#pragma GCC unroll 16
    for (int c = 0; c < kPanel; ++c) {
      Vector sum = column[0] * inverse[c * kPanel];
#pragma GCC unroll 16
      for (int k = 1; k <= c; ++k) sum += column[k] * inverse[c * kPanel + k];
      store(below + c * kPanel + v, sum);
    }
  }
}

// out[0:16] += sign * sum_k panel[k][:] * x[k].
template <int kSign>
LIMELIGHT_INLINE void add_panel_product(int64_t depth, const float* panel, const float* x, float* out) {
  Vector even[kVectors] = {}, odd[kVectors] = {};
  for (int64_t k = 0; k < depth; k += 2)
    for (int v = 0; v < kVectors; ++v) {
      even[v] += x[k] * load(panel + k * kPanel + v * kLanes);
      odd[v] += x[k + 1] * load(panel + (k + 1) * kPanel + v * kLanes);
    }
  for (int v = 0; v < kVectors; ++v) {
    float* at = out + v * kLanes;
    if (kSign > 0) store(at, load(at) + (even[v] + odd[v]));
    else store(at, load(at) - (even[v] + odd[v]));
  }
}

// y[k] += sign * panel[k][:] . x.
template <int kSign>
LIMELIGHT_INLINE void add_column_dots(int64_t depth, const float* panel, const float* x, float* y) {
  for (int64_t k = 0; k < depth; k += kLanes) {
    Vector products[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      products[i] = load(x) * load(panel + (k + i) * kPanel);
      for (int v = 1; v < kVectors; ++v)
        products[i] += load(x + v * kLanes) * load(panel + (k + i) * kPanel + v * kLanes);
    }
    const Vector dots = sum_each<kLanes>(products);
    store(y + k, kSign > 0 ? load(y + k) + dots : load(y + k) - dots);
  }
}

// The tiles of column q at and below the diagonal, less what the columns left of it account for.
static void update_column(int64_t panels, int64_t q, float* A) {
  const int64_t depth = q * kPanel;
  const float* left = A + packed_offset(q);
  int64_t p = q;
  for (; p + 1 < panels; p += 2) {
    float* const rows[2] = {A + packed_offset(p), A + packed_offset(p + 1)};
    float* const tiles[2] = {rows[0] + q * kTile, rows[1] + q * kTile};
    tile_pair<-1>(depth, left, rows, tiles, tiles);
  }
  if (p < panels) {
    float* row = A + packed_offset(p);
    tile<-1>(depth, left, row, row + q * kTile, row + q * kTile);
  }
}

// y <- L^-1 y, with the factor that `cholesky_solve` left behind.
static void solve_forward(int64_t panels, const float* A, const float* inverses, float* y) {
  for (int64_t p = 0; p < panels; ++p) {
    float solved[kPanel] = {};
    add_panel_product<-1>(p * kPanel, A + packed_offset(p), y, y + p * kPanel);
    add_column_dots<1>(kPanel, inverses + p * kTile, y + p * kPanel, solved);
    memcpy(y + p * kPanel, solved, sizeof(solved));
  }
}

// y <- L^-T y, likewise. Inlined: a call of its own made the first solve 3 % slower.
LIMELIGHT_INLINE void solve_backward(int64_t panels, const float* A, const float* inverses, float* y) {
  for (int64_t p = panels - 1; p >= 0; --p) {
    float solved[kPanel] = {};
    add_panel_product<1>(kPanel, inverses + p * kTile, y + p * kPanel, solved);
    memcpy(y + p * kPanel, solved, sizeof(solved));
    add_column_dots<-1>(p * kPanel, A + packed_offset(p), solved, y);
  }
}

// Overwrites A with its factor and y with the solution; false where A is not positive definite.
static bool cholesky_solve(int64_t panels, float* A, float* y, float* inverses) {
  bool positive = true;
  for (int64_t q = 0; q < panels; ++q) {
    const float* inverse = inverses + q * kTile;
    if (q > 0) update_column(panels, q, A);
    positive &= factor_diagonal(A + packed_offset(q) + q * kTile, inverses + q * kTile, y + q * kPanel);
    for (int64_t p = q + 1; p < panels; ++p) {
      float* below = A + packed_offset(p) + q * kTile;
      divide_by_diagonal(below, inverse);
      add_panel_product<-1>(kPanel, below, y + q * kPanel, y + p * kPanel);
    }
  }
  solve_backward(panels, A, inverses, y);
  return positive;
}

// Overwrites y with the solution for another right-hand side, by the factor of `cholesky_solve`.
static void solve_again(int64_t panels, const float* A, const float* inverses, float* y) {
  solve_forward(panels, A, inverses, y);
  solve_backward(panels, A, inverses, y);
}

}  // namespace limelight::LIMELIGHT_VARIANT
