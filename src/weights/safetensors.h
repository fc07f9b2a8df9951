#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "io/file.h"
#include "weights/checkpoint.h"

namespace headrace {

/// Largest header of a shard, as the format itself has it; Kimi K3's are below 1 MB.
inline constexpr uint64_t kHeaderBytesMax = 100'000'000;
/// Longest name of a tensor. Names are looked up by their hash; this bounds messages.
inline constexpr size_t kTensorNameBytesMax = 512;

/// A tensor as the header of a shard describes it, checked on its own: its type is known, its bytes lie inside the
/// file and are as many as its shape asks for. `range` is in the file, header counted.
struct HeaderTensor {
  std::string_view name;  ///< Valid during the call.
  DType dtype = DType::kF32;
  Shape shape;
  ByteRange range;
};

struct HeaderSummary {
  uint64_t tensor_count = 0;
  uint64_t data_begin = 0;  ///< Offset of the first byte after the header.
  uint64_t bytes_read = 0;  ///< From the drive.
};

/// Called for every tensor in the order of the header; an error ends the reading and is returned.
using HeaderSink = FunctionRef<Status(const HeaderTensor&)>;

/// Reads the header of a safetensors file through `chunk` (aligned to the file's block, at least one block long) and
/// gives every tensor to `sink`. Nothing is allocated that grows with the file.
/// kFormat names the file, the tensor where there is one, and the reason; kIo is a failing read. Not checked here,
/// because it takes all tensors at once: doubled names, overlaps and gaps.
Result<HeaderSummary> read_safetensors_header(ReadableFile& file, std::span<std::byte> chunk, HeaderSink sink);

/// The element type that safetensors calls `name`, or nothing.
std::optional<DType> dtype_of_name(std::string_view name);

/// `name` fit for a message: at most 100 bytes, control characters replaced.
std::string printable(std::string_view name);

/// Takes the text of an index: once per entry of its weight_map, and its total_size if there is one.
struct IndexSink {
  FunctionRef<Status(std::string_view tensor, std::string_view file)> entry;
  FunctionRef<Status(uint64_t bytes)> total_size;
};

/// Reads a `model.safetensors.index.json` in the same way. Keys that it does not know are passed over.
/// Returns the bytes read from the drive.
Result<uint64_t> read_safetensors_index(ReadableFile& file, std::span<std::byte> chunk, IndexSink sink);

}  // namespace headrace
