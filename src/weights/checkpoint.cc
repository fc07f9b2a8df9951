#include "weights/checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/ensure.h"
#include "base/function_ref.h"
#include "io/alignment.h"
#include "weights/extent.h"
#include "weights/layer_sources.h"
#include "weights/safetensors.h"
#include "weights/shard_list.h"
#include "weights/tensor_directory.h"

namespace headrace {
namespace {

/// What %llu prints.
using Printed = unsigned long long;

/// Read at once while headers and the index pass by.
constexpr size_t kChunkBytes = 256 * 1024;
/// The JSON parser's buffers for one string or number (ByteStream bounds it), with growth.
constexpr size_t kParserBytes = 4 * 64 * 1024;
/// Names that a message about many tensors lists.
constexpr size_t kNamesListedMax = 10;

/// Memory for reading headers, given back afterwards.
struct Scratch {
  BlockMemory memory;
  Reservation parser;

  std::span<std::byte> chunk() const { return memory.bytes(); }
  static Result<Scratch> allocate(Budget& budget) {
    Scratch scratch;
    scratch.memory = TRY(BlockMemory::allocate(budget, kChunkBytes, kBlockBytesMax, "reading of headers"));
    scratch.parser = TRY(budget.reserve(kParserBytes, "parsing of headers"));
    return scratch;
  }
};

std::string join_names(const std::vector<std::string>& names, size_t count) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (count > names.size()) text += " and " + std::to_string(count - names.size()) + " more";
  return text;
}

}  // namespace

struct Checkpoint::State {
  std::string folder;
  Budget* budget = nullptr;
  TensorDirectory directory;
  std::optional<LayerSources> layer_sources;
  std::vector<std::unique_ptr<ReadableFile>> files;
  std::vector<Reservation> files_memory;
  uint64_t data_bytes = 0;
  uint64_t header_bytes = 0;
  size_t unclaimed_count = 0;

  /// The tensor of that name, or the one that stands for it.
  TensorDirectory::Entry* find(std::string_view name);
  /// Calls `sink` with every tensor that is not claimed, and its name, by reading headers again.
  Status for_each_unclaimed(FunctionRef<Status(const HeaderTensor&, TensorDirectory::Entry&)> sink);
};

namespace {

/// Fills the directory while a checkpoint is opened, and finds what does not fit together.
class DirectoryBuilder {
 public:
  /// `layer_sources` may be null.
  DirectoryBuilder(ShardList& shards, LayerSources* layer_sources, std::span<std::byte> chunk, Budget& budget)
      : shards_(shards), layer_sources_(layer_sources), chunk_(chunk), budget_(budget) {}

