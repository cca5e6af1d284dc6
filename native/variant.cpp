// The kernels, compiled once per instruction set.
#include "kernels.hpp"
#include "row_gradient.hpp"
#include "row_solve.hpp"
#include "sums.hpp"
#include "top_k.hpp"

#define LIMELIGHT_TEXT_(name) #name
#define LIMELIGHT_TEXT(name) LIMELIGHT_TEXT_(name)

namespace limelight::LIMELIGHT_VARIANT {

static int64_t scratch_floats(int64_t width) {
  const int64_t solve = solve_scratch(width);
  const int64_t gradient = gradient_scratch(width);
  const int64_t sum = gramian_scratch(width);
  const int64_t most = solve > gradient ? solve : gradient;
  return most > sum ? most : sum;
}

extern const Kernels kernels;
const Kernels kernels = {
    LIMELIGHT_TEXT(LIMELIGHT_VARIANT), kLanes,       pack_columns,   pack_items,  rotate,    gramian,
    column_sums,                       shift_rows,   solve_rows,     gradient_step, curvature, squared_error,
    top_k,                             scratch_floats, top_k_bytes,
};

}  // namespace limelight::LIMELIGHT_VARIANT
