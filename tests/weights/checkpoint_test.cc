#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"
#include "support/value_generator.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;
using test::safetensors_bytes;
using test::TempFolder;
using test::WrittenTensor;

constexpr size_t kBudgetBytes = 64 << 20;
const std::string kIndex = "model.safetensors.index.json";

/// A folder of memory and the budget that opens it.
struct Folder {
  explicit Folder(const Files& contents, size_t block_bytes = 1)
      : files(test::in_folder("m", contents)), block(block_bytes) {}
  Result<Checkpoint> open() {
    return Checkpoint::open("m", test::memory_opener(files, block, &plan), ReadMode::kDirect, budget);
  }

  Files files;
  size_t block;
  FaultPlan plan;
  Budget budget{kBudgetBytes};
};

WrittenTensor bytes_tensor(const std::string& name, size_t size, char fill = 'x') {
  return {name, "U8", {size}, std::string(size, fill)};
}

/// Shards with an index that tells the truth about them.
Files indexed(const std::map<std::string, std::vector<WrittenTensor>>& shards) {
  Files files{{kIndex, test::index_text(shards)}};
  for (const auto& [name, tensors] : shards) files[name] = safetensors_bytes(tensors);
  return files;
}

Files two_shards() {
  return indexed({{"a.safetensors", {bytes_tensor("one", 10), bytes_tensor("two", 20)}},
                  {"b.safetensors", {bytes_tensor("three", 30)}}});
}

void expect_refused(const Result<Checkpoint>& checkpoint, const Budget& budget, const std::string& reason,
                    Code code = Code::kFormat) {
  ASSERT_FALSE(checkpoint) << "expected: " << reason;
  EXPECT_EQ(checkpoint.error().code, code) << checkpoint.error().message;
  EXPECT_NE(checkpoint.error().message.find(reason), std::string::npos)
      << checkpoint.error().message << "\nexpected: " << reason;
  EXPECT_EQ(budget.used_bytes(), 0u);
}

void expect_refused(const Files& files, const std::string& reason, Code code = Code::kFormat) {
  Folder folder(files);
  expect_refused(folder.open(), folder.budget, reason, code);
}

/// Every tensor that was written is found, with its bytes.
void expect_tensors(Checkpoint& checkpoint, const std::vector<WrittenTensor>& tensors, const Files& files) {
  EXPECT_EQ(checkpoint.tensor_count(), tensors.size());
  uint64_t data_bytes = 0;
  for (const WrittenTensor& tensor : tensors) {
    const std::optional<TensorInfo> info = checkpoint.find(tensor.name);
    ASSERT_TRUE(info) << tensor.name;
    EXPECT_STREQ(dtype_name(info->dtype), tensor.type.c_str());
    ASSERT_EQ(info->shape.rank, tensor.shape.size());
    EXPECT_TRUE(std::equal(tensor.shape.begin(), tensor.shape.end(), info->shape.dims.begin()));
    const std::string& contents = files.at(checkpoint.file(info->file_index).path());
    ASSERT_EQ(contents.substr(info->range.offset, info->range.size), tensor.bytes) << tensor.name;
    data_bytes += tensor.bytes.size();
  }
  EXPECT_EQ(checkpoint.data_bytes(), data_bytes);
}

TEST(Checkpoint, FindsEveryTensorOfTheTinyModels) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    for (const test::TinyOptions& options :
         {test::TinyOptions{}, test::TinyOptions{.scatter_seed = 3},
          test::TinyOptions{.small_type = "F16", .scatter_seed = 4, .scatter_files = true}}) {
      for (const size_t block : {1u, 512u, 4096u}) {
        Folder folder(test::tiny_checkpoint(config, options), block);
        Result<Checkpoint> checkpoint = folder.open();
        ASSERT_TRUE(checkpoint) << checkpoint.error().message;
        expect_tensors(checkpoint.value(), test::tiny_tensors(config, options), folder.files);
      }
    }
  }
}

