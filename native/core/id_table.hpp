// Distinct ids and their codes: 0, 1, 2, ... in the order in which they are first met.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace limelight {

// A hash table of byte strings with open addressing. It keeps every distinct string once.
class IdTable {
 public:
  // Writes the code of each string, the bytes from offsets[i] to offsets[i + 1].
  void encode(const int64_t* offsets, int64_t n, const uint8_t* bytes, int64_t n_bytes, int32_t* codes) {
    constexpr int64_t kAhead = 16;  // slots asked of the memory before the first of them is needed
    Id ids[kAhead];
    for (int64_t first = 0; first < n; first += kAhead) {
      const int64_t count = std::min(kAhead, n - first);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t begin = offsets[first + k], end = offsets[first + k + 1];
        if (begin < 0 || end < begin || end > n_bytes) throw std::invalid_argument("offsets must ascend in the bytes");
        if (end - begin > INT32_MAX) throw std::length_error("an id is longer than 2^31 bytes");
        ids[k] = Id(bytes + begin, static_cast<int32_t>(end - begin), n_bytes - begin);
        __builtin_prefetch(&slots_[home(ids[k].key)]);
      }
      for (int64_t k = 0; k < count; ++k) codes[first + k] = code_of(ids[k]);
    }
  }

  // The codes of all strings, in ascending order of their bytes.
  std::vector<int32_t> ascending() const {
    std::vector<Prefixed> all(offsets_.size() - 1);
    for (size_t code = 0; code < all.size(); ++code) {
      const int64_t begin = offsets_[code], size = offsets_[code + 1] - begin;
      const uint64_t word = load(bytes_.data() + begin, size, static_cast<int64_t>(bytes_.size()) - begin);
      // The first byte counts most, so that most comparisons end without a look at the strings.
      all[code] = {__builtin_bswap64(word), static_cast<int32_t>(code)};
    }
    std::sort(all.begin(), all.end(), [&](const Prefixed& a, const Prefixed& b) {
      return a.prefix != b.prefix ? a.prefix < b.prefix : string(a.code) < string(b.code);
    });
    std::vector<int32_t> codes(all.size());
    std::transform(all.begin(), all.end(), codes.begin(), [](const Prefixed& id) { return id.code; });
    return codes;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  static constexpr int32_t kWord = 8;

  struct Id {
    const uint8_t* bytes;
    int32_t size;
    uint64_t key;  // of a short id its bytes, of a long one their hash

    Id() = default;
    Id(const uint8_t* at, int32_t length, int64_t readable) : bytes(at), size(length), key(load(at, length, readable)) {
      for (int32_t i = kWord; i < size; i += kWord) key = mix(key) ^ load(at + i, size - i, readable - i);
    }
  };

  struct Slot {
    uint64_t key = 0;
    int32_t size = 0;
    int32_t code = -1;
  };

  struct Prefixed {
    uint64_t prefix;
    int32_t code;
  };

  std::string_view string(size_t code) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offsets_[code],
            static_cast<size_t>(offsets_[code + 1] - offsets_[code])};
  }

  // The first bytes of a string as a number; what follows them is cut off, or not read where it is not ours.
  static uint64_t load(const uint8_t* at, int64_t size, int64_t readable) {
    uint64_t word = 0;
    if (readable < kWord) {
      std::copy(at, at + size, reinterpret_cast<uint8_t*>(&word));
      return word;
    }
    std::memcpy(&word, at, kWord);
    return size >= kWord ? word : word & ((uint64_t{1} << 8 * size) - 1);
  }

  // Folds the 128-bit product, so that every bit of the key moves every bit of the result.
  static uint64_t mix(uint64_t key) {
    const unsigned __int128 product = static_cast<unsigned __int128>(key ^ 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  size_t home(uint64_t key) const { return mix(key) & (slots_.size() - 1); }

  bool holds(const Slot& slot, const Id& id) const {
    return slot.key == id.key && slot.size == id.size &&
           (id.size <= kWord || std::memcmp(bytes_.data() + offsets_[slot.code], id.bytes, id.size) == 0);
  }

  int32_t code_of(const Id& id) {
    size_t at = home(id.key);
    for (; slots_[at].code >= 0; at = (at + 1) & (slots_.size() - 1))
      if (holds(slots_[at], id)) return slots_[at].code;
    if (offsets_.size() > INT32_MAX) throw std::length_error("more distinct ids than 2^31");
    const int32_t code = static_cast<int32_t>(offsets_.size()) - 1;
    slots_[at] = {id.key, id.size, code};
    bytes_.insert(bytes_.end(), id.bytes, id.bytes + id.size);
    offsets_.push_back(static_cast<int64_t>(bytes_.size()));
    if (2 * offsets_.size() > slots_.size()) grow();
    return code;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.code < 0) continue;
      size_t at = home(slot.key);
      while (slots_[at].code >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1 << 10);
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> offsets_{0};
};

}  // namespace limelight
