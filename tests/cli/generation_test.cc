#include "cli/generation.h"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

TEST(EndReason, TellsTheLimitThatWasReached) {
  EXPECT_EQ(end_reason(HEADRACE_FINISH_LENGTH, 20, 20), "cut: as many tokens as -n allows");
  EXPECT_EQ(end_reason(HEADRACE_FINISH_LENGTH, 20, 30), "cut: the context is full; --ctx sets a larger one");
}

TEST(EndReason, WithoutALimitOnlyTheContextCuts) {
  for (const size_t token_count : {1, 511, 512, 600}) {
    EXPECT_EQ(end_reason(HEADRACE_FINISH_LENGTH, token_count, 0), "cut: the context is full; --ctx sets a larger one");
  }
}

TEST(EndReason, IsNothingForAnswersThatEndByThemselves) {
  EXPECT_EQ(end_reason(HEADRACE_FINISH_STOP, 20, 20), "");
  EXPECT_EQ(end_reason(HEADRACE_FINISH_TOOL_CALLS, 20, 20), "");
  EXPECT_EQ(end_reason(HEADRACE_FINISH_CANCELLED, 20, 20), "stopped");
}

}  // namespace
}  // namespace headrace::cli
