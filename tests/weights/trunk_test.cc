#include "weights/trunk.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"
#include "support/value_generator.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;
using test::WrittenTensor;

constexpr size_t kBudgetBytes = 64 << 20;

std::unique_ptr<ReadQueue> test_queue(Budget& budget) {
  return ReadQueue::create({.backend = ReadBackendKind::kThreads}, budget, Log()).take_value();
}

/// An open checkpoint of memory.
struct Model {
  explicit Model(const Files& contents, size_t block = 1) : Model(contents, std::pair(block, block)) {}
  Model(const Files& contents, std::pair<size_t, size_t> blocks) : files(test::in_folder("m", contents)) {
    Result<Checkpoint> opened =
        Checkpoint::open("m", test::mixed_block_opener(files, blocks, &plan), ReadMode::kDirect, budget);
    EXPECT_TRUE(opened) << opened.error().message;
    checkpoint.emplace(opened.take_value());
    plan.reset_counts();
    used_bytes = budget.used_bytes();
  }

  Files files;
  FaultPlan plan;
  Budget budget{kBudgetBytes};
  std::unique_ptr<ReadQueue> queue = test_queue(budget);
  std::optional<Checkpoint> checkpoint;
  size_t used_bytes = 0;  ///< Of the budget, by all but a trunk.

  Trunk trunk(size_t row_block_bytes = 0) { return Trunk(*checkpoint, budget, *queue, row_block_bytes); }
  uint64_t bytes_read(ReadPurpose purpose) const { return queue->counters().bytes_read[static_cast<size_t>(purpose)]; }
};

/// Pins everything that was added.
Status load(Trunk& trunk) {
  return trunk.pin(trunk.groups_in_pin_order().size());
}

Files one_shard(const std::vector<WrittenTensor>& tensors, size_t padding = 0) {
  return {{"model.safetensors.index.json", test::index_text({{"a.safetensors", tensors}})},
          {"a.safetensors", test::safetensors_bytes(tensors, padding)}};
}

WrittenTensor numbers(const std::string& name, const std::string& type, std::vector<uint64_t> shape) {
  size_t count = 1;
  for (const uint64_t dim : shape) count *= dim;
  return {name, type, std::move(shape), test::tensor_bytes(name, type, {}, count, SIZE_MAX)};
}

/// Element `index` of the tensor that `numbers` makes, as the type rounds it.
float expected_number(const std::string& name, const std::string& type, size_t index) {
  const float value = test::uniform_value({}, test::value_hash(test::fnv1a64(name), index));
  if (type == "F32") return value;
  if (type == "BF16") return std::bit_cast<float>(uint32_t{test::bf16_of(value)} << 16);
  // 11 significant bits; the values of the test are normal.
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last_place = std::max(exponent, -13) - 11;
  return std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
}

std::string rows_text(const WeightView& view) {
  return {reinterpret_cast<const char*>(view.data), view.rows * view.row_bytes};
}

/// The matrices of a K3 model in a trunk, in groups of seven; every ninth as a whole.
struct AddedMatrices {
  struct Added {
    TrunkMatrix matrix;
    WrittenTensor tensor;
    bool is_whole = false;
  };
  std::vector<Added> matrices;

  explicit AddedMatrices(Trunk& trunk, const test::TinyOptions& options) {
    for (const WrittenTensor& tensor : test::tiny_tensors(test::tiny_k3_config(), options)) {
      if (tensor.shape.size() != 2 || tensor.type != "BF16" || tensor.name.ends_with("lm_head.weight")) continue;
      if (matrices.size() % 7 == 0) trunk.begin_layer();
      add(trunk, tensor, matrices.size() % 9 == 8);
    }
    trunk.begin_head();
    for (const WrittenTensor& tensor : test::tiny_tensors(test::tiny_k3_config(), options)) {
      if (tensor.name.ends_with("lm_head.weight")) add(trunk, tensor, false);
    }
    EXPECT_GT(matrices.size(), 80u);
  }

  void add(Trunk& trunk, const WrittenTensor& tensor, bool is_whole) {
    const auto matrix = is_whole ? trunk.add_whole_matrix(tensor.name, tensor.shape[0], tensor.shape[1])
                                 : trunk.add_matrix(tensor.name, tensor.shape[0], tensor.shape[1]);
    ASSERT_TRUE(matrix) << matrix.error().message;
    matrices.push_back({matrix.value(), tensor, is_whole});
  }

