// For each user the k candidates of the greatest worth: relevance, and what an item's subsidy adds to it.
//
// A user's candidates come in the order of their relevance, so a search ends as soon as the largest subsidy
// cannot lift the next one into the list, and a list in the order of places is a list by relevance.
#pragma once

#include <algorithm>
#include <cstdint>
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

// Writes the places of the k best candidates, ascending, then -1. worth(place, item, relevance) must not exceed
// limit(relevance), which falls with relevance.
template <typename Worth, typename Limit>
void best_candidates(const CandidateRows& rows, int64_t user, int64_t k, const Worth& worth, const Limit& limit,
                     std::vector<Choice>& best, int32_t* places) {
  const int64_t first = rows.indptr[user], count = rows.indptr[user + 1] - first;
  best.clear();  // a heap, the worst choice on top
  for (int64_t place = 0; place < count; ++place) {
    const float relevance = rows.relevance[first + place];
    const bool full = static_cast<int64_t>(best.size()) == k;
    if (full && limit(relevance) <= best.front().worth) break;
    const Choice choice{worth(place, rows.items[first + place], relevance), static_cast<int32_t>(place)};
    if (full) {
      if (!(choice < best.front())) continue;
      std::pop_heap(best.begin(), best.end());
      best.back() = choice;
    } else {
      best.push_back(choice);
    }
    std::push_heap(best.begin(), best.end());
  }
  std::sort(best.begin(), best.end(), [](const Choice& a, const Choice& b) { return a.place < b.place; });
  for (int64_t rank = 0; rank < k; ++rank)
    places[rank] = rank < static_cast<int64_t>(best.size()) ? best[rank].place : -1;
}

}  // namespace limelight
