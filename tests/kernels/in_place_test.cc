#include <algorithm>
#include <array>
#include <vector>

#include "kernels/every_table.h"
#include "kernels/numbers.h"

namespace headrace {
namespace {

using test::Inputs;
using test::Numbers;

/// Elementwise kernels may write over any of their inputs. 100 numbers: whole vectors and a rest.
class InPlace : public test::EveryTable {
 protected:
  static constexpr size_t kCount = 100;

  /// `call(a, b, out)` gives the same numbers when `out` is `a`, and when it is `b`.
  template <class Call>
  void expect_same(const Call& call) {
    Numbers numbers(21);
    const std::vector<float> a = test::many_numbers(numbers, Inputs::kOrdinary, kCount);
    const std::vector<float> b = test::many_numbers(numbers, Inputs::kOrdinary, kCount);
    std::vector<float> expected(kCount);
    call(a, b, expected);
    std::vector<float> over_a = a;
    call(over_a, b, over_a);
    EXPECT_EQ(over_a, expected);
    std::vector<float> over_b = b;
    call(a, over_b, over_b);
    EXPECT_EQ(over_b, expected);
  }
};

TEST_P(InPlace, Norms) {
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().rms_norm(a, b, 1e-5F, out); });
  expect_same([&](const auto& a, const auto&, auto& out) { kernels().l2_normalize(a, 1e-6F, 2.0F, out); });
}

TEST_P(InPlace, Activations) {
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().swiglu(a, b, out); });
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().situ(a, b, 4.0F, 25.0F, out); });
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().situ(a, b, 4.0F, 0.0F, out); });
  expect_same([&](const auto& a, const auto&, auto& out) { kernels().sigmoid(a, out); });
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().sigmoid_multiply(a, b, out); });
  expect_same([&](const auto& a, const auto&, auto& out) { kernels().softmax(a, 0.5F, out); });
}

TEST_P(InPlace, Decays) {
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().decay_unbounded(a, b, 1.5F, out); });
  expect_same([&](const auto& a, const auto& b, auto& out) { kernels().decay_bounded(a, b, 1.5F, -5.0F, out); });
}

TEST_P(InPlace, ShortConvOverItsNewestRow) {
  expect_same([&](const auto& a, const auto& b, auto& out) {
    const std::array<const float*, 2> window = {b.data(), a.data()};
    const std::vector<float> taps(2 * kCount, 0.25F);
    kernels().short_conv(window, MatrixView<const float>(taps.data(), 2, kCount), out);
  });
}

INSTANTIATE_TEST_SUITE_P(Tables, InPlace, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
