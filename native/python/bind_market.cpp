// Bindings for re-rankers in which users choose among candidates at subsidies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <functional>

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

  // Checks the lists of those users whose turn it is.
  void check_lists(const Array2<int32_t>& lists, const Array1<const int32_t>& turns) const {
    const CandidateRows rows = this->rows();
    require(static_cast<int64_t>(lists.shape(0)) == rows.n_users && lists.shape(1) > 0, "lists must have a row a user");
    const int64_t k = lists.shape(1);
    std::vector<int32_t> sorted;
    for (size_t i = 0; i < turns.shape(0); ++i) {
      const int64_t user = turns.data()[i];
      require(user >= 0 && user < rows.n_users, "order must hold users");
      const int64_t count = rows.indptr[user + 1] - rows.indptr[user];
      const int32_t* places = lists.data() + user * k;
      const int32_t* end = std::find(places, places + k, -1);
      bool is_list = std::all_of(end, places + k, [](int32_t place) { return place == -1; }) &&
                     std::all_of(places, end, [&](int32_t place) { return place >= 0 && place < count; });
      if (is_list && std::adjacent_find(places, end, std::greater_equal<int32_t>()) != end) {
        sorted.assign(places, end);
        std::sort(sorted.begin(), sorted.end());
        is_list = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
      }
      require(is_list, "a list must hold places of candidates, none twice, then -1");
    }
  }

 private:
  Array1<const int64_t> indptr_;
  Array1<const int32_t> items_;
  Array1<const float> relevance_;
  int64_t n_items_;
};

// Which items belong to which groups, checked; it shares the arrays that it was made from.
class ItemGroups {
 public:
  ItemGroups(const Array1<const int64_t>& indptr, const Array1<const int32_t>& groups,
             const Array1<const double>& weights, int64_t n_groups)
      : indptr_(indptr), groups_(groups), weights_(weights), n_groups_(n_groups) {
    require_aligned(indptr, groups, weights);
    const int64_t n_members = groups.shape(0), n_items = static_cast<int64_t>(indptr.shape(0)) - 1;
    require(n_groups >= 0 && n_groups <= INT32_MAX, "the number of groups is out of range");
    require(n_items >= 0 && indptr.data()[0] == 0 && indptr.data()[n_items] == n_members,
            "indptr must end at the members");
    require(static_cast<int64_t>(weights.shape(0)) == n_members, "groups and weights must have one length");
    for (int64_t item = 0; item < n_items; ++item) {
      const int64_t first = indptr.data()[item], end = indptr.data()[item + 1];
      require(first <= end && end <= n_members, "indptr must not fall");
      double sum = 0;
      for (int64_t at = first; at < end; ++at) {
        require(groups.data()[at] >= 0 && groups.data()[at] < n_groups, "a group is out of range");
        require(std::isfinite(weights.data()[at]) && weights.data()[at] >= 0, "weights must be numbers from 0 up");
        sum += weights.data()[at];
      }
      most_ = std::max(most_, sum);
    }
  }

  Memberships members() const { return {indptr_.data(), groups_.data(), weights_.data(), most_}; }
  int64_t n_groups() const { return n_groups_; }
  int64_t n_items() const { return static_cast<int64_t>(indptr_.shape(0)) - 1; }

 private:
  Array1<const int64_t> indptr_;
  Array1<const int32_t> groups_;
  Array1<const double> weights_;
  int64_t n_groups_;
  double most_ = 0;
};