  /// One pass over all with the head, up to the first error.
  Status run_pass(Trunk& trunk) const {
    trunk.begin_pass(true);
    for (const Added& added : matrices) {
      for (size_t row = 0; row < added.matrix.rows;) row = TRY(trunk.acquire(added.matrix, row)).end_row();
    }
    return {};
  }

  /// One pass over all, compared with what was written.
  void expect_pass(Trunk& trunk, bool with_head) const {
    trunk.begin_pass(with_head);
    const size_t count = matrices.size() - (with_head ? 0 : 1);
    for (size_t i = 0; i < count; ++i) {
      const auto& [matrix, tensor, is_whole] = matrices[i];
      std::string read;
      for (size_t row = 0; row < matrix.rows;) {
        auto acquired = is_whole ? trunk.acquire_whole(matrix) : trunk.acquire(matrix, row);
        ASSERT_TRUE(acquired) << acquired.error().message;
        const WeightView& view = acquired.value().weights();
        ASSERT_EQ(acquired.value().first_row(), row);
        ASSERT_EQ(view.cols, matrix.cols);
        read += rows_text(view);
        row = acquired.value().end_row();
        ASSERT_TRUE(!is_whole || row == matrix.rows);
      }
      ASSERT_EQ(read, tensor.bytes) << tensor.name;
    }
  }
};