  Result<TensorDirectory> build();
  uint64_t data_bytes() const { return data_bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  Status add_names();
  Status read_header(size_t file_index);
  Status take(const HeaderTensor& tensor, size_t file_index);
  Status check_tiling(size_t file_index, std::span<ByteRange> ranges, uint64_t data_begin);
  Status check_all_found();
  Error doubled(uint64_t hash);
  /// "tensor <name>" of the one that lies at `range`.
  std::string name_at(size_t file_index, ByteRange range);

  ShardList& shards_;
  LayerSources* const layer_sources_;
  std::span<std::byte> chunk_;
  Budget& budget_;
  TensorDirectory directory_;
  uint64_t data_bytes_ = 0;
  uint64_t bytes_read_ = 0;
};

Result<TensorDirectory> DirectoryBuilder::build() {
  directory_ = TRY(TensorDirectory::allocate(budget_, shards_.tensor_count()));
  TRY(add_names());
  for (size_t index = 0; index < shards_.shard_count(); ++index) TRY(read_header(index));
  TRY(check_all_found());
  if (shards_.total_bytes() && *shards_.total_bytes() != data_bytes_) {
    return error(Code::kFormat, "%s: total_size is %llu, but the tensors have %llu bytes", shards_.index_path().c_str(),
                 Printed{*shards_.total_bytes()}, Printed{data_bytes_});
  }
  return std::move(directory_);
}

Status DirectoryBuilder::add_names() {
  size_t count = 0;
  const auto add = [&](std::string_view name, size_t file_index) -> Status {
    if (count++ == directory_.entries().size()) return error(Code::kFormat, "the file changed while it was read");
    directory_.add(TensorDirectory::hash_of(name), file_index);
    return layer_sources_ ? layer_sources_->note_stored(name) : Status();
  };
  TRY(shards_.for_each_name(chunk_, add));
  if (layer_sources_) TRY(layer_sources_->check_sources_stored());
  if (count < directory_.entries().size()) return error(Code::kFormat, "the headers changed while they were read");
  const TensorDirectory::Entry* twin = directory_.sort();
  if (twin) return doubled(twin->hash);
  return {};
}

Error DirectoryBuilder::doubled(uint64_t hash) {
  std::vector<std::pair<std::string, size_t>> found;
  const auto collect = [&](std::string_view name, size_t file_index) -> Status {
    if (found.size() < 2 && TensorDirectory::hash_of(name) == hash) found.emplace_back(name, file_index);
    return {};
  };
  Status status = shards_.for_each_name(chunk_, collect);
  if (!status) return status.take_error();
  if (found.size() < 2) return error(Code::kFormat, "the headers changed while they were read");
  const auto& [first, second] = std::pair(found[0], found[1]);
  const std::string& first_path = shards_.file(first.second).path();
  const std::string& second_path = shards_.file(second.second).path();
  if (first.first != second.first) {
    return error(Code::kUnsupported, "tensors %s and %s have the same 64-bit hash", printable(first.first).c_str(),
                 printable(second.first).c_str());
  }
  return error(Code::kFormat, "tensor %s is there twice: in %s and in %s", printable(first.first).c_str(),
               first_path.c_str(), second_path.c_str());
}

Status DirectoryBuilder::read_header(size_t file_index) {
  ReadableFile& file = shards_.file(file_index);
  const AlignedMemory memory = TRY(
      AlignedMemory::allocate(budget_, shards_.tensor_count(file_index) * sizeof(ByteRange), "checking of offsets"));
  const std::span<ByteRange> ranges(reinterpret_cast<ByteRange*>(memory.data()), shards_.tensor_count(file_index));
  size_t count = 0;
  const auto sink = [&](const HeaderTensor& tensor) -> Status {
    TRY(take(tensor, file_index));
    if (count == ranges.size()) {  // The first look at the index promised fewer.
      return error(Code::kFormat, "%s: the index changed while it was read", file.path().c_str());
    }
    ranges[count++] = tensor.range;
    return {};
  };
  const HeaderSummary header = TRY(read_safetensors_header(file, chunk_, sink));
  bytes_read_ += header.bytes_read;
  return check_tiling(file_index, ranges.first(count), header.data_begin);
}

Status DirectoryBuilder::take(const HeaderTensor& tensor, size_t file_index) {
  TensorDirectory::Entry* entry = directory_.find(TensorDirectory::hash_of(tensor.name));
  if (!entry) return error(Code::kFormat, "tensor %s is not in the index", printable(tensor.name).c_str());
  const size_t expected_index = FilePlace::file_index(entry->place);
  if (expected_index != file_index) {
    return error(Code::kFormat, "tensor %s is in %s, says the index", printable(tensor.name).c_str(),
                 shards_.file(expected_index).path().c_str());
  }
  if (entry->found) return error(Code::kFormat, "tensor %s is there twice", printable(tensor.name).c_str());
  data_bytes_ += tensor.range.size;
  return directory_.set_found(*entry, tensor.dtype, tensor.shape, tensor.range.offset);
}

Status DirectoryBuilder::check_tiling(size_t file_index, std::span<ByteRange> ranges, uint64_t data_begin) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
  });
  const ReadableFile& file = shards_.file(file_index);
  uint64_t end = data_begin;
  for (const ByteRange& range : ranges) {
    if (range.offset < end) {
      return error(Code::kFormat, "%s: tensor %s at byte %llu overlaps the one before it, which ends at byte %llu",
                   file.path().c_str(), name_at(file_index, range).c_str(), Printed{range.offset}, Printed{end});
    }
    if (range.offset > end) {
      return error(Code::kFormat, "%s: bytes %llu to %llu, before tensor %s, belong to no tensor", file.path().c_str(),
                   Printed{end}, Printed{range.offset}, name_at(file_index, range).c_str());
    }
    end = range.end();
  }
  if (end == file.size_bytes()) return {};
  return error(Code::kFormat, "%s: bytes %llu to %llu, the end of the file, belong to no tensor", file.path().c_str(),
               Printed{end}, Printed{file.size_bytes()});
}

std::string DirectoryBuilder::name_at(size_t file_index, ByteRange range) {
  std::string name;
  const auto compare = [&](const HeaderTensor& tensor) -> Status {
    const bool same = tensor.range.offset == range.offset && tensor.range.size == range.size;
    if (same && name.empty()) name = printable(tensor.name);
    return {};
  };
  const Result<HeaderSummary> header = read_safetensors_header(shards_.file(file_index), chunk_, compare);
  return header && !name.empty() ? name : "(unknown)";
}

Status DirectoryBuilder::check_all_found() {
  const auto entries = directory_.entries();
  const auto is_missing = [](const TensorDirectory::Entry& entry) { return !entry.found; };
  const size_t missing_count = static_cast<size_t>(std::count_if(entries.begin(), entries.end(), is_missing));
  if (missing_count == 0) return {};
  std::vector<std::string> names;
  const auto collect = [&](std::string_view name, size_t file_index) -> Status {
    const TensorDirectory::Entry* entry = directory_.find(TensorDirectory::hash_of(name));
    if (!entry || entry->found || names.size() == kNamesListedMax) return {};
    names.push_back(printable(name) + " (" + shards_.file(file_index).path() + ")");
    return {};
  };
  TRY(shards_.for_each_name(chunk_, collect));
  return error(Code::kFormat, "%zu tensors are not in the file that the index names: %s", missing_count,
               join_names(names, missing_count).c_str());
}

}  // namespace

