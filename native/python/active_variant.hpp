// The variant of the kernels that is in use, and what every variant requires of matrices.
#pragma once

#include "python/py_arrays.hpp"
#include "simd/kernels.hpp"

namespace limelight {

using Floats = Array1<const float>;
using Matrix = Array2<const float>;
using MutableMatrix = Array2<float>;

constexpr int64_t kPanel = 16;  // columns that are laid out together

extern const Kernels* active_variant;

inline int64_t scratch_bytes(int64_t width) { return active_variant->scratch_floats(width) * sizeof(float); }

inline void require_width(size_t width) {
  require(width > 0 && width % kPanel == 0, "the number of columns must be a positive multiple of 16");
}

}  // namespace limelight
