// Users choose their lists one after the other, or a few at a time, at subsidies that follow the exposure.
//
// Every item, or group of items, has an account of the exposure that it got. Its subsidy is its pull times the
// marginal welfare at its exposure: the more it has, the less it is helped. A user who chooses again first
// gives back what her old list gave.
#pragma once

#include "core/best_candidates.hpp"
#include "core/parallel.hpp"

namespace limelight {

// What accounts have, and how they are helped.
struct Accounts {
  double* exposure;
  const double* entitlement;  // per user served
  const double* pull;
  const double* marginal;  // marginal welfare at y = x / (1 + x), x exposure over entitlement, y from 0 to 1
  const double* burden;    // the same, for accounts whose pull is negative
  int64_t n_knots;  // of each of the two; 0: a pull counts in full below the entitlement, a negative one from there
  double most;      // no subsidy is larger

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

  void book(int32_t account, double amount) const { exposure[account] = std::max(0.0, exposure[account] + amount); }
};

// The groups of item j stand at indptr[j] .. indptr[j + 1], with how much it belongs to each.
struct Memberships {
  const int64_t* indptr;
  const int32_t* groups;
  const double* weights;
  double most;  // the weights of no item add up to more
};

struct Market {
  const double* weights;  // of the k places
  int64_t k;
  const int32_t* accounts;  // of items
  Accounts items;
  bool helps_items;  // false: no item has a pull
  Memberships members;
  Accounts groups;
  int64_t n_groups;       // 0: groups have no accounts
  bool by_impact;         // exposure counts as much as it is relevant, and so do subsidies
  const double* offsets;  // by item, what is added to relevance and subsidy; null: nothing
  double most_offset;     // none of them is larger
  const double* scale;    // by user, what her subsidies are multiplied by; null: 1
  double order;           // lists are in the order of relevance plus so much of what is added to it
  double* item_prices;    // subsidies by account at the exposure that there is; null: they are worked out when asked
  double* group_prices;   // the same of groups

  // What a thread needs to let one user choose.
  struct Workspace {
    double* given;  // by group, what the user's present list gives it; 0 between two users
    Held* held;     // k of them

    Workspace(const Scratch& scratch, const Market& market)
        : given(static_cast<double*>(scratch.raw())), held(reinterpret_cast<Held*>(given + market.n_groups)) {
      std::fill(given, given + market.n_groups, 0.0);
    }
    static int64_t bytes(const Market& market) {
      return market.n_groups * static_cast<int64_t>(sizeof(double)) + market.k * static_cast<int64_t>(sizeof(Held));
    }
  };

  double amount(int64_t rank, float relevance) const { return by_impact ? weights[rank] * relevance : weights[rank]; }

  // Calls body(group, amount) for what a list gives to groups.
  template <typename Body>
  void for_each_gift(const CandidateRows& rows, int64_t user, const int32_t* places, const Body& body) const {
    const int64_t first = rows.indptr[user];
    for (int64_t rank = 0; rank < k && places[rank] >= 0; ++rank) {
      const int64_t at = first + places[rank];
      const double given = amount(rank, rows.relevance[at]);
      const int32_t item = rows.items[at];
      for (int64_t g = members.indptr[item]; g < members.indptr[item + 1]; ++g)
        body(members.groups[g], members.weights[g] * given);
    }
  }

