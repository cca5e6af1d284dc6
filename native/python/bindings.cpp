// The module. Each file bind_*.cpp binds some of the kernels: it checks what comes from Python, releases the GIL and
// gives blocks of rows to threads.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace limelight {

void bind_factors(nb::module_& m);
void bind_items(nb::module_& m);
void bind_market(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_round_robin(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_top_k(nb::module_& m);
void bind_variants(nb::module_& m);

NB_MODULE(_kernels, m) {
  m.doc() = "limelight's kernels: arrays and plain numbers in, arrays out.";
  bind_variants(m);
  bind_factors(m);
  bind_rows(m);
  bind_top_k(m);
  bind_items(m);
  bind_market(m);
  bind_pairs(m);
  bind_round_robin(m);
}

}  // namespace limelight