TEST(Checkpoint, OpensAFolderWithoutAnIndex) {
  TempFolder folder;
  Files files = test::tiny_checkpoint(test::tiny_linear_config());
  files.erase(kIndex);
  folder.write(files);
  Budget budget(kBudgetBytes);
  Result<Checkpoint> checkpoint = Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint.value().file_count(), 2u);
  EXPECT_EQ(checkpoint.value().folder(), folder.path());
  expect_tensors(checkpoint.value(), test::tiny_tensors(test::tiny_linear_config()),
                 test::in_folder(folder.path(), files));
}

TEST(Checkpoint, FilesAreInTheOrderOfTheirNames) {
  Folder folder(two_shards());
  const Checkpoint checkpoint = folder.open().take_value();
  ASSERT_EQ(checkpoint.file_count(), 2u);
  EXPECT_EQ(checkpoint.file(0).path(), "m/a.safetensors");
  EXPECT_EQ(checkpoint.file(1).path(), "m/b.safetensors");
  EXPECT_EQ(checkpoint.find("three")->file_index, 1u);
}

TEST(Checkpoint, CountsWhatNobodyClaimed) {
  Folder folder(two_shards());
  Checkpoint checkpoint = folder.open().take_value();
  EXPECT_EQ(checkpoint.unclaimed_count(), 3u);
  EXPECT_EQ(checkpoint.unclaimed_names(2).take_value().size(), 2u);
  ASSERT_TRUE(checkpoint.claim("one"));
  ASSERT_TRUE(checkpoint.claim("one")) << "claiming twice is harmless";
  EXPECT_EQ(checkpoint.unclaimed_count(), 2u);
  ASSERT_TRUE(checkpoint.claim_prefixes({"t"}));
  EXPECT_EQ(checkpoint.unclaimed_count(), 0u);
  EXPECT_TRUE(checkpoint.unclaimed_names(5).take_value().empty());
}

TEST(Checkpoint, NamesTheUnclaimedTensors) {
  Folder folder(two_shards());
  Checkpoint checkpoint = folder.open().take_value();
  ASSERT_TRUE(checkpoint.claim_prefixes({"tw"}));
  const std::vector<std::string> names = checkpoint.unclaimed_names(5).take_value();
  EXPECT_EQ(names, (std::vector<std::string>{"one", "three"}));
}

TEST(Checkpoint, AMissingTensorIsDamageWithItsName) {
  Folder folder(two_shards());
  Checkpoint checkpoint = folder.open().take_value();
  EXPECT_FALSE(checkpoint.find("four"));
  const Result<TensorInfo> info = checkpoint.claim("four");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, Code::kFormat);
  EXPECT_EQ(info.error().message, "m: tensor four is missing");
}

TEST(Checkpoint, ListsAllMissingShards) {
  Files files = indexed({{"a.safetensors", {bytes_tensor("one", 1)}},
                         {"b.safetensors", {bytes_tensor("two", 1)}},
                         {"c.safetensors", {bytes_tensor("three", 1)}}});
  files.erase("a.safetensors");
  files.erase("c.safetensors");
  expect_refused(files, "m: 2 of 3 shards are missing: a.safetensors, c.safetensors");
}

TEST(Checkpoint, ALinkThatLeadsNowhereIsAMissingShard) {
  TempFolder folder;
  folder.write(two_shards());
  std::filesystem::remove(folder.file("b.safetensors"));
  std::filesystem::create_symlink("blobs/gone", folder.file("b.safetensors"));
  Budget budget(kBudgetBytes);
  expect_refused(Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget), budget,
                 "1 of 2 shards are missing: b.safetensors");
}

TEST(Checkpoint, AShardThatIsThereButDoesNotOpenIsAFailure) {
  TempFolder folder;
  folder.write(two_shards());
  std::filesystem::remove(folder.file("b.safetensors"));
  std::filesystem::create_directory(folder.file("b.safetensors"));
  Budget budget(kBudgetBytes);
  expect_refused(Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget), budget, "not a regular file",
                 Code::kIo);
}

TEST(Checkpoint, AnIndexThatDoesNotOpenIsNotPassedOver) {
  TempFolder folder;
  folder.write(two_shards());
  std::filesystem::remove(folder.file(kIndex));
  std::filesystem::create_symlink("blobs/gone", folder.file(kIndex));
  Budget budget(kBudgetBytes);
  expect_refused(Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget), budget, kIndex, Code::kIo);
}