Status Checkpoint::State::for_each_unclaimed(FunctionRef<Status(const HeaderTensor&, TensorDirectory::Entry&)> sink) {
  const Scratch scratch = TRY(Scratch::allocate(*budget));
  std::vector<bool> has_unclaimed(files.size());  // Most files are claimed whole, and have the longest headers.
  for (const TensorDirectory::Entry& entry : directory.entries()) {
    if (!entry.claimed) has_unclaimed[FilePlace::file_index(entry.place)] = true;
  }
  const auto look_up = [&](const HeaderTensor& tensor) -> Status {
    TensorDirectory::Entry* entry = directory.find(TensorDirectory::hash_of(tensor.name));
    if (!entry) return error(Code::kFormat, "tensor %s was not there at first", printable(tensor.name).c_str());
    return entry->claimed ? Status() : sink(tensor, *entry);
  };
  for (size_t index = 0; index < files.size(); ++index) {
    if (!has_unclaimed[index]) continue;
    header_bytes += TRY(read_safetensors_header(*files[index], scratch.chunk(), look_up)).bytes_read;
  }
  return {};
}

TensorDirectory::Entry* Checkpoint::State::find(std::string_view name) {
  std::string stored_name;
  if (layer_sources) name = layer_sources->stored_name(name, stored_name);
  return directory.find(TensorDirectory::hash_of(name));
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::open(const std::string& folder, const FileOpener& opener, ReadMode data_mode,
                                    Budget& budget) {
  const Scratch scratch = TRY(Scratch::allocate(budget));
  ShardList shards = TRY(ShardList::open({folder, opener, data_mode, budget, scratch.chunk()}));
  auto state = std::make_unique<State>();
  state->layer_sources = TRY(LayerSources::open(folder, opener, scratch.chunk(), budget));
  LayerSources* const layer_sources = state->layer_sources ? &*state->layer_sources : nullptr;
  DirectoryBuilder builder(shards, layer_sources, scratch.chunk(), budget);
  state->directory = TRY(builder.build());
  state->folder = folder;
  state->budget = &budget;
  state->files = shards.take_files();
  state->files_memory = shards.take_memory();
  state->data_bytes = builder.data_bytes();
  state->header_bytes = shards.bytes_read() + builder.bytes_read();
  if (layer_sources) state->header_bytes += layer_sources->bytes_read();
  state->unclaimed_count = state->directory.entries().size();
  return Checkpoint(std::move(state));
}

std::optional<TensorInfo> Checkpoint::find(std::string_view name) const {
  const TensorDirectory::Entry* entry = state_->find(name);
  if (!entry) return std::nullopt;
  return state_->directory.info(*entry);
}

Result<TensorInfo> Checkpoint::claim(std::string_view name) {
  TensorDirectory::Entry* entry = state_->find(name);
  if (!entry) {
    return error(Code::kFormat, "%s: tensor %s is missing", state_->folder.c_str(), printable(name).c_str());
  }
  if (!std::exchange(entry->claimed, true)) --state_->unclaimed_count;
  return state_->directory.info(*entry);
}

Status Checkpoint::claim_prefixes(std::initializer_list<std::string_view> prefixes) {
  if (state_->unclaimed_count == 0) return {};
  return state_->for_each_unclaimed([&](const HeaderTensor& tensor, TensorDirectory::Entry& entry) -> Status {
    const auto starts_name = [&](std::string_view prefix) { return tensor.name.starts_with(prefix); };
    if (std::ranges::any_of(prefixes, starts_name) && !std::exchange(entry.claimed, true)) --state_->unclaimed_count;
    return {};
  });
}

Result<std::vector<std::string>> Checkpoint::unclaimed_names(size_t count_max) {
  std::vector<std::string> names;
  if (state_->unclaimed_count == 0) return names;
  TRY(state_->for_each_unclaimed([&](const HeaderTensor& tensor, TensorDirectory::Entry&) -> Status {
    if (names.size() < count_max) names.emplace_back(tensor.name);
    return {};
  }));
  return names;
}

size_t Checkpoint::unclaimed_count() const {
  return state_->unclaimed_count;
}
std::optional<size_t> Checkpoint::synthetic() const {
  if (!state_->layer_sources) return std::nullopt;
  return state_->layer_sources->shared_layers();
}
const std::string& Checkpoint::folder() const {
  return state_->folder;
}
size_t Checkpoint::tensor_count() const {
  return state_->directory.entries().size();
}
uint64_t Checkpoint::data_bytes() const {
  return state_->data_bytes;
}
uint64_t Checkpoint::header_bytes() const {
  return state_->header_bytes;
}

size_t Checkpoint::memory_bytes() const {
  size_t bytes = state_->directory.memory_bytes();
  if (state_->layer_sources) bytes += state_->layer_sources->memory_bytes();
  for (const Reservation& memory : state_->files_memory) bytes += memory.bytes();
  return bytes;
}

size_t Checkpoint::file_count() const {
  return state_->files.size();
}
ReadableFile& Checkpoint::file(size_t file_index) const {
  return *state_->files[file_index];
}

}  // namespace headrace
