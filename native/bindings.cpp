// The door between Python and the kernels: checks shapes, frees the GIL, hands out blocks of rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "csr.hpp"
#include "door.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

void bind_market(nb::module_& m);       // in bind_market.cpp
void bind_pairs(nb::module_& m);        // in bind_pairs.cpp
void bind_round_robin(nb::module_& m);  // in bind_round_robin.cpp

namespace {

using Floats = Array1<const float>;
using Matrix = Array2<const float>;
using MutableMatrix = Array2<float>;

constexpr int64_t kPanel = 16;
constexpr int64_t kMostSteps = 1 << 10;

// The variants that this build has and this processor can run, the fastest first.
std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> found;
#if defined(LIMELIGHT_HAS_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    found.push_back(&avx512::kernels);
#endif
#if defined(LIMELIGHT_HAS_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2::kernels);
#endif
  found.push_back(&baseline::kernels);
  return found;
}

const Kernels* chosen = runnable_kernels().front();

std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
  return names;
}

void use_variant(const std::string& name) {
  for (const Kernels* kernels : runnable_kernels())
    if (name == kernels->name) {
      chosen = kernels;
      return;
    }
  throw std::invalid_argument("this processor cannot run the kernel variant: " + name);
}

void require_width(size_t width) {
  require(width > 0 && width % kPanel == 0, "the number of columns must be a positive multiple of 16");
}

template <typename T>
T* new_array(size_t size) {
  return new T[size];
}

template <typename T, typename... Shape>
auto owned(T* data, Shape... shape) {
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<T, nb::numpy>(data, {static_cast<size_t>(shape)...}, owner);
}

// A checked sparse matrix; it shares the arrays that it was made from.
class Csr {
 public:
  Csr(Array1<const int64_t> indptr, Array1<const int32_t> indices, int64_t n_columns)
      : indptr_(indptr), indices_(indices), n_columns_(n_columns) {
    require(indptr.shape(0) > 0, "indptr must not be empty");
    require(n_columns >= 0 && n_columns <= kNames, "the number of columns must lie between 0 and 2^31");
    require_aligned(indptr, indices);
    nb::gil_scoped_release unlocked;
    check_csr(indptr.data(), n_rows(), indices.data(), n_entries(), n_columns);
    blocks_ = std::make_shared<const WorkBlocks>(indptr.data(), n_rows());
  }

  int64_t n_rows() const { return static_cast<int64_t>(indptr_.shape(0)) - 1; }
  int64_t n_columns() const { return n_columns_; }
  int64_t n_entries() const { return static_cast<int64_t>(indices_.shape(0)); }
  const Array1<const int64_t>& indptr() const { return indptr_; }
  const Array1<const int32_t>& indices() const { return indices_; }
  SparseRows rows() const { return {indptr_.data(), indices_.data()}; }
  const WorkBlocks& blocks() const { return *blocks_; }

  Csr transpose() const {
    require(n_rows() <= kNames, "there are too many rows to name them as columns");
    auto* indptr = new_array<int64_t>(n_columns_ + 1);
    auto* indices = new_array<int32_t>(n_entries());
    {
      nb::gil_scoped_release unlocked;
      transpose_csr(indptr_.data(), n_rows(), indices_.data(), n_columns_, indptr, indices);
    }
    return Csr(Array1<const int64_t>(owned(indptr, n_columns_ + 1)),
               Array1<const int32_t>(owned(indices, n_entries())), n_rows());
  }

 private:
  Array1<const int64_t> indptr_;
  Array1<const int32_t> indices_;
  int64_t n_columns_;
  std::shared_ptr<const WorkBlocks> blocks_;
};

int64_t scratch_bytes(int64_t width) { return chosen->scratch_floats(width) * sizeof(float); }

// Runs body(begin, end, scratch) over blocks of kBlock rows.
template <typename Body>
void for_each_row_block(int64_t n_rows, int threads, int64_t bytes, const Body& body) {
  for_each_block((n_rows + kBlock - 1) / kBlock, threads, bytes, [&](int64_t block, const Scratch& scratch) {
    body(block * kBlock, std::min(n_rows, (block + 1) * kBlock), scratch);
  });
}

