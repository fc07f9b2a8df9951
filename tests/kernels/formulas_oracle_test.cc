#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/every_table.h"
#include "kernels/numbers.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using nlohmann::json;
using test::load_oracle_vectors;

std::vector<float> floats(const json& list) {
  return list.get<std::vector<float>>();
}
std::vector<double> doubles(const json& list) {
  return list.get<std::vector<double>>();
}

/// Largest absolute value: sums and differences are as wrong as their largest term.
double size_of(const std::vector<double>& values) {
  double size = 0.0;
  for (const double value : values) size = std::max(size, std::fabs(value));
  return size;
}

/// Every kernel of vectors against the tables of the float64 oracle.
class FormulaOracle : public test::EveryTable {
 protected:
  /// Each number to `relative`, and results below the normal range of float32 to one step there.
  static void expect_each(const std::vector<float>& got, const json& expected, double relative, double absolute = 0.0) {
    const std::vector<double> wanted = doubles(expected);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], relative * std::fabs(wanted[i]) + absolute + 0x1p-149) << "index " << i;
    }
  }
  /// Each number to `relative` of the largest one.
  static void expect_row(const std::vector<float>& got, const json& expected, double relative) {
    expect_each(got, expected, 0.0, relative * size_of(doubles(expected)));
  }
  static json cases(const char* table) { return load_oracle_vectors(std::string("kernels/") + table).at("cases"); }
};

TEST_P(FormulaOracle, ElementwiseFunctions) {
  size_t checked = 0;
  for (const json& c : cases("elementwise")) {
    const std::vector<float> x = floats(c.at("x"));
    std::vector<float> y(x.size());
    const std::string function = c.at("function");
    if (function == "exp") {
      // Arguments beyond the range of float32 are not compared with float64.
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = c.at("y").at(i);
        y[i] = kernels().exp(x[i]);
        if (expected > 3.4e38) {
          EXPECT_EQ(y[i], std::numeric_limits<float>::infinity());
        } else {
          EXPECT_NEAR(y[i], expected, 1.2e-7 * expected + 0x1p-149) << x[i];
        }
      }
    } else if (function == "sigmoid") {
      kernels().sigmoid(x, y);
      expect_each(y, c.at("y"), 2.5e-7);
    } else if (function == "silu") {
      kernels().sigmoid_multiply(x, x, y);
      expect_each(y, c.at("y"), 3e-7, 1e-43);
    } else if (function == "tanh") {
      kernels().situ(std::vector<float>(x.size(), 200.0F), x, 1.0F, 1.0F, y);
      expect_each(y, c.at("y"), 2.5e-7);
    } else if (function == "softplus") {
      const std::vector<float> zero(x.size(), 0.0F);
      kernels().decay_unbounded(x, zero, 1.0F, y);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], std::exp(-c.at("y").at(i).get<double>()), 3e-7) << x[i];
    } else {
      continue;
    }
    ++checked;
  }
  EXPECT_EQ(checked, 5u);
}

TEST_P(FormulaOracle, SwiGlu) {
  for (const json& c : cases("swiglu")) {
    const std::vector<float> gate = floats(c.at("gate"));
    std::vector<float> y(gate.size());
    kernels().swiglu(gate, floats(c.at("up")), y);
    expect_each(y, c.at("y"), 4e-7, 1e-40);
  }
}

TEST_P(FormulaOracle, Situ) {
  for (const json& c : cases("situ")) {
    const std::vector<float> gate = floats(c.at("gate"));
    const float linear_beta = c.at("linear_beta").is_null() ? 0.0F : c.at("linear_beta").get<float>();
    std::vector<float> y(gate.size());
    kernels().situ(gate, floats(c.at("up")), c.at("beta"), linear_beta, y);
    expect_each(y, c.at("y"), 1e-6, 1e-40);
  }
}

TEST_P(FormulaOracle, Decay) {
  for (const json& c : cases("decay")) {
    const std::vector<float> logits = floats(c.at("logits"));
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto a = static_cast<float>(std::exp(c.at("a_log").at(i).get<double>()));
      const double log_decay = c.at("y").at(i);
      const float bias = 0.0F;
      float decay = 0.0F;
      if (c.at("lower_bound").is_null()) {
        kernels().decay_unbounded({&logits[i], 1}, {&bias, 1}, a, {&decay, 1});
      } else {
        kernels().decay_bounded({&logits[i], 1}, {&bias, 1}, a, c.at("lower_bound"), {&decay, 1});
      }
      // A relative error of the log decay g becomes g times it.
      const double expected = std::exp(log_decay);
      EXPECT_NEAR(decay, expected, (3e-7 + 4e-7 * std::fabs(log_decay)) * expected + 0x1p-149) << logits[i];
    }
  }
}

TEST_P(FormulaOracle, RmsNorm) {
  for (const json& c : cases("rms_norm")) {
    const std::vector<float> x = floats(c.at("x"));
    std::vector<float> y(x.size());
    kernels().rms_norm(x, floats(c.at("weight")), c.at("epsilon"), y);
    expect_each(y, c.at("y"), 5e-7);
  }
}

TEST_P(FormulaOracle, GatedNorm) {
  for (const json& c : cases("gated_norm")) {
    for (size_t head = 0; head < c.at("x").size(); ++head) {
      // One row for all heads, or a row for each.
      const bool rows = c.at("x").at(head).is_array();
      const std::vector<float> x = floats(rows ? c.at("x").at(head) : c.at("x"));
      const std::vector<float> gate = floats(rows ? c.at("gate").at(head) : c.at("gate"));
      std::vector<float> y(x.size());
      kernels().rms_norm(x, floats(c.at("weight")), c.at("epsilon"), y);
      kernels().sigmoid_multiply(y, gate, y);
      expect_each(y, rows ? c.at("y").at(head) : c.at("y"), 8e-7);
      if (!rows) break;
    }
  }
}

