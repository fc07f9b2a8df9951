#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "engine/units.h"

namespace headrace {
namespace {

constexpr MemoryNeeds kNeeds = {
    .fixed_bytes = 1000, .session_bytes = 200, .trunk_bytes = 5000, .slot_bytes = 10, .slots_min = 6, .slots_max = 100};

TEST(MemoryPlan, TheFloorIsWhatIsFixedTheTrunkAndTheFewestSlots) {
  EXPECT_EQ(memory_floor_bytes(kNeeds), 6260u);
}

TEST(MemoryPlan, TheFloorItselfFits) {
  const MemoryPlan plan = plan_memory(kNeeds, 6260).value();
  EXPECT_EQ(plan.slots, 6u);
  EXPECT_EQ(plan.fixed_bytes, 1200u);
  EXPECT_EQ(plan.pinned_bytes, 5000u);
}

TEST(MemoryPlan, OneByteBelowTheFloorIsRefused) {
  const auto plan = plan_memory(kNeeds, 6259);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kBudget);
  EXPECT_NE(plan.error().message.find("6260"), std::string::npos);
}

TEST(MemoryPlan, WhatIsLeftGoesToSlotsUpToTheMost) {
  EXPECT_EQ(plan_memory(kNeeds, 6269).value().slots, 6u);
  EXPECT_EQ(plan_memory(kNeeds, 6270).value().slots, 7u);
  EXPECT_EQ(plan_memory(kNeeds, 1 << 20).value().slots, 100u);
}

TEST(MemoryPlan, AModelWithoutExpertsHasNoSlots) {
  MemoryNeeds needs = kNeeds;
  needs.slot_bytes = needs.slots_min = needs.slots_max = 0;
  EXPECT_EQ(plan_memory(needs, 1 << 20).value().slots, 0u);
}

TEST(Units, BytesAreShownInTheLargestUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16384.0 PiB");
}

}  // namespace
}  // namespace headrace
