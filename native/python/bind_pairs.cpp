// Bindings for reading data: ids to codes, pairs to rows, and rows of which some pairs are kept.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cmath>

#include "core/csr.hpp"
#include "core/id_table.hpp"
#include "core/pairs.hpp"
#include "python/py_arrays.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace {

void encode(IdTable& table, const Array1<const int64_t>& offsets, const Array1<const uint8_t>& bytes,
            const Array1<int32_t>& codes) {
  require_aligned(offsets, codes);
  require_apart(codes, offsets, bytes);
  require(offsets.shape(0) == codes.shape(0) + 1, "offsets must have one entry more than codes");
  nb::gil_scoped_release unlocked;
  table.encode(offsets.data(), static_cast<int64_t>(codes.shape(0)), bytes.data(), static_cast<int64_t>(bytes.shape(0)),
               codes.data());
}

auto ids(const IdTable& table) {
  return std::make_pair(owned_copy<int64_t>(table.offsets()), owned_copy<uint8_t>(table.bytes()));
}

template <typename Time>
int64_t group_pairs_of(const Array1<const int32_t>& users, const Array1<const int32_t>& items,
                       const std::optional<Array1<const Time>>& times, int64_t n_items, const Array1<int64_t>& indptr,
                       const Array1<int32_t>& indices, const Array1<int32_t>& order, int threads) {
  require_aligned(users, items, times, indptr, indices, order);
  require_apart(indptr, users, items, times, indices, order);
  require_apart(indices, users, items, times, order);
  require_apart(order, users, items, times);
  const size_t size = users.shape(0);
  require(indptr.shape(0) > 0, "indptr must not be empty");
  require(n_items >= 0 && n_items <= kNames, "the number of items must lie between 0 and 2^31");
  require(items.shape(0) == size && indices.shape(0) == size && order.shape(0) == size &&
              (!times || times->shape(0) == size),
          "users, items, times, indices and order must have one entry a pair");
  require(!times || std::all_of(times->data(), times->data() + size,
                                [](Time time) { return !std::isnan(static_cast<double>(time)); }),
          "times must be numbers");
  nb::gil_scoped_release unlocked;
  return group_pairs({users.data(), items.data(), static_cast<int64_t>(size)}, times ? times->data() : nullptr,
                     static_cast<int64_t>(indptr.shape(0)) - 1, n_items, {indptr.data(), indices.data(), order.data()},
                     threads);
}

template <typename Time>
void def_group_pairs(nb::module_& m) {
  m.def("group_pairs", &group_pairs_of<Time>, "users"_a.noconvert(), "items"_a.noconvert(),
        "times"_a.noconvert().none(), nb::kw_only(), "n_items"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "order"_a.noconvert(), "threads"_a,
        "Rows of ascending, distinct items, and their order in time and file; how many entries are filled.");
}

// What the filters read, checked, so that wrong arrays end in an exception.
OrderedRows checked_rows(const Array1<const int64_t>& indptr, const Array1<const int32_t>& indices, size_t n_users,
                         size_t n_items) {
  require(indptr.shape(0) == n_users + 1, "indptr must have one entry more than there are users");
  check_csr(indptr.data(), static_cast<int64_t>(n_users), indices.data(), static_cast<int64_t>(indices.shape(0)),
            static_cast<int64_t>(n_items));
  return {static_cast<int64_t>(n_users), indptr.data(), indices.data(), nullptr};
}

void count_pairs_of(const Array1<const int64_t>& indptr, const Array1<const int32_t>& indices,
                    const Array1<const bool>& keep_users, const Array1<const bool>& keep_items,
                    const Array1<int64_t>& by_user, const Array1<int64_t>& by_item) {
  require_aligned(indptr, indices, by_user, by_item);
  require_flags(keep_users);
  require_flags(keep_items);
  require_apart(by_user, indptr, indices, keep_users, keep_items, by_item);
  require_apart(by_item, indptr, indices, keep_users, keep_items);
  require(by_user.shape(0) == keep_users.shape(0) && by_item.shape(0) == keep_items.shape(0),
          "one count a user and one an item is needed");
  nb::gil_scoped_release unlocked;
  count_pairs(checked_rows(indptr, indices, keep_users.shape(0), keep_items.shape(0)), keep_users.data(),
              keep_items.data(), static_cast<int64_t>(keep_items.shape(0)), by_user.data(), by_item.data());
}

