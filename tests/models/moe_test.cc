// The mixture of experts takes its experts in the order in which the cache has them, and adds them up in another.

#include <gtest/gtest.h>

#include <cstring>

#include "models/model_harness.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::OpenModel;
using test::RunResult;
using test::RunSetup;

/// A tiny model in memory, its tensors scattered, and token ids for it.
struct Tiny {
  explicit Tiny(const char* name) {
    const auto vector = test::load_oracle_vectors(std::string("models/") + name);
    files = test::in_folder("m", test::oracle_checkpoint(vector, {.scatter_seed = 3, .scatter_files = true}));
    ids = vector["prompt"].get<std::vector<int32_t>>();
    top_k = vector["experts"][0][0][1].size();
  }
  std::vector<int32_t> first_ids(size_t count) const {
    std::vector<int32_t> first;
    for (size_t i = 0; i < count; ++i) first.push_back(ids[i * 7 % ids.size()]);
    return first;
  }

  test::Files files;
  std::vector<int32_t> ids;
  size_t top_k = 0;
};

void expect_same_logits(const RunResult& got, const RunResult& want) {
  ASSERT_EQ(got.logits.size(), want.logits.size());
  for (size_t t = 0; t < want.logits.size(); ++t) {
    const size_t bytes = want.logits[t].size() * sizeof(float);
    ASSERT_EQ(std::memcmp(got.logits[t].data(), want.logits[t].data(), bytes), 0) << "logits of token " << t;
  }
}

Result<RunResult> run_once(const Tiny& tiny, const RunSetup& setup, const std::vector<int32_t>& ids) {
  const auto open = TRY(OpenModel::open("m", setup, 256, size_t{1} << 30, test::memory_opener(tiny.files, 512)));
  return open->run(ids);
}

TEST(Moe, FewTokensAndManyAddUpTheSame) {
  // A pass takes experts as they land while all uses fit the scratch, and sweeps above that: both sides of the limit.
  for (const char* name : {"tiny_linear", "tiny_k3", "groups"}) {
    const Tiny tiny(name);
    constexpr size_t kChunk = 24;
    const size_t limit = kChunk / tiny.top_k;
    for (const size_t last : {size_t{1}, limit - 1, limit, limit + 1, kChunk}) {
      if (last == 0 || last > kChunk) continue;
      const std::vector<int32_t> ids = tiny.first_ids(kChunk + last);
      const auto want = run_once(tiny, {.chunk_tokens = 1}, ids);
      ASSERT_TRUE(want) << want.error().message;
      for (const size_t slots : {size_t{6}, size_t{0}}) {
        const auto got = run_once(tiny, {.threads = 2, .chunk_tokens = kChunk, .expert_slots = slots}, ids);
        ASSERT_TRUE(got) << got.error().message;
        expect_same_logits(got.value(), want.value());
      }
    }
  }
}

TEST(Moe, EveryBackEndAddsUpTheSame) {
  const Tiny tiny("tiny_k3");
  const test::TempFolder folder;
  for (const auto& [path, contents] : tiny.files) folder.write(path.substr(2), contents);
  const std::vector<int32_t> ids = tiny.first_ids(20);
  const auto want = run_once(tiny, {.chunk_tokens = 1}, ids);
  ASSERT_TRUE(want) << want.error().message;
  for (const ReadBackendKind backend : {ReadBackendKind::kThreads, ReadBackendKind::kAutomatic}) {
    for (const size_t chunk : {1u, 20u}) {
      const auto opened =
          OpenModel::open(folder.path(), {.threads = 2, .chunk_tokens = chunk, .expert_slots = 6, .backend = backend});
      ASSERT_TRUE(opened) << opened.error().message;
      const auto got = opened.value()->run(ids);
      ASSERT_TRUE(got) << got.error().message;
      expect_same_logits(got.value(), want.value());
    }
  }
}

TEST(Moe, AfterAFailedReadTheNextPassIsRight) {
  const Tiny tiny("tiny_k3");
  const std::vector<int32_t> ids = tiny.first_ids(6);
  for (const size_t chunk : {1u, 6u}) {
    const RunSetup setup{.chunk_tokens = chunk, .expert_slots = 6};
    FaultPlan plan;
    auto opened = OpenModel::open("m", setup, 256, size_t{1} << 30, test::memory_opener(tiny.files, 512, &plan));
    ASSERT_TRUE(opened) << opened.error().message;
    OpenModel& model = *opened.value();
    const auto want = model.run(ids);
    ASSERT_TRUE(want) << want.error().message;
    plan.reset_counts();
    ASSERT_TRUE(model.run(ids));
    const uint64_t read_count = plan.read_count;
    ASSERT_GT(read_count, 100u);
    uint64_t failure_count = 0;
    for (uint64_t fail_at = 0; fail_at < read_count; fail_at += 5) {
      plan.reset_counts();
      plan.fail_at = fail_at;
      const auto failed = model.run(ids);
      if (!failed) {
        ++failure_count;
        EXPECT_EQ(failed.error().code, Code::kIo);
        EXPECT_NE(failed.error().message.find("injected failure"), std::string::npos);
      }
      plan.fail_at = FaultPlan::kNever;
      const auto got = model.run(ids);
      ASSERT_TRUE(got) << got.error().message;
      expect_same_logits(got.value(), want.value());
    }
    // What is resident when a run begins differs, so the last reads of some runs are not made.
    EXPECT_GT(failure_count, read_count / 10);
  }
}

}  // namespace
}  // namespace headrace
