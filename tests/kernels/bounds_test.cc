#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/every_table.h"
#include "kernels/guarded_memory.h"
#include "kernels/numbers.h"
#include "kernels/weight_samples.h"

namespace headrace {
namespace {

using test::GuardedRows;
using test::Inputs;
using test::Numbers;

/// Every view of these tests ends at an unreadable page, each row of it: the program ends where a kernel reads or
/// writes past one.
class Bounds : public test::EveryTable {
 protected:
  void fill(std::span<float> values) {
    for (float& value : values) value = test::number(numbers_, Inputs::kOrdinary);
  }
  void fill(MatrixView<float> values) {
    for (size_t r = 0; r < values.rows(); ++r) fill(values.row(r));
  }

  Numbers numbers_{7};
};

TEST_P(Bounds, ProductsTouchNothingBesideTheRows) {
  for (const Format format : test::kAllFormats) {
    const size_t step = test::column_multiple(format);
    for (const size_t width : {1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 64, 65, 550}) {
      const size_t cols = width * step;
      const size_t rows = width == 17 ? 67 : 9;
      const GuardedRows data(rows, format_row_bytes(format, cols));
      const bool has_scales = format_scale_row_bytes(format, cols) > 0;
      const GuardedRows scales(rows, std::max<size_t>(format_scale_row_bytes(format, cols), 1));
      for (size_t r = 0; r < rows; ++r) {
        test::fill_weight_row(numbers_, Inputs::kOrdinary, format, cols, data.row(r),
                              has_scales ? scales.row(r) : nullptr);
      }
      const WeightView weights = {.format = format,
                                  .rows = rows,
                                  .cols = cols,
                                  .data = data.row(0),
                                  .row_bytes = data.pitch_bytes(),
                                  .scales = has_scales ? scales.row(0) : nullptr,
                                  .scale_row_bytes = scales.pitch_bytes()};
      const auto index = static_cast<size_t>(format);
      for (const size_t tokens : {1, 2, 3, 4, 5, 8, 9, 33}) {
        const GuardedRows wide(tokens, cols * sizeof(float));
        const GuardedRows narrow(tokens, rows * sizeof(float));
        fill(wide.floats());
        kernels().matmul[index](weights, wide.floats(), narrow.floats());
        kernels().matmul_transposed[index](weights, narrow.floats(), wide.floats());
        kernels().decode_row[index](weights, rows - 1, wide.floats().row(0));
      }
    }
  }
}

TEST_P(Bounds, VectorKernelsTouchNothingBesideTheirViews) {
  for (size_t length = 1; length <= 70; ++length) {
    const GuardedRows a(1, length * sizeof(float));
    const GuardedRows b(1, length * sizeof(float));
    const GuardedRows out(1, length * sizeof(float));
    fill(a.float_row());
    fill(b.float_row());
    kernels().rms_norm(a.float_row(), b.float_row(), 1e-5F, out.float_row());
    kernels().l2_normalize(a.float_row(), 1e-6F, 1.0F, out.float_row());
    kernels().swiglu(a.float_row(), b.float_row(), out.float_row());
    kernels().situ(a.float_row(), b.float_row(), 4.0F, 25.0F, out.float_row());
    kernels().situ(a.float_row(), b.float_row(), 4.0F, 0.0F, out.float_row());
    kernels().sigmoid(a.float_row(), out.float_row());
    kernels().sigmoid_multiply(a.float_row(), b.float_row(), out.float_row());
    kernels().softmax(a.float_row(), 1.0F, out.float_row());
    kernels().add(a.float_row(), out.float_row());
    kernels().add_scaled(0.5F, a.float_row(), out.float_row());
    kernels().decay_unbounded(a.float_row(), b.float_row(), 1.0F, out.float_row());
    kernels().decay_bounded(a.float_row(), b.float_row(), 1.0F, -5.0F, out.float_row());
    EXPECT_TRUE(std::isfinite(kernels().residual_score(a.float_row(), b.float_row(), 1e-5F)));
    EXPECT_TRUE(kernels().all_finite(out.float_row()));
  }
}

TEST_P(Bounds, ShortConvTouchesNothingBesideItsViews) {
  for (size_t channels = 1; channels <= 70; ++channels) {
    const GuardedRows window(4, channels * sizeof(float));
    const GuardedRows taps(4, channels * sizeof(float));
    const GuardedRows out(1, channels * sizeof(float));
    fill(window.floats());
    fill(taps.floats());
    std::array<const float*, 4> rows;
    for (size_t j = 0; j < 4; ++j) rows[j] = window.floats().row_data(j);
    kernels().short_conv(rows, taps.floats(), out.float_row());
    EXPECT_TRUE(kernels().all_finite(out.float_row()));
  }
}

TEST_P(Bounds, DeltaRuleTouchesNothingBesideItsViews) {
  const size_t keys = 5;
  for (size_t values = 1; values <= 140; ++values) {
    const GuardedRows state(keys, values * sizeof(float));
    const GuardedRows per_key(3, keys * sizeof(float));
    const GuardedRows v(1, values * sizeof(float));
    const GuardedRows out(1, values * sizeof(float));
    fill(state.floats());
    fill(per_key.floats());
    fill(v.float_row());
    const MatrixView<float> rows = per_key.floats();
    kernels().delta_rule({.q = rows.row(0), .k = rows.row(1), .v = v.float_row(), .decay = rows.row(2), .beta = 0.5F},
                         state.floats(), out.float_row());
    EXPECT_TRUE(kernels().all_finite(out.float_row()));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Bounds, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
