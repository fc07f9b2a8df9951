#include "models/shapes/virtual_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/ensure.h"
#include "base/thread_annotations.h"
#include "models/families.h"
#include "models/shapes/checkpoint_layout.h"
#include "weights/shard_list.h"

namespace headrace {
namespace {

constexpr const char* kConfigName = "config.json";
constexpr size_t kDirectBlockBytes = 4096;

/// A checkpoint whose texts are made on demand. The opener and every file that it opened share it.
class VirtualFolder {
 public:
  VirtualFolder(std::string config, CheckpointLayout layout) : config_(std::move(config)), layout_(std::move(layout)) {
    for (size_t shard = 0; shard < layout_.shard_count(); ++shard) shards_[layout_.shard_name(shard)] = shard;
  }

  /// A file is a row of texts, then zeroes. Which file a name means, or nothing.
  struct FileId {
    enum class Kind : uint8_t { kConfig, kIndex, kShard } kind;
    size_t shard = 0;
    bool operator==(const FileId&) const = default;
  };
  std::optional<FileId> find(std::string_view name) const;
  size_t text_count(FileId file) const { return file.kind == FileId::Kind::kIndex ? layout_.index_part_count() : 1; }
  uint64_t zero_bytes(FileId file) const {
    return file.kind == FileId::Kind::kShard ? layout_.shard_data_bytes(file.shard) : 0;
  }

  /// Copies bytes of a text, from `offset`. The text made last is kept: readers take it in pieces.
  Status copy(FileId file, size_t text, size_t offset, std::span<std::byte> out);
  Result<size_t> text_bytes(FileId file, size_t text);

 private:
  Result<std::string> make(FileId file, size_t text) const;
  Status keep(FileId file, size_t text) REQUIRES(mutex_);

  const std::string config_;
  const CheckpointLayout layout_;
  std::map<std::string, size_t, std::less<>> shards_;

  Mutex mutex_;
  std::optional<std::pair<FileId, size_t>> kept_ GUARDED_BY(mutex_);
  std::string kept_text_ GUARDED_BY(mutex_);
};

std::optional<VirtualFolder::FileId> VirtualFolder::find(std::string_view name) const {
  if (name == kConfigName) return FileId{FileId::Kind::kConfig};
  if (name == ShardList::kIndexName) return FileId{FileId::Kind::kIndex};
  const auto shard = shards_.find(name);
  if (shard == shards_.end()) return std::nullopt;
  return FileId{FileId::Kind::kShard, shard->second};
}

Result<std::string> VirtualFolder::make(FileId file, size_t text) const {
  switch (file.kind) {
    case FileId::Kind::kConfig:
      return config_;
    case FileId::Kind::kIndex:
      return layout_.index_part(text);
    case FileId::Kind::kShard:
      return layout_.header(file.shard);
  }
  return error(Code::kIo, "no such text");
}

Status VirtualFolder::keep(FileId file, size_t text) {
  const std::pair wanted(file, text);
  if (kept_ == wanted) return {};
  kept_.reset();
  kept_text_ = TRY(make(file, text));
  kept_ = wanted;
  return {};
}

Status VirtualFolder::copy(FileId file, size_t text, size_t offset, std::span<std::byte> out) {
  const MutexLock lock(mutex_);
  TRY(keep(file, text));
  ENSURE(offset + out.size() <= kept_text_.size());
  std::memcpy(out.data(), kept_text_.data() + offset, out.size());
  return {};
}

Result<size_t> VirtualFolder::text_bytes(FileId file, size_t text) {
  const MutexLock lock(mutex_);
  TRY(keep(file, text));
  return kept_text_.size();
}

/// One file of the folder, which it shares with the opener and the other files: any of them may be the last to go.
class VirtualFile final : public ReadableFile {
 public:
  static Result<std::unique_ptr<ReadableFile>> open(const std::string& path, VirtualFolder::FileId id, ReadMode mode,
                                                    std::shared_ptr<VirtualFolder> folder) {
    std::unique_ptr<VirtualFile> file(new VirtualFile(path, id, mode, std::move(folder)));
    uint64_t end = 0;
    for (size_t text = 0; text < file->folder_->text_count(id); ++text) {
      end += TRY(file->folder_->text_bytes(id, text));
      file->text_ends_.push_back(end);
    }
    file->size_bytes_ = end + file->folder_->zero_bytes(id);
    return std::unique_ptr<ReadableFile>(std::move(file));
  }

  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  size_t block_bytes() const override { return is_direct() ? kDirectBlockBytes : 1; }
  bool is_direct() const override { return mode_ == ReadMode::kDirect; }
  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override;

 private:
  VirtualFile(std::string path, VirtualFolder::FileId id, ReadMode mode, std::shared_ptr<VirtualFolder> folder)
      : path_(std::move(path)), id_(id), mode_(mode), folder_(std::move(folder)) {}

  const std::string path_;
  const VirtualFolder::FileId id_;
  const ReadMode mode_;
  const std::shared_ptr<VirtualFolder> folder_;
  std::vector<uint64_t> text_ends_;
  uint64_t size_bytes_ = 0;
};

Result<size_t> VirtualFile::read_some(uint64_t offset, std::span<std::byte> out) {
  ENSURE(offset % block_bytes() == 0 && out.size() % block_bytes() == 0);
  if (offset >= size_bytes_) return size_t{0};
  out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size_bytes_ - offset)));
  const size_t size = out.size();
  const auto first = std::ranges::upper_bound(text_ends_, offset);
  for (auto text_end = first; text_end != text_ends_.end() && !out.empty(); ++text_end) {
    const size_t text = static_cast<size_t>(text_end - text_ends_.begin());
    const uint64_t begin = text == 0 ? 0 : text_ends_[text - 1];
    const size_t part = static_cast<size_t>(std::min<uint64_t>(out.size(), *text_end - offset));
    TRY(folder_->copy(id_, text, static_cast<size_t>(offset - begin), out.first(part)));
    out = out.subspan(part);
    offset += part;
  }
  std::ranges::fill(out, std::byte{0});
  return size;
}

}  // namespace

Result<FileOpener> virtual_checkpoint_opener(std::string_view config_text) {
  std::string text(config_text);
  KimiTensors tensors = TRY(KimiTensors::parse(text, kConfigName));
  CheckpointLayout layout = TRY(CheckpointLayout::create(std::move(tensors), {}));
  // Owners: the opener, and every file that it opens.
  auto folder = std::make_shared<VirtualFolder>(std::move(text), std::move(layout));
  return FileOpener([folder](const std::string& path, ReadMode mode) -> Result<std::unique_ptr<ReadableFile>> {
    const auto id = folder->find(std::string_view(path).substr(path.rfind('/') + 1));
    if (!id) return error(Code::kIo, "open %s: the shape has no such file", path.c_str());
    return VirtualFile::open(path, *id, mode, folder);
  });
}

}  // namespace headrace
