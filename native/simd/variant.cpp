// The kernels, compiled once per instruction set.
#include "simd/first_pass.hpp"
#include "simd/gramian.hpp"
#include "simd/item_scores.hpp"
#include "simd/kernels.hpp"
#include "simd/normal_equations.hpp"
#include "simd/row_cg.hpp"
#include "simd/row_gradient.hpp"
#include "simd/row_solve.hpp"
#include "simd/sweep.hpp"
#include "simd/top_k.hpp"

#define LIMELIGHT_TEXT_(name) #name
#define LIMELIGHT_TEXT(name) LIMELIGHT_TEXT_(name)

namespace limelight::LIMELIGHT_VARIANT {

static int64_t scratch_floats(int64_t width) {
  int64_t most = 0;
  const int64_t needs[] = {solve_scratch(width), descent_scratch(width), gradient_scratch(width),
                           gramian_scratch(width)};
  for (int64_t needed : needs) most = needed > most ? needed : most;
  return most;
}

extern const Kernels kernels;
const Kernels kernels = {
    LIMELIGHT_TEXT(LIMELIGHT_VARIANT),
    kLanes,
    pack_columns,
    pack_items,
    rotate,
    gramian,
    column_sums,
    shift_rows,
    shift_and_rotate,
    solve_rows,
    descend_rows,
    add_rows,
    solve_sums,
    gradient_step,
    squared_error,
    top_k,
    quantise,
    quick_top_k,
    sweep_columns,
    sweep_block,
    item_sums,
    rank_sums,
    sums_floats,
    scratch_floats,
    top_k_bytes,
    quick_top_k_bytes,
    rank_sums_bytes,
};

}  // namespace limelight::LIMELIGHT_VARIANT
