// Users choose their lists one after the other, or a few at a time, at subsidies that follow the exposure.
//
// Every item, or group of items, has an account of the exposure that it got. Its subsidy is its pull times the
// marginal welfare at its exposure: the more it has, the less it is helped. A user who chooses again first
// gives back what her old list gave.
#pragma once

#include "core/best_candidates.hpp"
#include "core/parallel.hpp"

namespace limelight {

struct Market {
  const double* weights;  // of the k places
  int64_t k;
  const int32_t* accounts;    // of items
  double* exposure;           // by account
  const double* entitlement;  // by account, per user served
  const double* pull;         // by account
  const double* marginal;     // marginal welfare at y = x / (1 + x), x exposure over entitlement, y from 0 to 1
  const double* burden;       // the same, for accounts whose pull is negative
  int64_t n_knots;  // of each of the two; 0: a pull counts in full below the entitlement, a negative one from there
  double most;      // no subsidy is larger
  bool by_impact;   // exposure counts as much as it is relevant, and so do subsidies
  const double* offsets;  // by item, what is added to relevance and subsidy; null: nothing
  double most_offset;     // none of them is larger

  double amount(int64_t rank, float relevance) const { return by_impact ? weights[rank] * relevance : weights[rank]; }

  double subsidy(int32_t account, double exposure_now, double served) const {
    const double share = entitlement[account] * served, held = std::max(exposure_now, 0.0);
    if (n_knots == 0) return (held < share) == (pull[account] >= 0) ? pull[account] : 0.0;
    double y = share > 0 ? held / (held + share) : 1.0;  // who is entitled to nothing has all of it
    if (!(y >= 0 && y <= 1)) y = 1.0;                    // exposure beyond what a double holds
    const double at = y * static_cast<double>(n_knots - 1);
    const int64_t knot = std::min(static_cast<int64_t>(at), n_knots - 2);
    const double* table = pull[account] < 0 ? burden : marginal;
    return pull[account] * (table[knot] + (at - static_cast<double>(knot)) * (table[knot + 1] - table[knot]));
  }

  // The list that a user would choose now, who holds `own` (places, -1 where none). It is compiled twice, because
  // a market without offsets should not look for them at every candidate.
  template <bool has_offsets>
  void respond(const CandidateRows& rows, int64_t user, const int32_t* own, double served, std::vector<Choice>& best,
               int32_t* places) const {
    int64_t rank = 0;  // of the next own item: places ascend
    const auto worth = [&](int64_t place, int32_t item, float relevance) {
      double held = exposure[accounts[item]];
      if (rank < k && own[rank] == place) held -= amount(rank++, relevance);
      const double help = subsidy(accounts[item], held, served);
      const double subsidised = by_impact ? relevance * (1 + help) : relevance + help;
      if constexpr (has_offsets) return subsidised + offsets[item];
      return subsidised;
    };
    // It adds in the same order as worth, so that rounding cannot lift a worth above its limit.
    const auto limit = [&](float relevance) {
      const double subsidised = by_impact ? relevance * (1 + most) : relevance + most;
      if constexpr (has_offsets) return subsidised + most_offset;
      return subsidised;
    };
    best_candidates(rows, user, k, worth, limit, best, places);
  }

  void book(const CandidateRows& rows, int64_t user, const int32_t* places, double sign) const {
    const int64_t first = rows.indptr[user];
    for (int64_t rank = 0; rank < k && places[rank] >= 0; ++rank) {
      const int64_t at = first + places[rank];
      double& held = exposure[accounts[rows.items[at]]];
      held = std::max(0.0, held + sign * amount(rank, rows.relevance[at]));
    }
  }

  // Lets users choose again, `batch` of them at a time against the same exposure. `served` is how many users
  // the exposure is of; where users come for the first time it grows by them. Returns how many lists changed.
  int64_t play(const CandidateRows& rows, const int32_t* order, int64_t n_turns, int64_t batch, bool newcomers,
               double served, int32_t* lists, int threads) const {
    constexpr int64_t kWorthAThread = 64;
    batch = std::min(batch, n_turns);
    std::vector<int32_t> responses(static_cast<size_t>(batch * k));
    std::vector<std::vector<Choice>> best(static_cast<size_t>(batch));
    for (auto& choices : best) choices.reserve(static_cast<size_t>(k));
    const auto choose = offsets ? &Market::respond<true> : &Market::respond<false>;
    int64_t changed = 0;
    for (int64_t start = 0; start < n_turns; start += batch) {
      const int64_t size = std::min(batch, n_turns - start);
      const double users_served = newcomers ? served + static_cast<double>(start) : served;
      const auto turn = [&](int64_t i) {
        const int64_t user = order[start + i];
        (this->*choose)(rows, user, lists + user * k, std::max(users_served, 1.0), best[i], responses.data() + i * k);
      };
      if (size < kWorthAThread) {
        for (int64_t i = 0; i < size; ++i) turn(i);
      } else {
        for_each_block((size + kWorthAThread - 1) / kWorthAThread, threads, 0, [&](int64_t block, const Scratch&) {
          const int64_t end = std::min(size, (block + 1) * kWorthAThread);
          for (int64_t i = block * kWorthAThread; i < end; ++i) turn(i);
        });
      }
      for (int64_t i = 0; i < size; ++i) {
        const int64_t user = order[start + i];
        int32_t* list = lists + user * k;
        const int32_t* next = responses.data() + i * k;
        if (std::equal(list, list + k, next)) continue;
        ++changed;
        book(rows, user, list, -1.0);
        book(rows, user, next, 1.0);
        std::copy(next, next + k, list);
      }
    }
    return changed;
  }
};

}  // namespace limelight
