// Bindings of the search for the best items of each user.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "python/checked_csr.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

// The factors of a catalogue, laid out once for any number of top-k searches.
class Catalogue {
 public:
  Catalogue(const Matrix& factors, int threads)
      : n_items_(factors.shape(0)), width_(factors.shape(1)), kernels_(active_variant),
        panels_((factors.shape(0) + kPanel) * factors.shape(1) * sizeof(float)) {
    require_width(factors.shape(1));
    require_aligned(factors);
    nb::gil_scoped_release unlocked;
    for_each_row_block(n_items_, threads, 0, [&](int64_t begin, int64_t end, const Scratch&) {
      kernels_->pack_items(factors.data(), begin, end, n_items_, width_, panels_.floats());
    });
  }

  void top_k(const Matrix& queries, const Csr* history, const Array2<int32_t>& ids, const MutableMatrix& scores,
             int threads) const {
    const int64_t n = queries.shape(0), k = ids.shape(1);
    require_aligned(queries, ids, scores);
    require_apart(ids, queries, scores);
    require_apart(scores, queries);
    require(static_cast<int64_t>(queries.shape(1)) == width_, "queries must be as wide as the catalogue");
    require(k > 0 && k <= n_items_, "k must lie between 1 and the number of items");
    require(static_cast<int64_t>(ids.shape(0)) == n && static_cast<int64_t>(scores.shape(0)) == n &&
                scores.shape(1) == ids.shape(1),
            "ids and scores must have one row a query");
    require(!history || (history->n_rows() == n && history->n_columns() == n_items_),
            "the history must have one row a query and one column an item");
    const TopK task{queries.data(), panels_.floats(), n_items_, history ? history->rows() : SparseRows{}, k,
                    ids.data(),     scores.data(),    width_};
    nb::gil_scoped_release unlocked;
    constexpr int64_t kRows = 128;
    for_each_block((n + kRows - 1) / kRows, threads, kernels_->top_k_bytes(width_, k),
                   [&](int64_t block, const Scratch& scratch) {
                     kernels_->top_k(task, block * kRows, std::min(n, (block + 1) * kRows), scratch.raw());
                   });
  }

 private:
  int64_t n_items_, width_;
  const Kernels* kernels_;
  Scratch panels_;
};

}  // namespace

void bind_top_k(nb::module_& m) {
  nb::class_<Catalogue>(m, "Catalogue", "Item factors laid out for top-k searches.")
      .def(nb::init<const Matrix&, int>(), "factors"_a.noconvert(), "threads"_a)
      .def("top_k", &Catalogue::top_k, "queries"_a.noconvert(), "history"_a.none(), nb::kw_only(), "ids"_a.noconvert(),
           "scores"_a.noconvert(), "threads"_a,
           "The k items with the largest scores, history left out, ties to the lower item.");
}

}  // namespace limelight
