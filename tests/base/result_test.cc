#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace headrace {
namespace {

Result<std::unique_ptr<int>> make_box(int value) {
  if (value < 0) return error(Code::kArgument, "%d is negative", value);
  return std::make_unique<int>(value);
}

Status check_even(int value) {
  if (value % 2 != 0) return error(Code::kFormat, "%d is odd", value);
  return {};
}

Result<int> half_of_box(int value) {
  const std::unique_ptr<int> box = TRY(make_box(value));
  TRY(check_even(*box));
  return *box / 2;
}

Result<int> double_of(Result<int> value) {
  return 2 * TRY(std::move(value));
}

Status nested(int value) {
  // Compiles without a shadowing warning, which is an error here.
  TRY(check_even(TRY(double_of(TRY(half_of_box(value))))));
  return {};
}

/// Counts how many of it live.
struct Counted {
  explicit Counted(int& live_count) : live(&live_count) { ++*live; }
  Counted(Counted&& other) noexcept : live(std::exchange(other.live, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (live) --*live;
  }
  int* live;
};

TEST(Result, HoldsAValueOrAnError) {
  Result<int> value = 7;
  ASSERT_TRUE(value);
  EXPECT_EQ(value.value(), 7);
  EXPECT_EQ(std::as_const(value).value(), 7);

  Result<int> failure = error(Code::kIo, "read %s @%d: file ends", "a.bin", 12);
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::kIo);
  EXPECT_EQ(failure.error().message, "read a.bin @12: file ends");
  EXPECT_EQ(failure.take_error().message, "read a.bin @12: file ends");
}

TEST(Result, IsEmptyStatusWhenAllIsWell) {
  const Status fine;
  EXPECT_TRUE(fine);
  Status failure = error(Code::kCancelled, "stopped");
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::kCancelled);
  EXPECT_EQ(failure.take_error().message, "stopped");
}

TEST(Result, MessagesHaveNoLengthLimit) {
  const std::string text(5000, 'x');
  EXPECT_EQ(error(Code::kFormat, "<%s>", text.c_str()).message, "<" + text + ">");
}

TEST(Result, ContextGoesInFrontAndKeepsTheCode) {
  const Error wrapped = with_context(error(Code::kBudget, "too little"), "layer %d", 3);
  EXPECT_EQ(wrapped.code, Code::kBudget);
  EXPECT_EQ(wrapped.message, "layer 3: too little");
}

TEST(Try, GivesTheValueOfAMoveOnlyResult) {
  const Result<int> half = half_of_box(8);
  ASSERT_TRUE(half);
  EXPECT_EQ(half.value(), 4);
}

TEST(Try, ReturnsTheFirstErrorEarly) {
  EXPECT_EQ(half_of_box(-2).error().code, Code::kArgument);
  EXPECT_EQ(half_of_box(-2).error().message, "-2 is negative");
  EXPECT_EQ(half_of_box(3).error().message, "3 is odd");
}

TEST(Try, MayStandInsideTry) {
  EXPECT_TRUE(nested(4));
  EXPECT_EQ(nested(5).error().message, "5 is odd");
}

TEST(Try, DestroysEarlierFunctionArgumentsOnEarlyReturn) {
  int live_count = 0;
  const auto use_both = [](const Counted&, int value) { return value; };
  const auto fail = [&]() -> Result<int> { return use_both(Counted(live_count), TRY(half_of_box(1))); };
  EXPECT_FALSE(fail());
  EXPECT_EQ(live_count, 0);
}

TEST(Try, MovesTheValueOutWithoutACopy) {
  static_assert(!std::is_copy_constructible_v<Counted>);
  int live_count = 0;
  const auto make = [&]() -> Result<Counted> { return Counted(live_count); };
  const auto pass_on = [&]() -> Result<Counted> { return TRY(make()); };
  {
    const Result<Counted> result = pass_on();
    ASSERT_TRUE(result);
    EXPECT_EQ(live_count, 1);
  }
  EXPECT_EQ(live_count, 0);
}

TEST(ResultDeathTest, TakingWhatIsNotThereIsABug) {
  Result<int> failure = error(Code::kIo, "x");
  EXPECT_EXIT((void)failure.value(), testing::ExitedWithCode(70), "headrace: bug: .*result.h");
  const Result<int> value = 1;
  EXPECT_EXIT((void)value.error(), testing::ExitedWithCode(70), "headrace: bug: .*result.h");
  Status fine;
  EXPECT_EXIT((void)fine.error(), testing::ExitedWithCode(70), "headrace: bug: .*result.h");
  EXPECT_EXIT((void)fine.take_error(), testing::ExitedWithCode(70), "headrace: bug: .*result.h");
}

TEST(EnsureDeathTest, NamesTheConditionAndThePlace) {
  EXPECT_EXIT(ENSURE(1 + 1 == 3), testing::ExitedWithCode(70), "result_test.cc:[0-9]+: 1 \\+ 1 == 3 does not hold");
}

TEST(EnsureDeathTest, DebugEnsureStopsDebugBuildsOnly) {
#ifdef NDEBUG
  int evaluated_count = 0;
  DEBUG_ENSURE(++evaluated_count == 5);
  EXPECT_EQ(evaluated_count, 0);
#else
  EXPECT_EXIT(DEBUG_ENSURE(false), testing::ExitedWithCode(70), "false does not hold");
#endif
}

TEST(Ensure, EvaluatesItsConditionOnce) {
  int evaluated_count = 0;
  ENSURE(++evaluated_count == 1);
  EXPECT_EQ(evaluated_count, 1);
}

}  // namespace
}  // namespace headrace