TEST(Checkpoint, RefusesFoldersWithoutAModel) {
  TempFolder folder;
  Budget budget(kBudgetBytes);
  expect_refused(Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget), budget,
                 folder.path() + ": neither " + kIndex + " nor any *.safetensors file");
  const std::string absent = folder.file("absent");
  expect_refused(Checkpoint::open(absent, open_file, ReadMode::kDirect, budget), budget, absent, Code::kIo);
}

TEST(Checkpoint, ListsTensorsThatAreNotWhereTheIndexSays) {
  Files files = two_shards();
  files["b.safetensors"] = safetensors_bytes({bytes_tensor("other", 30)});
  expect_refused(files, "tensor other is not in the index");
  files = two_shards();
  files["a.safetensors"] = safetensors_bytes({bytes_tensor("two", 20)});
  files[kIndex] = R"({"weight_map":{"one":"a.safetensors","two":"a.safetensors","three":"b.safetensors"}})";
  expect_refused(files, "1 tensors are not in the file that the index names: one (m/a.safetensors)");
}

TEST(Checkpoint, RefusesATensorInAnotherFileThanTheIndexSays) {
  Files files = two_shards();
  files[kIndex] = R"({"weight_map":{"one":"a.safetensors","two":"b.safetensors","three":"b.safetensors"}})";
  expect_refused(files, "tensor two is in m/b.safetensors, says the index");
}

TEST(Checkpoint, RefusesDoubledNames) {
  Files files = two_shards();
  // Twice in one header.
  files["a.safetensors"] =
      safetensors_bytes({bytes_tensor("one", 10), bytes_tensor("two", 20), bytes_tensor("one", 1)});
  expect_refused(files, "tensor one is there twice");
  // Twice in the index.
  files = two_shards();
  files[kIndex] = R"({"weight_map":{"one":"a.safetensors","two":"a.safetensors","three":"b.safetensors",)"
                  R"("one":"b.safetensors"}})";
  expect_refused(files, "tensor one is there twice: in m/a.safetensors and in m/b.safetensors");
  // In two files, once in the index.
  files = two_shards();
  files["b.safetensors"] = safetensors_bytes({bytes_tensor("three", 30), bytes_tensor("one", 10)});
  expect_refused(files, "tensor one is in m/a.safetensors, says the index");
}

TEST(Checkpoint, RefusesDoubledNamesWithoutAnIndex) {
  TempFolder folder;
  folder.write("a.safetensors", safetensors_bytes({bytes_tensor("one", 10), bytes_tensor("two", 20)}));
  folder.write("b.safetensors", safetensors_bytes({bytes_tensor("two", 20)}));
  Budget budget(kBudgetBytes);
  expect_refused(
      Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget), budget,
      "tensor two is there twice: in " + folder.file("a.safetensors") + " and in " + folder.file("b.safetensors"));
}

TEST(Checkpoint, RefusesBytesThatBelongToNoTensorOrToTwo) {
  const WrittenTensor one = bytes_tensor("one", 10);
  const WrittenTensor two = bytes_tensor("two", 20);
  const auto with_header = [&](const std::string& entries, size_t data_bytes) {
    Files files;
    files[kIndex] = R"({"weight_map":{"one":"a.safetensors","two":"a.safetensors"}})";
    files["a.safetensors"] = safetensors_bytes("{" + entries + "}", std::string(data_bytes, 'x'));
    return files;
  };
  const auto entries = [&](uint64_t first, uint64_t second) {
    return test::header_entry(one, first) + "," + test::header_entry(two, second);
  };
  const auto header_bytes = [&](uint64_t first, uint64_t second) { return 8 + 2 + entries(first, second).size(); };
  const auto place = [&](uint64_t offset) { return std::to_string(header_bytes(0, 10) + offset); };
  EXPECT_TRUE(Folder(with_header(entries(0, 10), 30)).open());
  EXPECT_TRUE(Folder(with_header(entries(20, 0), 30)).open()) << "any order is right";
  expect_refused(with_header(entries(0, 15), 35), "m/a.safetensors: bytes " + place(10) + " to " + place(15) +
                                                      ", before tensor two, belong to no tensor");
  expect_refused(with_header(entries(5, 15), 35), "before tensor one, belong to no tensor");
  expect_refused(with_header(entries(0, 10), 31),
                 "bytes " + place(30) + " to " + place(31) + ", the end of the file, belong to no tensor");
  expect_refused(with_header(entries(0, 5), 25), "tensor two at byte");
  expect_refused(with_header(entries(0, 0), 20), "overlaps the one before it");
  expect_refused(with_header(entries(5, 0), 20), "tensor one at byte");
}

