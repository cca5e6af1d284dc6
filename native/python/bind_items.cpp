// Bindings of the kernels over an items x items matrix: counting it, inverting it, and scores from it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core/co_occurrence.hpp"
#include "python/checked_csr.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

using Doubles = Array1<const double>;

int64_t require_square(const MutableMatrix& matrix) {
  require_aligned(matrix);
  require_width(matrix.shape(1));
  require(matrix.shape(0) == matrix.shape(1), "the matrix must be square");
  return matrix.shape(0);
}

void co_occurrences_of(const Csr& users, const Doubles& scale, const MutableMatrix& out, int threads) {
  const int64_t size = require_square(out), n_items = users.n_columns();
  require_aligned(scale);
  require_apart(out, users.indptr(), users.indices(), users.weights(), scale);
  require(static_cast<int64_t>(scale.shape(0)) == n_items && n_items <= size, "one scale an item is needed");
  const Csr items = users.transpose();
  nb::gil_scoped_release unlocked;
  const auto add_up = [&](auto zero) {
    using Sum = decltype(zero);
    for_each_block(size / kPanel, threads, size * sizeof(Sum), [&](int64_t block, const Scratch& scratch) {
      // The last rows have the most to add up.
      const int64_t begin = size - (block + 1) * kPanel;
      co_occurrences(users.rows(), items.rows(), n_items, scale.data(), begin, begin + kPanel, size,
                     static_cast<Sum*>(scratch.raw()), out.data());
    });
  };
  users.weights() ? add_up(0.0) : add_up(int32_t{0});
}

void sweep(const MutableMatrix& matrix, int64_t first, const Matrix& inverse, const MutableMatrix& columns,
           const MutableMatrix& products, int threads) {
  const int64_t size = require_square(matrix), depth = inverse.shape(0);
  require_aligned(inverse, columns, products);
  require_apart(matrix, inverse, columns, products);
  require_apart(columns, inverse, products);
  require_apart(products, inverse);
  require(first >= 0 && first < size && first % kSweepRows == 0, "a block starts at a multiple of 256 rows");
  require(depth == std::min(kSweepRows, size - first) && static_cast<int64_t>(inverse.shape(1)) == depth,
          "the inverse must be that of the block");
  for (const auto* room : {&columns, &products})
    require(static_cast<int64_t>(room->shape(0)) == size && static_cast<int64_t>(room->shape(1)) >= depth,
            "columns and products must have room for those of the block");
  nb::gil_scoped_release unlocked;
  const Scratch panels(depth * depth * sizeof(float));
  active_variant->pack_columns(inverse.data(), depth, panels.floats());
  const Sweep task{matrix.data(), size, first, depth, panels.floats(), columns.data(), products.data()};
  const int64_t n_blocks = (size + kSweepRows - 1) / kSweepRows, own = first / kSweepRows;
  for_each_block(n_blocks, threads, 0, [&](int64_t block, const Scratch&) {
    if (block != own) active_variant->sweep_columns(task, block);
  });
  for_each_block(n_blocks * n_blocks, threads, 0, [&](int64_t pair, const Scratch&) {
    const int64_t row = pair / n_blocks, column = pair % n_blocks;
    if (column <= row && row != own && column != own) active_variant->sweep_block(task, row, column);
  });
  for (int64_t r = 0; r < depth; ++r)
    for (int64_t c = 0; c <= r; ++c) matrix.data()[(first + r) * size + first + c] = -inverse.data()[r * depth + c];
}

void unscale_and_mirror_all(const MutableMatrix& matrix, const Doubles& scale, int threads) {
  const int64_t size = require_square(matrix);
  require_aligned(scale);
  require_apart(matrix, scale);
  require(static_cast<int64_t>(scale.shape(0)) == size, "one scale a row is needed");
  nb::gil_scoped_release unlocked;
  for_each_block(size / kPanel, threads, 0, [&](int64_t block, const Scratch&) {
    const int64_t begin = size - (block + 1) * kPanel;
    unscale_and_mirror(scale.data(), begin, begin + kPanel, size, matrix.data());
  });
}

void item_sums(const Csr& rows, const Matrix& matrix, const Array1<const int32_t>& columns, const MutableMatrix& out,
               int threads) {
  require_aligned(matrix, columns, out);
  require_width(matrix.shape(1));
  require_apart(out, matrix, columns, rows.indptr(), rows.indices(), rows.weights());
  const int64_t n_items = matrix.shape(0), width = matrix.shape(1), n = columns.shape(0), stride = out.shape(1);
  require(n_items <= width && n_items == rows.n_columns(), "the matrix must have one row a column of the histories");
  require(static_cast<int64_t>(out.shape(0)) == rows.n_rows(), "one row of sums a history is needed");
  require(stride == (n + kPanel - 1) / kPanel * kPanel, "rows of sums must be filled up to a multiple of 16");
  require(std::all_of(columns.data(), columns.data() + n, [&](int32_t c) { return c >= 0 && c < n_items; }),
          "columns must be items");
  const ItemSums task{rows.rows(), rows.n_rows(), matrix.data(), width, columns.data(), n, out.data(), stride};
  nb::gil_scoped_release unlocked;
  for_each_block(stride / kPanel, threads, kPanel * width * sizeof(float), [&](int64_t panel, const Scratch& scratch) {
    active_variant->item_sums(task, panel, scratch.floats());
  });
}

