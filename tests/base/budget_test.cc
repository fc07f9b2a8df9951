#include "base/budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace headrace {
namespace {

Reservation reserve(Budget& budget, size_t bytes) {
  Result<Reservation> result = budget.reserve(bytes, "test");
  EXPECT_TRUE(result);
  return result.take_value();
}

TEST(Budget, GivesUpToItsLimitAndNotAByteMore) {
  Budget budget(100);
  const Reservation most = reserve(budget, 99);
  EXPECT_FALSE(budget.reserve(2, "test"));
  const Reservation last = reserve(budget, 1);
  EXPECT_FALSE(budget.reserve(1, "test"));
  EXPECT_TRUE(budget.reserve(0, "test"));
  EXPECT_EQ(budget.used_bytes(), 100u);
  EXPECT_EQ(budget.limit_bytes(), 100u);
}

TEST(Budget, RefusalSaysWhatForHowMuchAndWhatIsLeft) {
  Budget budget(100);
  const Reservation some = reserve(budget, 60);
  const Result<Reservation> refused = budget.reserve(41, "expert slots");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_EQ(refused.error().message, "expert slots needs 41 bytes, but 40 of the budget of 100 bytes are left");
  EXPECT_EQ(budget.used_bytes(), 60u);
}

TEST(Budget, HugeRequestsDoNotWrapAround) {
  Budget budget(100);
  const Reservation some = reserve(budget, 60);
  EXPECT_FALSE(budget.reserve(SIZE_MAX, "test"));
  EXPECT_FALSE(budget.reserve(SIZE_MAX - 59, "test"));
  EXPECT_EQ(budget.used_bytes(), 60u);
}

TEST(Budget, ReservationsComeBackOnEveryPath) {
  static_assert(!std::is_copy_constructible_v<Reservation> && !std::is_copy_assignable_v<Reservation>);
  Budget budget(100);
  {
    Reservation first = reserve(budget, 10);
    Reservation second = reserve(budget, 20);
    EXPECT_EQ(budget.used_bytes(), 30u);
    second = std::move(first);  // Gives back the 20.
    EXPECT_EQ(budget.used_bytes(), 10u);
    EXPECT_EQ(second.bytes(), 10u);
    EXPECT_EQ(first.bytes(), 0u);
    const Reservation third = std::move(second);
    EXPECT_EQ(budget.used_bytes(), 10u);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.peak_bytes(), 30u);
}

TEST(Budget, SelfAssignmentKeepsTheReservation) {
  Budget budget(100);
  Reservation reservation = reserve(budget, 10);
  Reservation& same = reservation;
  reservation = std::move(same);
  EXPECT_EQ(reservation.bytes(), 10u);
  EXPECT_EQ(budget.used_bytes(), 10u);
}

TEST(Budget, CountsRightWithManyThreads) {
  constexpr size_t kThreadCount = 4;
  Budget budget(kThreadCount);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreadCount; ++i) {
      threads.emplace_back([&budget] {
        for (int round = 0; round < 2000; ++round) ASSERT_TRUE(budget.reserve(1, "test"));
      });
    }
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_LE(budget.peak_bytes(), kThreadCount);
}

TEST(BudgetDeathTest, OutlivingTheBudgetIsABug) {
  const auto leak = [] {
    Reservation survivor;
    Budget budget(100);
    survivor = budget.reserve(1, "test").take_value();
    // `budget` goes first, while `survivor` still holds a byte of it.
  };
  EXPECT_EXIT(leak(), testing::ExitedWithCode(70), "headrace: bug: .*budget.cc");
}

}  // namespace
}  // namespace headrace
