#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/float_environment.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/numbers.h"
#include "kernels/weight_samples.h"

namespace headrace {
namespace {

using test::Inputs;
using test::Numbers;

/// Calls `kernel` with every table but the scalar one, and with the scalar one, and compares the numbers that come
/// back.
class SameBits : public testing::Test {
 protected:
  void SetUp() override {
    for (const Kernels* kernels : usable_kernels()) {
      if (kernels != &kScalarKernels) others_.push_back(kernels);
    }
    if (others_.empty()) GTEST_SKIP() << "this processor runs the scalar table only";
  }

  void expect_same(const std::string& what, const std::function<std::vector<float>(const Kernels&)>& kernel) {
    const std::vector<float> expected = kernel(kScalarKernels);
    for (const Kernels* other : others_) {
      const std::vector<float> got = kernel(*other);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(test::same_number(got[i], expected[i]))
            << other->name << " " << what << " at " << i << ": " << got[i] << ", scalar " << expected[i];
      }
    }
  }

  FloatEnvironment environment_;
  std::vector<const Kernels*> others_;
};

struct Shape {
  size_t rows;
  size_t cols;
  size_t tokens;
};

std::string describe(Format format, Shape shape) {
  return std::string(format_name(format)) + " " + std::to_string(shape.rows) + "x" + std::to_string(shape.cols) +
         " tokens " + std::to_string(shape.tokens);
}

constexpr float kPoison = 12345.0F;

using Product = void(const WeightView&, MatrixView<const float>, MatrixView<float>);

/// A product with padded rows on both sides; the padding of the result comes back too, to show that it is untouched.
std::vector<float> product(Product* multiply, const WeightView& weights, const std::vector<float>& x, Shape shape,
                           size_t in_width, size_t out_width) {
  const size_t padding = 3;
  std::vector<float> y(shape.tokens * (out_width + padding), kPoison);
  multiply(weights, MatrixView<const float>(x.data(), shape.tokens, in_width, in_width + padding),
           MatrixView<float>(y.data(), shape.tokens, out_width, out_width + padding));
  return y;
}

class Products : public SameBits {
 protected:
  void compare(Format format, Shape shape, Inputs inputs, test::Placement placement) {
    const test::WeightSample weights(numbers_, inputs, format, shape.rows, shape.cols, placement);
    const auto index = static_cast<size_t>(format);
    const std::vector<float> x = test::many_numbers(numbers_, inputs, shape.tokens * (shape.cols + 3));
    expect_same("matmul " + describe(format, shape), [&](const Kernels& kernels) {
      return product(kernels.matmul[index], weights.view(), x, shape, shape.cols, shape.rows);
    });
    const std::vector<float> x_transposed = test::many_numbers(numbers_, inputs, shape.tokens * (shape.rows + 3));
    expect_same("matmul_transposed " + describe(format, shape), [&](const Kernels& kernels) {
      return product(kernels.matmul_transposed[index], weights.view(), x_transposed, shape, shape.rows, shape.cols);
    });
    expect_same("decode_row " + describe(format, shape), [&](const Kernels& kernels) {
      std::vector<float> out(shape.cols);
      kernels.decode_row[index](weights.view(), shape.rows - 1, out);
      return out;
    });
  }