void rank_sums(const MutableMatrix& sums, const Csr& history, const Csr* hidden, const Floats& gains,
               const Floats& pulls, const Floats& offsets, const Array2<int32_t>& ids, const MutableMatrix& scores,
               int threads) {
  require_aligned(sums, gains, pulls, offsets, ids, scores);
  require_apart(sums, gains, pulls, offsets, ids, scores, history.indptr(), history.indices(), history.weights());
  require_apart(ids, gains, pulls, offsets, scores, history.indptr(), history.indices(), history.weights());
  require_apart(scores, gains, pulls, offsets, history.indptr(), history.indices(), history.weights());
  if (hidden) {
    require_apart(sums, hidden->indptr(), hidden->indices());
    require_apart(ids, hidden->indptr(), hidden->indices());
    require_apart(scores, hidden->indptr(), hidden->indices());
  }
  const int64_t n = history.n_rows(), n_columns = history.n_columns(), stride = sums.shape(1), k = ids.shape(1);
  require(stride == (n_columns + kPanel - 1) / kPanel * kPanel, "rows of sums must be filled up to a multiple of 16");
  require(k > 0 && k <= n_columns, "k must lie between 1 and the number of items");
  require(static_cast<int64_t>(gains.shape(0)) == stride && static_cast<int64_t>(pulls.shape(0)) == stride,
          "one gain and one pull a column are needed");
  for (const int64_t rows : {static_cast<int64_t>(sums.shape(0)), static_cast<int64_t>(offsets.shape(0)),
                             static_cast<int64_t>(ids.shape(0)), static_cast<int64_t>(scores.shape(0))})
    require(rows == n, "one row a history is needed");
  require(scores.shape(1) == ids.shape(1), "ids and scores must have one row a history");
  require(!hidden || (hidden->n_rows() == n && hidden->n_columns() == n_columns),
          "what is hidden must have the shape of the histories");
  const RankSums task{sums.data(),
                      n_columns,
                      stride,
                      history.rows(),
                      hidden ? hidden->rows() : SparseRows{},
                      gains.data(),
                      pulls.data(),
                      offsets.data(),
                      k,
                      ids.data(),
                      scores.data()};
  nb::gil_scoped_release unlocked;
  constexpr int64_t kRows = 64;
  for_each_block((n + kRows - 1) / kRows, threads, active_variant->rank_sums_bytes(k),
                 [&](int64_t block, const Scratch& scratch) {
                   active_variant->rank_sums(task, block * kRows, std::min(n, (block + 1) * kRows), scratch.raw());
                 });
}

}  // namespace

void bind_items(nb::module_& m) {
  m.attr("SWEEP_ROWS") = kSweepRows;
  m.def("co_occurrences", &co_occurrences_of, "users"_a, nb::kw_only(), "scale"_a.noconvert(), "out"_a.noconvert(),
        "threads"_a,
        "The lower triangle of D (X^T X) D with ones on the diagonal; rows behind the last item are those of I.");
  m.def("sweep", &sweep, "matrix"_a.noconvert(), nb::kw_only(), "first"_a, "inverse"_a.noconvert(),
        "columns"_a.noconvert(), "products"_a.noconvert(), "threads"_a,
        "One step of an inversion in place, given the inverse of a block; -A^-1 is left after all of them.");
  m.def("unscale_and_mirror", &unscale_and_mirror_all, "matrix"_a.noconvert(), "scale"_a.noconvert(), "threads"_a,
        "-D A D, of which the lower triangle is given.");
  m.def("item_sums", &item_sums, "rows"_a, "matrix"_a.noconvert(), nb::kw_only(), "columns"_a.noconvert(),
        "out"_a.noconvert(), "threads"_a,
        "Weighted sums over each history of the rows of a symmetric matrix, at some columns.");
  m.def("rank_sums", &rank_sums, "sums"_a.noconvert(), nb::kw_only(), "history"_a, "hidden"_a.none(),
        "gains"_a.noconvert(), "pulls"_a.noconvert(), "offsets"_a.noconvert(), "ids"_a.noconvert(),
        "scores"_a.noconvert(), "threads"_a,
        "The k largest of history + gains sums - offset pulls; the sums are overwritten, ties to the lower column.");
}

}  // namespace limelight
