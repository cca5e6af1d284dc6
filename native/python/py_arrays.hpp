// Arrays from and to Python, and the checks that every binding makes before a kernel trusts them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace limelight {

template <typename T>
using Array1 = nanobind::ndarray<T, nanobind::numpy, nanobind::shape<-1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using Array2 =
    nanobind::ndarray<T, nanobind::numpy, nanobind::shape<-1, -1>, nanobind::c_contig, nanobind::device::cpu>;

constexpr int64_t kNames = int64_t{1} << 31;  // rows or columns that numbers of 32 bits can name

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

template <typename T>
std::unique_ptr<T[]> new_array(size_t size) {
  return std::unique_ptr<T[]>(new T[size]);  // not make_unique, which would clear it first
}

// An array of NumPy's that frees what it was given.
template <typename T, typename... Shape>
auto owned(std::unique_ptr<T[]> data, Shape... shape) {
  nanobind::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<T, nanobind::numpy>(data.release(), {static_cast<size_t>(shape)...}, owner);
}

template <typename T, typename From>
auto owned_copy(const std::vector<From>& from) {
  auto data = new_array<T>(from.size());
  std::copy(from.begin(), from.end(), data.get());
  return owned(std::move(data), from.size());
}

struct Memory {
  uintptr_t begin, end;
};

template <typename Array>
Memory memory_of(const Array& array) {
  const auto begin = reinterpret_cast<uintptr_t>(array.data());
  return {begin, begin + array.nbytes()};
}

template <typename Array>
Memory memory_of(const std::optional<Array>& array) {
  return array ? memory_of(*array) : Memory{0, 0};
}

template <typename Array>
bool is_aligned(const Array& array) {
  return memory_of(array).begin % alignof(typename Array::Scalar) == 0;
}

template <typename Array>
bool is_aligned(const std::optional<Array>& array) {
  return !array || is_aligned(*array);
}

// A view into other bytes may have its numbers where the processor cannot load them at once.
template <typename... Arrays>
void require_aligned(const Arrays&... arrays) {
  require((is_aligned(arrays) && ...), "arrays must be aligned; copy them first");
}

// An array that is written may not be one whose checked numbers are still needed.
template <typename Written, typename... Others>
void require_apart(const Written& written, const Others&... others) {
  const Memory own = memory_of(written);
  const auto apart = [&](const Memory& other) {
    const bool is_empty = own.begin == own.end || other.begin == other.end;
    return is_empty || other.end <= own.begin || own.end <= other.begin;
  };
  require((apart(memory_of(others)) && ...), "a result may not share its memory with another array");
}

// NumPy lets a byte pass for a bool whatever its value; C++ does not.
inline void require_flags(const Array1<const bool>& flags) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(flags.data());
  require(std::all_of(bytes, bytes + flags.shape(0), [](uint8_t byte) { return byte <= 1; }),
          "flags must be True or False");
}

}  // namespace limelight
