#include "weights/trunk.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
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

/// An open checkpoint of memory.
struct Model {
  explicit Model(const Files& contents, size_t block = 1) : Model(contents, std::pair(block, block)) {}
  Model(const Files& contents, std::pair<size_t, size_t> blocks) : files(test::in_folder("m", contents)) {
    Result<Checkpoint> opened =
        Checkpoint::open("m", test::mixed_block_opener(files, blocks, &plan), ReadMode::kDirect, budget);
    EXPECT_TRUE(opened) << opened.error().message;
    checkpoint.emplace(opened.take_value());
    plan.reset_counts();
  }

  Files files;
  FaultPlan plan;
  Budget budget{kBudgetBytes};
  std::optional<Checkpoint> checkpoint;
};

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

/// Every matrix of a K3 model through blocks of rows, and as a whole, against what was written.
void expect_all_matrices(Model& model, const test::TinyOptions& options, size_t row_block_bytes) {
  Trunk trunk(*model.checkpoint, model.budget, row_block_bytes);
  std::vector<std::pair<TrunkMatrix, const WrittenTensor*>> added;
  const std::vector<WrittenTensor> tensors = test::tiny_tensors(test::tiny_k3_config(), options);
  for (const WrittenTensor& tensor : tensors) {
    if (tensor.shape.size() != 2 || tensor.type != "BF16") continue;
    Result<TrunkMatrix> matrix = trunk.add_matrix(tensor.name, tensor.shape[0], tensor.shape[1]);
    ASSERT_TRUE(matrix) << matrix.error().message;
    added.emplace_back(matrix.take_value(), &tensor);
  }
  ASSERT_GT(added.size(), 80u);
  ASSERT_TRUE(trunk.load());
  for (const auto& [matrix, tensor] : added) {
    std::string read;
    for (size_t row = 0; row < matrix.rows;) {
      const RowBlock rows = trunk.acquire(matrix, row).take_value();
      const WeightView& view = rows.weights();
      ASSERT_EQ(rows.first_row(), row);
      ASSERT_EQ(view.format, Format::kBf16);
      ASSERT_EQ(view.cols, matrix.cols);
      ASSERT_TRUE(view.rows == 1 || row_block_bytes == 0 || view.rows * view.row_bytes <= row_block_bytes);
      read += rows_text(view);
      row = rows.end_row();
    }
    ASSERT_EQ(read, tensor->bytes) << tensor->name;
    const RowBlock whole = trunk.acquire_whole(matrix).take_value();
    ASSERT_EQ(whole.end_row(), matrix.rows);
    ASSERT_EQ(rows_text(whole.weights()), tensor->bytes) << tensor->name;
  }
  EXPECT_EQ(trunk.wait_s(), 0.0);
}

