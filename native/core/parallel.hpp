// Threads over blocks of rows, so that the numbers do not depend on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace limelight {

constexpr int64_t kBlock = 1024;  // rows whose partial sums are added as one

// Memory of one thread, aligned to cache lines.
class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : memory_(std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64)), std::free) {
    if (!memory_) throw std::bad_alloc();
  }
  float* floats() const { return static_cast<float*>(memory_.get()); }
  void* raw() const { return memory_.get(); }

 private:
  std::unique_ptr<void, decltype(&std::free)> memory_;
};

// Lets numbers too small for a normal float become 0 while it lives. Arithmetic on them is some fifty
// times slower, and factors that regularisation drives to nothing are full of them.
class FlushToZero {
 public:
#if defined(__SSE2__)
  FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlush = 0x8040;  // denormal results and denormal operands
  unsigned before_;
#endif
};

// Looks for a while whether a condition holds, and says so. Sleeping and being woken takes longer
// than many a block of work.
template <typename Condition>
bool soon(const Condition& condition) {
  constexpr int kLooks = 1 << 16;
  for (int looks = 0; looks < kLooks; ++looks)
    if (condition()) return true;
  return false;
}

// Calls body(block, scratch) once for every block; threads take the next block as they get free.
template <typename Body>
void for_each_block(int64_t n_blocks, int threads, int64_t scratch_bytes, const Body& body) {
  if (threads < 1) throw std::invalid_argument("the number of threads must be at least 1");
  if (n_blocks == 0) return;
  const int64_t wanted = threads < n_blocks ? threads : n_blocks;
  // All memory is taken before a thread starts: an allocation that fails must fail here.
  std::vector<Scratch> scratch;
  scratch.reserve(static_cast<size_t>(wanted));
  for (int64_t t = 0; t < wanted; ++t) scratch.emplace_back(scratch_bytes);
  std::atomic<int64_t> next{0}, finished{0};
  const auto work = [&](int64_t t) {
    {
      const FlushToZero flush;
      for (int64_t block; (block = next.fetch_add(1)) < n_blocks;) body(block, scratch[t]);
    }
    finished.fetch_add(1, std::memory_order_release);  // the last that a thread does with what is ours
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(wanted));
  try {
    for (int64_t t = 1; t < wanted; ++t) pool.emplace_back(work, t);
  } catch (const std::system_error&) {
    // The system has no more threads to give: those that run do all the work.
  }
  work(0);
  const int64_t started = static_cast<int64_t>(pool.size()) + 1;
  const bool done = soon([&] { return finished.load(std::memory_order_acquire) >= started; });
  for (std::thread& thread : pool) done ? thread.detach() : thread.join();
}

// Runs body(begin, end, scratch) over blocks of kBlock rows.
template <typename Body>
void for_each_row_block(int64_t n_rows, int threads, int64_t bytes, const Body& body) {
  for_each_block((n_rows + kBlock - 1) / kBlock, threads, bytes, [&](int64_t block, const Scratch& scratch) {
    body(block * kBlock, std::min(n_rows, (block + 1) * kBlock), scratch);
  });
}

// Lets threads add their blocks' sums one after the other, in the order of the blocks.
class Turnstile {
 public:
  template <typename Add>
  void pass(int64_t block, const Add& add) {
    const auto turn = [&] { return next_.load(std::memory_order_acquire) == block; };
    if (!soon(turn)) {
      std::unique_lock<std::mutex> lock(mutex_);
      turned_.wait(lock, turn);
    }
    add();
    {
      const std::scoped_lock lock(mutex_);
      next_.store(block + 1, std::memory_order_release);
    }
    turned_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turned_;
  std::atomic<int64_t> next_{0};
};

// The rows of a sparse matrix, cut into blocks of about equal work.
struct WorkBlocks {
  std::vector<int64_t> bounds;          // block b holds rows bounds[b] .. bounds[b + 1]
  std::vector<int64_t> heaviest_first;  // so that no thread is left with a heavy block at the end

  int64_t count() const { return static_cast<int64_t>(heaviest_first.size()); }

  // A block ends after 256 rows, or once it has 8k stored entries.
  WorkBlocks(const int64_t* indptr, int64_t n_rows) : bounds{0} {
    constexpr int64_t kRows = 256, kEntries = 1 << 13;
    for (int64_t i = 0; i < n_rows; ++i)
      if (i + 1 == n_rows || i + 1 - bounds.back() == kRows || indptr[i + 1] - indptr[bounds.back()] >= kEntries)
        bounds.push_back(i + 1);
    heaviest_first.resize(bounds.size() - 1);
    std::iota(heaviest_first.begin(), heaviest_first.end(), 0);
    const auto entries = [&](int64_t block) { return indptr[bounds[block + 1]] - indptr[bounds[block]]; };
    std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                     [&](int64_t a, int64_t b) { return entries(a) > entries(b); });
  }
};

}  // namespace limelight