  Numbers numbers_{1};
};

TEST_F(Products, AreTheSameForSmallShapesAtAllAlignmentsAndInputs) {
  for (const Format format : test::kAllFormats) {
    const size_t step = test::column_multiple(format);
    for (size_t cols = step; cols <= 70 * step; cols += step) {
      for (size_t rows = 1; rows <= 9; ++rows) {
        for (size_t tokens = 1; tokens <= 9; tokens += (rows % 3) + 1) {
          const Inputs inputs = test::kAllInputs[numbers_.below(5)];
          const test::Placement placement{.offset_bytes = numbers_.below(5), .padding_bytes = numbers_.below(9)};
          compare(format, {rows, cols, tokens}, inputs, placement);
          if (HasFatalFailure()) return;
        }
      }
      if (step > 1 && cols > 8 * step) break;
    }
  }
}

TEST_F(Products, AreTheSameForEveryCountOfTokensUpToForty) {
  for (const Format format : test::kAllFormats) {
    for (size_t tokens = 1; tokens <= 40; ++tokens) {
      compare(format, {17, 96, tokens}, test::kAllInputs[tokens % 5], {.offset_bytes = tokens % 3});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Products, AreTheSameForManyRows) {
  for (const Format format : test::kAllFormats) {
    for (const size_t rows : {63, 64, 65, 128, 131, 200}) {
      for (const size_t tokens : {1, 2, 5, 9}) {
        const Inputs inputs = test::kAllInputs[numbers_.below(5)];
        compare(format, {rows, 160, tokens}, inputs, {.offset_bytes = 1});
        if (format != Format::kMxfp4) compare(format, {rows, 77, tokens}, inputs, {.offset_bytes = 1});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Products, AreTheSameForWidthsOfRealModels) {
  for (const Format format : test::kAllFormats) {
    for (const size_t cols : {2304, 3584}) {
      for (const Inputs inputs : test::kAllInputs) {
        compare(format, {9, cols, 9}, inputs, {.offset_bytes = 1, .padding_bytes = 5});
        if (HasFatalFailure()) return;
      }
    }
  }
}

class Elementwise : public SameBits {
 protected:
  using Call = std::function<void(const Kernels&, std::span<const float>, std::span<const float>, std::span<float>)>;

  /// All lengths and inputs for a kernel of two vectors.
  void compare(const std::string& what, const Call& call) {
    Numbers numbers(2);
    std::vector<size_t> lengths = {2304, 3584};
    for (size_t length = 1; length <= 70; ++length) lengths.push_back(length);
    for (const size_t length : lengths) {
      for (const Inputs inputs : test::kAllInputs) {
        const std::vector<float> a = test::many_numbers(numbers, inputs, length);
        const std::vector<float> b = test::many_numbers(numbers, inputs, length);
        expect_same(what + " of " + std::to_string(length), [&](const Kernels& kernels) {
          std::vector<float> out(length + 1, kPoison);
          call(kernels, a, b, std::span<float>(out).first(length));
          return out;
        });
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_F(Elementwise, RmsNormIsTheSame) {
  compare("rms_norm", [](const Kernels& k, auto x, auto weight, auto out) { k.rms_norm(x, weight, 1e-5F, out); });
}

TEST_F(Elementwise, L2NormalizeIsTheSame) {
  compare("l2_normalize", [](const Kernels& k, auto x, auto, auto out) { k.l2_normalize(x, 1e-6F, 0.3F, out); });
}

TEST_F(Elementwise, SwiGluIsTheSame) {
  compare("swiglu", [](const Kernels& k, auto gate, auto up, auto out) { k.swiglu(gate, up, out); });
}

TEST_F(Elementwise, SituIsTheSame) {
  compare("situ", [](const Kernels& k, auto gate, auto up, auto out) { k.situ(gate, up, 4.0F, 25.0F, out); });
  compare("situ", [](const Kernels& k, auto gate, auto up, auto out) { k.situ(gate, up, 4.0F, 0.0F, out); });
}

TEST_F(Elementwise, SigmoidIsTheSame) {
  compare("sigmoid", [](const Kernels& k, auto x, auto, auto out) { k.sigmoid(x, out); });
  compare("sigmoid_multiply", [](const Kernels& k, auto x, auto gate, auto out) { k.sigmoid_multiply(x, gate, out); });
}

TEST_F(Elementwise, SoftmaxIsTheSame) {
  compare("softmax", [](const Kernels& k, auto x, auto, auto out) { k.softmax(x, 0.07F, out); });
  compare("softmax", [](const Kernels& k, auto x, auto, auto out) { k.softmax(x, -1.0F, out); });
}

TEST_F(Elementwise, SumsAreTheSame) {
  compare("add", [](const Kernels& k, auto x, auto y, auto out) {
    std::ranges::copy(y, out.begin());
    k.add(x, out);
  });
  compare("add_scaled", [](const Kernels& k, auto x, auto y, auto out) {
    std::ranges::copy(y, out.begin());
    k.add_scaled(-0.7F, x, out);
  });
}

TEST_F(Elementwise, DecayIsTheSame) {
  compare("decay_unbounded",
          [](const Kernels& k, auto x, auto bias, auto out) { k.decay_unbounded(x, bias, 1.3F, out); });
  compare("decay_bounded",
          [](const Kernels& k, auto x, auto bias, auto out) { k.decay_bounded(x, bias, 1.3F, -5.0F, out); });
}

TEST_F(Elementwise, ResidualScoreAndExpAndFinitenessAreTheSame) {
  compare("residual_score",
          [](const Kernels& k, auto v, auto weight, auto out) { out[0] = k.residual_score(v, weight, 1e-5F); });
  compare("exp", [](const Kernels& k, auto x, auto, auto out) { out[0] = k.exp(x[0]); });
  compare("all_finite", [](const Kernels& k, auto x, auto, auto out) { out[0] = k.all_finite(x) ? 1.0F : 0.0F; });
}

TEST_F(Elementwise, ShortConvIsTheSame) {
  compare("short_conv", [](const Kernels& k, auto x, auto taps, auto out) {
    // Four rows that overlap, so that two vectors give all inputs.
    const size_t channels = (x.size() + 3) / 4;
    const std::array<const float*, 4> rows = {x.data(), x.data() + (x.size() - channels) / 2,
                                              x.data() + (x.size() - channels) / 3, x.data() + (x.size() - channels)};
    std::vector<float> four_taps(4 * channels);
    for (size_t i = 0; i < four_taps.size(); ++i) four_taps[i] = taps[i % taps.size()];
    k.short_conv(rows, MatrixView<const float>(four_taps.data(), 4, channels), out.first(channels));
  });
}

TEST_F(SameBits, DeltaRuleIsTheSameForAllShapes) {
  Numbers numbers(3);
  for (const size_t keys : {1, 2, 3, 16, 33, 128}) {
    for (const size_t values : {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 65, 80, 100, 128, 144}) {
      for (const Inputs inputs : test::kAllInputs) {
        const std::vector<float> q = test::many_numbers(numbers, inputs, keys);
        const std::vector<float> k = test::many_numbers(numbers, inputs, keys);
        const std::vector<float> decay = test::many_numbers(numbers, inputs, keys);
        const std::vector<float> v = test::many_numbers(numbers, inputs, values);
        const size_t stride = values + 2;
        const std::vector<float> state = test::many_numbers(numbers, inputs, keys * stride);
        expect_same("delta_rule " + std::to_string(keys) + "x" + std::to_string(values), [&](const Kernels& kernels) {
          std::vector<float> result = state;
          std::vector<float> out(values);
          kernels.delta_rule({.q = q, .k = k, .v = v, .decay = decay, .beta = 0.6F},
                             MatrixView<float>(result.data(), keys, values, stride), out);
          result.insert(result.end(), out.begin(), out.end());
          return result;
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