TEST(Checkpoint, EmptyTensorsTakeNoBytes) {
  const WrittenTensor empty{"empty", "F32", {3, 0}, ""};
  Folder folder(indexed({{"a.safetensors", {bytes_tensor("one", 10), empty, bytes_tensor("two", 20)}},
                         {"b.safetensors", {WrittenTensor{"nil", "U8", {0}, ""}}}}));
  Result<Checkpoint> checkpoint = folder.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint.value().find("empty")->range.size, 0u);
  EXPECT_EQ(checkpoint.value().find("nil")->shape.text(), "[0]");
}

TEST(Checkpoint, AnEmptyTensorInsideAnotherIsDamage) {
  Files files;
  files[kIndex] = R"({"weight_map":{"one":"a.safetensors","nil":"a.safetensors"}})";
  files["a.safetensors"] = safetensors_bytes(
      "{" + test::header_entry(bytes_tensor("one", 10), 0) + "," + test::header_entry(bytes_tensor("nil", 0), 5) + "}",
      std::string(10, 'x'));
  expect_refused(files, "tensor nil at byte");
}

TEST(Checkpoint, RefusesATotalThatDisagrees) {
  Files files = two_shards();
  const std::string total = "\"total_size\":60";
  ASSERT_NE(files[kIndex].find(total), std::string::npos);
  files[kIndex].replace(files[kIndex].find(total), total.size(), "\"total_size\":61");
  expect_refused(files, "total_size is 61, but the tensors have 60 bytes");
}

TEST(Checkpoint, RefusesShardNamesThatLeaveTheFolder) {
  for (const std::string& name :
       {std::string("../a.safetensors"), std::string("/etc/a.safetensors"), std::string("sub/a.safetensors"),
        std::string("sub\\\\a.safetensors"), std::string("..safetensors"), std::string("a..safetensors"),
        std::string(".safetensors"), std::string("a.bin"), std::string("a.safetensors.bin"), std::string(""),
        std::string("a\\u0000.safetensors"), std::string(300, 'a') + ".safetensors"}) {
    Files files{{kIndex, R"({"weight_map":{"one":")" + name + "\"}}"}};
    expect_refused(files, "is not the name of a shard");
  }
}

TEST(Checkpoint, RefusesAnIndexThatSaysNothing) {
  expect_refused({{kIndex, "{\"weight_map\":{}}"}}, "weight_map is empty");
  expect_refused({{kIndex, "{}"}}, "weight_map is missing");
  expect_refused({{kIndex, ""}}, kIndex);
}

TEST(Checkpoint, RefusesMoreShapesThanAModelHas) {
  std::vector<WrittenTensor> tensors;
  for (size_t i = 0; i < 4097; ++i) tensors.push_back(bytes_tensor("t" + std::to_string(i), i));
  Files files{{"a.safetensors", safetensors_bytes(tensors)}};
  files[kIndex] = "{\"weight_map\":{";
  for (size_t i = 0; i < tensors.size(); ++i) {
    files[kIndex] += (i ? ",\"" : "\"") + tensors[i].name + "\":\"a.safetensors\"";
  }
  files[kIndex] += "}}";
  expect_refused(files, "more than 4096 different types and shapes", Code::kUnsupported);
}

