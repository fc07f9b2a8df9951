// libFuzzer target: a synth.json that a stranger wrote. What is accepted sends every name to a layer that is its own
// source.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "weights/layer_sources.h"

namespace {

using namespace headrace;

class MemoryFile final : public ReadableFile {
 public:
  MemoryFile(std::string path, std::string_view contents) : path_(std::move(path)), contents_(contents) {}
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return contents_.size(); }
  size_t block_bytes() const override { return 1; }
  bool is_direct() const override { return false; }
  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    if (offset >= contents_.size()) return size_t{0};
    const size_t size = std::min(out.size(), contents_.size() - static_cast<size_t>(offset));
    std::memcpy(out.data(), contents_.data() + offset, size);
    return size;
  }

 private:
  std::string path_;
  std::string_view contents_;
};

alignas(4096) std::byte g_chunk[4096];

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const FileOpener opener = [text](const std::string& path, ReadMode) -> Result<std::unique_ptr<ReadableFile>> {
    return std::unique_ptr<ReadableFile>(std::make_unique<MemoryFile>(path, text));
  };
  Budget budget(1 << 20);
  const auto opened = LayerSources::open("no such folder", opener, g_chunk, budget);
  if (!opened) return 0;
  const LayerSources& sources = *opened.value();
  for (const char* name : {"model.layers.0.a", "model.layers.7.a", "layers.4095.b", "layers..", "x"}) {
    std::string buffer;
    std::string again;
    const std::string stored(sources.stored_name(name, buffer));
    ENSURE(sources.stored_name(stored, again) == stored);
  }
  return 0;
}
