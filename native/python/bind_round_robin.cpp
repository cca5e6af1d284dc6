// Bindings for re-rankers that hand out copies in turns.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core/round_robin.hpp"
#include "python/py_arrays.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

// A checked game. It shares the arrays that it was made from, so that Python can fill windows.
class RoundRobin {
 public:
  RoundRobin(const Array1<const int32_t>& order, const Array1<int32_t>& stock, const Array2<int32_t>& ids,
             const Array2<float>& scores, const Array1<int32_t>& next, const Array1<int32_t>& stop,
             const Array1<const bool>& complete, const Array2<int32_t>& picks, const Array2<float>& pick_scores)
      : order_(order), stock_(stock), ids_(ids), scores_(scores), next_(next), stop_(stop), complete_(complete),
        picks_(picks), pick_scores_(pick_scores) {
    require_aligned(order, stock, ids, scores, next, stop, picks, pick_scores);
    require_apart(stock, order, ids, scores, next, stop, complete, picks, pick_scores);
    require_apart(ids, order, scores, next, stop, complete, picks, pick_scores);
    require_apart(scores, order, next, stop, complete, picks, pick_scores);
    require_apart(next, order, stop, complete, picks, pick_scores);
    require_apart(stop, order, complete, picks, pick_scores);
    require_apart(picks, order, complete, pick_scores);
    require_apart(pick_scores, order, complete);
    const size_t n_users = ids.shape(0);
    require(scores.shape(0) == n_users && scores.shape(1) == ids.shape(1), "ids and scores must have one shape");
    require(next.shape(0) == n_users && stop.shape(0) == n_users && complete.shape(0) == n_users,
            "next, stop and complete must have one entry a user");
    require(picks.shape(0) == n_users && pick_scores.shape(0) == n_users && pick_scores.shape(1) == picks.shape(1),
            "picks and their scores must have one row a user");
    for (size_t i = 0; i < order.shape(0); ++i)
      require(order.data()[i] >= 0 && static_cast<size_t>(order.data()[i]) < n_users, "order must hold users");
  }

  int64_t play(int64_t turn, int64_t last) {
    const RoundRobinGame game = checked(turn, last);
    nb::gil_scoped_release unlocked;
    return game.play(turn, last);
  }

  auto nearly_empty(int64_t turn, int64_t last, int64_t least, int64_t most) {
    const RoundRobinGame game = checked(turn, last);
    std::vector<int32_t> found;
    {
      nb::gil_scoped_release unlocked;
      found = game.nearly_empty(turn, last, least, most);
    }
    return owned_copy<int64_t>(found);
  }

 private:
  RoundRobinGame checked(int64_t turn, int64_t last) {
    const int64_t n_turns = order_.shape(0), k = picks_.shape(1), width = ids_.shape(1);
    require_flags(complete_);
    require(turn >= 0 && turn <= last && last <= n_turns * k, "turns must lie between 0 and k a user");
    for (size_t user = 0; user < next_.shape(0); ++user)
      require(0 <= next_.data()[user] && next_.data()[user] <= stop_.data()[user] && stop_.data()[user] <= width,
              "next and stop must lie in the window");
    const Windows windows{ids_.data(), scores_.data(), width, next_.data(), stop_.data(), complete_.data()};
    return {order_.data(), n_turns,       stock_.data(),       static_cast<int64_t>(stock_.shape(0)),
            windows,       picks_.data(), pick_scores_.data(), k};
  }

  Array1<const int32_t> order_;
  Array1<int32_t> stock_;
  Array2<int32_t> ids_;
  Array2<float> scores_;
  Array1<int32_t> next_, stop_;
  Array1<const bool> complete_;
  Array2<int32_t> picks_;
  Array2<float> pick_scores_;
};

}  // namespace

void bind_round_robin(nb::module_& m) {
  nb::class_<RoundRobin>(m, "RoundRobin", "Users who take items in turns, as long as there are copies.")
      .def(nb::init<const Array1<const int32_t>&, const Array1<int32_t>&, const Array2<int32_t>&, const Array2<float>&,
                    const Array1<int32_t>&, const Array1<int32_t>&, const Array1<const bool>&, const Array2<int32_t>&,
                    const Array2<float>&>(),
           "order"_a.noconvert(), "stock"_a.noconvert(), nb::kw_only(), "ids"_a.noconvert(), "scores"_a.noconvert(),
           "next"_a.noconvert(), "stop"_a.noconvert(), "complete"_a.noconvert(), "picks"_a.noconvert(),
           "pick_scores"_a.noconvert())
      .def("play", &RoundRobin::play, "turn"_a, "last"_a,
           "Play from one turn on; the first turn not played, which is the last or has an empty window.")
      .def("nearly_empty", &RoundRobin::nearly_empty, "turn"_a, "last"_a, "least"_a, "most"_a,
           "Drop what cannot be taken from windows; users with fewer than `least` items left, by turn.");
}

}  // namespace limelight