TEST(Trunk, HandsOutEveryRowOfEveryMatrixInBlocks) {
  using Blocks = std::pair<size_t, size_t>;
  for (const Blocks& blocks :
       {Blocks{1, 1}, Blocks{512, 512}, Blocks{4096, 4096}, Blocks{512, 4096}, Blocks{16'384, 1}}) {
    for (const size_t row_block_bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20}) {
      const test::TinyOptions options{.scatter_seed = blocks.first + row_block_bytes};
      Model model(test::tiny_checkpoint(test::tiny_k3_config(), options), blocks);
      expect_all_matrices(model, options, row_block_bytes);
    }
  }
}

TEST(Trunk, TakesItsMemoryFromTheBudgetAndGivesItBack) {
  Model model(one_shard({numbers("a", "BF16", {100, 64}), numbers("b", "F32", {8, 8})}), 512);
  const size_t before = model.budget.used_bytes();
  {
    Trunk trunk(*model.checkpoint, model.budget, 0);
    ASSERT_TRUE(trunk.add_matrix("a", 100, 64));
    ASSERT_TRUE(trunk.add_matrix("b", 8, 8));
    ASSERT_TRUE(trunk.load());
    EXPECT_EQ(model.budget.used_bytes() - before, trunk.resident_bytes());
    EXPECT_GE(trunk.resident_bytes(), 12'800u + 256u);
    EXPECT_LE(trunk.resident_bytes(), 12'800u + 256u + 4 * 512u + 4096u);
    // The file ends inside a block, of which a drive delivers the whole.
    EXPECT_GE(trunk.matrix_bytes_read(), model.plan.bytes_read);
    EXPECT_LT(trunk.matrix_bytes_read(), model.plan.bytes_read + 2 * 512);
    EXPECT_EQ(trunk.matrix_bytes_read() % 512, 0u);
  }
  EXPECT_EQ(model.budget.used_bytes(), before);
}

TEST(Trunk, ABudgetThatIsTooSmallIsRefusedWithTheNeed) {
  Model model(one_shard({numbers("a", "BF16", {1000, 64})}));
  Budget budget(100'000);
  Trunk trunk(*model.checkpoint, budget, 0);
  ASSERT_TRUE(trunk.add_matrix("a", 1000, 64));
  const Status status = trunk.load();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kBudget);
  EXPECT_NE(status.error().message.find("resident weights needs 131072 bytes"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Trunk, IgnoresDimensionsOfOneAroundAMatrix) {
  Model model(one_shard({numbers("a", "F32", {1, 12}), numbers("b", "F32", {12}), numbers("c", "F32", {1, 3, 4, 1}),
                         numbers("d", "F32", {12, 1}), numbers("e", "F32", {3, 1, 4}), numbers("f", "F32", {1})}));
  Trunk trunk(*model.checkpoint, model.budget, 0);
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
  Trunk trunk(*model.checkpoint, model.budget, 0);
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
      Trunk trunk(*model.checkpoint, model.budget, 0);
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
  Trunk trunk(*model.checkpoint, model.budget, 0);
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
  Trunk trunk(*model.checkpoint, model.budget, 0);
  EXPECT_EQ(trunk.read_vector("infinite", 4).error().message, "tensor infinite: element 2 is not a finite number");
  EXPECT_EQ(trunk.read_vector("none", 4).error().message, "tensor none: element 3 is not a finite number");
  EXPECT_EQ(trunk.read_vector("none", 4).error().code, Code::kFormat);
  EXPECT_TRUE(trunk.read_vector_prefix("none", 3)) << "what is not used does not matter";
}

TEST(Trunk, ReadsSingleRowsOfATable) {
  for (const size_t block : {1u, 512u, 4096u}) {
    for (const std::string type : {"F32", "BF16", "F16"}) {
      Model model(
          one_shard({numbers("first", "BF16", {1}), numbers("small", type, {9, 5}), numbers("table", type, {50, 333})},
                    1),
          block);
      Trunk trunk(*model.checkpoint, model.budget, 0);
      const TrunkMatrix small = trunk.add_row_table("small", 9, 5).take_value();
      const TrunkMatrix table = trunk.add_row_table("table", 50, 333).take_value();
      ASSERT_TRUE(trunk.load());
      EXPECT_EQ(trunk.resident_bytes(), 0u);
      std::vector<float> row(333);
      for (size_t i = 0; i < 50; ++i) {
        const uint64_t before = trunk.row_bytes_read();
        ASSERT_TRUE(trunk.read_row(table, i, row));
        for (size_t j = 0; j < row.size(); ++j) ASSERT_EQ(row[j], expected_number("table", type, i * 333 + j));
        EXPECT_LE(trunk.row_bytes_read() - before, 333u * 4 + 2 * block);
      }
      for (size_t i = 0; i < 9; ++i) {
        ASSERT_TRUE(trunk.read_row(small, i, std::span(row).first(5)));
        ASSERT_EQ(row[4], expected_number("small", type, i * 5 + 4));
      }
      EXPECT_GT(trunk.wait_s(), 0.0);
    }
  }
}

TEST(Trunk, AFailingReadOfARowIsReportedAndTheNextOneWorks) {
  Model model(one_shard({numbers("table", "BF16", {50, 333})}), 512);
  Trunk trunk(*model.checkpoint, model.budget, 0);
  const TrunkMatrix table = trunk.add_row_table("table", 50, 333).take_value();
  ASSERT_TRUE(trunk.load());
  std::vector<float> row(333);
  model.plan.reset_counts();
  model.plan.fail_at = 0;
  const Status status = trunk.read_row(table, 7, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("m/a.safetensors"), std::string::npos);
  ASSERT_TRUE(trunk.read_row(table, 7, row));
  EXPECT_EQ(row[3], expected_number("table", "BF16", 7 * 333 + 3));
}

TEST(Trunk, RefusesARowWithANumberThatIsNone) {
  WrittenTensor table = numbers("table", "BF16", {4, 8});
  table.bytes[2 * 8 * 2 + 7] = 0x7f;
  table.bytes[2 * 8 * 2 + 6] = static_cast<char>(0xc0);
  Model model(one_shard({table}));
  Trunk trunk(*model.checkpoint, model.budget, 0);
  const TrunkMatrix matrix = trunk.add_row_table("table", 4, 8).take_value();
  std::vector<float> row(8);
  EXPECT_TRUE(trunk.read_row(matrix, 1, row));
  const Status status = trunk.read_row(matrix, 2, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFormat);
  EXPECT_EQ(status.error().message, "m/a.safetensors: row 2 of a table: element 3 is not a finite number");
}

TEST(Trunk, EveryFailingReadEndsTheLoading) {
  const Files files = test::tiny_checkpoint(test::tiny_linear_config());
  const std::vector<WrittenTensor> tensors = test::tiny_tensors(test::tiny_linear_config());
  Model model(files, 512);
  const size_t before = model.budget.used_bytes();
  const auto load = [&]() -> Status {
    Trunk trunk(*model.checkpoint, model.budget, 4096);
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
    return trunk.load();
  };
  ASSERT_TRUE(load());
  const uint64_t read_count = model.plan.read_count;
  ASSERT_GT(read_count, 100u);
  for (uint64_t fail_at = 0; fail_at < read_count; ++fail_at) {
    model.plan.reset_counts();
    model.plan.fail_at = fail_at;
    const Status status = load();
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
  Trunk trunk(*model.checkpoint, model.budget, 0);
  const TrunkMatrix matrix = trunk.add_matrix("lm_head.weight", 768, 64).take_value();
  ASSERT_TRUE(trunk.load());
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
  Trunk trunk(checkpoint, budget, 0);
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const TrunkMatrix matrix = trunk.add_matrix(name, 64, 128).take_value();
  ASSERT_TRUE(trunk.load());
  const TensorInfo info = *checkpoint.find(name);
  EXPECT_EQ(rows_text(trunk.acquire_whole(matrix).take_value().weights()),
            test::plain_read(checkpoint.file(info.file_index).path(), info.range.offset, info.range.size));
}

}  // namespace
}  // namespace headrace