// Accounts, checked: `exposure` is of as many as there are.
Accounts accounts_of(const Array1<double>& exposure, const Array1<const double>& entitlement,
                     const Array1<const double>& pull, const Array2<const double>& marginal) {
  require_aligned(exposure, entitlement, pull, marginal);
  require_apart(exposure, entitlement, pull, marginal);
  const int64_t n_accounts = exposure.shape(0), n_knots = marginal.shape(1);
  require(static_cast<int64_t>(entitlement.shape(0)) == n_accounts && static_cast<int64_t>(pull.shape(0)) == n_accounts,
          "entitlement and pull must have one entry an account");
  require(marginal.shape(0) == 2 && n_knots != 1, "marginal must have two rows, of no knots or at least two");
  const double* table = marginal.data();
  require(all_finite(exposure) && all_finite(entitlement) && all_finite(pull) &&
              std::all_of(table, table + 2 * n_knots, [](double v) { return std::isfinite(v); }),
          "numbers must be finite");
  const double largest = n_knots ? *std::max_element(table, table + n_knots) : 1.0;
  const double least = n_knots ? *std::min_element(table + n_knots, table + 2 * n_knots) : 0.0;
  double most = 0;
  for (int64_t a = 0; a < n_accounts; ++a) {
    const double p = pull.data()[a];
    most = std::max(most, p < 0 ? p * least : p * largest);
  }
  return {exposure.data(), entitlement.data(), pull.data(), table, table + n_knots, n_knots, most};
}

int64_t respond(const RankedCandidates& candidates, const Array1<const int32_t>& order, const Array2<int32_t>& lists,
                const Array1<const double>& weights, const Array1<const int32_t>& accounts,
                const Array1<double>& exposure, const Array1<const double>& entitlement,
                const Array1<const double>& pull, const Array2<const double>& marginal, bool by_impact, int64_t batch,
                bool newcomers, double served, const std::optional<Array1<const double>>& offsets, int threads,
                const ItemGroups* groups, const std::optional<Array1<double>>& group_exposure,
                const std::optional<Array1<const double>>& group_entitlement,
                const std::optional<Array1<const double>>& group_pull,
                const std::optional<Array2<const double>>& group_marginal,
                const std::optional<Array1<const double>>& scale, double subsidised_order) {
  require_aligned(order, lists, weights, accounts, exposure, offsets, scale);
  require_apart(lists, order, weights, accounts, exposure, entitlement, pull, marginal, offsets, scale, group_exposure,
                group_entitlement, group_pull, group_marginal);
  require_apart(exposure, order, weights, accounts, offsets, scale, group_exposure, group_entitlement, group_pull,
                group_marginal);
  candidates.check_lists(lists, order);
  const CandidateRows rows = candidates.rows();
  const int64_t n_accounts = exposure.shape(0), n_items = candidates.n_items();
  require(weights.shape(0) == lists.shape(1), "there must be one weight a place");
  require(static_cast<int64_t>(accounts.shape(0)) == n_items, "every item needs an account");
  for (size_t i = 0; i < accounts.shape(0); ++i)
    require(accounts.data()[i] >= 0 && accounts.data()[i] < n_accounts, "an account is out of range");
  require(all_finite(weights) && std::isfinite(served) && (!offsets || all_finite(*offsets)), "numbers must be finite");
  require(!offsets || static_cast<int64_t>(offsets->shape(0)) == n_items, "there must be one offset an item");
  require(!scale || static_cast<int64_t>(scale->shape(0)) == rows.n_users, "there must be one scale a user");
  require(!scale || std::all_of(scale->data(), scale->data() + scale->shape(0),
                                [](double v) { return std::isfinite(v) && v >= 0; }),
          "a scale must be a number from 0 up");
  require(subsidised_order >= 0 && subsidised_order <= 1, "subsidised_order must be from 0 to 1");
  require(batch >= 1, "batch must be at least 1");
  const bool has_offsets = offsets && offsets->shape(0) > 0;
  Market market{};
  market.weights = weights.data();
  market.k = lists.shape(1);
  market.accounts = accounts.data();
  market.items = accounts_of(exposure, entitlement, pull, marginal);
  market.helps_items = std::any_of(pull.data(), pull.data() + n_accounts, [](double p) { return p != 0; });
  if (groups) {
    require(group_exposure && group_entitlement && group_pull && group_marginal, "groups need accounts");
    require(groups->n_items() == n_items, "there must be groups for every item");
    require(static_cast<int64_t>(group_exposure->shape(0)) == groups->n_groups(), "every group needs an account");
    require_apart(*group_exposure, order, weights, accounts, offsets, scale, entitlement, pull, marginal);
    market.members = groups->members();
    market.groups = accounts_of(*group_exposure, *group_entitlement, *group_pull, *group_marginal);
    market.n_groups = groups->n_groups();
  }
  market.by_impact = by_impact;
  market.offsets = has_offsets ? offsets->data() : nullptr;
  market.most_offset = has_offsets ? *std::max_element(offsets->data(), offsets->data() + n_items) : 0.0;
  market.scale = scale ? scale->data() : nullptr;
  market.order = subsidised_order;
  nb::gil_scoped_release unlocked;
  // Prices of all accounts at once pay where many users choose. Where users come for the first time, every one of
  // them changes all prices.
  constexpr int64_t kCandidates = 64;
  std::vector<double> item_room, group_room;
  if (!newcomers && static_cast<int64_t>(order.shape(0)) * kCandidates > n_accounts + market.n_groups)
    market.price(n_accounts, std::max(served, 1.0), item_room, group_room);
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
      best.clear();
      best_candidates(
          rows, user, k, nullptr, 0,
          [&](int32_t item, float relevance) { return static_cast<double>(relevance) + subsidy[item]; },
          [&](float relevance) { return relevance + limit; }, best, lists.data() + user * k);
    }
  });
}

}  // namespace

