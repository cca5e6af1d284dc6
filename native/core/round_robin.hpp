// Users take turns, and each takes the best item in stock that she does not hold yet.
//
// Nobody's whole ranking is kept: a user has a window, her next best items of those in stock when it was
// filled. Stock only falls, so what a window has passed never comes back, and the game is the same as with
// whole rankings as long as an empty window is filled again before its user's turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace limelight {

// One row a user; entries next .. stop of a row are left. A complete one holds every item in stock that
// its user may be given, so that nothing would come from filling it again.
struct Windows {
  int32_t* ids;
  float* scores;
  int64_t width;
  int32_t* next;
  int32_t* stop;
  const bool* complete;
};

struct RoundRobinGame {
  const int32_t* order;  // who takes the turns of a round
  int64_t n_turns;       // of a round
  int32_t* stock;        // copies left, by item
  int64_t n_items;
  Windows windows;
  int32_t* picks;  // users x k, one column a round
  float* pick_scores;
  int64_t k;

  bool can_take(int64_t user, int32_t item, int64_t held) const {
    if (item < 0 || item >= n_items) throw std::invalid_argument("an item of a window is out of range");
    const int32_t* own = picks + user * k;
    return stock[item] > 0 && std::find(own, own + held, item) == own + held;
  }

  // Plays from one turn up to the last; returns the first turn not played, whose user has an empty window.
  int64_t play(int64_t turn, int64_t last) const {
    for (; turn < last; ++turn) {
      const int64_t user = order[turn % n_turns], round = turn / n_turns;
      const int32_t* ids = windows.ids + user * windows.width;
      int32_t& at = windows.next[user];
      while (at < windows.stop[user] && !can_take(user, ids[at], round)) ++at;
      if (at == windows.stop[user]) return turn;
      picks[user * k + round] = ids[at];
      pick_scores[user * k + round] = windows.scores[user * windows.width + at];
      --stock[ids[at]];
      ++at;
    }
    return last;
  }

  // Drops what a user cannot take from her window; returns how many items are left.
  int64_t tidy(int64_t user, int64_t held) const {
    int32_t* ids = windows.ids + user * windows.width;
    float* scores = windows.scores + user * windows.width;
    int32_t kept = 0;
    for (int32_t at = windows.next[user]; at < windows.stop[user]; ++at) {
      if (!can_take(user, ids[at], held)) continue;
      ids[kept] = ids[at];
      scores[kept++] = scores[at];
    }
    windows.next[user] = 0;
    windows.stop[user] = kept;
    return kept;
  }

  // The users with fewer than `least` items left who should be filled up, those whose turn comes first, at most
  // `most`. Looks at one turn of every user who has one before the last.
  std::vector<int32_t> nearly_empty(int64_t turn, int64_t last, int64_t least, int64_t most) const {
    std::vector<int32_t> found;
    const int64_t end = std::min(last, turn + n_turns);
    for (; turn < end && static_cast<int64_t>(found.size()) < most; ++turn) {
      const int32_t user = order[turn % n_turns];
      if (!windows.complete[user] && tidy(user, turn / n_turns) < least) found.push_back(user);
    }
    return found;
  }
};

}  // namespace limelight
