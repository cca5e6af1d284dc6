// What a variant offers: plain functions over ranges of rows, and the numbers they take.
//
// Matrices are row-major with `width` columns, a multiple of 16. A function works on rows
// [begin, end) with scratch of its caller's, so that it neither allocates nor knows of threads.
#pragma once

#include <cstdint>

namespace limelight {

// Rows of a matrix: row i holds the columns indices[indptr[i] .. indptr[i + 1]), each with its weight w_j.
struct SparseRows {
  const int64_t* indptr;
  const int32_t* indices;
  const float* weights = nullptr;  // nullptr: all are 1
};

// x_i = (diag(eigenvalues) + regularization_i I + sum_j w_j f_j f_j^T)^-1 (sum_j w_j f_j - shift)
struct RowSolve {
  SparseRows rows;
  const float* factors;         // f_j, in the eigenbasis of the shared part
  const float* eigenvalues;     // of the shared part
  const float* regularization;  // one number a row
  const float* shift;           // in the eigenbasis; nullptr is zero
  float* out;
  const float* probe;  // a second right-hand side for all rows; nullptr: none
  float* response;     // the same inverse times the probe, a row each
  int64_t width;
};

// The same systems by a few conjugate-gradient steps from where `out` stands.
struct RowDescent {
  RowSolve solve;
  int64_t steps;
};

// sums_i += (the packed triangle of sum_j w_j f_j f_j^T, sum_j w_j f_j): what a block of histories adds.
struct RowSums {
  SparseRows rows;
  const float* factors;
  float* sums;
  int64_t width;
};

// x_i = (diag(eigenvalues) + regularization_i I + A_i)^-1 y_i with sums_i = (A_i, y_i), used up.
struct SumSolve {
  float* sums;
  const float* eigenvalues;
  const float* regularization;
  float* out;
  int64_t width;
};

// x_i <- x_i - step_i (x_i^T G + regularization_i x_i + sum_j w_j f_j (f_j . x_i - 1))
struct GradientStep {
  SparseRows rows;
  const float* factors;
  const float* gramian_panels;  // pack_columns(G)
  const float* regularization;
  float* step;
  float* curvature;        // of each row's own history; nullptr: the steps are given
  float shared_curvature;  // step_i = 1 / (shared + regularization_i + curvature_i)
  bool refresh_curvature;  // whether to measure it anew
  float* rows_out;         // x, read and overwritten
  int64_t width;
};

// The k largest scores x_i . f_j of each row, columns of its history left out, ties to the lower j.
struct TopK {
  const float* queries;
  const float* item_panels;  // 16 items a panel, [panel][column][item]
  int64_t n_items;
  SparseRows history;  // indptr == nullptr: nothing is left out
  int64_t k;
  int32_t* ids;
  float* scores;
  int64_t width;
};

// Items as bytes, and what that loses; see first_pass.hpp.
struct ItemBytes {
  uint8_t* bytes;  // 16 items a panel, [panel][column / 4][item][column % 4]
  float* scales;   // one number an item
  float* errors;   // one number a panel
  float* norms;    // one number a panel
};

constexpr int64_t kQuickRows = 8;  // that quick_top_k takes at once

constexpr int64_t kSweepRows = 256;  // of a block of a matrix that is inverted

// One step of an inversion in place; see sweep.hpp.
struct Sweep {
  float* matrix;  // square, of which the lower triangle counts
  int64_t size;
  int64_t first;  // the rows of the block: from here on, `depth` of them
  int64_t depth;
  const float* inverse_panels;  // pack_columns(K^-1)
  float* columns;               // C and D, size x depth each
  float* products;
};

// sums_u = the sum of w_ui matrix[i][columns] over the history of u
struct ItemSums {
  SparseRows rows;
  int64_t n_users;
  const float* matrix;  // symmetric
  int64_t width;
  const int32_t* columns;
  int64_t n_columns;
  float* sums;
  int64_t stride;  // of the sums: n_columns, filled up to a multiple of 16
};

// The k largest scores of each row, made of its sums; ties to the lower column.
struct RankSums {
  float* sums;  // overwritten
  int64_t n_columns;
  int64_t stride;
  SparseRows history;  // adds its weights, or 1
  SparseRows hidden;   // is left out; indptr == nullptr: nothing
  const float* gains;
  const float* pulls;
  const float* offsets;
  int64_t k;
  int32_t* ids;
  float* scores;
};

struct Kernels {
  const char* name;
  int lanes;

  void (*pack_columns)(const float* matrix, int64_t width, float* panels);
  void (*pack_items)(const float* factors, int64_t begin, int64_t end, int64_t n_items, int64_t width, float* panels);

  // out = X Q for rows of X; out may be X.
  void (*rotate)(const float* X, const float* panels, float* out, int64_t begin, int64_t end, int64_t width,
                 float* scratch);
  // The packed lower triangle of X^T X and the sums of columns, of rows weighted where weights are given.
  void (*gramian)(const float* X, int64_t begin, int64_t end, int64_t width, float* packed, float* scratch);
  void (*column_sums)(const float* X, const float* weights, int64_t begin, int64_t end, int64_t width, float* sums);
  // x_i <- x_i - step_i h
  void (*shift_rows)(float* X, const float* step, const float* h, int64_t begin, int64_t end, int64_t width);
  // The two at once: X is shifted, out = X Q.
  void (*shift_and_rotate)(float* X, const float* step, const float* h, const float* panels, float* out, int64_t begin,
                           int64_t end, int64_t width, float* scratch);

  int64_t (*solve_rows)(const RowSolve&, int64_t begin, int64_t end, float* scratch);  // rows that failed
  void (*descend_rows)(const RowDescent&, int64_t begin, int64_t end, float* scratch);
  void (*add_rows)(const RowSums&, int64_t begin, int64_t end, float* scratch);
  int64_t (*solve_sums)(const SumSolve&, int64_t begin, int64_t end, float* scratch);  // rows that failed
  void (*gradient_step)(const GradientStep&, int64_t begin, int64_t end, float* scratch);
  // sum over the stored pairs of w_j (1 - x_i . f_j)^2
  double (*squared_error)(const SparseRows&, const float* X, const float* factors, int64_t begin, int64_t end,
                          int64_t width);
  void (*top_k)(const TopK&, int64_t begin, int64_t end, void* scratch);
  int64_t (*quantise)(const float* panels, int64_t begin, int64_t end, int64_t width, const ItemBytes&);  // unfit items
  int64_t (*quick_top_k)(const TopK&, const ItemBytes&, int64_t begin, int64_t end, void* scratch);  // of use to rows
  void (*sweep_columns)(const Sweep&, int64_t block);
  void (*sweep_block)(const Sweep&, int64_t row_block, int64_t column_block);
  void (*item_sums)(const ItemSums&, int64_t panel, float* scratch);  // 16 x width floats
  void (*rank_sums)(const RankSums&, int64_t begin, int64_t end, void* scratch);

  // Floats of one row of sums.
  int64_t (*sums_floats)(int64_t width);
  // Floats of scratch that a function needs which does not say; bytes that searches need.
  int64_t (*scratch_floats)(int64_t width);
  int64_t (*top_k_bytes)(int64_t width, int64_t k);
  int64_t (*quick_top_k_bytes)(int64_t n_items, int64_t width, int64_t k);
  int64_t (*rank_sums_bytes)(int64_t k);
};

}  // namespace limelight