TEST(Checkpoint, EveryTruncationOfAShardIsRefusedAndNamed) {
  const Files whole = test::tiny_checkpoint(test::tiny_k3_config());
  const std::string name = "model-00003-of-000011.safetensors";
  const size_t header_bytes =
      8 + static_cast<unsigned char>(whole.at(name)[0]) + 256 * static_cast<unsigned char>(whole.at(name)[1]);
  std::vector<size_t> sizes;
  for (size_t size = 0; size < header_bytes; size += 1 + size / 16) sizes.push_back(size);
  const size_t data_bytes = whole.at(name).size() - header_bytes;
  for (uint64_t i = 0; i < 40; ++i) sizes.push_back(header_bytes + test::value_hash(1, i) % data_bytes);
  sizes.push_back(whole.at(name).size() - 1);
  for (const size_t size : sizes) {
    Files files = whole;
    files[name].resize(size);
    expect_refused(files, name);
  }
}

TEST(Checkpoint, DamagedHeadersAndIndexesNeverLeadOutOfAFile) {
  const Files whole = two_shards();
  size_t opened_count = 0;
  for (uint64_t round = 0; round < 5'000; ++round) {
    Files files = whole;
    for (uint64_t flip = 0; flip <= round % 3; ++flip) {
      const uint64_t hash = test::value_hash(round, flip);
      std::string& bytes = std::next(files.begin(), hash % 3)->second;
      bytes[(hash >> 8) % bytes.size()] = static_cast<char>(hash >> 40);
    }
    Folder folder(files);
    Result<Checkpoint> checkpoint = folder.open();
    if (!checkpoint) {
      ASSERT_EQ(checkpoint.error().code, Code::kFormat) << checkpoint.error().message;
      ASSERT_EQ(folder.budget.used_bytes(), 0u);
      continue;
    }
    ++opened_count;
    for (const char* name : {"one", "two", "three"}) {
      const std::optional<TensorInfo> info = checkpoint.value().find(name);
      if (!info) continue;
      const uint64_t file_bytes = checkpoint.value().file(info->file_index).size_bytes();
      ASSERT_LE(info->range.end(), file_bytes);
    }
  }
  EXPECT_GT(opened_count, 100u) << "damage of the data goes unseen: the test must reach both sides";
}

TEST(Checkpoint, AByteTooManyAtTheEndOfAShardIsRefused) {
  Files files = two_shards();
  files["b.safetensors"] += '\0';
  expect_refused(files, "m/b.safetensors");
}

TEST(Checkpoint, EveryFailingReadEndsTheOpening) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    Folder counting(test::tiny_checkpoint(config), 512);
    ASSERT_TRUE(counting.open());
    const uint64_t read_count = counting.plan.read_count;
    ASSERT_GT(read_count, 5u);
    for (uint64_t fail_at = 0; fail_at < read_count; ++fail_at) {
      counting.plan.reset_counts();
      counting.plan.fail_at = fail_at;
      expect_refused(counting.open(), counting.budget, "injected failure", Code::kIo);
    }
  }
}

TEST(Checkpoint, ShortReadsChangeNothing) {
  Folder folder(test::tiny_checkpoint(test::tiny_linear_config()));
  folder.plan.bytes_per_read_max = 1;
  Result<Checkpoint> checkpoint = folder.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  expect_tensors(checkpoint.value(), test::tiny_tensors(test::tiny_linear_config()), folder.files);
}

TEST(Checkpoint, FailingReadsOfTheSecondLookAreReported) {
  Folder folder(two_shards());
  Checkpoint checkpoint = folder.open().take_value();
  const size_t used_bytes = folder.budget.used_bytes();
  folder.plan.reset_counts();
  folder.plan.fail_at = 1;
  const auto names = checkpoint.unclaimed_names(10);
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().code, Code::kIo);
  folder.plan.reset_counts();
  const Status status = checkpoint.claim_prefixes({"o"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(folder.budget.used_bytes(), used_bytes);
}

/// A file whose contents change when it is read from its beginning for the second time.
class ChangingFile final : public ReadableFile {
 public:
  ChangingFile(std::string path, std::string before, std::string after)
      : path_(std::move(path)), before_(std::move(before)), after_(std::move(after)) {}
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return before_.size(); }
  size_t block_bytes() const override { return 1; }
  bool is_direct() const override { return false; }
  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    if (offset == 0) ++passes_;
    const std::string& contents = passes_ < 2 ? before_ : after_;
    const size_t count = std::min(out.size(), contents.size() - std::min<size_t>(offset, contents.size()));
    std::memcpy(out.data(), contents.data() + offset, count);
    return count;
  }

 private:
  std::string path_, before_, after_;
  int passes_ = 0;
};