TEST(Trunk, HandsOutEveryRowOfEveryMatrixWhateverIsPinned) {
  struct Case {
    std::pair<size_t, size_t> io_blocks;
    size_t row_block_bytes;
  };
  for (const auto& [io_blocks, row_block_bytes] : {Case{{1, 1}, 0}, Case{{512, 512}, 1000}, Case{{4096, 4096}, 1 << 20},
                                                   Case{{512, 4096}, 1}, Case{{16'384, 1}, 0}}) {
    const test::TinyOptions options{.scatter_seed = io_blocks.first + row_block_bytes};
    Model model(test::tiny_checkpoint(test::tiny_k3_config(), options), io_blocks);
    Trunk trunk = model.trunk(row_block_bytes);
    const AddedMatrices added(trunk, options);
    const size_t groups = trunk.groups_in_pin_order().size();
    for (const size_t pinned : {size_t{0}, groups, groups - 1, size_t{1}}) {
      SCOPED_TRACE(pinned);
      ASSERT_TRUE(trunk.pin(pinned));
      EXPECT_EQ(trunk.pinned_count(), pinned);
      for (const bool with_head : {true, false, false, true}) added.expect_pass(trunk, with_head);
    }
    EXPECT_GT(trunk.blocks_streamed(), 300u);
  }
}

TEST(Trunk, APassThatBreaksOffAnywhereIsFollowedByAWholeOne) {
  Model model(test::tiny_checkpoint(test::tiny_k3_config()), 512);
  Trunk trunk = model.trunk();
  const AddedMatrices added(trunk, {});
  const size_t groups = trunk.groups_in_pin_order().size();
  // With all but one pinned, what is streamed fits the ring, and the next pass is read ahead as a whole.
  for (const size_t pinned : {size_t{3}, groups - 1, groups - 2}) {
    ASSERT_TRUE(trunk.pin(pinned));
    for (size_t end = 0; end < added.matrices.size(); end += 5) {
      for (const int heads : {0, 1, 2, 3}) {
        trunk.begin_pass(heads % 2 == 0);
        for (size_t i = 0; i < end; ++i) {
          const TrunkMatrix& matrix = added.matrices[i].matrix;
          for (size_t row = 0; row < matrix.rows;) row = trunk.acquire(matrix, row).take_value().end_row();
        }
        added.expect_pass(trunk, heads / 2 == 0);
      }
    }
  }
}

/// The last group of the pin order may be any; this pins all but the head.
TEST(Trunk, OnlyTheHeadMayBeStreamed) {
  Model model(one_shard({numbers("layer", "BF16", {64, 64}), numbers("head", "BF16", {4096, 64})}), 512);
  Trunk trunk = model.trunk();
  trunk.begin_layer();
  const TrunkMatrix layer = trunk.add_matrix("layer", 64, 64).take_value();
  trunk.begin_head();
  const TrunkMatrix head = trunk.add_matrix("head", 4096, 64).take_value();
  ASSERT_TRUE(trunk.pin(1));
  for (const int pass : {1, 0, 1, 0, 0, 1, 2, 0, 1, 2, 1, 2, 2, 0, 1}) {  // 2: with the head, but broken off before it.
    trunk.begin_pass(pass > 0);
    ASSERT_TRUE(trunk.acquire(layer, 0));
    for (size_t row = 0; pass == 1 && row < head.rows;) row = trunk.acquire(head, row).take_value().end_row();
  }
}

TEST(Trunk, TakesWhatItSaysOfTheBudgetHoweverMuchIsPinned) {
  Model model(test::tiny_checkpoint(test::tiny_k3_config()), 512);
  {
    Trunk trunk = model.trunk();
    const AddedMatrices added(trunk, {});
    const size_t before = model.budget.used_bytes();
    const std::vector<TrunkGroup> groups = trunk.groups_in_pin_order();
    for (const size_t pinned : {size_t{0}, groups.size(), groups.size() / 2, size_t{2}, groups.size() - 1}) {
      ASSERT_TRUE(trunk.pin(pinned));
      size_t expected = pinned < groups.size() ? trunk.ring_memory_bytes() : 0;
      for (size_t i = 0; i < pinned; ++i) expected += groups[i].memory_bytes;
      EXPECT_EQ(model.budget.used_bytes() - before, expected) << pinned;
    }
  }
  EXPECT_EQ(model.budget.used_bytes(), model.used_bytes);
}

TEST(Trunk, ReadsInAPassWhatItSaysBeforehand) {
  Model model(test::tiny_checkpoint(test::tiny_k3_config()), 512);
  Trunk trunk = model.trunk();
  const AddedMatrices added(trunk, {});
  ASSERT_TRUE(trunk.pin(4));
  const std::vector<TrunkGroup> groups = trunk.groups_in_pin_order();
  uint64_t expected = 0;
  for (size_t i = 4; i < groups.size(); ++i) expected += groups[i].read_bytes;
  const auto bytes = [&] { return model.bytes_read(ReadPurpose::kTrunk) + model.bytes_read(ReadPurpose::kHead); };
  added.expect_pass(trunk, true);
  model.queue->drain();  // What was read ahead for the next pass is there too.
  const uint64_t first = bytes();
  added.expect_pass(trunk, true);
  model.queue->drain();
  EXPECT_EQ(bytes() - first, expected) << "each pass reads itself once";
}

TEST(Trunk, PinsLayersFarFromEachOtherFirst) {
  Model model(test::tiny_checkpoint(test::tiny_k3_config()), 512);
  Trunk trunk = model.trunk();
  const AddedMatrices added(trunk, {});
  const std::vector<TrunkGroup> groups = trunk.groups_in_pin_order();
  ASSERT_GE(groups.size(), 8u);
  EXPECT_EQ(std::ranges::count(groups, true, &TrunkGroup::is_head), 1);
  ASSERT_TRUE(trunk.pin(groups.size()));
  EXPECT_EQ(trunk.pinned_layer_count(), groups.size() - 1);
  EXPECT_EQ(trunk.layer_count(), groups.size() - 1);
}

TEST(Trunk, EveryFailingReadOfAStreamedBlockIsNamedAndTheNextPassIsWhole) {
  Model model(test::tiny_checkpoint(test::tiny_k3_config()), 512);
  Trunk trunk = model.trunk();
  const AddedMatrices added(trunk, {});
  ASSERT_TRUE(trunk.pin(2));
  added.expect_pass(trunk, true);
  model.queue->drain();
  model.plan.reset_counts();
  added.expect_pass(trunk, true);
  model.queue->drain();
  const uint64_t reads = model.plan.read_count;
  size_t failed_later = 0;
  for (uint64_t n = 0; n < reads; n += 3) {
    model.plan.reset_counts();
    model.plan.fail_at = n;
    Status status = added.run_pass(trunk);
    model.queue->drain();
    model.plan.fail_at = FaultPlan::kNever;
    if (status) {  // It was read ahead for the pass that follows.
      ++failed_later;
      status = added.run_pass(trunk);
    }
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kIo);
    EXPECT_NE(status.error().message.find("tensor "), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("m/"), std::string::npos) << status.error().message;
    added.expect_pass(trunk, true);
    model.queue->drain();
  }
  EXPECT_GT(failed_later, 0u);
  EXPECT_LT(failed_later, reads / 3 / 2);
}

TEST(Trunk, ABudgetThatIsTooSmallIsRefusedWithTheNeed) {
  Model model(one_shard({numbers("a", "BF16", {1000, 64})}));
  Budget budget(100'000);
  Trunk trunk(*model.checkpoint, budget, *model.queue, 0);
  ASSERT_TRUE(trunk.add_matrix("a", 1000, 64));
  const Status status = load(trunk);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kBudget);
  EXPECT_NE(status.error().message.find("pinned weights needs 131072 bytes"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Trunk, IgnoresDimensionsOfOneAroundAMatrix) {
  Model model(one_shard({numbers("a", "F32", {1, 12}), numbers("b", "F32", {12}), numbers("c", "F32", {1, 3, 4, 1}),
                         numbers("d", "F32", {12, 1}), numbers("e", "F32", {3, 1, 4}), numbers("f", "F32", {1})}));
  Trunk trunk = model.trunk();
  EXPECT_TRUE(trunk.add_matrix("a", 1, 12));
  EXPECT_TRUE(trunk.add_matrix("b", 1, 12));
  EXPECT_TRUE(trunk.add_matrix("b", 12, 1));
  EXPECT_TRUE(trunk.add_matrix("c", 3, 4));
  EXPECT_TRUE(trunk.add_matrix("d", 12, 1));
  EXPECT_TRUE(trunk.add_matrix("f", 1, 1));
  for (const auto& [name, rows, cols] : {std::tuple("a", 3, 4), std::tuple("c", 4, 3), std::tuple("c", 12, 1),
                                         std::tuple("e", 3, 4), std::tuple("f", 1, 2)}) {
    const Result<TrunkMatrix> matrix = trunk.add_matrix(name, rows, cols);
    ASSERT_FALSE(matrix) << name;
    EXPECT_EQ(matrix.error().code, Code::kFormat);
    EXPECT_NE(matrix.error().message.find(std::string("tensor ") + name + ": shape ["), std::string::npos);
  }
}

TEST(Trunk, RefusesTypesThatAreNoNumbersAndTensorsThatAreMissing) {
  Model model(one_shard({{"bytes", "U8", {2, 2}, "abcd"}, {"wide", "F64", {1}, "12345678"}}));
  Trunk trunk = model.trunk();
  for (const auto& result :
       {trunk.add_matrix("bytes", 2, 2), trunk.add_row_table("bytes", 2, 2), trunk.add_matrix("absent", 2, 2)}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kFormat);
  }
  EXPECT_EQ(trunk.add_matrix("bytes", 2, 2).error().message, "tensor bytes: type U8, expected BF16, F16 or F32");
  EXPECT_EQ(trunk.read_vector("wide", 1).error().message, "tensor wide: type F64, expected BF16, F16 or F32");
  EXPECT_FALSE(trunk.read_vector("absent", 1));
}

TEST(Trunk, ReadsVectorsOfAnyTypeExactly) {
  for (const size_t block : {1u, 512u, 4096u}) {
    for (const std::string type : {"F32", "BF16", "F16"}) {
      Model model(one_shard({numbers("first", "BF16", {3}), numbers("v", type, {1, 1, 700, 1})}, 5), block);
      Trunk trunk = model.trunk();
      const size_t before = model.budget.used_bytes();
      const std::vector<float> values = trunk.read_vector("v", 700).take_value();
      ASSERT_EQ(values.size(), 700u);
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected_number("v", type, i)) << type << i;
      const std::vector<float> prefix = trunk.read_vector_prefix("v", 600).take_value();
      EXPECT_EQ(prefix, std::vector<float>(values.begin(), values.begin() + 600));
      EXPECT_EQ(model.budget.used_bytes(), before);
    }
  }
}

TEST(Trunk, RefusesVectorsOfAnotherLength) {
  Model model(one_shard({numbers("v", "F32", {2, 3}), {"nil", "F32", {0}, ""}}));
  Trunk trunk = model.trunk();
  EXPECT_TRUE(trunk.read_vector("v", 6));
  EXPECT_TRUE(trunk.read_vector_prefix("v", 6));
  EXPECT_EQ(trunk.read_vector("v", 5).error().message, "tensor v: shape [2, 3], expected 5 elements");
  EXPECT_EQ(trunk.read_vector("v", 7).error().code, Code::kFormat);
  EXPECT_EQ(trunk.read_vector_prefix("v", 7).error().message, "tensor v: shape [2, 3], expected at least 7 elements");
  EXPECT_EQ(trunk.read_vector("nil", 0).error().message, "tensor nil is empty");
}

TEST(Trunk, RefusesNumbersThatAreNone) {
  WrittenTensor infinite = numbers("infinite", "BF16", {4});
  infinite.bytes[5] = 0x7f, infinite.bytes[4] = static_cast<char>(0x80);
  WrittenTensor none = numbers("none", "F32", {4});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(none.bytes.data() + 12, &nan, 4);
  Model model(one_shard({infinite, none}));
  Trunk trunk = model.trunk();
  EXPECT_EQ(trunk.read_vector("infinite", 4).error().message, "tensor infinite: element 2 is not a finite number");
  EXPECT_EQ(trunk.read_vector("none", 4).error().message, "tensor none: element 3 is not a finite number");
  EXPECT_EQ(trunk.read_vector("none", 4).error().code, Code::kFormat);
  EXPECT_TRUE(trunk.read_vector_prefix("none", 3)) << "what is not used does not matter";
}

/// One row of a table.
Status read_row(Trunk& trunk, const TrunkMatrix& table, uint32_t row, std::span<float> out) {
  return trunk.read_rows(table, {&row, 1}, MatrixView<float>(out));
}

TEST(Trunk, ReadsRowsOfATable) {
  for (const size_t block : {1u, 512u, 4096u}) {
    for (const std::string type : {"F32", "BF16", "F16"}) {
      Model model(
          one_shard({numbers("first", "BF16", {1}), numbers("small", type, {9, 5}), numbers("table", type, {50, 333})},
                    1),
          block);
      Trunk trunk = model.trunk();
      const TrunkMatrix small = trunk.add_row_table("small", 9, 5).take_value();
      const TrunkMatrix table = trunk.add_row_table("table", 50, 333).take_value();
      ASSERT_TRUE(load(trunk));
      std::vector<uint32_t> wanted;
      for (uint32_t i = 0; i < 50; ++i) wanted.push_back((i * 7) % 50);
      std::vector<float> values(50 * 333);
      ASSERT_TRUE(trunk.read_rows(table, wanted, MatrixView<float>(values.data(), 50, 333)));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], expected_number("table", type, wanted[i / 333] * 333 + i % 333));
      }
      EXPECT_EQ(model.bytes_read(ReadPurpose::kHead) / 50, trunk.row_read_bytes(table));
      for (uint32_t i = 0; i < 9; ++i) {
        ASSERT_TRUE(read_row(trunk, small, i, std::span(values).first(5)));
        ASSERT_EQ(values[4], expected_number("small", type, i * 5 + 4));
      }
    }
  }
}

