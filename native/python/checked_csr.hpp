// A sparse matrix that was checked when Python made it, and threads over its rows.
#pragma once

#include <memory>

#include "core/csr.hpp"
#include "core/parallel.hpp"
#include "python/active_variant.hpp"

namespace limelight {

// It shares the arrays that it was made from.
class Csr {
 public:
  using Weights = std::optional<Array1<const float>>;

  Csr(const Array1<const int64_t>& indptr, const Array1<const int32_t>& indices, int64_t n_columns,
      const Weights& weights)
      : indptr_(indptr), indices_(indices), weights_(weights), n_columns_(n_columns) {
    require(indptr.shape(0) > 0, "indptr must not be empty");
    require(n_columns >= 0 && n_columns <= kNames, "the number of columns must lie between 0 and 2^31");
    require_aligned(indptr, indices, weights);
    require(!weights || weights->shape(0) == indices.shape(0), "one weight an index is needed");
    nanobind::gil_scoped_release unlocked;
    check_csr(indptr.data(), n_rows(), indices.data(), n_entries(), n_columns);
    if (weights) check_weights(weights->data(), n_entries());
    blocks_ = std::make_shared<const WorkBlocks>(indptr.data(), n_rows());
  }

  int64_t n_rows() const { return static_cast<int64_t>(indptr_.shape(0)) - 1; }
  int64_t n_columns() const { return n_columns_; }
  int64_t n_entries() const { return static_cast<int64_t>(indices_.shape(0)); }
  const Array1<const int64_t>& indptr() const { return indptr_; }
  const Array1<const int32_t>& indices() const { return indices_; }
  const Weights& weights() const { return weights_; }
  SparseRows rows() const { return {indptr_.data(), indices_.data(), weights_ ? weights_->data() : nullptr}; }
  const WorkBlocks& blocks() const { return *blocks_; }

  Csr transpose() const {
    require(n_rows() <= kNames, "there are too many rows to name them as columns");
    auto indptr = new_array<int64_t>(n_columns_ + 1);
    auto indices = new_array<int32_t>(n_entries());
    auto weights = new_array<float>(weights_ ? n_entries() : 0);
    {
      nanobind::gil_scoped_release unlocked;
      transpose_csr(indptr_.data(), n_rows(), indices_.data(), n_columns_, rows().weights, indptr.get(), indices.get(),
                    weights.get());
    }
    Weights by_column;
    if (weights_) by_column = Array1<const float>(owned(std::move(weights), n_entries()));
    return {Array1<const int64_t>(owned(std::move(indptr), n_columns_ + 1)),
            Array1<const int32_t>(owned(std::move(indices), n_entries())), n_rows(), by_column};
  }

 private:
  Array1<const int64_t> indptr_;
  Array1<const int32_t> indices_;
  Weights weights_;
  int64_t n_columns_;
  std::shared_ptr<const WorkBlocks> blocks_;
};

// What every kernel over histories asks for: factors of the columns, and one row or number a row.
inline void require_fit(const Csr& csr, const Matrix& factors) {
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

}  // namespace limelight