  // The list that a user would choose now, who holds `own` (places, -1 where none). It is compiled for each set of
  // options, because a market without groups or offsets should not look for them at every candidate.
  template <bool has_items, bool has_groups, bool has_offsets, bool has_prices>
  void respond(const CandidateRows& rows, int64_t user, const int32_t* own, double served, const Workspace& room,
               std::vector<Choice>& best, int32_t* places) const {
    int64_t n_held = 0;
    for (; n_held < k && own[n_held] >= 0; ++n_held) room.held[n_held] = {own[n_held], static_cast<int32_t>(n_held)};
    if (!std::is_sorted(room.held, room.held + n_held)) std::sort(room.held, room.held + n_held);
    if constexpr (has_groups)
      for_each_gift(rows, user, own, [&](int32_t group, double given) { room.given[group] += given; });
    // Copies, because the compiler would look members up at every candidate.
    const double factor = scale ? scale[user] : 1.0, largest_offset = most_offset;
    const double *const prices = item_prices, *const added = offsets;
    const int32_t* const account_of = accounts;
    const bool of_impact = by_impact;
    // `help` is what the item's own account adds.
    const auto helped = [=, &room](int32_t item, float relevance, double help) {
      if constexpr (has_groups) {
        for (int64_t g = members.indptr[item]; g < members.indptr[item + 1]; ++g) {
          const int32_t group = members.groups[g];
          if (has_prices && room.given[group] == 0) help += members.weights[g] * group_prices[group];
          else help += members.weights[g] * groups.subsidy(group, groups.exposure[group] - room.given[group], served);
        }
      }
      const double subsidised = of_impact ? relevance * (1 + factor * help) : relevance + factor * help;
      if constexpr (has_offsets) return subsidised + added[item];
      return subsidised;
    };
    const auto worth = [=](int32_t item, float relevance) {
      if constexpr (!has_items) return helped(item, relevance, 0.0);
      const int32_t account = account_of[item];
      if constexpr (has_prices) return helped(item, relevance, prices[account]);
      return helped(item, relevance, items.subsidy(account, items.exposure[account], served));
    };
    // What she holds counts as if she had given it back.
    best.clear();
    for (const Held* own_place = room.held; own_place < room.held + n_held; ++own_place) {
      const int64_t at = rows.indptr[user] + own_place->place;
      const int32_t item = rows.items[at], account = accounts[item];
      const float relevance = rows.relevance[at];
      const double left = items.exposure[account] - amount(own_place->rank, relevance);
      best.push_back(
          {helped(item, relevance, has_items ? items.subsidy(account, left, served) : 0.0), own_place->place});
    }
    // It adds in the same order as worth, so that rounding cannot lift a worth above its limit. A sum over groups
    // is rounded in other ways, so its limit has room for that.
    const double most = items.most + (has_groups ? members.most * groups.most * (1 + 1e-12) : 0.0);
    const auto limit = [=](float relevance) {
      const double subsidised = of_impact ? relevance * (1 + factor * most) : relevance + factor * most;
      if constexpr (has_offsets) return subsidised + largest_offset;
      return subsidised;
    };
    best_candidates(rows, user, k, room.held, n_held, worth, limit, best, places);
    if constexpr (has_groups) for_each_gift(rows, user, own, [&](int32_t group, double) { room.given[group] = 0; });
    if (order > 0) sort_by_subsidy(rows.relevance + rows.indptr[user], best, places);
  }

  // Puts a list, whose choices stand in `best`, in the order of relevance plus its part of what is added to it.
  void sort_by_subsidy(const float* relevance, std::vector<Choice>& best, int32_t* places) const {
    for (Choice& choice : best) {
      const double own = relevance[choice.place];
      choice.worth = own + order * (choice.worth - own);
    }
    std::sort(best.begin(), best.end());
    for (size_t rank = 0; rank < best.size(); ++rank) places[rank] = best[rank].place;
  }

  void book(const CandidateRows& rows, int64_t user, const int32_t* places, double sign, double served) const {
    const int64_t first = rows.indptr[user];
    for (int64_t rank = 0; rank < k && places[rank] >= 0; ++rank) {
      const int64_t at = first + places[rank];
      const int32_t account = accounts[rows.items[at]];
      items.book(account, sign * amount(rank, rows.relevance[at]));
      if (item_prices) item_prices[account] = items.subsidy(account, items.exposure[account], served);
    }
    if (!n_groups) return;
    for_each_gift(rows, user, places, [&](int32_t group, double given) {
      groups.book(group, sign * given);
      if (group_prices) group_prices[group] = groups.subsidy(group, groups.exposure[group], served);
    });
  }

