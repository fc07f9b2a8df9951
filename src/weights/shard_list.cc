#include "weights/shard_list.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"
#include "weights/safetensors.h"
#include "weights/tensor_directory.h"

namespace headrace {
namespace {

constexpr std::string_view kShardEnding = ".safetensors";
constexpr size_t kShardNameBytesMax = 255;

/// Memory of an open shard besides its name: the object, its place in the lists, and blocks of the heap.
constexpr size_t kShardBytes = 512;

/// A name that can only mean a file of the folder itself.
Status check_shard_name(std::string_view name) {
  const bool outside = name.find('/') != std::string_view::npos || name.find('\\') != std::string_view::npos ||
                       name.find("..") != std::string_view::npos || name.find('\0') != std::string_view::npos;
  if (outside || name.size() > kShardNameBytesMax || name.size() <= kShardEnding.size() ||
      !name.ends_with(kShardEnding)) {
    return error(Code::kFormat, "%s is not the name of a shard (*.safetensors, no folders)", printable(name).c_str());
  }
  return {};
}

std::string join(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

/// Asks the file system why a file did not open: a name without a file is damage of the folder, all else a failure.
/// Files of tests live elsewhere, and count as missing when they do not open.
bool is_missing(const std::string& path) {
  std::error_code failure;
  return std::filesystem::status(path, failure).type() == std::filesystem::file_type::not_found;
}

/// The same for the name alone: a link that leads nowhere is there.
bool is_unnamed(const std::string& path) {
  std::error_code failure;
  return std::filesystem::symlink_status(path, failure).type() == std::filesystem::file_type::not_found;
}

}  // namespace

Result<ShardList> ShardList::open(const Surroundings& surroundings) {
  ShardList list;
  TRY(list.open_index(surroundings));
  TRY(list.index_ ? list.survey_index(surroundings) : list.list_folder(surroundings));
  TRY(list.number_shards());
  TRY(list.open_files(surroundings));
  if (!list.index_) TRY(list.survey_headers(surroundings));
  if (list.tensor_count_ > kTensorsMax) {
    return error(Code::kFormat, "%s: %llu tensors are more than %llu", surroundings.folder.c_str(),
                 static_cast<unsigned long long>(list.tensor_count_), static_cast<unsigned long long>(kTensorsMax));
  }
  return list;
}

Status ShardList::open_index(const Surroundings& surroundings) {
  const std::string path = join(surroundings.folder, kIndexName);
  Result<std::unique_ptr<ReadableFile>> index = surroundings.opener(path, surroundings.mode);
  if (!index) {
    if (!is_unnamed(path)) return index.take_error();
    return {};
  }
  index_ = index.take_value();
  if (index_->size_bytes() <= kIndexBytesMax) return {};
  return error(Code::kFormat, "%s: %llu bytes are more than an index may have", path.c_str(),
               static_cast<unsigned long long>(index_->size_bytes()));
}

Status ShardList::survey_index(const Surroundings& surroundings) {
  const auto entry = [&](std::string_view tensor, std::string_view file) -> Status {
    auto shard = shards_.find(file);
    if (shard == shards_.end()) {
      Result<size_t> added = add_shard(file, surroundings.budget);
      if (!added) return with_context(added.take_error(), "weight_map, tensor %s", printable(tensor).c_str());
      shard = shards_.find(file);
    }
    ++shard->second;
    ++tensor_count_;
    return {};
  };
  const auto total_size = [&](uint64_t bytes) -> Status {
    total_bytes_ = bytes;
    return {};
  };
  bytes_read_ += TRY(read_safetensors_index(*index_, surroundings.chunk, {entry, total_size}));
  if (tensor_count_ == 0) return error(Code::kFormat, "%s: weight_map is empty", index_->path().c_str());
  return {};
}

Status ShardList::list_folder(const Surroundings& surroundings) {
  std::error_code failure;
  std::filesystem::directory_iterator entry(surroundings.folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kShardEnding)) TRY(add_shard(name, surroundings.budget));
  }
  if (failure) return error(Code::kIo, "read folder %s: %s", surroundings.folder.c_str(), failure.message().c_str());
  if (!shards_.empty()) return {};
  return error(Code::kFormat, "%s: neither %s nor any *.safetensors file", surroundings.folder.c_str(), kIndexName);
}

Result<size_t> ShardList::add_shard(std::string_view name, Budget& budget) {
  TRY(check_shard_name(name));
  if (shards_.size() == kShardsMax) return error(Code::kFormat, "more than %zu shards", kShardsMax);
  // The name is kept in the list and in the path of the open file.
  memory_.push_back(TRY(budget.reserve(kShardBytes + 2 * name.size(), "list of shards")));
  shards_.emplace(name, 0);
  return shards_.size() - 1;
}

Status ShardList::number_shards() {
  for (auto& [name, value] : shards_) {
    counts_.push_back(value);
    value = counts_.size() - 1;
  }
  return {};
}

Status ShardList::open_files(const Surroundings& surroundings) {
  std::string missing;
  size_t missing_count = 0;
  std::optional<Error> failure;
  for (const auto& [name, index] : shards_) {
    const std::string path = join(surroundings.folder, name);
    Result<std::unique_ptr<ReadableFile>> file = surroundings.opener(path, surroundings.mode);
    if (!file && is_missing(path)) {
      missing += (missing_count++ ? ", " : "") + printable(name);
    } else if (!file) {
      if (!failure) failure = file.take_error();
    } else if (file.value()->size_bytes() >= FilePlace::kFileBytesMax) {
      return error(Code::kUnsupported, "%s: larger than 2^%d bytes", path.c_str(), FilePlace::kOffsetBits);
    } else if (file.value()->block_bytes() > kBlockBytesMax) {
      return error(Code::kUnsupported, "%s: blocks of more than %zu bytes", path.c_str(), kBlockBytesMax);
    } else {
      files_.push_back(file.take_value());
    }
  }
  if (missing_count > 0) {
    return error(Code::kFormat, "%s: %zu of %zu shards are missing: %s", surroundings.folder.c_str(), missing_count,
                 shards_.size(), missing.c_str());
  }
  if (failure) return *failure;
  return {};
}

Status ShardList::survey_headers(const Surroundings& surroundings) {
  for (size_t index = 0; index < files_.size(); ++index) {
    const auto ignore = [](const HeaderTensor&) -> Status { return {}; };
    const HeaderSummary header = TRY(read_safetensors_header(*files_[index], surroundings.chunk, ignore));
    counts_[index] = header.tensor_count;
    tensor_count_ += header.tensor_count;
    bytes_read_ += header.bytes_read;
  }
  return {};
}

Status ShardList::for_each_name(std::span<std::byte> chunk,
                                FunctionRef<Status(std::string_view name, size_t file_index)> sink) {
  if (index_) {
    const auto entry = [&](std::string_view tensor, std::string_view file) -> Status {
      const auto shard = shards_.find(file);
      if (shard == shards_.end()) return error(Code::kFormat, "the index changed while it was read");
      return sink(tensor, shard->second);
    };
    const auto ignore = [](uint64_t) -> Status { return {}; };
    bytes_read_ += TRY(read_safetensors_index(*index_, chunk, {entry, ignore}));
    return {};
  }
  for (size_t index = 0; index < files_.size(); ++index) {
    const auto tensor = [&](const HeaderTensor& found) { return sink(found.name, index); };
    bytes_read_ += TRY(read_safetensors_header(*files_[index], chunk, tensor)).bytes_read;
  }
  return {};
}

}  // namespace headrace
