// What a model says it needs is what it takes: the memory plan is arithmetic over these numbers.

#include <gtest/gtest.h>

#include "models/model_harness.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

struct Opened {
  Log log;
  FileOpener opener = open_file;
  Budget budget{size_t{1} << 30};
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;

  explicit Opened(const std::string& folder, size_t threads, size_t chunk_tokens) {
    pool = ThreadPool::create(threads, {}).take_value();
    const ModelResources resources{*usable_kernels().front(), *pool, budget, opener, log};
    auto result = open_model(folder, resources, {.chunk_tokens_max = chunk_tokens});
    EXPECT_TRUE(result) << result.error().message;
    model = result.take_value();
  }
};

TEST(ModelMemory, TrunkStateAndSlotsTakeWhatTheModelSaysBeforehand) {
  for (const char* name : {"tiny_linear", "tiny_k3", "odd_linear", "narrow_widths"}) {
    SCOPED_TRACE(name);
    const test::TempFolder folder;
    folder.write(test::oracle_checkpoint(test::load_oracle_vectors(std::string("models/") + name)));
    Opened opened(folder.path(), 3, 16);
    Model& model = *opened.model;
    const size_t trunk_bytes = model.trunk_memory_bytes();
    size_t used = opened.budget.used_bytes();
    ASSERT_TRUE(model.load_trunk());
    EXPECT_EQ(opened.budget.used_bytes() - used, trunk_bytes);
    for (const size_t tokens : {1, 17, 1000}) {
      used = opened.budget.used_bytes();
      auto state = model.create_state(tokens);
      ASSERT_TRUE(state);
      EXPECT_EQ(opened.budget.used_bytes() - used, model.state_memory_bytes(tokens));
      EXPECT_EQ(state.value()->memory_bytes(), model.state_memory_bytes(tokens));
    }
    used = opened.budget.used_bytes();
    ASSERT_TRUE(model.create_expert_cache(7));
    const size_t cache_bytes = opened.budget.used_bytes() - used;
    EXPECT_LE(cache_bytes, model.expert_cache_fixed_bytes() + 7 * model.expert_slot_bytes());
    EXPECT_GE(cache_bytes, 7 * model.expert_slot_bytes());
  }
}

TEST(ModelMemory, ThePrefillChunkIsTheOnlyScratchThatGrows) {
  const test::TempFolder folder;
  folder.write(test::oracle_checkpoint(test::load_oracle_vectors("models/tiny_k3")));
  const size_t small = Opened(folder.path(), 1, 1).budget.used_bytes();
  const size_t large = Opened(folder.path(), 1, 64).budget.used_bytes();
  EXPECT_GT(large, small);
  // 64 tokens: about 30 rows of at most 256 floats each, and pages.
  EXPECT_LT(large - small, size_t{64} * 40 * 256 * sizeof(float));
}

}  // namespace
}  // namespace headrace
