#include <array>
#include <cinttypes>
#include <cmath>
#include <string>
#include <vector>

#include "base/float_environment.h"
#include "kernels/every_table.h"
#include "kernels/numbers.h"
#include "kernels/weight_samples.h"

namespace headrace {
namespace {

using test::Inputs;
using test::Numbers;

/// FNV-1a over the bits of results. All NaN count as one.
class Hash {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) add(std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value));
  }
  std::string text() const {
    char buffer[20];
    std::snprintf(buffer, sizeof(buffer), "%016" PRIx64, state_);
    return buffer;
  }

 private:
  void add(uint32_t bits) {
    for (int shift = 0; shift < 32; shift += 8) state_ = (state_ ^ (bits >> shift & 255)) * 0x100000001b3U;
  }
  uint64_t state_ = 0xcbf29ce484222325U;
};

struct Golden {
  const char* kernel;
  void (*run)(const Kernels& kernels, Hash& hash);
  const char* hash;
};

template <size_t kFormat>
void run_matmul(const Kernels& kernels, Hash& hash) {
  Numbers numbers(100 + kFormat);
  for (const Inputs inputs : test::kAllInputs) {
    for (const size_t width : {1, 2, 3, 5, 17, 31, 40}) {
      const Format format = static_cast<Format>(kFormat);
      const size_t cols = width * test::column_multiple(format);
      const size_t rows = 1 + width % 9;
      const size_t tokens = 1 + width % 10;
      const test::WeightSample weights(numbers, inputs, format, rows, cols, {.offset_bytes = 1});
      const std::vector<float> x = test::many_numbers(numbers, inputs, tokens * cols);
      std::vector<float> y(tokens * rows);
      kernels.matmul[kFormat](weights.view(), MatrixView<const float>(x.data(), tokens, cols),
                              MatrixView<float>(y.data(), tokens, rows));
      hash.add(y);
    }
  }
}

template <size_t kFormat>
void run_matmul_transposed(const Kernels& kernels, Hash& hash) {
  Numbers numbers(200 + kFormat);
  for (const Inputs inputs : test::kAllInputs) {
    for (const size_t width : {1, 2, 3, 5, 17, 31, 40}) {
      const Format format = static_cast<Format>(kFormat);
      const size_t cols = width * test::column_multiple(format);
      const size_t rows = 1 + width % 9;
      const size_t tokens = 1 + width % 10;
      const test::WeightSample weights(numbers, inputs, format, rows, cols, {.offset_bytes = 1});
      const std::vector<float> x = test::many_numbers(numbers, inputs, tokens * rows);
      std::vector<float> y(tokens * cols);
      kernels.matmul_transposed[kFormat](weights.view(), MatrixView<const float>(x.data(), tokens, rows),
                                         MatrixView<float>(y.data(), tokens, cols));
      hash.add(y);
    }
  }
}

/// Two vectors of every kind of input and of some lengths through `call`.
template <class Call>
void run_vectors(Hash& hash, const Call& call) {
  Numbers numbers(300);
  for (const Inputs inputs : test::kAllInputs) {
    for (const size_t length : {1, 7, 16, 100, 333}) {
      const std::vector<float> a = test::many_numbers(numbers, inputs, length);
      const std::vector<float> b = test::many_numbers(numbers, inputs, length);
      std::vector<float> out(length);
      call(a, b, out);
      hash.add(out);
    }
  }
}

