// What a state says that it consists of is all there is: written out and read back, copied, or taken back to an earlier
// token, it goes on with the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "models/model_harness.h"
#include "models/shapes/released_shapes.h"
#include "models/shapes/virtual_checkpoint.h"
#include "support/oracle_vectors.h"
#include "support/sanitizers.h"

namespace headrace {
namespace {

using test::OpenModel;
using test::RunSetup;
using Bytes = std::vector<std::byte>;
using Ids = std::vector<int32_t>;

constexpr const char* kNames[] = {"tiny_linear", "tiny_k3", "odd_linear", "narrow_widths"};
constexpr StatePart kParts[] = {StatePart::kRecurrent, StatePart::kPositional};

Bytes part_of(SequenceState& state, StatePart part, size_t tokens) {
  Bytes bytes;
  const Status status = state.visit(part, tokens, [&](std::span<std::byte> piece) -> Status {
    EXPECT_EQ(piece.size() % sizeof(float), 0u);
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  EXPECT_TRUE(status);
  EXPECT_EQ(bytes.size(), state.part_bytes(part, tokens));
  return bytes;
}

void put(SequenceState& state, StatePart part, size_t tokens, const Bytes& bytes) {
  size_t done = 0;
  const Status status = state.visit(part, tokens, [&](std::span<std::byte> piece) -> Status {
    std::memcpy(piece.data(), bytes.data() + done, piece.size());
    done += piece.size();
    return {};
  });
  EXPECT_TRUE(status);
  EXPECT_EQ(done, bytes.size());
}

/// Logits of each of `ids`, taken in one by one.
std::vector<std::vector<float>> continue_with(Model& model, SequenceState& state, const Ids& ids) {
  std::vector<std::vector<float>> logits;
  for (const int32_t id : ids) {
    std::vector<float>& row = logits.emplace_back(model.info().vocabulary_size);
    EXPECT_TRUE(model.forward(state, std::span(&id, 1), {MatrixView<float>(std::span(row)), nullptr}));
  }
  return logits;
}

void take_in(Model& model, SequenceState& state, const Ids& ids, size_t chunk) {
  for (size_t first = 0; first < ids.size(); first += chunk) {
    ASSERT_TRUE(model.forward(state, std::span(ids).subspan(first, std::min(chunk, ids.size() - first)), {}));
  }
}

struct Sample {
  test::TempFolder folder;
  Ids first, rest;

  explicit Sample(const std::string& name) {
    const auto vector = test::load_oracle_vectors("models/" + name);
    folder.write(test::oracle_checkpoint(vector));
    auto ids = vector["prompt"].get<Ids>();
    for (const int32_t id : vector["greedy"]["ids"]) ids.push_back(id);
    const auto middle = ids.begin() + static_cast<ptrdiff_t>(ids.size() / 2);
    first.assign(ids.begin(), middle);
    rest.assign(middle, ids.end());
  }
};

std::unique_ptr<OpenModel> open(const Sample& sample, const RunSetup& setup, size_t context_tokens = 256) {
  auto open = OpenModel::open(sample.folder.path(), setup, context_tokens);
  EXPECT_TRUE(open) << open.error().message;
  // Takes the memory of its passes.
  EXPECT_TRUE(open.value()->run(sample.first));
  open.value()->state().reset();
  return open.take_value();
}

TEST(ModelState, GoesOnWithTheSameBitsInAnotherModelOfOtherCapacityThreadsAndInstructions) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Sample sample(name);
    const auto plain = open(sample, {.isa = "scalar", .threads = 1});
    take_in(plain->model(), plain->state(), sample.first, 1);
    const size_t tokens = sample.first.size();
    const Bytes parts[] = {part_of(plain->state(), kParts[0], tokens), part_of(plain->state(), kParts[1], tokens)};
    const auto want = continue_with(plain->model(), plain->state(), sample.rest);
    for (const Kernels* kernels : usable_kernels()) {
      const auto other = open(sample, {.isa = kernels->name, .threads = 3, .chunk_tokens = 5}, 77);
      take_in(other->model(), other->state(), sample.first, 5);
      for (size_t i = 0; i < 2; ++i) EXPECT_EQ(part_of(other->state(), kParts[i], tokens), parts[i]) << kernels->name;
      other->state().reset();
      for (size_t i = 0; i < 2; ++i) put(other->state(), kParts[i], tokens, parts[i]);
      other->state().set_position(tokens);
      EXPECT_EQ(continue_with(other->model(), other->state(), sample.rest), want) << kernels->name;
    }
  }
}

TEST(ModelState, GoesBackToATokenWhoseRecurrentPartWasKept) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Sample sample(name);
    const auto open_model = open(sample, {});
    Model& model = open_model->model();
    SequenceState& state = open_model->state();
    take_in(model, state, sample.first, 3);
    const Bytes kept = part_of(state, StatePart::kRecurrent, state.position());
    const auto want = continue_with(model, state, sample.rest);
    take_in(model, state, sample.first, 7);
    put(state, StatePart::kRecurrent, sample.first.size(), kept);
    state.set_position(sample.first.size());
    EXPECT_EQ(continue_with(model, state, sample.rest), want);
  }
}