TEST_P(FormulaOracle, L2Normalize) {
  for (const json& c : cases("l2_norm")) {
    const std::vector<float> x = floats(c.at("x"));
    std::vector<float> y(x.size());
    kernels().l2_normalize(x, 1e-6F, 1.0F, y);
    expect_each(y, c.at("y"), 5e-7);
    const auto scale = static_cast<float>(std::pow(static_cast<double>(x.size()), -0.5));
    kernels().l2_normalize(x, 1e-6F, scale, y);
    expect_each(y, c.at("y_query"), 6e-7);
  }
}

TEST_P(FormulaOracle, Softmax) {
  for (const json& c : cases("softmax")) {
    const std::vector<float> x = floats(c.at("x"));
    std::vector<float> y(x.size());
    kernels().softmax(x, 1.0F, y);
    expect_each(y, c.at("y"), 1e-6);
  }
}

TEST_P(FormulaOracle, ShortConv) {
  for (const json& c : cases("short_conv")) {
    const size_t channels = c.at("weight").size();
    const size_t tap_count = c.at("weight").at(0).size();
    std::vector<std::vector<float>> rows;
    for (const json& row : c.at("history")) rows.push_back(floats(row));
    for (const json& row : c.at("x")) rows.push_back(floats(row));
    std::vector<float> taps(tap_count * channels);
    for (size_t i = 0; i < taps.size(); ++i) taps[i] = c.at("weight").at(i % channels).at(i / channels);
    for (size_t token = 0; token < c.at("x").size(); ++token) {
      std::vector<const float*> window;
      for (size_t tap = 0; tap < tap_count; ++tap) window.push_back(rows[token + tap].data());
      std::vector<float> y(channels);
      kernels().short_conv(window, MatrixView<const float>(taps.data(), tap_count, channels), y);
      expect_each(y, c.at("y").at(token), 1e-6, 1e-6);
    }
  }
}

/// One head of a case of the `kda` table, run from its first token to its last.
void run_kda_head(const Kernels& kernels, const json& c, size_t head) {
  const size_t width = c.at("width");
  std::vector<float> state(width * width);
  for (size_t i = 0; i < width; ++i) {
    for (size_t j = 0; j < width; ++j) {
      state[i * width + j] =
          c.at("state_left").at(head).at(i).get<float>() * c.at("state_right").at(head).at(j).get<float>();
    }
  }
  const MatrixView<float> state_view(state.data(), width, width);
  std::vector<float> q(width), k(width), decay(width), out(width);
  const auto scale = static_cast<float>(std::pow(static_cast<double>(width), -0.5));
  for (size_t token = 0; token < c.at("q").size(); ++token) {
    kernels.l2_normalize(floats(c.at("q").at(token).at(head)), 1e-6F, scale, q);
    kernels.l2_normalize(floats(c.at("k").at(token).at(head)), 1e-6F, 1.0F, k);
    const std::vector<float> log_decay = floats(c.at("log_decay").at(token).at(head));
    for (size_t d = 0; d < width; ++d) decay[d] = kernels.exp(log_decay[d]);
    const std::vector<float> v = floats(c.at("v").at(token).at(head));
    kernels.delta_rule({.q = q, .k = k, .v = v, .decay = decay, .beta = c.at("beta").at(token).at(head)}, state_view,
                       out);
    const std::vector<double> expected = doubles(c.at("o").at(token).at(head));
    for (size_t i = 0; i < width; ++i) EXPECT_NEAR(out[i], expected[i], 2e-6 * size_of(expected)) << "token " << token;
  }
  for (size_t i = 0; i < c.at("state_rows").size(); ++i) {
    const std::vector<double> expected = doubles(c.at("state").at(head).at(i));
    const float* got = state_view.row_data(c.at("state_rows").at(i));
    for (size_t j = 0; j < width; ++j) EXPECT_NEAR(got[j], expected[j], 2e-6 * size_of(expected));
  }
  double square = 0.0;
  for (const float value : state) square += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(square) / c.at("state_norm").at(head).get<double>(), 1.0, 1e-6);
}

TEST_P(FormulaOracle, DeltaRule) {
  for (const json& c : cases("kda")) {
    for (size_t head = 0; head < c.at("heads"); ++head) run_kda_head(kernels(), c, head);
  }
}

TEST_P(FormulaOracle, AttentionResidual) {
  for (const json& c : cases("attn_res")) {
    std::vector<float> weight = floats(c.at("norm"));
    const std::vector<float> projection = floats(c.at("projection"));
    for (size_t d = 0; d < weight.size(); ++d) weight[d] *= projection[d];
    std::vector<float> p(c.at("sources").size());
    std::vector<float> mix(weight.size(), 0.0F);
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = kernels().residual_score(floats(c.at("sources").at(i)), weight, c.at("epsilon"));
    }
    expect_row(p, c.at("scores"), 1e-6);
    kernels().softmax(p, 1.0F, p);
    expect_each(p, c.at("p"), 2e-6);
    for (size_t i = 0; i < p.size(); ++i) kernels().add_scaled(p[i], floats(c.at("sources").at(i)), mix);
    expect_row(mix, c.at("y"), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, FormulaOracle, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
