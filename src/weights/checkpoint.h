#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// Element types of safetensors that the directory understands (others are kept with their sizes and refused on use).
enum class DType : uint8_t {
  kF32,
  kBf16,
  kF16,
  kU8,
  kI8,
  kF8E4m3,
  kF8E5m2,
  kF8E8m0,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF64,
  kBool
};

/// "BF16", ... as safetensors spells it.
const char* dtype_name(DType dtype);
size_t dtype_bytes(DType dtype);

/// Dimensions of a tensor; at most kRankMax of them.
struct Shape {
  static constexpr size_t kRankMax = 8;
  std::array<uint64_t, kRankMax> dims{};
  size_t rank = 0;
  bool operator==(const Shape&) const = default;
  uint64_t element_count() const;
  /// "[3, 4]"
  std::string text() const;
};

/// Where a tensor lies and what it holds.
struct TensorInfo {
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t file_index = 0;
  ByteRange range;  ///< In the file, header counted.
};

/// The directory of a publisher's folder: config.json is not its business; safetensors shards and their index are.
/// Everything structural is checked when it is opened, so no later read can leave a file (P4). Names are kept as 64-bit
/// hashes: 24 bytes a tensor, 12 MB for Kimi K3's 497,220. After opening, const members may be called from any thread.
///
/// A made-up checkpoint may hold fewer layers than it has: its `synth.json` then names the layer whose tensors stand
/// for each (LayerSources), and a tensor that is looked up by its own name is found there.
class Checkpoint {
 public:
  /// Opens `folder`: through `model.safetensors.index.json` where there is one, else every `*.safetensors` file in it.
  /// kFormat names the file, the tensor and the reason; two equal names in one folder, a tensor in another file than
  /// the index says, overlapping or unclaimed bytes and trailing bytes are damage.
  static Result<Checkpoint> open(const std::string& folder, const FileOpener& opener, ReadMode data_mode,
                                 Budget& budget);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  /// The tensor, or nothing.
  std::optional<TensorInfo> find(std::string_view name) const;
  /// The tensor, marked as used, or kFormat "<name> is missing". The mark feeds `unclaimed_names`.
  Result<TensorInfo> claim(std::string_view name);
  /// Marks every tensor whose name starts with one of `prefixes` as used. Reads the headers of files that hold
  /// unclaimed tensors again, because names are not kept.
  Status claim_prefixes(std::initializer_list<std::string_view> prefixes);
  /// Up to `count_max` names that nobody claimed, read from the headers again. Empty when all are claimed.
  Result<std::vector<std::string>> unclaimed_names(size_t count_max);
  size_t unclaimed_count() const;

  /// For a made-up checkpoint: how many layers of each kind it holds for all of them; 0 when it holds them all.
  std::optional<size_t> synthetic() const;

  const std::string& folder() const;
  size_t tensor_count() const;
  uint64_t data_bytes() const;    ///< Sum of tensor sizes.
  uint64_t header_bytes() const;  ///< Read so far: headers and index.
  size_t memory_bytes() const;    ///< Kept for the directory.
  size_t file_count() const;
  /// Open in the data mode given to `open`; lives as long as the checkpoint.
  ReadableFile& file(size_t file_index) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace
