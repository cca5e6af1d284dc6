// Sums that threads add up block by block, in the order of the blocks.
#pragma once

#include <vector>

#include "python/active_variant.hpp"

namespace limelight {

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
    auto out = new_array<double>(width_ * width_);
    const double* at = packed_.data();
    for (int64_t first = 0; first < width_; first += kPanel)
      for (int64_t c = 0; c < first + kPanel; ++c)
        for (int64_t r = first; r < first + kPanel; ++r, ++at) out[r * width_ + c] = out[c * width_ + r] = *at;
    return owned(std::move(out), width_, width_);
  }

 private:
  int64_t width_;
  std::vector<double> packed_;
};

class VectorSum {
 public:
  explicit VectorSum(int64_t width) : sums_(width, 0.0) {}

  void add(const float* part) {
    for (size_t c = 0; c < sums_.size(); ++c) sums_[c] += part[c];
  }

  auto result() const { return owned_copy<double>(sums_); }

 private:
  std::vector<double> sums_;
};

}  // namespace limelight
