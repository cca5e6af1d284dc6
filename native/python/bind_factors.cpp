// Bindings of the kernels over a matrix of factors: sums, rotations and shifts.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core/parallel.hpp"
#include "python/ordered_sums.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

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
      active_variant->gramian(X.data(), begin, end, width, scratch.floats(), scratch.floats() + packed);
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
      active_variant->column_sums(X.data(), nullptr, begin, end, width, scratch.floats());
      turnstile.pass(begin / kBlock, [&] { total.add(scratch.floats()); });
    });
  }
  return total.result();
}

void require_rotation(size_t n, size_t width, const Matrix& rotation, const MutableMatrix& out) {
  require(rotation.shape(0) == width && rotation.shape(1) == width, "the rotation must be square and fit");
  require(out.shape(0) == n && out.shape(1) == width, "the result must have the shape of the input");
}

void rotate(const Matrix& X, const Matrix& rotation, const MutableMatrix& out, int threads) {
  require_aligned(X, rotation, out);
  require_width(X.shape(1));
  require_rotation(X.shape(0), X.shape(1), rotation, out);
  const int64_t n = X.shape(0), width = X.shape(1);
  nb::gil_scoped_release unlocked;
  const Scratch panels(width * width * sizeof(float));
  active_variant->pack_columns(rotation.data(), width, panels.floats());
  for_each_row_block(n, threads, scratch_bytes(width), [&](int64_t begin, int64_t end, const Scratch& scratch) {
    active_variant->rotate(X.data(), panels.floats(), out.data(), begin, end, width, scratch.floats());
  });
}

void require_shift(const MutableMatrix& X, const Floats& step, const Floats& shift) {
  require_aligned(X, step, shift);
  require_width(X.shape(1));
  require(step.shape(0) == X.shape(0), "one step a row is needed");
  require(shift.shape(0) == X.shape(1), "the shift must have one entry a column");
}

void shift_rows(const MutableMatrix& X, const Floats& step, const Floats& shift, int threads) {
  require_shift(X, step, shift);
  nb::gil_scoped_release unlocked;
  for_each_row_block(X.shape(0), threads, 0, [&](int64_t begin, int64_t end, const Scratch&) {
    active_variant->shift_rows(X.data(), step.data(), shift.data(), begin, end, X.shape(1));
  });
}

void shift_and_rotate(const MutableMatrix& X, const Floats& step, const Floats& shift, const Matrix& rotation,
                      const MutableMatrix& out, int threads) {
  require_shift(X, step, shift);
  require_aligned(rotation, out);
  require_rotation(X.shape(0), X.shape(1), rotation, out);
  const int64_t width = X.shape(1);
  nb::gil_scoped_release unlocked;
  const Scratch panels(width * width * sizeof(float));
  active_variant->pack_columns(rotation.data(), width, panels.floats());
  for_each_row_block(X.shape(0), threads, scratch_bytes(width),
                     [&](int64_t begin, int64_t end, const Scratch& scratch) {
                       active_variant->shift_and_rotate(X.data(), step.data(), shift.data(), panels.floats(),
                                                        out.data(), begin, end, width, scratch.floats());
                     });
}

}  // namespace

void bind_factors(nb::module_& m) {
  m.def("gramian", &gramian, "X"_a.noconvert(), "threads"_a, "X^T X in float64, blocks added in order.");
  m.def("column_sums", &column_sums, "X"_a.noconvert(), "threads"_a, "The sums of X's columns in float64, likewise.");
  m.def("rotate", &rotate, "X"_a.noconvert(), "rotation"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
        "out = X rotation; out may be X.");
  m.def("shift_rows", &shift_rows, "X"_a.noconvert(), "step"_a.noconvert(), "shift"_a.noconvert(), "threads"_a,
        "x_i <- x_i - step_i shift.");
  m.def("shift_and_rotate", &shift_and_rotate, "X"_a.noconvert(), "step"_a.noconvert(), "shift"_a.noconvert(),
        nb::kw_only(), "rotation"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
        "x_i <- x_i - step_i shift, then out = X rotation.");
}

}  // namespace limelight
