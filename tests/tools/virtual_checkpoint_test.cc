#include "models/shapes/virtual_checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "models/shapes/released_shapes.h"
#include "support/sanitizers.h"
#include "support/tiny_checkpoint.h"
#include "tools/synthesis.h"
#include "weights/checkpoint.h"
#include "weights/extent.h"

namespace headrace {
namespace {

/// All bytes of a file in pieces of `piece_bytes`.
std::string contents_of(ReadableFile& file, size_t piece_bytes) {
  Budget budget(1 << 20);
  const auto memory = BlockMemory::allocate(budget, piece_bytes, 4096, "test").take_value();
  const std::span<std::byte> piece = memory.bytes().first(piece_bytes);
  std::string contents;
  while (contents.size() < file.size_bytes()) {
    const size_t size = file.read_some(contents.size(), piece).take_value();
    contents.append(reinterpret_cast<const char*>(piece.data()), size);
    if (size == 0) break;
  }
  return contents;
}

TEST(VirtualCheckpoint, HasTheFilesThatAreWrittenForTheShapeWithoutTheirData) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    const test::Synthesis synthesis(config);
    SynthOptions options = synthesis.options();
    options.shard_bytes_max = LayoutOptions{}.shard_bytes_max;
    ASSERT_TRUE(test::synthesize_all(options));
    const FileOpener opener = virtual_checkpoint_opener(config.dump()).take_value();
    for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
      const std::string name = entry.path().filename();
      if (name == "synth.json") continue;
      const auto file = opener("nowhere/" + name, ReadMode::kDirect).take_value();
      const std::string written = test::plain_read(entry.path());
      ASSERT_EQ(file->size_bytes(), written.size()) << name;
      const std::string contents = contents_of(*file, 4096);
      EXPECT_EQ(contents, contents_of(*file, 3 * 4096));
      if (!name.ends_with(".safetensors")) {
        EXPECT_EQ(contents, written);
        continue;
      }
      const size_t header_bytes = written.rfind("]}}") + 3;
      EXPECT_EQ(contents.substr(0, header_bytes), written.substr(0, header_bytes));
      EXPECT_TRUE(std::ranges::all_of(contents.substr(header_bytes + 8), [](char byte) { return byte == 0; }));
    }
  }
}

TEST(VirtualCheckpoint, HasNoOtherFiles) {
  const FileOpener opener = virtual_checkpoint_opener(test::tiny_k3_config().dump()).take_value();
  for (const char* path : {"x/synth.json", "x/tiktoken.model", "x/", "", "model-00001-of-000012.safetensors"}) {
    const auto file = opener(path, ReadMode::kDirect);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, Code::kIo);
  }
}

TEST(VirtualCheckpoint, BufferedFilesAreReadByteByByteAndOthersInBlocks) {
  const FileOpener opener = virtual_checkpoint_opener(test::tiny_k3_config().dump()).take_value();
  const auto file = opener("config.json", ReadMode::kBuffered).take_value();
  EXPECT_EQ(file->block_bytes(), 1u);
  EXPECT_EQ(contents_of(*file, 7), test::tiny_k3_config().dump());
  EXPECT_EQ(opener("config.json", ReadMode::kDirect).take_value()->block_bytes(), 4096u);
}

TEST(VirtualCheckpoint, DamagedShapesAreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"model_type": "kimi_k3"})"}) {
    const auto opener = virtual_checkpoint_opener(text);
    ASSERT_FALSE(opener) << text;
    EXPECT_EQ(opener.error().code, Code::kFormat);
  }
  EXPECT_EQ(virtual_checkpoint_opener(R"({"model_type": "llama"})").error().code, Code::kUnsupported);
}

TEST(VirtualCheckpoint, FilesOutliveTheirOpener) {
  std::unique_ptr<ReadableFile> file;
  {
    const FileOpener opener = virtual_checkpoint_opener(test::tiny_linear_config().dump()).take_value();
    file = opener("model-00001-of-00001.safetensors", ReadMode::kDirect).take_value();
  }
  EXPECT_EQ(contents_of(*file, 4096).size(), file->size_bytes());
}

// Sanitizers keep freed memory for a while.
constexpr double kPeakMemoryMaxMb = test::kIsSanitized ? 2000 : 250;

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

TEST(VirtualCheckpoint, OpensTheReleasedModelsInSecondsAndLittleMemory) {
  for (const auto& [shape, parameters] : {std::pair("kimi-linear-48b", 49'122'681'728u), {"kimi-k3", size_t{0}}}) {
    if (test::kIsSanitized && parameters == 0)
      continue;  // Half a million tensors take it a minute; the code is the same.
    const double before_mb = peak_memory_mb();
    const auto start = std::chrono::steady_clock::now();
    const FileOpener opener = virtual_checkpoint_opener(released_shape(shape).value()).take_value();
    const auto pool = ThreadPool::create(1, {}).take_value();
    Budget budget(size_t{1} << 30);
    const Log log;
    const auto queue = ReadQueue::create({}, budget, log).take_value();
    const ModelResources resources{*usable_kernels().back(), *pool, budget, *queue, opener, log};
    const auto model = open_model("a shape", resources, {});
    ASSERT_TRUE(model) << model.error().message;
    const ModelInfo& info = model.value()->info();
    EXPECT_TRUE(parameters == 0 || info.parameter_count == parameters) << info.parameter_count;
    EXPECT_EQ(info.synthetic_shared_layers, std::nullopt);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::printf("%s: %zu tensors opened in %.2f s, peak memory %.0f MB before and %.0f MB after; slot %zu bytes\n",
                shape, info.tensor_count, elapsed.count(), before_mb, peak_memory_mb(),
                model.value()->needs().expert_slot_bytes);
    EXPECT_LT(peak_memory_mb(), kPeakMemoryMaxMb);
  }
}

}  // namespace
}  // namespace headrace
