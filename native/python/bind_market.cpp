// Bindings for re-rankers in which users choose among candidates at subsidies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>

#include "core/market.hpp"
#include "python/py_arrays.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

template <typename T>
bool all_finite(const Array1<T>& values) {
  return std::all_of(values.data(), values.data() + values.shape(0), [](double v) { return std::isfinite(v); });
}

// Checked candidates, the most relevant of a user first; it shares the arrays that it was made from.
class RankedCandidates {
 public:
  RankedCandidates(const Array1<const int64_t>& indptr, const Array1<const int32_t>& items,
                   const Array1<const float>& relevance, int64_t n_items)
      : indptr_(indptr), items_(items), relevance_(relevance), n_items_(n_items) {
    require_aligned(indptr, items, relevance);
    const int64_t n_pairs = items.shape(0), n_users = static_cast<int64_t>(indptr.shape(0)) - 1;
    require(n_users >= 0 && indptr.data()[0] == 0 && indptr.data()[n_users] == n_pairs, "indptr must end at the pairs");
    require(static_cast<int64_t>(relevance.shape(0)) == n_pairs, "items and relevance must have one length");
    for (int64_t user = 0; user < n_users; ++user) {
      const int64_t first = indptr.data()[user], end = indptr.data()[user + 1];
      require(first <= end && end <= n_pairs, "indptr must not fall");
      require(end - first <= INT32_MAX, "a user has too many candidates");
      for (int64_t at = first; at < end; ++at) {
        require(items.data()[at] >= 0 && items.data()[at] < n_items, "an item is out of range");
        require(std::isfinite(relevance.data()[at]), "relevance must be finite");
        require(at == first || relevance.data()[at] <= relevance.data()[at - 1], "relevance must not rise in a row");
      }
    }
  }

  CandidateRows rows() const {
    return {indptr_.data(), items_.data(), relevance_.data(), static_cast<int64_t>(indptr_.shape(0)) - 1};
  }
  int64_t n_items() const { return n_items_; }

  void check_lists(const Array2<int32_t>& lists) const {
    const CandidateRows rows = this->rows();
    require(static_cast<int64_t>(lists.shape(0)) == rows.n_users && lists.shape(1) > 0, "lists must have a row a user");
    const int64_t k = lists.shape(1);
    for (int64_t user = 0; user < rows.n_users; ++user) {
      const int64_t count = rows.indptr[user + 1] - rows.indptr[user];
      const int32_t* places = lists.data() + user * k;
      for (int64_t rank = 0; rank < k; ++rank) {
        const bool follows = rank == 0 || (places[rank - 1] >= 0 && places[rank] > places[rank - 1]);
        require(places[rank] == -1 || (follows && places[rank] >= 0 && places[rank] < count),
                "a list must hold ascending places, then -1");
      }
    }
  }

 private:
  Array1<const int64_t> indptr_;
  Array1<const int32_t> items_;
  Array1<const float> relevance_;
  int64_t n_items_;
};

int64_t respond(const RankedCandidates& candidates, const Array1<const int32_t>& order, const Array2<int32_t>& lists,
                const Array1<const double>& weights, const Array1<const int32_t>& accounts,
                const Array1<double>& exposure, const Array1<const double>& entitlement,
                const Array1<const double>& pull, const Array2<const double>& marginal, bool by_impact, int64_t batch,
                bool newcomers, double served, const std::optional<Array1<const double>>& offsets, int threads) {
  require_aligned(order, lists, weights, accounts, exposure, entitlement, pull, marginal, offsets);
  require_apart(lists, order, weights, accounts, exposure, entitlement, pull, marginal, offsets);
  require_apart(exposure, order, weights, accounts, entitlement, pull, marginal, offsets);
  candidates.check_lists(lists);
  const CandidateRows rows = candidates.rows();
  const int64_t n_accounts = exposure.shape(0), n_knots = marginal.shape(1);
  require(weights.shape(0) == lists.shape(1), "there must be one weight a place");
  require(static_cast<int64_t>(accounts.shape(0)) == candidates.n_items(), "every item needs an account");
  for (size_t i = 0; i < accounts.shape(0); ++i)
    require(accounts.data()[i] >= 0 && accounts.data()[i] < n_accounts, "an account is out of range");
  require(static_cast<int64_t>(entitlement.shape(0)) == n_accounts && static_cast<int64_t>(pull.shape(0)) == n_accounts,
          "entitlement and pull must have one entry an account");
  require(marginal.shape(0) == 2 && n_knots != 1, "marginal must have two rows, of no knots or at least two");
  require(all_finite(weights) && all_finite(exposure) && all_finite(entitlement) && all_finite(pull) &&
              std::all_of(marginal.data(), marginal.data() + 2 * n_knots, [](double v) { return std::isfinite(v); }) &&
              std::isfinite(served) && (!offsets || all_finite(*offsets)),
          "numbers must be finite");
  require(!offsets || static_cast<int64_t>(offsets->shape(0)) == candidates.n_items(),
          "there must be one offset an item");
  require(batch >= 1, "batch must be at least 1");
  for (size_t i = 0; i < order.shape(0); ++i)
    require(order.data()[i] >= 0 && order.data()[i] < rows.n_users, "order must hold users");
  const double* table = marginal.data();
  const double largest = n_knots ? *std::max_element(table, table + n_knots) : 1.0;
  const double least = n_knots ? *std::min_element(table + n_knots, table + 2 * n_knots) : 0.0;
  double most = 0;
  for (int64_t a = 0; a < n_accounts; ++a) {
    const double p = pull.data()[a];
    most = std::max(most, p < 0 ? p * least : p * largest);
  }
  const bool has_offsets = offsets && offsets->shape(0) > 0;
  const Market market{weights.data(),
                      static_cast<int64_t>(lists.shape(1)),
                      accounts.data(),
                      exposure.data(),
                      entitlement.data(),
                      pull.data(),
                      table,
                      table + n_knots,
                      n_knots,
                      most,
                      by_impact,
                      has_offsets ? offsets->data() : nullptr,
                      has_offsets ? *std::max_element(offsets->data(), offsets->data() + offsets->shape(0)) : 0.0};
  nb::gil_scoped_release unlocked;
  return market.play(rows, order.data(), order.shape(0), batch, newcomers, served, lists.data(), threads);
}

