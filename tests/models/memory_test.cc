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
  std::unique_ptr<ReadQueue> queue = ReadQueue::create({}, budget, log).take_value();
  std::unique_ptr<Model> model;

  explicit Opened(const std::string& folder, size_t threads) {
    pool = ThreadPool::create(threads, {}).take_value();
    const ModelResources resources{*usable_kernels().front(), *pool, budget, *queue, opener, log};
    auto result = open_model(folder, resources, {});
    EXPECT_TRUE(result) << result.error().message;
    model = result.take_value();
  }
};

TEST(ModelMemory, StatesTakeWhatTheModelSaysBeforehand) {
  for (const char* name : {"tiny_linear", "tiny_k3", "odd_linear", "narrow_widths"}) {
    SCOPED_TRACE(name);
    const test::TempFolder folder;
    folder.write(test::oracle_checkpoint(test::load_oracle_vectors(std::string("models/") + name)));
    Opened opened(folder.path(), 3);
    Model& model = *opened.model;
    for (const size_t tokens : {1, 17, 1000}) {
      const size_t used = opened.budget.used_bytes();
      auto state = model.create_state(tokens);
      ASSERT_TRUE(state);
      EXPECT_EQ(opened.budget.used_bytes() - used, model.state_memory_bytes(tokens));
      EXPECT_EQ(state.value()->memory_bytes(), model.state_memory_bytes(tokens));
    }
  }
}

/// What an arrangement takes at most, by the needs of a model.
size_t arranged_bytes(const Model& model, const ModelArrangement& arrangement) {
  const ModelNeeds needs = model.needs();
  size_t bytes = arrangement.pinned_groups < needs.pin_order.size() ? needs.ring_bytes : 0;
  for (size_t i = 0; i < arrangement.pinned_groups; ++i) bytes += needs.pin_order[i].memory_bytes;
  return bytes + needs.expert_cache_fixed_bytes + arrangement.expert_slots * needs.expert_slot_bytes +
         model.scratch_bytes(arrangement.chunk_tokens).value();
}

TEST(ModelMemory, EveryArrangementTakesWhatTheModelSaysBeforehandAndGivesTheRestBack) {
  for (const char* name : {"tiny_linear", "tiny_k3", "odd_linear", "narrow_widths"}) {
    SCOPED_TRACE(name);
    const test::TempFolder folder;
    folder.write(test::oracle_checkpoint(test::load_oracle_vectors(std::string("models/") + name)));
    Opened opened(folder.path(), 3);
    Model& model = *opened.model;
    const size_t before = opened.budget.used_bytes();
    const ModelNeeds needs = model.needs();
    const size_t groups = needs.pin_order.size();
    const size_t all = needs.expert_slots_max;
    for (const ModelArrangement& arrangement :
         {ModelArrangement{0, needs.expert_slots_min, 1}, ModelArrangement{groups, all, 64},
          ModelArrangement{groups / 2, (all + needs.expert_slots_min) / 2, 16}, ModelArrangement{1, all, 1},
          ModelArrangement{groups - 1, needs.expert_slots_min, 256}, ModelArrangement{0, needs.expert_slots_min, 1}}) {
      const Status status = model.arrange(arrangement);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(model.arrangement(), arrangement);
      const size_t used = opened.budget.used_bytes() - before;
      const size_t slots_bytes = needs.expert_cache_fixed_bytes + arrangement.expert_slots * needs.expert_slot_bytes;
      EXPECT_LE(used, arranged_bytes(model, arrangement));
      // Slots are counted from above; everything else exactly.
      EXPECT_GE(used + slots_bytes, arranged_bytes(model, arrangement));
      EXPECT_GE(used, arrangement.expert_slots * needs.expert_slot_bytes);
    }
  }
}

TEST(ModelMemory, EveryRefusedReservationLeavesAModelThatCanBeArrangedAgain) {
  const test::TempFolder folder;
  folder.write(test::oracle_checkpoint(test::load_oracle_vectors("models/tiny_k3")));
  Opened opened(folder.path(), 1);
  Model& model = *opened.model;
  const ModelNeeds needs = model.needs();
  const ModelArrangement least = {0, needs.expert_slots_min, 1};
  const ModelArrangement most = {needs.pin_order.size(), needs.expert_slots_max, 64};
  ASSERT_TRUE(model.arrange(most));
  const size_t most_bytes = opened.budget.used_bytes();
  ASSERT_TRUE(model.arrange(least));
  const size_t least_bytes = opened.budget.used_bytes();
  for (size_t limit = least_bytes; limit < most_bytes; limit += (most_bytes - least_bytes) / 40) {
    ASSERT_TRUE(opened.budget.set_limit(limit));
    const Status refused = model.arrange(most);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kBudget);
    const Status status = model.arrange(least);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(opened.budget.used_bytes(), least_bytes);
  }
}

}  // namespace
}  // namespace headrace