void bind_market(nb::module_& m) {
  nb::class_<RankedCandidates>(m, "RankedCandidates", "The candidates of some users, the most relevant first.")
      .def(nb::init<const Array1<const int64_t>&, const Array1<const int32_t>&, const Array1<const float>&, int64_t>(),
           "indptr"_a.noconvert(), "items"_a.noconvert(), "relevance"_a.noconvert(), "n_items"_a);
  nb::class_<ItemGroups>(m, "ItemGroups", "The groups of every item, and how much it belongs to each.")
      .def(nb::init<const Array1<const int64_t>&, const Array1<const int32_t>&, const Array1<const double>&, int64_t>(),
           "indptr"_a.noconvert(), "groups"_a.noconvert(), "weights"_a.noconvert(), "n_groups"_a);
  m.def("respond", &respond, "candidates"_a, "order"_a.noconvert(), "lists"_a.noconvert(), nb::kw_only(),
        "weights"_a.noconvert(), "accounts"_a.noconvert(), "exposure"_a.noconvert(), "entitlement"_a.noconvert(),
        "pull"_a.noconvert(), "marginal"_a.noconvert(), "by_impact"_a, "batch"_a, "newcomers"_a, "served"_a,
        "offsets"_a.noconvert().none() = nb::none(), "threads"_a, "groups"_a.none() = nb::none(),
        "group_exposure"_a.noconvert().none() = nb::none(), "group_entitlement"_a.noconvert().none() = nb::none(),
        "group_pull"_a.noconvert().none() = nb::none(), "group_marginal"_a.noconvert().none() = nb::none(),
        "scale"_a.noconvert().none() = nb::none(), "subsidised_order"_a = 0.0,
        "Users choose again, in order, a batch at a time, at subsidies pull * marginal(exposure / entitlement).\n\n"
        "`lists` holds places among the candidates, then -1. Without knots a pull counts in full below the\n"
        "entitlement, and a negative one from there on. `offsets`, by item, are added to relevance and subsidy at any\n"
        "exposure. Groups have accounts beside those of items, and an item gets the subsidies of its groups as well.\n"
        "`scale`, by user, multiplies subsidies. Lists are in the order of relevance plus `subsidised_order` times\n"
        "what is added to it, so at 0 places ascend. Returns how many lists changed.");
  m.def("best_candidates", &best_candidates_at, "candidates"_a, "subsidies"_a.noconvert(), "draws"_a.noconvert(),
        nb::kw_only(), "lists"_a.noconvert(), "threads"_a,
        "Each user's k best candidates by relevance plus subsidy, at the row of subsidies she drew.");
}

}  // namespace limelight