void best_candidates_at(const RankedCandidates& candidates, const Array2<const float>& subsidies,
                        const Array1<const int32_t>& draws, const Array2<int32_t>& lists, int threads) {
  require_aligned(subsidies, draws, lists);
  require_apart(lists, subsidies, draws);
  const CandidateRows rows = candidates.rows();
  const int64_t k = lists.shape(1), n_items = candidates.n_items(), n_sets = subsidies.shape(0);
  require(static_cast<int64_t>(lists.shape(0)) == rows.n_users && k > 0, "lists must have a row a user");
  require(static_cast<int64_t>(subsidies.shape(1)) == n_items, "there must be a subsidy an item");
  require(static_cast<int64_t>(draws.shape(0)) == rows.n_users, "every user needs a draw");
  std::vector<double> most(static_cast<size_t>(n_sets), 0.0);
  for (int64_t t = 0; t < n_sets; ++t)
    for (int64_t j = 0; j < n_items; ++j) {
      require(std::isfinite(subsidies.data()[t * n_items + j]), "subsidies must be finite");
      most[t] = std::max(most[t], static_cast<double>(subsidies.data()[t * n_items + j]));
    }
  for (int64_t user = 0; user < rows.n_users; ++user)
    require(draws.data()[user] >= 0 && draws.data()[user] < n_sets, "a draw is out of range");
  nb::gil_scoped_release unlocked;
  constexpr int64_t kUsers = 256;
  for_each_block((rows.n_users + kUsers - 1) / kUsers, threads, 0, [&](int64_t block, const Scratch&) {
    std::vector<Choice> best;
    best.reserve(static_cast<size_t>(k));
    for (int64_t user = block * kUsers; user < std::min(rows.n_users, (block + 1) * kUsers); ++user) {
      const float* subsidy = subsidies.data() + draws.data()[user] * n_items;
      const double limit = most[draws.data()[user]];
      best_candidates(
          rows, user, k,
          [&](int64_t, int32_t item, float relevance) { return static_cast<double>(relevance) + subsidy[item]; },
          [&](float relevance) { return relevance + limit; }, best, lists.data() + user * k);
    }
  });
}

}  // namespace

void bind_market(nb::module_& m) {
  nb::class_<RankedCandidates>(m, "RankedCandidates", "The candidates of some users, the most relevant first.")
      .def(nb::init<const Array1<const int64_t>&, const Array1<const int32_t>&, const Array1<const float>&, int64_t>(),
           "indptr"_a.noconvert(), "items"_a.noconvert(), "relevance"_a.noconvert(), "n_items"_a);
  m.def("respond", &respond, "candidates"_a, "order"_a.noconvert(), "lists"_a.noconvert(), nb::kw_only(),
        "weights"_a.noconvert(), "accounts"_a.noconvert(), "exposure"_a.noconvert(), "entitlement"_a.noconvert(),
        "pull"_a.noconvert(), "marginal"_a.noconvert(), "by_impact"_a, "batch"_a, "newcomers"_a, "served"_a,
        "offsets"_a.noconvert().none() = nb::none(), "threads"_a,
        "Users choose again, in order, a batch at a time, at subsidies pull * marginal(exposure / entitlement).\n\n"
        "`lists` holds places among the candidates, ascending, then -1. Without knots a pull counts in full below the\n"
        "entitlement, and a negative one from there on. `offsets`, by item, are added to relevance and subsidy at any\n"
        "exposure. Returns how many lists changed.");
  m.def("best_candidates", &best_candidates_at, "candidates"_a, "subsidies"_a.noconvert(), "draws"_a.noconvert(),
        nb::kw_only(), "lists"_a.noconvert(), "threads"_a,
        "Each user's k best candidates by relevance plus subsidy, at the row of subsidies she drew.");
}

}  // namespace limelight
