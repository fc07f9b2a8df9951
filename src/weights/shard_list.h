#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// Which files a checkpoint consists of, and which file each tensor belongs to: what the index says, or without an
/// index what the headers of all shards of the folder say. Lives while a checkpoint is opened. One thread.
class ShardList {
 public:
  /// `name` in `folder` is where the index is looked for.
  static constexpr const char* kIndexName = "model.safetensors.index.json";
  /// Largest index; Kimi K3's has about 50 MB.
  static constexpr uint64_t kIndexBytesMax = uint64_t{512} << 20;
  static constexpr size_t kShardsMax = 4096;
  /// Most tensors of one checkpoint.
  static constexpr uint64_t kTensorsMax = uint64_t{1} << 24;

  struct Surroundings {
    const std::string& folder;
    const FileOpener& opener;
    ReadMode mode;
    Budget& budget;
    std::span<std::byte> chunk;  ///< For reading; aligned to the largest block.
  };

  /// Finds the shards, opens them, and counts their tensors. kFormat names all that are missing.
  static Result<ShardList> open(const Surroundings& surroundings);

  size_t shard_count() const { return files_.size(); }
  ReadableFile& file(size_t file_index) const { return *files_[file_index]; }
  /// Tensors that belong to a shard.
  size_t tensor_count(size_t file_index) const { return counts_[file_index]; }
  uint64_t tensor_count() const { return tensor_count_; }
  /// What the index says all tensors take, if it does.
  const std::optional<uint64_t>& total_bytes() const { return total_bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }

  /// Gives every tensor's name and the file that it belongs to, as often as it is listed.
  Status for_each_name(std::span<std::byte> chunk, FunctionRef<Status(std::string_view name, size_t file_index)> sink);
  bool has_index() const { return index_ != nullptr; }
  /// Of the index, where there is one.
  const std::string& index_path() const { return index_->path(); }

  /// The open files, for good, with the share of the budget that they hold.
  std::vector<std::unique_ptr<ReadableFile>> take_files() { return std::move(files_); }
  std::vector<Reservation> take_memory() { return std::move(memory_); }

 private:
  Status open_index(const Surroundings& surroundings);
  Status survey_index(const Surroundings& surroundings);
  Status list_folder(const Surroundings& surroundings);
  Status survey_headers(const Surroundings& surroundings);
  Result<size_t> add_shard(std::string_view name, Budget& budget);
  Status number_shards();
  Status open_files(const Surroundings& surroundings);

  std::unique_ptr<ReadableFile> index_;
  /// Name of a shard to its tensor count, then to its number. Ordered, so that numbers follow names.
  std::map<std::string, size_t, std::less<>> shards_;
  std::vector<size_t> counts_;
  std::vector<std::unique_ptr<ReadableFile>> files_;
  std::vector<Reservation> memory_;
  uint64_t tensor_count_ = 0;
  std::optional<uint64_t> total_bytes_;
  uint64_t bytes_read_ = 0;
};

}  // namespace headrace
