// libFuzzer target: shards and indexes that a stranger wrote.
// The first byte of an input chooses what the rest is: a shard, an index, or index and shard with an empty line
// between.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "fuzz/memory_file.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace {

using namespace headrace;
using test::MemoryFile;

alignas(4096) std::byte g_chunk[4096];

void read_header(std::string_view shard, size_t block_bytes) {
  MemoryFile file("shard", shard, block_bytes);
  const auto sink = [&](const HeaderTensor& tensor) -> Status {
    ENSURE(!tensor.name.empty() && tensor.name.size() <= kTensorNameBytesMax);
    ENSURE(tensor.range.offset <= shard.size() && tensor.range.size <= shard.size() - tensor.range.offset);
    ENSURE(tensor.shape.element_count() * dtype_bytes(tensor.dtype) == tensor.range.size);
    return {};
  };
  (void)read_safetensors_header(file, g_chunk, sink);  // Accepted or refused: it must return.
}

void read_index(std::string_view index) {
  MemoryFile file("index", index, 1);
  const auto entry = [](std::string_view, std::string_view) -> Status { return {}; };
  const auto total_size = [](uint64_t) -> Status { return {}; };
  (void)read_safetensors_index(file, g_chunk, {entry, total_size});
}

void open_checkpoint(std::string_view input) {
  const size_t border = std::min(input.find("\n\n"), input.size());
  const std::string_view index = input.substr(0, border);
  const std::string_view shard = input.substr(std::min(border + 2, input.size()));
  const FileOpener opener = [&](const std::string& path, ReadMode) -> Result<std::unique_ptr<ReadableFile>> {
    const std::string_view contents = path.ends_with(".json") ? index : shard;
    return std::unique_ptr<ReadableFile>(std::make_unique<MemoryFile>(path, contents, 512));
  };
  Budget budget(size_t{64} << 20);
  Result<Checkpoint> checkpoint = Checkpoint::open("/nowhere", opener, ReadMode::kDirect, budget);
  if (!checkpoint) {
    ENSURE(budget.used_bytes() == 0);
    return;
  }
  ENSURE(budget.used_bytes() == checkpoint.value().memory_bytes());
  const auto names = checkpoint.value().unclaimed_names(SIZE_MAX);
  ENSURE(names && names.value().size() == checkpoint.value().tensor_count());
  uint64_t data_bytes = 0;
  for (const std::string& name : names.value()) {
    const auto info = checkpoint.value().claim(name);
    ENSURE(info && info.value().range.end() <= checkpoint.value().file(info.value().file_index).size_bytes());
    data_bytes += info.value().range.size;
  }
  ENSURE(data_bytes == checkpoint.value().data_bytes() && checkpoint.value().unclaimed_count() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_header(rest, 1);
      break;
    case 1:
      read_header(rest, 512);
      break;
    case 2:
      read_index(rest);
      break;
    default:
      open_checkpoint(rest);
      break;
  }
  return 0;
}