// A Gramian that threads add up block by block, in the order of the blocks.
class GramianSum {
 public:
  explicit GramianSum(int64_t width) : width_(width), packed_(packed_floats(width), 0.0) {}

  static int64_t packed_floats(int64_t width) {
    const int64_t panels = width / kPanel;
    return panels * (panels + 1) / 2 * kPanel * kPanel;
  }

  void add(const float* packed) {
    for (size_t i = 0; i < packed_.size(); ++i) packed_[i] += packed[i];
  }

  // The whole symmetric matrix; a panel of the packed triangle holds 16 rows of columns up to its own.
  auto result() const {
    double* out = new_array<double>(width_ * width_);
    const double* at = packed_.data();
    for (int64_t first = 0; first < width_; first += kPanel)
      for (int64_t c = 0; c < first + kPanel; ++c)
        for (int64_t r = first; r < first + kPanel; ++r, ++at) out[r * width_ + c] = out[c * width_ + r] = *at;
    return owned(out, width_, width_);
  }

 private:
  int64_t width_;
  std::vector<double> packed_;
};

// A vector of sums, likewise.
class VectorSum {
 public:
  explicit VectorSum(int64_t width) : width_(width), out_(new_array<double>(width)) {
    std::fill(out_, out_ + width, 0.0);
  }
  void add(const float* part) {
    for (int64_t c = 0; c < width_; ++c) out_[c] += part[c];
  }
  auto result() { return owned(out_, width_); }

 private:
  int64_t width_;
  double* out_;
};

auto gramian(const Matrix& X, int threads) {
  require_aligned(X);
  require_width(X.shape(1));
  const int64_t n = X.shape(0), width = X.shape(1), packed = GramianSum::packed_floats(width);
  GramianSum total(width);
  {
    nb::gil_scoped_release unlocked;
    Turnstile turnstile;
    const int64_t bytes = scratch_bytes(width) + packed * sizeof(float);
    for_each_row_block(n, threads, bytes, [&](int64_t begin, int64_t end, const Scratch& scratch) {
      chosen->gramian(X.data(), begin, end, width, scratch.floats(), scratch.floats() + packed);
      turnstile.pass(begin / kBlock, [&] { total.add(scratch.floats()); });
    });
  }
  return total.result();
}

auto column_sums(const Matrix& X, int threads) {
  require_aligned(X);
  require_width(X.shape(1));
  const int64_t n = X.shape(0), width = X.shape(1);
  VectorSum total(width);
  {
    nb::gil_scoped_release unlocked;
    Turnstile turnstile;
    for_each_row_block(n, threads, width * sizeof(float), [&](int64_t begin, int64_t end, const Scratch& scratch) {
      chosen->column_sums(X.data(), nullptr, begin, end, width, scratch.floats());
      turnstile.pass(begin / kBlock, [&] { total.add(scratch.floats()); });
    });
  }
  return total.result();
}

void require_rotation(size_t n, size_t width, const Matrix& Q, const MutableMatrix& out) {
  require(Q.shape(0) == width && Q.shape(1) == width, "the rotation must be square and fit");
  require(out.shape(0) == n && out.shape(1) == width, "the result must have the shape of the input");
}

void rotate(const Matrix& X, const Matrix& Q, const MutableMatrix& out, int threads) {
  require_aligned(X, Q, out);
  require_width(X.shape(1));
  require_rotation(X.shape(0), X.shape(1), Q, out);
  const int64_t n = X.shape(0), width = X.shape(1);
  nb::gil_scoped_release unlocked;
  const Scratch panels(width * width * sizeof(float));
  chosen->pack_columns(Q.data(), width, panels.floats());
  for_each_row_block(n, threads, scratch_bytes(width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    chosen->rotate(X.data(), panels.floats(), out.data(), begin, end, width, scratch.floats());
  });
}

