// Solves A x = y for a packed symmetric positive definite A, by a blocked left-looking Cholesky.
//
// The forward solve is fused into the factorisation, and the diagonal tiles are inverted on the way, so
// that the backward solve is multiplications only: at small widths the chain of divisions would decide.
#pragma once

#include "tile.hpp"

namespace limelight::LIMELIGHT_VARIANT {

// Floats that `cholesky_solve` needs beside A and y: inverse pivots and inverse diagonal tiles.
LIMELIGHT_INLINE int64_t cholesky_scratch(int64_t panels) { return panels * (kPanel + kTile); }

// Factorises a diagonal tile in place (entry [c][r] is row r of column c), replaces y by L^-1 y and
// writes the inverse pivots and L^-1 (entry [r][c]). False where a pivot is not positive.
static bool factor_diagonal(float* tile, float* inverse_pivots, float* inverse, float* y) {
  bool positive = true;
  memset(inverse, 0, kTile * sizeof(float));
  for (int c = 0; c < kPanel; ++c) inverse[c * kPanel + c] = 1.0f;
  for (int c = 0; c < kPanel; ++c) {
    const float pivot = tile[c * kPanel + c];
    positive &= pivot > 0.0f;
    const float scale = 1.0f / sqrtf(pivot);
    inverse_pivots[c] = scale;
    y[c] *= scale;
    Vector column[kVectors], inverse_row[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      column[v] = load(tile + c * kPanel + v * kLanes) * scale;
      inverse_row[v] = load(inverse + c * kPanel + v * kLanes) * scale;
      store(tile + c * kPanel + v * kLanes, column[v]);
      store(inverse + c * kPanel + v * kLanes, inverse_row[v]);
    }
    for (int e = c + 1; e < kPanel; ++e) {
      const float factor = tile[c * kPanel + e];
      y[e] -= factor * y[c];
      for (int v = e / kLanes; v < kVectors; ++v) {
        float* at = tile + e * kPanel + v * kLanes;
        store(at, load(at) - factor * column[v]);
      }
      for (int v = 0; v <= c / kLanes; ++v) {
        float* at = inverse + e * kPanel + v * kLanes;
        store(at, load(at) - factor * inverse_row[v]);
      }
    }
  }
  return positive;
}

// X <- X L^-T for a tile X below the diagonal tile L.
static void divide_by_diagonal(float* below, const float* diagonal, const float* inverse_pivots) {
  for (int c = 0; c < kPanel; ++c) {
    Vector column[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      column[v] = load(below + c * kPanel + v * kLanes) * inverse_pivots[c];
      store(below + c * kPanel + v * kLanes, column[v]);
    }
    for (int e = c + 1; e < kPanel; ++e)
      for (int v = 0; v < kVectors; ++v) {
        float* at = below + e * kPanel + v * kLanes;
        store(at, load(at) - diagonal[c * kPanel + e] * column[v]);
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

// y[k] -= panel[k][:] . x for the columns k left of a panel whose solution x is known.
LIMELIGHT_INLINE void subtract_column_dots(int64_t depth, const float* panel, const float* x, float* y) {
  for (int64_t k = 0; k < depth; k += kLanes) {
    Vector products[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      products[i] = load(x) * load(panel + (k + i) * kPanel);
      for (int v = 1; v < kVectors; ++v)
        products[i] += load(x + v * kLanes) * load(panel + (k + i) * kPanel + v * kLanes);
    }
    store(y + k, load(y + k) - sum_each<kLanes>(products));
  }
}

// Overwrites A with its factor and y with the solution; false where A is not positive definite.
static bool cholesky_solve(int64_t panels, float* A, float* y, float* scratch) {
  bool positive = true;
  float* inverse_pivots = scratch;
  float* inverses = scratch + panels * kPanel;
  for (int64_t p = 0; p < panels; ++p) {
    float* row = A + packed_offset(p);
    for (int64_t q = 0; q < p; ++q) {
      const float* above = A + packed_offset(q);
      tile<-1>(q * kPanel, above, row, row + q * kTile, row + q * kTile);
      divide_by_diagonal(row + q * kTile, above + q * kTile, inverse_pivots + q * kPanel);
    }
    tile<-1>(p * kPanel, row, row, row + p * kTile, row + p * kTile);
    add_panel_product<-1>(p * kPanel, row, y, y + p * kPanel);
    positive &= factor_diagonal(row + p * kTile, inverse_pivots + p * kPanel, inverses + p * kTile,
                                y + p * kPanel);
  }
  for (int64_t p = panels - 1; p >= 0; --p) {
    float solved[kPanel] = {};
    add_panel_product<1>(kPanel, inverses + p * kTile, y + p * kPanel, solved);
    memcpy(y + p * kPanel, solved, sizeof(solved));
    subtract_column_dots(p * kPanel, A + packed_offset(p), solved, y);
  }
  return positive;
}

}  // namespace limelight::LIMELIGHT_VARIANT
