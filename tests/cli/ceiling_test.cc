#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "support/kernel_counts.h"
#include "support/memory_cgroup.h"
#include "support/sanitizers.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using test::kIsSanitized;
using test::MemoryCgroup;
using test::run_for_json;
using test::run_program;
using Words = std::vector<std::string>;

constexpr uint64_t kPageBytes = 4096;

enum class Kind { kDemo, kTinyK3, kTinyLinear };

struct Setting {
  Kind kind;
  Words options;
  std::string name;
};

/// P2: a budget is a ceiling on everything that the program causes. The whole process runs in a control group, which
/// counts what resident memory does not show: page cache, page tables, rings, registered buffers.
class Ceiling : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (kIsSanitized) GTEST_SKIP() << "the ceiling is not tested: sanitizers take memory of their own";
    std::string reason;
    if (!MemoryCgroup::create(reason)) GTEST_SKIP() << "the ceiling is not tested: " << reason;
    if (GetParam().kind == Kind::kDemo) {
      folder_ = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";
    } else {
      written_.emplace();
      const bool is_k3 = GetParam().kind == Kind::kTinyK3;
      written_->write(test::tiny_checkpoint(is_k3 ? test::tiny_k3_config() : test::tiny_linear_config()));
      folder_ = written_->path();
    }
    floor_bytes_ = run_for_json(words("plan", 0))["floor_bytes"];
    expected_ids_ = run_for_json(words("run", uint64_t{1} << 30))["ids"];
    ASSERT_EQ(expected_ids_.size(), 6u);
  }

  /// The floor in whole pages, as the kernel limits; and two larger ones.
  std::vector<uint64_t> budgets() const {
    const uint64_t floor = (floor_bytes_ + kPageBytes - 1) / kPageBytes * kPageBytes;
    return {floor, floor + (uint64_t{2} << 20), uint64_t{64} << 20};
  }

  /// A command line with a budget; 0 stands for the floor.
  Words words(const std::string& command, uint64_t budget_bytes) const {
    Words all = {command, folder_, "--json", "--ctx", "256"};
    all.insert(all.end(), GetParam().options.begin(), GetParam().options.end());
    all.push_back("--budget");
    all.push_back(budget_bytes == 0 ? "floor" : std::to_string(budget_bytes));
    if (command == "plan") return all;
    std::string ids = "1";
    for (int id = 2; id < 100; ++id) ids += "," + std::to_string(id);
    all.insert(all.end(), {"--ids", ids, "-n", "6"});
    return all;
  }

  /// Nothing that others have read already is free: the program and the model come from the drive.
  void evict_files() const {
    test::evict(HEADRACE_PROGRAM);
    for (const auto& file : std::filesystem::directory_iterator(folder_)) test::evict(file.path());
  }

  nlohmann::json run_in(const MemoryCgroup& group, uint64_t budget_bytes) {
    evict_files();
    const auto enter = [&group] {
      if (!group.enter()) _exit(99);
    };
    const auto result = run_program(words("run", budget_bytes), {.in_child = enter});
    EXPECT_EQ(result.exit_status, 0) << budget_bytes << " (-1: killed)\n" << result.error << group.statistics();
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  std::optional<test::TempFolder> written_;
  std::string folder_;
  uint64_t floor_bytes_ = 0;
  nlohmann::json expected_ids_;
};

TEST_P(Ceiling, TheProgramRunsInAGroupWhoseLimitIsTheBudget) {
  for (const uint64_t budget : budgets()) {
    std::string reason;
    const auto group = MemoryCgroup::create(reason);
    ASSERT_TRUE(group) << reason;
    ASSERT_TRUE(group->set_limit(budget));
    const auto result = run_in(*group, budget);
    ASSERT_TRUE(result.is_object());
    EXPECT_EQ(result["ids"], expected_ids_) << budget;
  }
}

TEST_P(Ceiling, WithoutALimitThePeakStaysBelowTheBudget) {
  for (const uint64_t budget : budgets()) {
    std::string reason;
    const auto group = MemoryCgroup::create(reason);
    ASSERT_TRUE(group) << reason;
    const auto result = run_in(*group, budget);
    ASSERT_TRUE(result.is_object());
    EXPECT_EQ(result["ids"], expected_ids_);
    const uint64_t peak = group->peak_bytes();
    EXPECT_GT(peak, uint64_t{1} << 20) << "the group has not counted";
    EXPECT_LE(peak, budget) << group->statistics();
    EXPECT_LE(result["stats"]["peak_rss_bytes"], budget);
    RecordProperty("peak_of_" + std::to_string(budget), std::to_string(peak));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Ceiling,
                         testing::Values(Setting{Kind::kDemo, {}, "Demo"}, Setting{Kind::kTinyK3, {}, "TinyK3"},
                                         Setting{Kind::kTinyLinear, {}, "TinyLinear"},
                                         Setting{Kind::kDemo, {"--io", "threads"}, "DemoByThreads"},
                                         Setting{Kind::kDemo, {"--no-direct-io"}, "DemoThroughThePageCache"},
                                         Setting{Kind::kDemo, {"--threads", "16"}, "DemoOnManyThreads"}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace headrace
