// A budget that changes while a session lives: what the kernel counts for the process must follow it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "headrace/headrace.hpp"
#include "support/memory_cgroup.h"

namespace headrace {
namespace {

constexpr uint64_t kPlentyBytes = uint64_t{64} << 20;

/// What the child measures: the use of its control group, and the tokens of an answer under budgets that change.
struct Measured {
  uint64_t plenty = 0;
  uint64_t floor = 0;
  uint64_t plenty_again = 0;
  uint64_t pinned_bytes = 0;
  uint64_t slots_bytes = 0;
  std::array<int32_t, 24> ids{};
};

api::ModelOptions options_with(uint64_t budget_bytes) {
  api::ModelOptions options;
  options.budget_bytes = budget_bytes;
  options.context_tokens = 256;
  options.thread_count = 2;
  return options;
}

const std::vector<int32_t> kPrompt = {483, 502, 258, 386};
constexpr auto kAnyPiece = [](const headrace_piece&) { return true; };

/// Eight tokens with plenty of memory, eight at the floor, eight with plenty again.
Measured measure(const test::MemoryCgroup& group) {
  api::Model model(HEADRACE_SOURCE_DIR "/models/demo", options_with(kPlentyBytes));
  const auto plan = nlohmann::json::parse(model.plan_json());
  Measured measured{.pinned_bytes = plan["pinned_bytes"],
                    .slots_bytes = plan["slots"].get<uint64_t>() * plan["slot_bytes"].get<uint64_t>()};
  api::Session session = model.create_session();
  size_t done = 0;
  const auto generate = [&](std::vector<int32_t> prompt) {
    api::GenerateOptions options;
    options.tokens_max = 8;
    options.ignore_stop_ids = true;
    for (const int32_t id : session.generate(prompt, options, kAnyPiece).ids) measured.ids.at(done++) = id;
    return group.usage_bytes();
  };
  measured.plenty = generate(kPrompt);
  model.set_budget(plan["floor_bytes"]);
  measured.floor = generate({});
  model.set_budget(kPlentyBytes);
  measured.plenty_again = generate({});
  return measured;
}

TEST(BudgetChange, TheKernelGetsMemoryBackAndTheTokensStayTheSame) {
  std::string reason;
  const auto group = test::MemoryCgroup::create(reason);
  if (!group) GTEST_SKIP() << "memory that goes back to the kernel is not tested: " << reason;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!group->enter()) _exit(2);
    const Measured measured = measure(*group);
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 3);
  }
  close(ends[1]);
  Measured measured;
  ASSERT_EQ(read(ends[0], &measured, sizeof measured), static_cast<ssize_t>(sizeof measured));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  // Slots that no expert came to were never touched; half of them are certain to have been.
  const uint64_t given_back = measured.pinned_bytes + measured.slots_bytes / 2;
  ASSERT_GT(given_back, uint64_t{6} << 20);
  EXPECT_LT(measured.floor + given_back * 3 / 4, measured.plenty) << "of " << given_back;
  EXPECT_GT(measured.plenty_again, measured.floor + measured.pinned_bytes * 3 / 4);

  api::Model model(HEADRACE_SOURCE_DIR "/models/demo", options_with(kPlentyBytes));
  api::GenerateOptions options;
  options.tokens_max = measured.ids.size();
  options.ignore_stop_ids = true;
  const std::vector<int32_t> ids = model.create_session().generate(kPrompt, options, kAnyPiece).ids;
  EXPECT_EQ(std::vector<int32_t>(measured.ids.begin(), measured.ids.end()), ids);
}

}  // namespace
}  // namespace headrace