void keep_pairs_of(const Array1<const int64_t>& indptr, const Array1<const int32_t>& indices,
                   const std::optional<Array1<const int32_t>>& order, const Array1<const bool>& keep_users,
                   const Array1<const int32_t>& item_numbers, const Array1<int32_t>& out_indices,
                   const std::optional<Array1<int32_t>>& out_order) {
  require_aligned(indptr, indices, order, item_numbers, out_indices, out_order);
  require_flags(keep_users);
  require_apart(out_indices, indptr, indices, order, keep_users, item_numbers, out_order);
  require_apart(out_order, indptr, indices, order, keep_users, item_numbers);
  require(order.has_value() == out_order.has_value(), "order goes in and out, or neither");
  require((!order || order->shape(0) == indices.shape(0)) &&
              (!out_order || out_order->shape(0) == out_indices.shape(0)),
          "indices and order must be equally long");
  nb::gil_scoped_release unlocked;
  OrderedRows rows = checked_rows(indptr, indices, keep_users.shape(0), item_numbers.shape(0));
  if (order) rows.order = order->data();
  keep_pairs(rows, keep_users.data(), item_numbers.data(), out_indices.data(), out_order ? out_order->data() : nullptr,
             static_cast<int64_t>(out_indices.shape(0)));
}

void sort_rows_of(const Array1<const int64_t>& indptr, const Array1<float>& values, const Array1<int32_t>& order,
                  int threads) {
  require_aligned(indptr, values, order);
  require_apart(values, indptr, order);
  require_apart(order, indptr);
  require(indptr.shape(0) > 0, "indptr must not be empty");
  const int64_t n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
  const int64_t size = static_cast<int64_t>(values.shape(0));
  require(static_cast<int64_t>(order.shape(0)) == size, "values and order must be equally long");
  const int64_t* ends = indptr.data();
  require(ends[0] == 0 && ends[n_rows] == size && std::is_sorted(ends, ends + n_rows + 1),
          "indptr must rise from 0 to the number of values");
  require(size <= INT32_MAX, "a row must have fewer than 2^31 values");
  nb::gil_scoped_release unlocked;
  sort_rows(ends, n_rows, values.data(), order.data(), threads);
}

}  // namespace

void bind_pairs(nb::module_& m) {
  nb::class_<IdTable>(m, "IdTable", "Codes for distinct byte strings, 0, 1, 2, ... in the order of first meeting.")
      .def(nb::init<>())
      .def("encode", &encode, "offsets"_a.noconvert(), "bytes"_a.noconvert(), "codes"_a.noconvert(),
           "Write the code of each string bytes[offsets[i]:offsets[i + 1]], new ones included.")
      .def("ids", &ids, "The offsets and the bytes of all strings by code.")
      .def(
          "ascending", [](const IdTable& table) { return owned_copy<int32_t>(table.ascending()); },
          "The codes in ascending order of their strings.");

  def_group_pairs<int32_t>(m);
  def_group_pairs<int64_t>(m);
  def_group_pairs<double>(m);
  m.def("count_pairs", &count_pairs_of, "indptr"_a.noconvert(), "indices"_a.noconvert(), nb::kw_only(),
        "keep_users"_a.noconvert(), "keep_items"_a.noconvert(), "by_user"_a.noconvert(), "by_item"_a.noconvert(),
        "Count, by user and by item, the pairs of which both are kept.");
  m.def("keep_pairs", &keep_pairs_of, "indptr"_a.noconvert(), "indices"_a.noconvert(), "order"_a.noconvert().none(),
        nb::kw_only(), "keep_users"_a.noconvert(), "item_numbers"_a.noconvert(), "out_indices"_a.noconvert(),
        "out_order"_a.noconvert().none(), "Copy the pairs of kept users whose items have a new number from 0 up.");
  m.def("sort_rows", &sort_rows_of, "indptr"_a.noconvert(), "values"_a.noconvert(), nb::kw_only(),
        "order"_a.noconvert(), "threads"_a,
        "Sort each row from the largest value down, in place, and write where each value stood in its row.");
}

}  // namespace limelight