void run_rms_norm(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.rms_norm(a, b, 1e-5F, out); });
}
void run_l2_normalize(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto&, auto& out) { k.l2_normalize(a, 1e-6F, 0.1F, out); });
}
void run_swiglu(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.swiglu(a, b, out); });
}
void run_situ(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.situ(a, b, 4.0F, 25.0F, out); });
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.situ(a, b, 4.0F, 0.0F, out); });
}
void run_sigmoid(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto&, auto& out) { k.sigmoid(a, out); });
}
void run_sigmoid_multiply(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.sigmoid_multiply(a, b, out); });
}
void run_softmax(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto&, auto& out) { k.softmax(a, 0.3F, out); });
}
void run_add(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) {
    out = b;
    k.add(a, out);
  });
}
void run_add_scaled(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) {
    out = b;
    k.add_scaled(0.7F, a, out);
  });
}
void run_short_conv(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) {
    const size_t channels = a.size() / 4;
    const std::array<const float*, 4> window = {&a[0], a.data() + channels, a.data() + 2 * channels,
                                                a.data() + 3 * channels};
    const auto taps = MatrixView<const float>(b.data(), 4, channels);
    k.short_conv(window, taps, std::span<float>(out).first(channels));
  });
}
void run_decay_unbounded(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.decay_unbounded(a, b, 1.3F, out); });
}
void run_decay_bounded(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { k.decay_bounded(a, b, 1.3F, -5.0F, out); });
}
void run_delta_rule(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) {
    const size_t width = a.size();
    std::vector<float> state(3 * width);
    for (size_t i = 0; i < state.size(); ++i) state[i] = a[i % width] * b[i / 3];
    const std::array<float, 3> q = {a[0], b[0], 1.0F};
    const std::array<float, 3> key = {b[0], 0.5F, a[0]};
    const std::array<float, 3> decay = {0.9F, 0.1F, 0.99F};
    k.delta_rule({.q = q, .k = key, .v = a, .decay = decay, .beta = 0.7F}, MatrixView<float>(state.data(), 3, width),
                 out);
    hash.add(state);
  });
}
void run_residual_score(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto& b, auto& out) { out[0] = k.residual_score(a, b, 1e-5F); });
}
void run_exp(const Kernels& k, Hash& hash) {
  run_vectors(hash, [&](const auto& a, const auto&, auto& out) {
    for (size_t i = 0; i < a.size(); ++i) out[i] = k.exp(a[i]);
  });
}

/// Recorded from the scalar table on x86-64. Whoever changes what a kernel promises records them again; a difference
/// between processors or compilers is a bug.
constexpr Golden kGolden[] = {
    {"matmul F32", run_matmul<0>, "a7a04b31734531d9"},
    {"matmul BF16", run_matmul<1>, "26983560d3f28918"},
    {"matmul F16", run_matmul<2>, "1ba14991dcb23720"},
    {"matmul MXFP4", run_matmul<3>, "6098320dddc3a3b2"},
    {"matmul_transposed F32", run_matmul_transposed<0>, "6573304856e54e80"},
    {"matmul_transposed BF16", run_matmul_transposed<1>, "f32a8548dbc7f1ab"},
    {"matmul_transposed F16", run_matmul_transposed<2>, "48be319ba353030a"},
    {"matmul_transposed MXFP4", run_matmul_transposed<3>, "a4160697868f0113"},
    {"rms_norm", run_rms_norm, "84d831dc1344fc6a"},
    {"l2_normalize", run_l2_normalize, "a859d0674d99d355"},
    {"swiglu", run_swiglu, "89bd9b192c4b3cc0"},
    {"situ", run_situ, "88158f8e0c3aed95"},
    {"sigmoid", run_sigmoid, "28058e42b938577f"},
    {"sigmoid_multiply", run_sigmoid_multiply, "97c19d37ac68a62c"},
    {"softmax", run_softmax, "9bf16482546ab90b"},
    {"add", run_add, "a90b9402b46c2064"},
    {"add_scaled", run_add_scaled, "150fa06fec22840b"},
    {"short_conv", run_short_conv, "6bee30d69068a763"},
    {"decay_unbounded", run_decay_unbounded, "9c7d2fb20016dd9d"},
    {"decay_bounded", run_decay_bounded, "6e982625e2c3faf7"},
    {"delta_rule", run_delta_rule, "7d7c7ea387cda1f6"},
    {"residual_score", run_residual_score, "f79a602525c4992f"},
    {"exp", run_exp, "92181fd0f214f425"},
};

using GoldenBits = test::EveryTable;

TEST_P(GoldenBits, AreThoseOfEveryOtherProcessor) {
  const FloatEnvironment environment;
  for (const Golden& golden : kGolden) {
    Hash hash;
    golden.run(kernels(), hash);
    EXPECT_EQ(hash.text(), golden.hash) << golden.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, GoldenBits, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
