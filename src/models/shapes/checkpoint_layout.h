#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "models/families/kimi_tensors.h"

namespace headrace {

/// In which order a shard holds its tensors.
enum class TensorOrder : uint8_t {
  /// As the publishers' writer does: larger element types first, then by name; the data starts at a multiple of 8.
  kName,
  /// In a drawn order, with data that starts at an odd offset: what a reader must not stumble over.
  kScattered,
};

struct LayoutOptions {
  TensorOrder order = TensorOrder::kName;
  uint64_t seed = 0;  ///< Of the drawn order.
  /// Most bytes of data in a shard, where layers do not have a shard each; a larger tensor gets a shard of its own.
  uint64_t shard_bytes_max = 5'000'000'000;
  /// The layer whose tensors stand for those of each layer; empty: every layer has its own. A source is its own source.
  std::vector<size_t> layer_sources = {};
};

/// A tensor in its shard.
struct PlacedTensor {
  std::string name;
  ListedTensor tensor;  ///< Its `name` is that of this object.
  uint64_t offset = 0;  ///< From the first byte after the header.
};

/// Which files a checkpoint consists of and where each tensor lies in them (spec 3.1): Kimi K3 comes with a file per
/// layer and three more, Kimi-Linear in files of one size over whose borders layers straddle. Headers and index are
/// made when they are asked for and not kept. Read-only, any thread.
class CheckpointLayout {
 public:
  static Result<CheckpointLayout> create(KimiTensors tensors, LayoutOptions options);

  const KimiTensors& tensors() const { return tensors_; }
  const LayoutOptions& options() const { return options_; }
  size_t tensor_count() const { return tensor_count_; }
  uint64_t data_bytes() const { return data_bytes_; }  ///< Of all tensors.

  size_t shard_count() const { return shards_.size(); }
  /// "model-00001-of-00020.safetensors"
  std::string shard_name(size_t shard) const;
  uint64_t shard_data_bytes(size_t shard) const { return shards_[shard].data_bytes; }
  /// The tensors of a shard in the order of their data.
  Result<std::vector<PlacedTensor>> place(size_t shard) const;

  /// The start of a shard up to its data: length, then header.
  std::string header(size_t shard, std::span<const PlacedTensor> tensors) const;
  Result<std::string> header(size_t shard) const;

  /// The text of model.safetensors.index.json in shard_count() + 2 parts.
  size_t index_part_count() const { return shards_.size() + 2; }
  Result<std::string> index_part(size_t part) const;

 private:
  /// Consecutive tensors of a group.
  struct Run {
    size_t group = 0;
    size_t first = 0;
    size_t count = 0;
  };
  struct Shard {
    std::vector<Run> runs;
    uint64_t data_bytes = 0;
  };
  CheckpointLayout(KimiTensors tensors, LayoutOptions options)
      : tensors_(std::move(tensors)), options_(std::move(options)) {}
  bool is_stored(size_t group) const;
  bool starts_shard(size_t group) const;
  Status add_group(size_t group);
  Status for_each_of_run(const Run& run, ListedTensorSink sink) const;
  void put_in_order(size_t shard, std::vector<PlacedTensor>& tensors) const;

  KimiTensors tensors_;
  LayoutOptions options_;
  std::vector<Shard> shards_;
  size_t tensor_count_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace headrace