void require_shift(const MutableMatrix& X, const Floats& step, const Floats& h) {
  require_aligned(X, step, h);
  require_width(X.shape(1));
  require(step.shape(0) == X.shape(0), "one step a row is needed");
  require(h.shape(0) == X.shape(1), "the shift must have one entry a column");
}

void shift_rows(const MutableMatrix& X, const Floats& step, const Floats& h, int threads) {
  require_shift(X, step, h);
  nb::gil_scoped_release unlocked;
  for_each_row_block(X.shape(0), threads, 0, [&](int64_t begin, int64_t end, const Scratch&) {
    chosen->shift_rows(X.data(), step.data(), h.data(), begin, end, X.shape(1));
  });
}

void shift_and_rotate(const MutableMatrix& X, const Floats& step, const Floats& h, const Matrix& Q,
                      const MutableMatrix& out, int threads) {
  require_shift(X, step, h);
  require_aligned(Q, out);
  require_rotation(X.shape(0), X.shape(1), Q, out);
  const int64_t width = X.shape(1);
  nb::gil_scoped_release unlocked;
  const Scratch panels(width * width * sizeof(float));
  chosen->pack_columns(Q.data(), width, panels.floats());
  for_each_row_block(X.shape(0), threads, scratch_bytes(width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    chosen->shift_and_rotate(X.data(), step.data(), h.data(), panels.floats(), out.data(), begin, end, width,
                             scratch.floats());
  });
}

// What every kernel over histories asks for: factors of the columns, and one row or number a row.
void require_fit(const Csr& csr, const Matrix& factors) {
  require_aligned(factors);
  require_width(factors.shape(1));
  require(static_cast<int64_t>(factors.shape(0)) == csr.n_columns(), "one row of factors a column is needed");
}

// Runs body(begin, end, scratch) over blocks of about equal work, the heaviest first.
template <typename Body>
void for_each_work_block(const Csr& csr, int threads, int64_t bytes, const Body& body) {
  const WorkBlocks& blocks = csr.blocks();
  for_each_block(blocks.count(), threads, bytes, [&](int64_t turn, const Scratch& scratch) {
    const int64_t block = blocks.heaviest_first[turn];
    body(blocks.bounds[block], blocks.bounds[block + 1], scratch);
  });
}

RowSolve row_solve(const Csr& csr, const Matrix& factors, const Floats& eigenvalues, const Floats& regularization,
                   const std::optional<Floats>& shift, const MutableMatrix& out) {
  require_fit(csr, factors);
  require_aligned(eigenvalues, regularization, shift, out);
  const int64_t width = factors.shape(1);
  require(static_cast<int64_t>(out.shape(0)) == csr.n_rows() && static_cast<int64_t>(out.shape(1)) == width,
          "the result must have one row a row");
  require(static_cast<int64_t>(eigenvalues.shape(0)) == width &&
              (!shift || static_cast<int64_t>(shift->shape(0)) == width),
          "eigenvalues and shift must have one entry a column");
  require(static_cast<int64_t>(regularization.shape(0)) == csr.n_rows(), "one regularization a row is needed");
  return {csr.rows(),           factors.data(), eigenvalues.data(), regularization.data(),
          shift ? shift->data() : nullptr, out.data(), nullptr, nullptr, width};
}

int64_t solve_rows(const Csr& csr, const Matrix& factors, const Floats& eigenvalues, const Floats& regularization,
                   const std::optional<Floats>& shift, const MutableMatrix& out, const std::optional<Floats>& probe,
                   const std::optional<MutableMatrix>& response, int threads) {
  RowSolve task = row_solve(csr, factors, eigenvalues, regularization, shift, out);
  require(probe.has_value() == response.has_value(), "a probe and room for the response come together");
  if (probe) {
    require_aligned(probe, response);
    require(probe->shape(0) == factors.shape(1), "the probe must have one entry a column");
    require(response->shape(0) == out.shape(0) && response->shape(1) == out.shape(1),
            "the response must have the shape of the result");
    task.probe = probe->data();
    task.response = response->data();
  }
  nb::gil_scoped_release unlocked;
  std::atomic<int64_t> failed{0};
  for_each_work_block(csr, threads, scratch_bytes(task.width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    failed += chosen->solve_rows(task, begin, end, scratch.floats());
  });
  return failed;
}

