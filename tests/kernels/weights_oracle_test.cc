#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/every_table.h"
#include "kernels/numbers.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using nlohmann::json;
using test::load_oracle_vectors;

std::vector<std::byte> from_hexadecimal(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// A weight matrix of a vector file.
struct StoredWeights {
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
  WeightView view;
};

Format format_of(const std::string& name) {
  if (name == "bf16") return Format::kBf16;
  if (name == "f16") return Format::kF16;
  if (name == "f32") return Format::kF32;
  EXPECT_EQ(name, "mxfp4");
  return Format::kMxfp4;
}

StoredWeights stored_weights(Format format, size_t rows, size_t cols, const json& c) {
  StoredWeights weights;
  if (format == Format::kMxfp4) {
    weights.data = from_hexadecimal(c.at("packed"));
    weights.scales = from_hexadecimal(c.at("scale"));
  } else {
    const size_t bytes = format_row_bytes(format, 1);
    for (const uint32_t code : c.at(c.contains("bits") ? "bits" : "weight_bits")) {
      for (size_t i = 0; i < bytes; ++i) weights.data.push_back(static_cast<std::byte>(code >> (8 * i) & 255));
    }
  }
  weights.view = {.format = format,
                  .rows = rows,
                  .cols = cols,
                  .data = weights.data.data(),
                  .row_bytes = format_row_bytes(format, cols),
                  .scales = weights.scales.empty() ? nullptr : weights.scales.data(),
                  .scale_row_bytes = format_scale_row_bytes(format, cols)};
  EXPECT_EQ(weights.data.size(), rows * weights.view.row_bytes);
  EXPECT_EQ(weights.scales.size(), rows * weights.view.scale_row_bytes);
  return weights;
}

/// Weights and products against the tables of the float64 oracle.
class WeightOracle : public test::EveryTable {
 protected:
  static json cases(const char* table) { return load_oracle_vectors(std::string("kernels/") + table).at("cases"); }
  void expect_decoded(const StoredWeights& weights, const std::vector<uint32_t>& bits) const {
    const WeightView& view = weights.view;
    ASSERT_EQ(bits.size(), view.rows * view.cols);
    std::vector<float> got(view.cols);
    for (size_t row = 0; row < view.rows; ++row) {
      kernels().decode_row[static_cast<size_t>(view.format)](view, row, got);
      for (size_t col = 0; col < view.cols; ++col) {
        EXPECT_EQ(std::bit_cast<uint32_t>(got[col]), bits[row * view.cols + col]) << "row " << row << " column " << col;
      }
    }
  }
};

TEST_P(WeightOracle, NumberFormats) {
  for (const json& c : cases("number_formats")) {
    const StoredWeights weights = stored_weights(format_of(c.at("format")), 1, c.at("bits").size(), c);
    expect_decoded(weights, c.at("float32_bits"));
  }
}

TEST_P(WeightOracle, Mxfp4) {
  for (const json& c : cases("mxfp4")) {
    SCOPED_TRACE(c.at("name"));
    expect_decoded(stored_weights(Format::kMxfp4, c.at("rows"), c.at("columns"), c), c.at("float32_bits"));
  }
}

TEST_P(WeightOracle, Matvec) {
  for (const json& c : cases("matvec")) {
    const size_t rows = c.at("rows");
    const size_t cols = c.at("columns");
    const Format format = format_of(c.at("format"));
    const StoredWeights weights = stored_weights(format, rows, cols, c);
    const std::vector<float> x = c.at("x");
    std::vector<float> y(rows);
    kernels().matmul[static_cast<size_t>(format)](weights.view, MatrixView<const float>(x.data(), 1, cols),
                                                  MatrixView<float>(y.data(), 1, rows));
    for (size_t r = 0; r < rows; ++r) {
      // One rounding of 2^-24 for each step of a lane and each level of the tree.
      const size_t steps = cols / 16 + 5;
      EXPECT_NEAR(y[r], c.at("y").at(r).get<double>(),
                  c.at("magnitude").at(r).get<double>() * static_cast<double>(steps) * 0x1p-24);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, WeightOracle, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
