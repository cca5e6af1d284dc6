// Bindings of the search for the best items of each user.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "python/checked_csr.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

constexpr int64_t kRows = 128;        // of a block
constexpr int64_t kItemsForOne = 96;  // that a catalogue must have for each one of a list, for a first pass

// Memory of items as bytes.
class Bytes {
 public:
  Bytes(int64_t n_panels, int64_t width)
      : memory_(n_panels * (kPanel * width + (kPanel + 2) * static_cast<int64_t>(sizeof(float)))) {
    items.bytes = static_cast<uint8_t*>(memory_.raw());
    items.scales = memory_.floats() + n_panels * kPanel * width / static_cast<int64_t>(sizeof(float));
    items.errors = items.scales + n_panels * kPanel;
    items.norms = items.errors + n_panels;
  }
  ItemBytes items;
  bool fit = true;  // whether bounds hold for all items

 private:
  Scratch memory_;
};

// The factors of a catalogue, laid out once for any number of top-k searches.
class Catalogue {
 public:
  Catalogue(const Matrix& factors, int threads)
      : n_items_(factors.shape(0)), width_(factors.shape(1)), kernels_(active_variant),
        panels_(std::make_shared<const Scratch>((factors.shape(0) + kPanel) * factors.shape(1) * sizeof(float))) {
    require_width(factors.shape(1));
    require_aligned(factors);
    nb::gil_scoped_release unlocked;
    for_each_row_block(n_items_, threads, 0, [&](int64_t begin, int64_t end, const Scratch&) {
      kernels_->pack_items(factors.data(), begin, end, n_items_, width_, panels_->floats());
    });
  }

  // The same items, which share their memory, with bytes of them for a first pass.
  Catalogue with_first_pass(int threads) const {
    Catalogue found(*this);
    nb::gil_scoped_release unlocked;
    const int64_t n_panels = (n_items_ + kPanel - 1) / kPanel;
    const auto bytes = std::make_shared<Bytes>(n_panels, width_);
    std::atomic<int64_t> unfit{0};
    for_each_row_block(n_panels, threads, 0, [&](int64_t begin, int64_t end, const Scratch&) {
      unfit += kernels_->quantise(panels_->floats(), begin, end, width_, bytes->items);
    });
    bytes->fit = unfit == 0;
    found.bytes_ = bytes;
    return found;
  }

  int64_t top_k(const Matrix& queries, const Csr* history, const Array2<int32_t>& ids, const MutableMatrix& scores,
                int threads) const {
    const int64_t n = queries.shape(0), k = ids.shape(1);
    require_aligned(queries, ids, scores);
    require_apart(ids, queries, scores);
    require_apart(scores, queries);
    require(static_cast<int64_t>(queries.shape(1)) == width_, "queries must be as wide as the catalogue");
    require(threads >= 1, "the number of threads must be at least 1");
    require(k > 0 && k <= n_items_, "k must lie between 1 and the number of items");
    require(static_cast<int64_t>(ids.shape(0)) == n && static_cast<int64_t>(scores.shape(0)) == n &&
                scores.shape(1) == ids.shape(1),
            "ids and scores must have one row a query");
    require(!history || (history->n_rows() == n && history->n_columns() == n_items_),
            "the history must have one row a query and one column an item");
    const TopK task{queries.data(), panels_->floats(), n_items_, history ? history->rows() : SparseRows{}, k,
                    ids.data(),     scores.data(),     width_};
    nb::gil_scoped_release unlocked;
    // Many searches at once share the work of a tile, and long lists need too many panels.
    if (bytes_ && bytes_->fit && n <= kQuickRows * threads && k <= n_items_ / kItemsForOne)
      return quick_top_k(task, n, threads);
    for_each_block((n + kRows - 1) / kRows, threads, kernels_->top_k_bytes(width_, k),
                   [&](int64_t block, const Scratch& scratch) {
                     kernels_->top_k(task, block * kRows, std::min(n, (block + 1) * kRows), scratch.raw());
                   });
    return 0;
  }

 private:
  int64_t quick_top_k(const TopK& task, int64_t n, int threads) const {
    std::atomic<int64_t> of_use{0};
    const int64_t rows = (n + threads - 1) / threads;
    for_each_block(n ? (n + rows - 1) / rows : 0, threads, kernels_->quick_top_k_bytes(n_items_, width_, task.k),
                   [&](int64_t block, const Scratch& scratch) {
                     const int64_t begin = block * rows, end = std::min(n, begin + rows);
                     of_use += kernels_->quick_top_k(task, bytes_->items, begin, end, scratch.raw());
                   });
    return of_use;
  }

  int64_t n_items_, width_;
  const Kernels* kernels_;
  std::shared_ptr<const Scratch> panels_;
  std::shared_ptr<const Bytes> bytes_;
};

}  // namespace

void bind_top_k(nb::module_& m) {
  nb::class_<Catalogue>(m, "Catalogue", "Item factors laid out for top-k searches.")
      .def(nb::init<const Matrix&, int>(), "factors"_a.noconvert(), "threads"_a)
      .def("top_k", &Catalogue::top_k, "queries"_a.noconvert(), "history"_a.none(), nb::kw_only(), "ids"_a.noconvert(),
           "scores"_a.noconvert(), "threads"_a,
           "The k items with the largest scores, history left out, ties to the lower item; returns how many searches a "
           "first pass was of use to.")
      .def("with_first_pass", &Catalogue::with_first_pass, "threads"_a,
           "The same items, and bytes of them: few searches at once turn most items away by these, and find the same.");
}

}  // namespace limelight