TEST(Trunk, AFailingReadOfARowIsReportedAndTheNextOneWorks) {
  Model model(one_shard({numbers("table", "BF16", {50, 333})}), 512);
  Trunk trunk = model.trunk();
  const TrunkMatrix table = trunk.add_row_table("table", 50, 333).take_value();
  ASSERT_TRUE(load(trunk));
  std::vector<float> row(333);
  model.plan.reset_counts();
  model.plan.fail_at = 0;
  const Status status = read_row(trunk, table, 7, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("m/a.safetensors"), std::string::npos);
  ASSERT_TRUE(read_row(trunk, table, 7, row));
  EXPECT_EQ(row[3], expected_number("table", "BF16", 7 * 333 + 3));
}

TEST(Trunk, RefusesARowWithANumberThatIsNone) {
  WrittenTensor table = numbers("table", "BF16", {4, 8});
  table.bytes[2 * 8 * 2 + 7] = 0x7f;
  table.bytes[2 * 8 * 2 + 6] = static_cast<char>(0xc0);
  Model model(one_shard({table}));
  Trunk trunk = model.trunk();
  const TrunkMatrix matrix = trunk.add_row_table("table", 4, 8).take_value();
  std::vector<float> row(8);
  EXPECT_TRUE(read_row(trunk, matrix, 1, row));
  const Status status = read_row(trunk, matrix, 2, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFormat);
  EXPECT_EQ(status.error().message, "tensor table: row 2: element 3 is not a finite number");
}