void descend_rows(const Csr& csr, const Matrix& factors, const Floats& eigenvalues, const Floats& regularization,
                  const std::optional<Floats>& shift, const MutableMatrix& out, int64_t steps, int threads) {
  require(steps >= 0 && steps <= kMostSteps, "the number of steps must lie between 0 and 1024");
  const RowDescent task{row_solve(csr, factors, eigenvalues, regularization, shift, out), steps};
  nb::gil_scoped_release unlocked;
  for_each_work_block(csr, threads, scratch_bytes(task.solve.width),
                      [&](int64_t begin, int64_t end, const Scratch& scratch) {
                        chosen->descend_rows(task, begin, end, scratch.floats());
                      });
}

int64_t sums_width(int64_t width) {
  require(width > 0, "the number of columns must be a positive multiple of 16");
  require_width(width);
  return chosen->sums_floats(width);
}

void add_rows(const Csr& csr, const Matrix& factors, const MutableMatrix& sums, int threads) {
  require_fit(csr, factors);
  require_aligned(sums);
  const int64_t width = factors.shape(1);
  require(static_cast<int64_t>(sums.shape(0)) == csr.n_rows() &&
              static_cast<int64_t>(sums.shape(1)) == sums_width(width),
          "one row of sums a row is needed, as wide as sums_width says");
  const RowSums task{csr.rows(), factors.data(), sums.data(), width};
  nb::gil_scoped_release unlocked;
  for_each_work_block(csr, threads, scratch_bytes(width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    chosen->add_rows(task, begin, end, scratch.floats());
  });
}

int64_t solve_sums(const MutableMatrix& sums, const Floats& eigenvalues, const Floats& regularization,
                   const MutableMatrix& out, int threads) {
  require_aligned(sums, eigenvalues, regularization, out);
  const int64_t width = out.shape(1);
  require(static_cast<int64_t>(sums.shape(1)) == sums_width(width) && sums.shape(0) == out.shape(0),
          "one row of sums a row of the result is needed, as wide as sums_width says");
  require(static_cast<int64_t>(eigenvalues.shape(0)) == width, "eigenvalues must have one entry a column");
  require(regularization.shape(0) == out.shape(0), "one regularization a row is needed");
  const SumSolve task{sums.data(), eigenvalues.data(), regularization.data(), out.data(), width};
  nb::gil_scoped_release unlocked;
  std::atomic<int64_t> failed{0};
  for_each_row_block(out.shape(0), threads, scratch_bytes(width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    failed += chosen->solve_sums(task, begin, end, scratch.floats());
  });
  return failed;
}

// The step, and what the closed form of the shift after it needs: X^T X, the sum of X's rows and the
// same weighted by the steps, each added up while its block is still in cache.
auto gradient_step(const Csr& csr, const Matrix& factors, const Matrix& gramian, const Floats& regularization,
                   const Array1<float>& step, const std::optional<Array1<float>>& curvature,
                   float shared_curvature, bool refresh_curvature, const MutableMatrix& X, int threads) {
  require_fit(csr, factors);
  require_aligned(gramian, regularization, step, curvature, X);
  const int64_t width = factors.shape(1), packed = GramianSum::packed_floats(width);
  const auto one_a_row = [&](size_t size) { return static_cast<int64_t>(size) == csr.n_rows(); };
  require(one_a_row(X.shape(0)) && static_cast<int64_t>(X.shape(1)) == width, "one row of X a row is needed");
  require(static_cast<int64_t>(gramian.shape(0)) == width && static_cast<int64_t>(gramian.shape(1)) == width,
          "the Gramian must be square and fit");
  require(one_a_row(regularization.shape(0)) && one_a_row(step.shape(0)) &&
              (!curvature || one_a_row(curvature->shape(0))),
          "one regularization, step and curvature a row are needed");
  GramianSum products(width);
  VectorSum sums(width), weighted(width);
  {
    nb::gil_scoped_release unlocked;
    const Scratch panels(width * width * sizeof(float));
    chosen->pack_columns(gramian.data(), width, panels.floats());
    const GradientStep task{csr.rows(),       factors.data(),    panels.floats(), regularization.data(), step.data(),
                            curvature ? curvature->data() : nullptr, shared_curvature, refresh_curvature,
                            X.data(),         width};
    Turnstile turnstile;
    const std::vector<int64_t>& bounds = csr.blocks().bounds;
    const int64_t bytes = scratch_bytes(width) + (packed + 2 * width) * sizeof(float);
    for_each_block(csr.blocks().count(), threads, bytes, [&](int64_t block, const Scratch& scratch) {
      const int64_t begin = bounds[block], end = bounds[block + 1];
      float *triangle = scratch.floats(), *sum = triangle + packed, *weighted_sum = sum + width;
      float* rest = weighted_sum + width;
      chosen->gradient_step(task, begin, end, rest);
      chosen->gramian(X.data(), begin, end, width, triangle, rest);
      chosen->column_sums(X.data(), nullptr, begin, end, width, sum);
      chosen->column_sums(X.data(), step.data(), begin, end, width, weighted_sum);
      turnstile.pass(block, [&] {
        products.add(triangle);
        sums.add(sum);
        weighted.add(weighted_sum);
      });
    });
  }
  return nb::make_tuple(products.result(), sums.result(), weighted.result());
}

