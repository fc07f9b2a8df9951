#include "base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace headrace {
namespace {

AlignedMemory allocate(Budget& budget, size_t bytes) {
  Result<AlignedMemory> result = AlignedMemory::allocate(budget, bytes, "test");
  EXPECT_TRUE(result);
  return result.take_value();
}

TEST(AlignedMemory, IsPageAlignedZeroedAndCountedInWholePages) {
  Budget budget(1 << 20);
  const AlignedMemory memory = allocate(budget, 5000);
  EXPECT_EQ(memory.size_bytes(), 8192u);
  EXPECT_EQ(memory.bytes().size(), 8192u);
  EXPECT_EQ(budget.used_bytes(), 8192u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % AlignedMemory::kAlignment, 0u);
  EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(AlignedMemory, NothingIsFreeAndHasNoAddress) {
  Budget budget(0);
  const AlignedMemory memory = allocate(budget, 0);
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_EQ(memory.size_bytes(), 0u);
}

TEST(AlignedMemory, MovingKeepsTheAddressAndTheReservation) {
  Budget budget(1 << 20);
  AlignedMemory first = allocate(budget, 4096);
  std::byte* const data = first.data();
  first.bytes()[17] = std::byte{42};
  AlignedMemory second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.bytes()[17], std::byte{42});
  EXPECT_EQ(first.data(), nullptr);
  AlignedMemory third = allocate(budget, 8192);
  EXPECT_EQ(budget.used_bytes(), 12288u);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(budget.used_bytes(), 4096u);
  AlignedMemory& same = third;
  third = std::move(same);
  EXPECT_EQ(third.data(), data);
}

TEST(AlignedMemory, ComesBackToTheBudgetWhenDestroyed) {
  Budget budget(1 << 20);
  { const AlignedMemory memory = allocate(budget, 4096); }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.peak_bytes(), 4096u);
}

TEST(AlignedMemory, IsRefusedByTheBudget) {
  Budget budget(4096);
  const Result<AlignedMemory> refused = AlignedMemory::allocate(budget, 4097, "scratch");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("scratch"), std::string::npos);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(AlignedMemory, SizesThatWrapAroundAreRefused) {
  Budget budget(SIZE_MAX);
  EXPECT_EQ(AlignedMemory::allocate(budget, SIZE_MAX - 5, "test").error().code, Code::kBudget);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(AlignedMemory, WhatTheSystemRefusesGoesBackToTheBudget) {
  Budget budget(SIZE_MAX);
  // More than any address space.
  const Result<AlignedMemory> refused = AlignedMemory::allocate(budget, size_t{1} << 62, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("system"), std::string::npos);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Matrix, RowsStartAtCacheLinesAndHoldZeros) {
  Budget budget(1 << 20);
  const Matrix<float> matrix = Matrix<float>::allocate(budget, 3, 17, "test").take_value();
  EXPECT_EQ(matrix.rows(), 3u);
  EXPECT_EQ(matrix.cols(), 17u);
  EXPECT_EQ(matrix.view().stride(), 32u);
  EXPECT_EQ(matrix.size_bytes(), 4096u);
  EXPECT_EQ(budget.used_bytes(), 4096u);
  for (size_t row = 0; row < matrix.rows(); ++row) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.row(row).data()) % 64, 0u);
    EXPECT_EQ(matrix.row(row).size(), 17u);
    EXPECT_TRUE(std::ranges::all_of(matrix.row(row), [](float value) { return value == 0.0F; }));
  }
}

TEST(Matrix, SaysBeforehandWhatItTakesOfTheBudget) {
  for (const size_t rows : {0, 1, 3, 100}) {
    for (const size_t cols : {0, 1, 16, 17, 1000, 1024}) {
      Budget budget(1 << 20);
      const Matrix<float> matrix = Matrix<float>::allocate(budget, rows, cols, "test").take_value();
      EXPECT_EQ(budget.used_bytes(), Matrix<float>::memory_bytes(rows, cols)) << rows << " x " << cols;
    }
  }
}