TEST(Trunk, RefusesAStreamedWholeMatrixWithANumberThatIsNone) {
  WrittenTensor whole = numbers("whole", "BF16", {4, 8});
  whole.bytes[2 * 13] = static_cast<char>(0x80);
  whole.bytes[2 * 13 + 1] = 0x7f;
  Model model(one_shard({whole}));
  Trunk trunk = model.trunk();
  const TrunkMatrix matrix = trunk.add_whole_matrix("whole", 4, 8).take_value();
  ASSERT_TRUE(trunk.pin(0));
  trunk.begin_pass(true);
  const auto block = trunk.acquire_whole(matrix);
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().message, "tensor whole: element 13 is not a finite number");
}

TEST(Trunk, EveryFailingReadEndsTheLoading) {
  const Files files = test::tiny_checkpoint(test::tiny_linear_config());
  const std::vector<WrittenTensor> tensors = test::tiny_tensors(test::tiny_linear_config());
  Model model(files, 512);
  const size_t before = model.budget.used_bytes();
  const auto load_all = [&]() -> Status {
    Trunk trunk = model.trunk(4096);
    for (const WrittenTensor& tensor : tensors) {
      if (tensor.name.find(".experts.") != std::string::npos) continue;
      if (tensor.shape.size() == 2) {
        TRY(trunk.add_matrix(tensor.name, tensor.shape[0], tensor.shape[1]));
      } else {
        size_t count = 1;
        for (const uint64_t dim : tensor.shape) count *= dim;
        TRY(trunk.read_vector(tensor.name, count));
      }
    }
    return load(trunk);
  };
  ASSERT_TRUE(load_all());
  const uint64_t read_count = model.plan.read_count;
  ASSERT_GT(read_count, 100u);
  for (uint64_t fail_at = 0; fail_at < read_count; ++fail_at) {
    model.plan.reset_counts();
    model.plan.fail_at = fail_at;
    const Status status = load_all();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kIo);
    EXPECT_NE(status.error().message.find("tensor "), std::string::npos) << status.error().message;
    EXPECT_EQ(model.budget.used_bytes(), before);
  }
}

