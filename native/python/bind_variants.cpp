// Bindings of the variants: which ones this processor can run, and which one is in use.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/active_variant.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace limelight {

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

namespace {

// The variants that this build has and this processor can run, the fastest first.
std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> found;
#if defined(LIMELIGHT_HAS_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    found.push_back(&avx512::kernels);
#endif
#if defined(LIMELIGHT_HAS_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2::kernels);
#endif
  found.push_back(&baseline::kernels);
  return found;
}

std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
  return names;
}

void use_variant(const std::string& name) {
  for (const Kernels* kernels : runnable_kernels())
    if (name == kernels->name) {
      active_variant = kernels;
      return;
    }
  throw std::invalid_argument("this processor cannot run the kernel variant: " + name);
}

}  // namespace

const Kernels* active_variant = nullptr;

void bind_variants(nb::module_& m) {
  active_variant = runnable_kernels().front();
  m.def("variants", &variants, "The variants this processor can run, the fastest first.");
  m.def("variant", [] { return std::string(active_variant->name); }, "The variant in use.");
  m.def("use_variant", &use_variant, "name"_a, "Choose the variant that every kernel uses from now on.");
}

}  // namespace limelight
