// For each user the k candidates of the greatest worth: relevance, and what an item's subsidy adds to it.
//
// A user's candidates come in the order of their relevance, so a search ends as soon as the largest subsidy
// cannot lift the next one into the list, and a list in the order of places is a list by relevance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace limelight {

// Candidates of some users: those of user i stand at indptr[i] .. indptr[i + 1], relevance descending.
struct CandidateRows {
  const int64_t* indptr;
  const int32_t* items;
  const float* relevance;
  int64_t n_users;
};

struct Choice {
  double worth;
  int32_t place;  // among the user's candidates

  // Equal worth goes to the more relevant candidate, which stands first.
  bool operator<(const Choice& other) const {
    return worth > other.worth || (worth == other.worth && place < other.place);
  }
};

// A place of a user's present list, and where in the list it stands.
struct Held {
  int32_t place, rank;
  bool operator<(const Held& other) const { return place < other.place; }
};

// Writes the places of the k best candidates, ascending, then -1. worth(item, relevance) must not exceed
// limit(relevance), which falls with relevance. `best` begins with the user's present list, the n_held places of
// which ascend in `held`: most other candidates are worth less than all of it, so they are passed over at once.
template <typename Worth, typename Limit>
void best_candidates(const CandidateRows& rows, int64_t user, int64_t k, const Held* held, int64_t n_held,
                     const Worth& worth, const Limit& limit, std::vector<Choice>& best, int32_t* places) {
  const int64_t first = rows.indptr[user], count = rows.indptr[user + 1] - first;
  const int32_t* items = rows.items + first;
  const float* relevance = rows.relevance + first;
  constexpr Choice kNone{-std::numeric_limits<double>::infinity(), INT32_MAX};
  std::make_heap(best.begin(), best.end());  // the worst choice on top
  // What a candidate must be better than.
  const auto bar_now = [&] { return static_cast<int64_t>(best.size()) == k ? best.front() : kNone; };
  Choice bar = bar_now();
  // Looks at the candidates of some places; false if none after them can enter the list, either.
  const auto look = [&](int64_t place, int64_t end) {
    for (; place < end; ++place) {
      const int32_t at = static_cast<int32_t>(place);
      if (!(Choice{limit(relevance[place]), at} < bar)) return false;
      const Choice choice{worth(items[place], relevance[place]), at};
      if (!(choice < bar)) continue;
      if (static_cast<int64_t>(best.size()) == k) {
        std::pop_heap(best.begin(), best.end());
        best.back() = choice;
      } else {
        best.push_back(choice);
      }
      std::push_heap(best.begin(), best.end());
      bar = bar_now();
    }
    return true;
  };
  int64_t place = 0;
  bool goes_on = true;
  for (int64_t n = 0; n < n_held && goes_on; ++n) {
    goes_on = look(place, held[n].place);
    place = held[n].place + 1;
  }
  if (goes_on) look(place, count);
  std::sort(best.begin(), best.end(), [](const Choice& a, const Choice& b) { return a.place < b.place; });
  for (int64_t rank = 0; rank < k; ++rank)
    places[rank] = rank < static_cast<int64_t>(best.size()) ? best[rank].place : -1;
}

}  // namespace limelight