TEST(Trunk, ShortReadsChangeNothing) {
  const auto config = test::tiny_linear_config();
  Model model(test::tiny_checkpoint(config, {.scatter_seed = 9}), 512);
  model.plan.bytes_per_read_max = 512;
  Trunk trunk = model.trunk();
  const TrunkMatrix matrix = trunk.add_whole_matrix("lm_head.weight", 768, 64).take_value();
  ASSERT_TRUE(load(trunk));
  const std::string expected =
      test::tensor_bytes("lm_head.weight", "BF16", {.scale = std::sqrt(3.0 / 64)}, 768 * 64, SIZE_MAX);
  EXPECT_EQ(rows_text(trunk.acquire_whole(matrix).take_value().weights()), expected);
}

TEST(Trunk, EqualsAPlainReadOfFilesOnDisk) {
  test::TempFolder folder;
  const auto config = test::tiny_linear_config();
  folder.write(test::tiny_checkpoint(config, {.scatter_seed = 11}));
  Budget budget(kBudgetBytes);
  Checkpoint checkpoint = Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget).take_value();
  const std::unique_ptr<ReadQueue> queue = test_queue(budget);
  Trunk trunk(checkpoint, budget, *queue, 0);
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const TrunkMatrix matrix = trunk.add_whole_matrix(name, 64, 128).take_value();
  ASSERT_TRUE(load(trunk));
  const TensorInfo info = *checkpoint.find(name);
  EXPECT_EQ(rows_text(trunk.acquire_whole(matrix).take_value().weights()),
            test::plain_read(checkpoint.file(info.file_index).path(), info.range.offset, info.range.size));
}

}  // namespace
}  // namespace headrace
