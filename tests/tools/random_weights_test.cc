#include "tools/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace headrace {
namespace {

ListedTensor tensor_of(DType dtype, TensorRole role, std::vector<uint64_t> dims) {
  ListedTensor tensor{.name = "some.tensor", .dtype = dtype, .role = role};
  tensor.shape.rank = dims.size();
  std::copy(dims.begin(), dims.end(), tensor.shape.dims.begin());
  tensor.used_count = tensor.shape.element_count();
  return tensor;
}

std::vector<std::byte> bytes_of(const ListedTensor& tensor, const WeightRules& rules = {}) {
  RandomWeights weights;
  weights.assign(tensor, rules);
  std::vector<std::byte> bytes(tensor.byte_count());
  weights.fill(0, bytes);
  return bytes;
}

std::vector<float> numbers_of(const ListedTensor& tensor, const WeightRules& rules = {}) {
  const auto bytes = bytes_of(tensor, rules);
  std::vector<float> numbers(tensor.shape.element_count());
  const size_t width = dtype_bytes(tensor.dtype);
  for (size_t i = 0; i < numbers.size(); ++i) {
    // A BF16 is the upper half of a float32.
    std::memcpy(reinterpret_cast<std::byte*>(&numbers[i]) + sizeof(float) - width, bytes.data() + i * width, width);
  }
  return numbers;
}

struct Moments {
  double mean = 0;
  double square = 0;
};

Moments moments_of(const std::vector<float>& numbers) {
  Moments moments;
  for (const float number : numbers) {
    moments.mean += double{number};
    moments.square += double{number} * double{number};
  }
  moments.mean /= static_cast<double>(numbers.size());
  moments.square /= static_cast<double>(numbers.size());
  return moments;
}

TEST(RandomWeights, AnyPartOfATensorIsThatPartOfTheWhole) {
  for (const auto& tensor :
       {tensor_of(DType::kBf16, TensorRole::kMatrix, {13, 7}), tensor_of(DType::kF32, TensorRole::kDecayBias, {45}),
        tensor_of(DType::kU8, TensorRole::kPackedNibbles, {11, 9}),
        tensor_of(DType::kU8, TensorRole::kBlockScales, {11, 9})}) {
    const auto whole = bytes_of(tensor);
    RandomWeights weights;
    weights.assign(tensor, {});
    for (size_t begin = 0; begin <= whole.size(); ++begin) {
      for (size_t end = begin; end <= whole.size(); ++end) {
        std::vector<std::byte> part(end - begin);
        weights.fill(begin, part);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(begin)))
            << begin << " to " << end;
      }
    }
  }
}

// 100,000 numbers: a mean is off by 0.003 of the spread, a mean square by 0.0045 of itself; five times that are
// allowed.
TEST(RandomWeights, ARowOfAMatrixHasLengthOne) {
  const Moments moments = moments_of(numbers_of(tensor_of(DType::kBf16, TensorRole::kMatrix, {100, 1000})));
  EXPECT_NEAR(moments.mean * std::sqrt(1000.0), 0, 0.016);
  EXPECT_NEAR(moments.square * 1000, 1, 0.023);
}

TEST(RandomWeights, NormsAreAroundOne) {
  for (const float number : numbers_of(tensor_of(DType::kF32, TensorRole::kNorm, {1000}))) {
    EXPECT_GE(number, 0.9f);
    EXPECT_LE(number, 1.1f);
  }
}

TEST(RandomWeights, ARowOfAnMxfp4MatrixHasLengthOne) {
  constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (const uint64_t cols : {64u, 96u, 1536u, 3072u, 3584u}) {
    const uint64_t rows = 1'000'000 / cols;
    const auto nibbles = bytes_of(tensor_of(DType::kU8, TensorRole::kPackedNibbles, {rows, cols / 2}));
    auto scale_tensor = tensor_of(DType::kU8, TensorRole::kBlockScales, {rows, cols / 32});
    scale_tensor.name = "other.tensor";
    const auto scales = bytes_of(scale_tensor);
    double square = 0;
    for (size_t i = 0; i < nibbles.size(); ++i) {
      const double scale = std::ldexp(1.0, static_cast<int>(scales[i / 16]) - 127);
      for (const int shift : {0, 4}) {
        const double number = kE2m1[(static_cast<unsigned>(nibbles[i]) >> shift) & 7] * scale;
        square += number * number;
      }
    }
    EXPECT_NEAR(square / static_cast<double>(rows), 1, 0.03) << cols;
  }
}

TEST(RandomWeights, WhatATensorDoesNotUseIsZero) {
  auto tensor = tensor_of(DType::kF32, TensorRole::kDecayRate, {16});
  tensor.used_count = 6;
  const auto numbers = numbers_of(tensor, {.decay_is_bounded = true});
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i] == 0.0f, i >= 6) << i;
}

TEST(RandomWeights, NameAndSeedMakeADifference) {
  auto tensor = tensor_of(DType::kU8, TensorRole::kPackedNibbles, {64});
  const auto bytes = bytes_of(tensor);
  EXPECT_NE(bytes_of(tensor, {.seed = 1}), bytes);
  tensor.name = "another.tensor";
  EXPECT_NE(bytes_of(tensor), bytes);
}

}  // namespace
}  // namespace headrace