  using Respond = void (Market::*)(const CandidateRows&, int64_t, const int32_t*, double, const Workspace&,
                                   std::vector<Choice>&, int32_t*) const;

  template <bool has_items, bool has_groups, bool has_prices>
  Respond by_offsets() const {
    return offsets ? &Market::respond<has_items, has_groups, true, has_prices>
                   : &Market::respond<has_items, has_groups, false, has_prices>;
  }

  template <bool has_prices>
  Respond by_accounts() const {
    if (helps_items) return n_groups ? by_offsets<true, true, has_prices>() : by_offsets<true, false, has_prices>();
    return n_groups ? by_offsets<false, true, has_prices>() : by_offsets<false, false, has_prices>();
  }

  // Works out the subsidies of all accounts at once, so that a candidate's is looked up.
  void price(int64_t n_accounts, double served, std::vector<double>& item_room, std::vector<double>& group_room) {
    item_room.resize(static_cast<size_t>(n_accounts));
    group_room.resize(static_cast<size_t>(n_groups));
    for (int64_t a = 0; a < n_accounts; ++a)
      item_room[a] = items.subsidy(static_cast<int32_t>(a), items.exposure[a], served);
    for (int64_t g = 0; g < n_groups; ++g)
      group_room[g] = groups.subsidy(static_cast<int32_t>(g), groups.exposure[g], served);
    item_prices = item_room.data();
    group_prices = group_room.data();
  }

  // Lets users choose again, `batch` of them at a time against the same exposure. `served` is how many users
  // the exposure is of; where users come for the first time it grows by them. Returns how many lists changed.
  int64_t play(const CandidateRows& rows, const int32_t* turns, int64_t n_turns, int64_t batch, bool newcomers,
               double served, int32_t* lists, int threads) const {
    constexpr int64_t kWorthAThread = 64;
    batch = std::min(batch, n_turns);
    std::vector<int32_t> responses(static_cast<size_t>(batch * k));
    std::vector<std::vector<Choice>> best(static_cast<size_t>(batch));
    for (auto& choices : best) choices.reserve(static_cast<size_t>(k));
    const Scratch scratch(Workspace::bytes(*this));
    const Workspace alone(scratch, *this);
    const Respond choose = item_prices ? by_accounts<true>() : by_accounts<false>();
    int64_t changed = 0;
    for (int64_t start = 0; start < n_turns; start += batch) {
      const int64_t size = std::min(batch, n_turns - start);
      const double users_served = newcomers ? served + static_cast<double>(start) : served;
      const auto turn = [&](int64_t i, const Workspace& room) {
        const int64_t user = turns[start + i];
        (this->*choose)(rows, user, lists + user * k, std::max(users_served, 1.0), room, best[i],
                        responses.data() + i * k);
      };
      if (size < kWorthAThread) {
        for (int64_t i = 0; i < size; ++i) turn(i, alone);
      } else {
        for_each_block((size + kWorthAThread - 1) / kWorthAThread, threads, Workspace::bytes(*this),
                       [&](int64_t block, const Scratch& own) {
                         const Workspace room(own, *this);
                         const int64_t end = std::min(size, (block + 1) * kWorthAThread);
                         for (int64_t i = block * kWorthAThread; i < end; ++i) turn(i, room);
                       });
      }
      for (int64_t i = 0; i < size; ++i) {
        const int64_t user = turns[start + i];
        int32_t* list = lists + user * k;
        const int32_t* next = responses.data() + i * k;
        if (std::equal(list, list + k, next)) continue;
        ++changed;
        book(rows, user, list, -1.0, std::max(users_served, 1.0));
        book(rows, user, next, 1.0, std::max(users_served, 1.0));
        std::copy(next, next + k, list);
      }
    }
    return changed;
  }
};

}  // namespace limelight