TEST(ModelState, ACopyGoesOnAsTheOriginalAndLeavesItAlone) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Sample sample(name);
    const auto open_model = open(sample, {});
    Model& model = open_model->model();
    SequenceState& state = open_model->state();
    take_in(model, state, sample.first, 4);
    const auto copy = model.create_state(state.position() + sample.rest.size()).take_value();
    take_in(model, *copy, {1, 2, 3}, 1);  // What was there goes.
    copy->copy_from(state);
    EXPECT_EQ(copy->position(), sample.first.size());
    const auto want = continue_with(model, state, sample.rest);
    EXPECT_EQ(continue_with(model, *copy, sample.rest), want);
  }
}

TEST(ModelState, AVisitEndsWithTheErrorOfItsVisitor) {
  const Sample sample("tiny_k3");
  const auto open_model = open(sample, {});
  for (const StatePart part : kParts) {
    size_t calls = 0;
    const Status status = open_model->state().visit(part, 4, [&](std::span<std::byte>) -> Status {
      if (++calls < 2) return {};
      return error(Code::kIo, "the drive is gone");
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kIo);
    EXPECT_EQ(calls, 2u);
  }
}

TEST(ModelState, OfTheReleasedModelsHasTheSizesOfTheSpecification) {
  for (const auto& [name, recurrent_layers, heads, positional_layers] :
       {std::tuple("kimi-linear-48b", 20, 32, 7), std::tuple("kimi-k3", 69, 96, 24)}) {
    if (test::kIsSanitized && positional_layers == 24) continue;  // Its half a million tensors take a minute then.
    Budget budget(SIZE_MAX);
    const Log log;
    const FileOpener opener = virtual_checkpoint_opener(*released_shape(name)).take_value();
    const auto pool = ThreadPool::create(1, {}).take_value();
    const auto queue = ReadQueue::create({}, budget, log).take_value();
    const ModelResources resources{*usable_kernels().front(), *pool, budget, *queue, opener, log};
    const auto model = open_model(name, resources, {}).take_value();
    const auto state = model->create_state(10).take_value();
    const uint64_t width = uint64_t{static_cast<uint64_t>(heads)} * 128;
    EXPECT_EQ(state->part_bytes(StatePart::kRecurrent, 10), recurrent_layers * width * (128 + 9) * 4) << name;
    EXPECT_EQ(state->part_bytes(StatePart::kPositional, 10), positional_layers * 10u * (512 + 64) * 4) << name;
  }
}

Hash128 fingerprint_of(const test::Files& files, const RunSetup& setup = {}) {
  const test::TempFolder folder;
  folder.write(files);
  auto open = OpenModel::open(folder.path(), setup);
  EXPECT_TRUE(open) << open.error().message;
  return open.value()->model().fingerprint();
}

TEST(ModelFingerprint, IsTheSameHoweverTheModelIsStoredAndRun) {
  const auto config = test::tiny_k3_config();
  const Hash128 plain = fingerprint_of(test::tiny_checkpoint(config));
  EXPECT_EQ(fingerprint_of(test::tiny_checkpoint(config), {.isa = "scalar", .threads = 3, .expert_slots = 8}), plain);
  EXPECT_EQ(fingerprint_of(test::tiny_checkpoint(config, {.scatter_seed = 4, .scatter_files = true})), plain);
}

TEST(ModelFingerprint, TellsOtherConfigurationsTypesAndSmallTensorsApart) {
  const auto config = test::tiny_linear_config();
  const Hash128 plain = fingerprint_of(test::tiny_checkpoint(config));
  EXPECT_NE(fingerprint_of(test::tiny_checkpoint(test::tiny_k3_config())), plain);
  auto other = config;
  other["rms_norm_eps"] = 2e-5;
  EXPECT_NE(fingerprint_of(test::tiny_checkpoint(other)), plain);
  EXPECT_NE(fingerprint_of(test::tiny_checkpoint(config, {.expert_format = "mxfp4"})), plain);
  EXPECT_NE(fingerprint_of(test::tiny_checkpoint(config, {.small_type = "F16"})), plain);
  // One number of one norm.
  test::Files files = test::tiny_checkpoint(config);
  for (auto& [name, contents] : files) {
    if (name.find(".safetensors") == std::string::npos || name.ends_with(".json")) continue;
    const size_t entry = contents.find("model.norm.weight");
    if (entry == std::string::npos) continue;
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, contents.data(), sizeof header_bytes);
    const auto header = nlohmann::json::parse(contents.substr(8, header_bytes));
    contents[8 + header_bytes + header["model.norm.weight"]["data_offsets"][0].get<size_t>()] ^= 1;
  }
  EXPECT_NE(fingerprint_of(files), plain);
}

}  // namespace
}  // namespace headrace
