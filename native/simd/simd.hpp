// Vectors of floats in the compiler's own vector extension: one source for every instruction set.
//
// Everything in simd/ stands in a namespace of its own per variant. No file that variant.cpp includes
// uses templates of the standard library: they would be compiled with the variant's flags, merged by
// the linker with the baseline's copies, and could crash an older processor. For the same reason only
// headers of the C library are included, which tests/unit/native/test_includes.py checks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef LIMELIGHT_VARIANT
#error "LIMELIGHT_VARIANT names the namespace of the kernels; CMake sets it"
#endif

#define LIMELIGHT_INLINE inline __attribute__((always_inline))

namespace limelight::LIMELIGHT_VARIANT {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedVector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(alignof(float)), may_alias));

LIMELIGHT_INLINE Vector load(const float* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
LIMELIGHT_INLINE void store(float* to, Vector value) { *reinterpret_cast<UnalignedVector*>(to) = value; }
LIMELIGHT_INLINE Vector broadcast(float value) { return value - Vector{}; }

// One lane of a vector in all lanes. With a constant lane this is one shuffle.
LIMELIGHT_INLINE Vector broadcast_lane(Vector v, int lane) {
#if defined(__AVX512F__)
  return _mm512_permutexvar_ps(_mm512_set1_epi32(lane), v);
#elif defined(__AVX2__)
  return _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(lane));
#else
  return broadcast(v[lane]);
#endif
}

// 1 / sqrt(x), exact to the last bit or two.
LIMELIGHT_INLINE Vector inverse_sqrt(Vector x) {
#if defined(__AVX512F__)
  // An estimate good to 14 bits and one Newton step: half the latency of a root and a division.
  const Vector estimate = _mm512_rsqrt14_ps(x);
  return estimate * (1.5f - 0.5f * x * estimate * estimate);
#else
  Vector result;
  for (int i = 0; i < kLanes; ++i) result[i] = 1.0f / sqrtf(x[i]);
  return result;
#endif
}

// The lane numbers of three shuffles of two vectors a, b: (a0 a2 .. b0 b2 ..), (a1 a3 .. b1 b3 ..) and
// the two halves of (a0 b0 a1 b1 ..).
#if defined(__AVX512F__)
#define LIMELIGHT_EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define LIMELIGHT_ODDS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LIMELIGHT_ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LIMELIGHT_ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
#define LIMELIGHT_EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define LIMELIGHT_ODDS 1, 3, 5, 7, 9, 11, 13, 15
#define LIMELIGHT_ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define LIMELIGHT_ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LIMELIGHT_EVENS 0, 2, 4, 6
#define LIMELIGHT_ODDS 1, 3, 5, 7
#define LIMELIGHT_ZIP_LOW 0, 4, 1, 5
#define LIMELIGHT_ZIP_HIGH 2, 6, 3, 7
#endif

// The sums of neighbouring lanes: (a0+a1, a2+a3, .., b0+b1, b2+b3, ..).
LIMELIGHT_INLINE Vector add_neighbours(Vector a, Vector b) {
  return __builtin_shufflevector(a, b, LIMELIGHT_EVENS) + __builtin_shufflevector(a, b, LIMELIGHT_ODDS);
}

// Sums the lanes of each of kCount vectors (a power of two, at most kLanes); lane i holds the sum of v[i].
template <int kCount>
LIMELIGHT_INLINE Vector sum_each(Vector* v) {
  for (int left = kCount; left > 1; left /= 2)
    for (int i = 0; i < left / 2; ++i) v[i] = add_neighbours(v[2 * i], v[2 * i + 1]);
  for (int lanes = kLanes / kCount; lanes > 1; lanes /= 2) v[0] = add_neighbours(v[0], v[0]);
  return v[0];
}

// Transposes a square of kLanes vectors: log2(kLanes) perfect shuffles.
LIMELIGHT_INLINE void transpose(Vector* rows) {
  Vector shuffled[kLanes];
  for (int step = 1; step < kLanes; step *= 2) {
    for (int i = 0; i < kLanes / 2; ++i) {
      shuffled[2 * i] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], LIMELIGHT_ZIP_LOW);
      shuffled[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], LIMELIGHT_ZIP_HIGH);
    }
    for (int i = 0; i < kLanes; ++i) rows[i] = shuffled[i];
  }
}

LIMELIGHT_INLINE Vector larger(Vector a, Vector b) { return a > b ? a : b; }

constexpr unsigned kAllLanes = (1u << kLanes) - 1;

// Bit i is set where a[i] > b[i].
LIMELIGHT_INLINE unsigned greater_mask(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpgt_ps(a, b)));
#else
  unsigned mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= static_cast<unsigned>(a[i] > b[i]) << i;
  return mask;
#endif
}

LIMELIGHT_INLINE float largest_lane(Vector v) {
  for (int lanes = kLanes; lanes > 1; lanes /= 2)
    v = larger(__builtin_shufflevector(v, v, LIMELIGHT_EVENS), __builtin_shufflevector(v, v, LIMELIGHT_ODDS));
  return v[0];
}

using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

// Adds to each lane the products of four bytes with numbers of 16 bits: the first and third byte with the two halves
// of `evens`, the others with those of `odds`.
LIMELIGHT_INLINE Ints add_byte_products(Ints sum, const uint8_t* bytes, Ints evens, Ints odds) {
#if defined(__AVX512F__)
  const __m512i four = _mm512_loadu_si512(bytes), low = _mm512_set1_epi16(255);
  sum += reinterpret_cast<Ints>(_mm512_madd_epi16(_mm512_and_si512(four, low), reinterpret_cast<__m512i>(evens)));
  return sum + reinterpret_cast<Ints>(_mm512_madd_epi16(_mm512_srli_epi16(four, 8), reinterpret_cast<__m512i>(odds)));
#elif defined(__AVX2__)
  const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)), low = _mm256_set1_epi16(255);
  sum += reinterpret_cast<Ints>(_mm256_madd_epi16(_mm256_and_si256(four, low), reinterpret_cast<__m256i>(evens)));
  return sum + reinterpret_cast<Ints>(_mm256_madd_epi16(_mm256_srli_epi16(four, 8), reinterpret_cast<__m256i>(odds)));
#elif defined(__SSE2__)
  const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)), low = _mm_set1_epi16(255);
  sum += reinterpret_cast<Ints>(_mm_madd_epi16(_mm_and_si128(four, low), reinterpret_cast<__m128i>(evens)));
  return sum + reinterpret_cast<Ints>(_mm_madd_epi16(_mm_srli_epi16(four, 8), reinterpret_cast<__m128i>(odds)));
#else
  for (int i = 0; i < kLanes; ++i) {
    sum[i] += bytes[4 * i] * static_cast<int16_t>(evens[i]) + bytes[4 * i + 2] * (evens[i] >> 16);
    sum[i] += bytes[4 * i + 1] * static_cast<int16_t>(odds[i]) + bytes[4 * i + 3] * (odds[i] >> 16);
  }
  return sum;
#endif
}

LIMELIGHT_INLINE void prefetch_row(const float* row, int64_t width) {
  constexpr int64_t kLines = 2 * 64 / sizeof(float);  // the neighbour of a line comes along
  for (int64_t c = 0; c < width; c += kLines) __builtin_prefetch(row + c);
}

}  // namespace limelight::LIMELIGHT_VARIANT