// Far more tensors in a shard than the index said when room for them was made.
TEST(Checkpoint, RefusesAnIndexThatChangesWhileItIsRead) {
  std::map<std::string, std::vector<WrittenTensor>> shards{{"b.safetensors", {bytes_tensor("only", 8)}}};
  for (int i = 0; i < 5000; ++i) shards["a.safetensors"].push_back(bytes_tensor("t" + std::to_string(i), 1));
  const Files files = test::in_folder("m", indexed(shards));
  std::map<std::string, std::vector<WrittenTensor>> swapped{{"a.safetensors", shards["b.safetensors"]},
                                                            {"b.safetensors", shards["a.safetensors"]}};
  const std::string before = test::index_text(swapped);
  const std::string after = files.at("m/" + kIndex);
  ASSERT_EQ(before.size(), after.size());
  const FileOpener memory = test::memory_opener(files);
  const FileOpener opener = [&](const std::string& path, ReadMode mode) -> Result<std::unique_ptr<ReadableFile>> {
    if (path != "m/" + kIndex) return memory(path, mode);
    return std::unique_ptr<ReadableFile>(std::make_unique<ChangingFile>(path, before, after));
  };
  Budget budget(kBudgetBytes);
  const auto refused = Checkpoint::open("m", opener, ReadMode::kBuffered, budget);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFormat) << refused.error().message;
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Checkpoint, TakesItsMemoryFromTheBudget) {
  Folder folder(test::tiny_checkpoint(test::tiny_k3_config()));
  {
    const Checkpoint checkpoint = folder.open().take_value();
    EXPECT_EQ(folder.budget.used_bytes(), checkpoint.memory_bytes());
    EXPECT_LT(checkpoint.memory_bytes(), 64u << 10);
  }
  EXPECT_EQ(folder.budget.used_bytes(), 0u);
}

TEST(Checkpoint, EveryBudgetThatIsTooSmallIsRefused) {
  Folder folder(test::tiny_checkpoint(test::tiny_k3_config()));
  ASSERT_TRUE(folder.open());
  const size_t peak_bytes = folder.budget.peak_bytes();
  for (size_t limit = 0; limit < peak_bytes; limit += 1 + peak_bytes / 97) {
    Budget budget(limit);
    expect_refused(Checkpoint::open("m", test::memory_opener(folder.files), ReadMode::kDirect, budget), budget, "needs",
                   Code::kBudget);
  }
  Budget budget(peak_bytes);
  EXPECT_TRUE(Checkpoint::open("m", test::memory_opener(folder.files), ReadMode::kDirect, budget));
}

TEST(Checkpoint, CountsTheBytesThatItReads) {
  Folder folder(test::tiny_checkpoint(test::tiny_k3_config()));
  const Checkpoint checkpoint = folder.open().take_value();
  EXPECT_EQ(checkpoint.header_bytes(), folder.plan.bytes_read);
}

uint64_t kernel_read_bytes() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

TEST(Checkpoint, CountsTheBytesThatTheKernelCounts) {
  TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_k3_config()));
  Budget budget(kBudgetBytes);
  const uint64_t before = kernel_read_bytes();
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path(), open_file, ReadMode::kDirect, budget);
  const uint64_t kernel = kernel_read_bytes() - before;
  ASSERT_TRUE(checkpoint);
  if (!checkpoint.value().file(0).is_direct() || kernel == 0) {
    GTEST_SKIP() << "the file system of " << folder.path() << " refuses direct reads or does not count them";
  }
  EXPECT_EQ(checkpoint.value().header_bytes(), kernel);
}

TEST(Checkpoint, OpensTheDemoModel) {
  const std::string folder = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";
  Budget budget(kBudgetBytes);
  Result<Checkpoint> checkpoint = Checkpoint::open(folder, open_file, ReadMode::kDirect, budget);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint.value().file_count(), 3u);
  EXPECT_EQ(checkpoint.value().data_bytes(), 10'836'096u);
}

}  // namespace
}  // namespace headrace