TEST(Matrix, AMovedFromMatrixIsEmpty) {
  Budget budget(1 << 20);
  Matrix<float> first = Matrix<float>::allocate(budget, 2, 2, "test").take_value();
  first.row(1)[1] = 5.0F;
  Matrix<float> second = std::move(first);
  EXPECT_EQ(second.row(1)[1], 5.0F);
  EXPECT_EQ(first.rows(), 0u);
  Matrix<float> third;
  third = std::move(second);
  EXPECT_EQ(third.row(1)[1], 5.0F);
  EXPECT_EQ(second.view().data(), nullptr);
}

TEST(Matrix, ShapesThatWrapAroundAreRefused) {
  Budget budget(SIZE_MAX);
  const size_t huge = size_t{1} << 62;
  for (const auto& [rows, cols] :
       {std::pair{huge, huge}, {size_t{1}, SIZE_MAX}, {size_t{4}, huge}, {huge, size_t{1}}}) {
    const Result<Matrix<float>> refused = Matrix<float>::allocate(budget, rows, cols, "test");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kBudget);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Matrix, NoRowsOrNoColumnsTakeNoMemory) {
  Budget budget(0);
  EXPECT_TRUE(Matrix<float>::allocate(budget, 0, 100, "test"));
  EXPECT_TRUE(Matrix<float>::allocate(budget, 100, 0, "test"));
}

class MatrixViewTest : public testing::Test {
 protected:
  MatrixViewTest() : values_(12) { std::iota(values_.begin(), values_.end(), 0); }
  std::vector<int> values_;
};

TEST_F(MatrixViewTest, AddressesRowsByStride) {
  const MatrixView<int> view(values_.data(), 3, 2, 4);
  EXPECT_EQ(view.row(0)[1], 1);
  EXPECT_EQ(view.row(2)[0], 8);
  EXPECT_EQ(view.row(2).size(), 2u);
  view.row(1)[1] = 99;
  EXPECT_EQ(values_[5], 99);
}

TEST_F(MatrixViewTest, IsCopiedAndConvertsToReadOnly) {
  const MatrixView<int> view(values_.data(), 3, 4);
  MatrixView<int> copy = view;
  copy = view;
  const MatrixView<const int> read_only = copy;
  EXPECT_EQ(read_only.row(2)[3], 11);
  EXPECT_EQ(read_only.stride(), 4u);
  static_assert(!std::is_constructible_v<MatrixView<int>, MatrixView<const int>>);
}

TEST_F(MatrixViewTest, CutsRangesOfRowsAndColumns) {
  const MatrixView<int> view(values_.data(), 3, 4);
  EXPECT_EQ(view.row_range(1, 2).row(1)[0], 8);
  EXPECT_EQ(view.row_range(3, 0).rows(), 0u);
  EXPECT_EQ(view.col_range(1, 2).row(2)[1], 10);
  EXPECT_EQ(view.col_range(1, 2).cols(), 2u);
  EXPECT_EQ(MatrixView<int>(std::span(values_)).cols(), 12u);
}

using MatrixViewDeathTest = MatrixViewTest;

TEST_F(MatrixViewDeathTest, RangesOutsideAreABug) {
  const MatrixView<int> view(values_.data(), 3, 4);
  EXPECT_EXIT(view.row_range(2, 2), testing::ExitedWithCode(70), "views.h");
  EXPECT_EXIT(view.row_range(4, SIZE_MAX), testing::ExitedWithCode(70), "views.h");
  EXPECT_EXIT(view.col_range(5, 0), testing::ExitedWithCode(70), "views.h");
  EXPECT_EXIT(MatrixView<int>(values_.data(), 3, 4, 3), testing::ExitedWithCode(70), "views.h");
}

}  // namespace
}  // namespace headrace
