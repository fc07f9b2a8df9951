// P1: logits are a function of checkpoint and token ids only. Every way of running a model must give the same bits as
// the plainest one: scalar table, one thread, token by token, everything resident.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "models/model_harness.h"
#include "support/oracle_vectors.h"
#include "support/sanitizers.h"

namespace headrace {
namespace {

using test::OpenModel;
using test::RunResult;
using test::RunSetup;

bool long_tests() {
  return std::getenv("HEADRACE_LONG_TESTS") != nullptr;
}

constexpr size_t kAllTokens = 256;

/// Every combination of the matrix.
std::vector<RunSetup> all_setups(size_t top_k) {
  std::vector<RunSetup> setups;
  for (const Kernels* kernels : usable_kernels()) {
    for (const size_t threads : {1, 2, 3, 4}) {
      for (const size_t chunk : {size_t{1}, size_t{5}, size_t{7}, size_t{64}, kAllTokens}) {
        for (const size_t slots : {top_k, 3 * top_k, size_t{0}}) {
          setups.push_back({.isa = kernels->name, .threads = threads, .chunk_tokens = chunk, .expert_slots = slots});
        }
      }
    }
  }
  // How much is pinned, how it is read, what stays, and changes on the way turn with the rest, instead of multiplying
  // the matrix. Shifted in each round of the slots, and of the chunks: otherwise they would only meet one of them.
  const size_t row_blocks[] = {0, 1, 4096};
  const size_t pinned_groups[] = {0, 3, 6, SIZE_MAX};
  for (size_t i = 0; i < setups.size(); ++i) {
    setups[i].row_block_bytes = row_blocks[(i + i / 3) % 3];
    setups[i].pinned_groups = pinned_groups[(i + i / 3 + i / 15) % 4];
    setups[i].data_mode = (i + i / 15) % 2 == 0 ? ReadMode::kDirect : ReadMode::kBuffered;
    setups[i].backend = i / 2 % 2 == 0 ? ReadBackendKind::kUring : ReadBackendKind::kThreads;
    setups[i].policy = i / 4 % 2 == 0 ? "phase" : "lru";
    setups[i].rearrange_every = i % 5 == 0 ? 2 : 0;
  }
  return setups;
}

/// Every way to divide memory (the floor, two between, everything), with every way to read and to keep experts, and
/// with a division that changes on the way or does not.
std::vector<RunSetup> memory_setups(size_t top_k) {
  struct Division {
    size_t pinned_groups, slots;
  };
  std::vector<RunSetup> setups;
  for (const auto& [pinned, slots] : {Division{0, 1}, {2, 2 * top_k}, {5, 5 * top_k}, {SIZE_MAX, 0}}) {
    for (const ReadBackendKind backend : {ReadBackendKind::kUring, ReadBackendKind::kThreads}) {
      for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
        for (const char* policy : {"phase", "lru"}) {
          for (const size_t rearrange_every : {0, 9}) {
            setups.push_back({.threads = 2,
                              .chunk_tokens = 1,
                              .expert_slots = slots,
                              .pinned_groups = pinned,
                              .data_mode = mode,
                              .backend = backend,
                              .policy = policy,
                              .rearrange_every = rearrange_every});
          }
        }
      }
    }
  }
  return setups;
}

/// Both matrices.
std::vector<RunSetup> every_setup(size_t top_k) {
  std::vector<RunSetup> setups = all_setups(top_k);
  for (const RunSetup& setup : memory_setups(top_k)) setups.push_back(setup);
  return setups;
}

/// A sample: every value of every axis, and most pairs. Sanitizers, some ten times slower, look at memory, not bits.
std::vector<RunSetup> some_setups(size_t top_k) {
  const std::vector<RunSetup> all = every_setup(top_k);
  constexpr size_t kStep = test::kIsSanitized ? 41 : 7;  // Coprime to every axis.
  std::vector<RunSetup> some;
  for (size_t i = 0; i < all.size(); i += kStep) some.push_back(all[i]);
  return some;
}

void expect_same_bits(const RunResult& got, const RunResult& want) {
  ASSERT_EQ(got.logits.size(), want.logits.size());
  for (size_t t = 0; t < want.logits.size(); ++t) {
    const size_t bytes = want.logits[t].size() * sizeof(float);
    ASSERT_EQ(std::memcmp(got.logits[t].data(), want.logits[t].data(), bytes), 0) << "logits of token " << t;
    for (size_t i = 0; i < want.routing[t].size(); ++i) {
      ASSERT_EQ(got.routing[t][i].experts, want.routing[t][i].experts);
      ASSERT_EQ(got.routing[t][i].weights, want.routing[t][i].weights);
    }
  }
}

void expect_same_bits_everywhere(const std::string& folder, const std::vector<int32_t>& ids, size_t top_k) {
  const RunSetup plainest{.isa = "scalar", .threads = 1, .chunk_tokens = 1, .data_mode = ReadMode::kBuffered};
  auto reference = OpenModel::open(folder, plainest);
  ASSERT_TRUE(reference) << reference.error().message;
  auto want = reference.value()->run(ids);
  ASSERT_TRUE(want) << want.error().message;
  for (const RunSetup& setup : long_tests() ? every_setup(top_k) : some_setups(top_k)) {
    SCOPED_TRACE(setup.text());
    auto open = OpenModel::open(folder, setup);
    ASSERT_TRUE(open) << open.error().message;
    auto got = open.value()->run(ids);
    ASSERT_TRUE(got) << got.error().message;
    expect_same_bits(got.value(), want.value());
    const ModelCounters counters = open.value()->model().counters();
    if (setup.expert_slots != 0 && setup.chunk_tokens == 1) {
      EXPECT_GT(counters.expert_misses, open.value()->model().needs().expert_slots_min)
          << "the small cache never had to read an expert again: this run shows nothing";
    }
    if (setup.pinned_groups == 0 && setup.rearrange_every == 0) {
      EXPECT_EQ(counters.pinned_layers, 0u);
      EXPECT_GT(counters.blocks_streamed, Trunk::kRingBlocksMin) << "the ring never went round";
    }
  }
}

void expect_same_bits_for_tiny(const std::string& name) {
  const auto vector = test::load_oracle_vectors("models/" + name);
  auto ids = vector["prompt"].get<std::vector<int32_t>>();
  for (const int32_t id : vector["greedy"]["ids"]) ids.push_back(id);
  const test::TempFolder folder;
  // Scattered: tensors of an expert neither adjacent nor aligned, records across files.
  folder.write(test::oracle_checkpoint(vector, {.scatter_seed = 5, .scatter_files = true}));
  const size_t top_k = vector["experts"][0][0][1].size();
  expect_same_bits_everywhere(folder.path(), ids, top_k);
}

TEST(SameBits, TinyLinear) {
  expect_same_bits_for_tiny("tiny_linear");
}
TEST(SameBits, TinyK3) {
  expect_same_bits_for_tiny("tiny_k3");
}

TEST(SameBits, Demo) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/tests/data/demo/reference.json");
  ASSERT_TRUE(file.is_open());
  const auto reference = nlohmann::json::parse(file);
  auto ids = reference["prompts"][1]["ids"].get<std::vector<int32_t>>();
  for (const int32_t id : reference["prompts"][1]["greedy"]["ids"]) ids.push_back(id);
  expect_same_bits_everywhere(HEADRACE_SOURCE_DIR "/models/demo", ids, 4);
}

}  // namespace
}  // namespace headrace
