// Bindings of the kernels that find rows of factors from histories.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <atomic>

#include "python/checked_csr.hpp"
#include "python/ordered_sums.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

constexpr int64_t kMostSteps = 1 << 10;

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
  return {csr.rows(),
          factors.data(),
          eigenvalues.data(),
          regularization.data(),
          shift ? shift->data() : nullptr,
          out.data(),
          nullptr,
          nullptr,
          width};
}

int64_t solve_rows(const Csr& csr, const Matrix& factors, const Floats& eigenvalues, const Floats& regularization,
                   const std::optional<Floats>& shift, const MutableMatrix& out, const std::optional<Floats>& probe,
                   const std::optional<MutableMatrix>& response, int threads) {
  RowSolve task = row_solve(csr, factors, eigenvalues, regularization, shift, out);
  require(probe.has_value() == response.has_value(), "a probe and room for the response come together");
  if (probe && response) {
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
    failed += active_variant->solve_rows(task, begin, end, scratch.floats());
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
                        active_variant->descend_rows(task, begin, end, scratch.floats());
                      });
}

int64_t sums_width(int64_t width) {
  require(width > 0, "the number of columns must be a positive multiple of 16");
  require_width(width);
  return active_variant->sums_floats(width);
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
    active_variant->add_rows(task, begin, end, scratch.floats());
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
  for_each_row_block(out.shape(0), threads, scratch_bytes(width),
                     [&](int64_t begin, int64_t end, const Scratch& scratch) {
                       failed += active_variant->solve_sums(task, begin, end, scratch.floats());
                     });
  return failed;
}

// The step, and what the closed form of the shift after it needs: X^T X, the sum of X's rows and the
// same weighted by the steps, each added up while its block is still in cache.
auto gradient_step(const Csr& csr, const Matrix& factors, const Matrix& gramian, const Floats& regularization,
                   const Array1<float>& step, const std::optional<Array1<float>>& curvature, float shared_curvature,
                   bool refresh_curvature, const MutableMatrix& X, int threads) {
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
    active_variant->pack_columns(gramian.data(), width, panels.floats());
    const GradientStep task{csr.rows(),       factors.data(),
                            panels.floats(),  regularization.data(),
                            step.data(),      curvature ? curvature->data() : nullptr,
                            shared_curvature, refresh_curvature,
                            X.data(),         width};
    Turnstile turnstile;
    const std::vector<int64_t>& bounds = csr.blocks().bounds;
    const int64_t bytes = scratch_bytes(width) + (packed + 2 * width) * sizeof(float);
    for_each_block(csr.blocks().count(), threads, bytes, [&](int64_t block, const Scratch& scratch) {
      const int64_t begin = bounds[block], end = bounds[block + 1];
      float *triangle = scratch.floats(), *sum = triangle + packed, *weighted_sum = sum + width;
      float* rest = weighted_sum + width;
      active_variant->gradient_step(task, begin, end, rest);
      active_variant->gramian(X.data(), begin, end, width, triangle, rest);
      active_variant->column_sums(X.data(), nullptr, begin, end, width, sum);
      active_variant->column_sums(X.data(), step.data(), begin, end, width, weighted_sum);
      turnstile.pass(block, [&] {
        products.add(triangle);
        sums.add(sum);
        weighted.add(weighted_sum);
      });
    });
  }
  return std::make_tuple(products.result(), sums.result(), weighted.result());
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
    sums[block] = active_variant->squared_error(csr.rows(), X.data(), factors.data(), bounds[block], bounds[block + 1],
                                                factors.shape(1));
  });
  double total = 0.0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<Csr>(m, "Csr",
                  "A checked sparse matrix: int64 indptr, int32 ascending indices, float32 weights; None: all 1.")
      .def(nb::init<const Array1<const int64_t>&, const Array1<const int32_t>&, int64_t, const Csr::Weights&>(),
           "indptr"_a.noconvert(), "indices"_a.noconvert(), "n_columns"_a, "weights"_a.noconvert() = nb::none())
      .def_prop_ro("n_rows", &Csr::n_rows)
      .def_prop_ro("n_columns", &Csr::n_columns)
      .def_prop_ro("n_entries", &Csr::n_entries)
      .def_prop_ro("indptr", &Csr::indptr, nb::rv_policy::automatic)
      .def_prop_ro("indices", &Csr::indices, nb::rv_policy::automatic)
      .def_prop_ro("weights", &Csr::weights, nb::rv_policy::automatic)
      .def("transpose", &Csr::transpose, "The same entries, by column.");

  m.def("solve_rows", &solve_rows, "rows"_a, "factors"_a.noconvert(), "eigenvalues"_a.noconvert(),
        "regularization"_a.noconvert(), nb::kw_only(), "shift"_a.noconvert(), "out"_a.noconvert(),
        "probe"_a.noconvert(), "response"_a.noconvert(), "threads"_a,
        "x_i = (diag(eigenvalues) + regularization_i I + F_i^T W_i F_i)^-1 (F_i^T w_i - shift); how many failed.\n\n"
        "With a probe given, the same inverses times the probe are written to response.");
  m.def("descend_rows", &descend_rows, "rows"_a, "factors"_a.noconvert(), "eigenvalues"_a.noconvert(),
        "regularization"_a.noconvert(), nb::kw_only(), "shift"_a.noconvert(), "out"_a.noconvert(), "steps"_a,
        "threads"_a, "The same systems by conjugate-gradient steps, from where out stands.");
  m.def("sums_width", &sums_width, "width"_a, "How many numbers a row of sums has, for factors of this width.");
  m.def("add_rows", &add_rows, "rows"_a, "factors"_a.noconvert(), "sums"_a.noconvert(), "threads"_a,
        "Add what a block of histories contributes, F_i^T W_i F_i and F_i^T w_i, to each row of sums.");
  m.def("solve_sums", &solve_sums, "sums"_a.noconvert(), "eigenvalues"_a.noconvert(), "regularization"_a.noconvert(),
        nb::kw_only(), "out"_a.noconvert(), "threads"_a,
        "x_i = (diag(eigenvalues) + regularization_i I + F_i^T W_i F_i)^-1 F_i^T w_i of sums, which are used up; how\n"
        "many failed.");
  m.def("gradient_step", &gradient_step, "rows"_a, "factors"_a.noconvert(), nb::kw_only(), "gramian"_a.noconvert(),
        "regularization"_a.noconvert(), "step"_a.noconvert(), "curvature"_a.noconvert(), "shared_curvature"_a,
        "refresh_curvature"_a, "row_factors"_a.noconvert(), "threads"_a,
        "x_i <- x_i - step_i (G x_i + regularization_i x_i + F_i^T W_i (F_i x_i - 1)).\n\n"
        "The x_i are the rows of X = row_factors. Returns X^T X, the sum of X's rows, and that sum weighted by\n"
        "the steps. With curvature given, the steps are 1 / (shared_curvature + regularization_i + curvature_i)\n"
        "and are written to step; a refreshed curvature is one power step towards the largest eigenvalue of\n"
        "F_i^T W_i F_i, from F_i^T w_i.");
  m.def("squared_error", &squared_error, "rows"_a, "row_factors"_a.noconvert(), "factors"_a.noconvert(), "threads"_a,
        "The sum over stored pairs of w_j (1 - x_i . f_j)^2.");
}

}  // namespace limelight
