// libFuzzer target: a synth.json that a stranger wrote. What is accepted sends every name to a layer that is its own
// source.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "fuzz/memory_file.h"
#include "weights/layer_sources.h"

namespace {

using namespace headrace;
using test::MemoryFile;

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