double squared_error(const Csr& csr, const Matrix& X, const Matrix& factors, int threads) {
  require_fit(csr, factors);
  require_aligned(X);
  require(static_cast<int64_t>(X.shape(0)) == csr.n_rows() && X.shape(1) == factors.shape(1),
          "one row of X a row is needed");
  nb::gil_scoped_release unlocked;
  const std::vector<int64_t>& bounds = csr.blocks().bounds;
  std::vector<double> sums(bounds.size(), 0.0);
  for_each_block(csr.blocks().count(), threads, 0, [&](int64_t block, const Scratch&) {
    sums[block] = chosen->squared_error(csr.rows(), X.data(), factors.data(), bounds[block], bounds[block + 1],
                                        factors.shape(1));
  });
  double total = 0.0;
  for (double sum : sums) total += sum;
  return total;
}

// The factors of a catalogue, laid out once for any number of top-k searches.
class Catalogue {
 public:
  Catalogue(const Matrix& factors, int threads)
      : n_items_(factors.shape(0)), width_(factors.shape(1)), kernels_(chosen),
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
    const TopK task{queries.data(), panels_.floats(), n_items_, history ? history->rows() : SparseRows{},
                    k,              ids.data(),       scores.data(), width_};
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

NB_MODULE(_kernels, m) {
  m.doc() = "limelight's kernels: arrays and plain numbers in, arrays out.";
  m.def("variants", &variants, "The variants this processor can run, the fastest first.");
  m.def("variant", [] { return std::string(chosen->name); }, "The variant in use.");
  m.def("use_variant", &use_variant, "name"_a, "Choose the variant that every kernel uses from now on.");

  nb::class_<Csr>(m, "Csr", "A checked binary sparse matrix: int64 indptr, int32 ascending indices.")
      .def(nb::init<Array1<const int64_t>, Array1<const int32_t>, int64_t>(), "indptr"_a.noconvert(),
           "indices"_a.noconvert(), "n_columns"_a)
      .def_prop_ro("n_rows", &Csr::n_rows)
      .def_prop_ro("n_columns", &Csr::n_columns)
      .def_prop_ro("n_entries", &Csr::n_entries)
      .def_prop_ro("indptr", &Csr::indptr, nb::rv_policy::automatic)
      .def_prop_ro("indices", &Csr::indices, nb::rv_policy::automatic)
      .def("transpose", &Csr::transpose, "The same entries, by column.");

  m.def("gramian", &gramian, "X"_a.noconvert(), "threads"_a, "X^T X in float64, blocks added in order.");
  m.def("column_sums", &column_sums, "X"_a.noconvert(), "threads"_a, "The sums of X's columns in float64, likewise.");
  m.def("rotate", &rotate, "X"_a.noconvert(), "Q"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
        "out = X Q; out may be X.");
  m.def("shift_rows", &shift_rows, "X"_a.noconvert(), "step"_a.noconvert(), "h"_a.noconvert(), "threads"_a,
        "x_i <- x_i - step_i h.");
  m.def("shift_and_rotate", &shift_and_rotate, "X"_a.noconvert(), "step"_a.noconvert(), "h"_a.noconvert(),
        "Q"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "x_i <- x_i - step_i h, then out = X Q.");
  m.def("solve_rows", &solve_rows, "rows"_a, "factors"_a.noconvert(), "eigenvalues"_a.noconvert(),
        "regularization"_a.noconvert(), "shift"_a.noconvert(), "out"_a.noconvert(), "probe"_a.noconvert(),
        "response"_a.noconvert(), "threads"_a,
        "x_i = (diag(eigenvalues) + regularization_i I + F_i^T F_i)^-1 (F_i^T 1 - shift); how many failed.\n\n"
        "With a probe given, the same inverses times the probe are written to response.");
  m.def("descend_rows", &descend_rows, "rows"_a, "factors"_a.noconvert(), "eigenvalues"_a.noconvert(),
        "regularization"_a.noconvert(), "shift"_a.noconvert(), "out"_a.noconvert(), "steps"_a, "threads"_a,
        "The same systems by conjugate-gradient steps, from where out stands.");
  m.def("sums_width", &sums_width, "width"_a, "How many numbers a row of sums has, for factors of this width.");
  m.def("add_rows", &add_rows, "rows"_a, "factors"_a.noconvert(), "sums"_a.noconvert(), "threads"_a,
        "Add what a block of histories contributes, F_i^T F_i and F_i^T 1, to each row of sums.");
  m.def("solve_sums", &solve_sums, "sums"_a.noconvert(), "eigenvalues"_a.noconvert(),
        "regularization"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
        "x_i = (diag(eigenvalues) + regularization_i I + F_i^T F_i)^-1 F_i^T 1 of sums, which are used up; how\n"
        "many failed.");
  m.def("gradient_step", &gradient_step, "rows"_a, "factors"_a.noconvert(), "gramian"_a.noconvert(),
        "regularization"_a.noconvert(), "step"_a.noconvert(), "curvature"_a.noconvert(), "shared_curvature"_a,
        "refresh_curvature"_a, "X"_a.noconvert(), "threads"_a,
        nb::sig("def gradient_step(rows: Csr, factors: NDArray[numpy.float32], gramian: NDArray[numpy.float32], "
                "regularization: NDArray[numpy.float32], step: NDArray[numpy.float32], "
                "curvature: NDArray[numpy.float32] | None, shared_curvature: float, refresh_curvature: bool, "
                "X: NDArray[numpy.float32], threads: int) -> "
                "tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]"),
        "x_i <- x_i - step_i (G x_i + regularization_i x_i + F_i^T (F_i x_i - 1)).\n\n"
        "Returns X^T X, the sum of X's rows, and that sum weighted by the steps. With curvature given, the\n"
        "steps are 1 / (shared_curvature + regularization_i + curvature_i) and are written to step; a\n"
        "refreshed curvature is one power step towards the largest eigenvalue of F_i^T F_i, from F_i^T 1.");
  m.def("squared_error", &squared_error, "rows"_a, "X"_a.noconvert(), "factors"_a.noconvert(), "threads"_a,
        "The sum over stored pairs of (1 - x_i . f_j)^2.");

  nb::class_<Catalogue>(m, "Catalogue", "Item factors laid out for top-k searches.")
      .def(nb::init<const Matrix&, int>(), "factors"_a.noconvert(), "threads"_a)
      .def("top_k", &Catalogue::top_k, "queries"_a.noconvert(), "history"_a.none(), "ids"_a.noconvert(),
           "scores"_a.noconvert(), "threads"_a,
           "The k items with the largest scores, history left out, ties to the lower item.");

  bind_market(m);
  bind_pairs(m);
  bind_round_robin(m);
}

}  // namespace limelight
