#include "tools/synth.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/families.h"
#include "tools/output_file.h"
#include "tools/random_weights.h"
#include "tools/shape_config.h"
#include "weights/layer_sources.h"
#include "weights/shard_list.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// What a file system may need for itself besides the files.
constexpr uint64_t kSpareBytes = 64 << 20;

/// The folder that is written. Unless it is kept, everything made for it goes when this does, and nothing else.
class NewFolder {
 public:
  static Result<NewFolder> create(const std::string& path);
  ~NewFolder();
  NewFolder(NewFolder&& other) noexcept
      : path_(std::move(other.path_)), made_(std::move(other.made_)), is_kept_(std::exchange(other.is_kept_, true)) {}
  NewFolder& operator=(NewFolder&&) = delete;

  /// The path of a file that is about to be made.
  std::string add(const std::string& name) {
    made_.push_back(path_ / name);
    return made_.back().string();
  }
  /// The names of its files are on the drive as well when this returns.
  void keep();

 private:
  explicit NewFolder(fs::path path) : path_(std::move(path)) {}
  Status make_folders();

  fs::path path_;
  std::vector<fs::path> made_;  // In order: a folder before what is in it.
  bool is_kept_ = false;
};

Result<NewFolder> NewFolder::create(const std::string& path) {
  std::error_code failure;
  NewFolder folder{fs::path(path)};
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    TRY(folder.make_folders());
    return folder;
  }
  if (status.type() != fs::file_type::directory) {
    return error(Code::kArgument, "%s: there already, and no folder", path.c_str());
  }
  const bool is_empty = fs::is_empty(path, failure);
  if (failure) return error(Code::kIo, "%s: %s", path.c_str(), failure.message().c_str());
  if (!is_empty) return error(Code::kArgument, "%s: the folder is not empty", path.c_str());
  return folder;
}

Status NewFolder::make_folders() {
  std::error_code failure;
  std::vector<fs::path> missing;
  fs::path path = fs::absolute(path_, failure).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "out/"
  for (; !fs::exists(path, failure) && path.has_relative_path(); path = path.parent_path()) missing.push_back(path);
  std::ranges::reverse(missing);
  for (const fs::path& folder : missing) {
    if (!fs::create_directory(folder, failure)) {
      const std::string reason = failure ? failure.message() : "somebody else made it";
      return error(Code::kIo, "make folder %s: %s", folder.c_str(), reason.c_str());
    }
    made_.push_back(folder);
  }
  return {};
}

void NewFolder::keep() {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);  // Where folders cannot be synchronised, the file system does it in its own time.
    ::close(descriptor);
  }
  is_kept_ = true;
}

NewFolder::~NewFolder() {
  if (is_kept_) return;
  std::error_code ignored;  // A folder into which somebody put something stays.
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, ignored);
}

/// A model that is about to be written.
struct Plan {
  std::string config;
  CheckpointLayout layout;
  std::string sources;  // Text of synth.json.
  uint64_t index_bytes = 0;
  uint64_t total_bytes = 0;
};

Result<Plan> make_plan(const SynthOptions& options) {
  const std::string shape = TRY(shape_config(options.shape));
  std::string config = TRY(changed_config(shape, options.shape, {options.layers, options.expert_count}));
  KimiTensors tensors = TRY(KimiTensors::parse(config, options.shape));
  LayoutOptions layout_options{options.order, options.seed, options.shard_bytes_max};
  const size_t layer_count = tensors.config().layer_count();
  layout_options.layer_sources =
      shared_layer_sources(tensors.config(), options.shared_layers > 0 ? options.shared_layers : layer_count);
  std::string sources = LayerSources::text(options.shared_layers, layout_options.layer_sources);
  CheckpointLayout layout = TRY(CheckpointLayout::create(std::move(tensors), std::move(layout_options)));
  Plan plan{std::move(config), std::move(layout), std::move(sources)};
  for (size_t part = 0; part < plan.layout.index_part_count(); ++part) {
    plan.index_bytes += TRY(plan.layout.index_part(part)).size();
  }
  plan.total_bytes = plan.layout.data_bytes() + plan.index_bytes + plan.config.size() + plan.sources.size();
  for (size_t shard = 0; shard < plan.layout.shard_count(); ++shard) {
    plan.total_bytes += TRY(plan.layout.header(shard)).size();
  }
  return plan;
}

/// Refuses what the drive has no room for.
Status check_room(const std::string& folder, uint64_t bytes) {
  std::error_code failure;
  fs::path place = fs::absolute(folder, failure);
  while (!fs::exists(place, failure) && place.has_relative_path()) place = place.parent_path();
  const fs::space_info space = fs::space(place, failure);
  if (failure) return error(Code::kIo, "%s: %s", place.c_str(), failure.message().c_str());
  if (space.available >= bytes + kSpareBytes) return {};
  constexpr double kGigabyte = 1e9;
  return error(Code::kIo, "%s: %.2f GB are needed, and %.2f GB are free there", folder.c_str(),
               static_cast<double>(bytes + kSpareBytes) / kGigabyte, static_cast<double>(space.available) / kGigabyte);
}

/// Writes the files of a plan one after the other.
class Writer {
 public:
  Writer(const Plan& plan, const SynthOptions& options, const SynthProgress& progress, NewFolder& folder)
      : plan_(plan),
        rules_{options.seed, plan.layout.tensors().config().kda.gate_lower_bound.has_value()},
        progress_(progress),
        folder_(folder) {}

  Status write_all();

 private:
  Status write_shard(size_t shard);
  Status write_tensor(OutputFile& file, const ListedTensor& tensor);
  Status write_index();
  Status write_text(const std::string& name, const std::string& text);
  Status report(uint64_t bytes);

  const Plan& plan_;
  const WeightRules rules_;
  const SynthProgress& progress_;
  NewFolder& folder_;
  Budget budget_{std::numeric_limits<size_t>::max()};
  RandomWeights weights_;
  uint64_t done_bytes_ = 0;
};

Status Writer::write_all() {
  for (size_t shard = 0; shard < plan_.layout.shard_count(); ++shard) TRY(write_shard(shard));
  // Last, so that a folder that was left half done never looks like a model.
  TRY(write_text(LayerSources::kFileName, plan_.sources));
  TRY(write_index());
  return write_text("config.json", plan_.config);
}

Status Writer::report(uint64_t bytes) {
  done_bytes_ += bytes;
  if (progress_(done_bytes_, plan_.total_bytes)) return {};
  return error(Code::kCancelled, "cancelled");
}

Status Writer::write_shard(size_t shard) {
  const std::vector<PlacedTensor> tensors = TRY(plan_.layout.place(shard));
  const std::string header = plan_.layout.header(shard, tensors);
  const uint64_t size_bytes = header.size() + plan_.layout.shard_data_bytes(shard);
  const auto file = TRY(OutputFile::create(folder_.add(plan_.layout.shard_name(shard)), size_bytes, budget_));
  TRY(file->write(std::as_bytes(std::span(header))));
  TRY(report(header.size()));
  for (const PlacedTensor& placed : tensors) TRY(write_tensor(*file, placed.tensor));
  return file->finish();
}

Status Writer::write_tensor(OutputFile& file, const ListedTensor& tensor) {
  weights_.assign(tensor, rules_);
  const uint64_t size_bytes = tensor.byte_count();
  for (uint64_t offset = 0; offset < size_bytes;) {
    std::span<std::byte> room = file.room();
    room = room.first(static_cast<size_t>(std::min<uint64_t>(room.size(), size_bytes - offset)));
    weights_.fill(offset, room);
    TRY(file.advance(room.size()));
    TRY(report(room.size()));
    offset += room.size();
  }
  return {};
}

Status Writer::write_index() {
  const auto file = TRY(OutputFile::create(folder_.add(ShardList::kIndexName), plan_.index_bytes, budget_));
  for (size_t part = 0; part < plan_.layout.index_part_count(); ++part) {
    const std::string text = TRY(plan_.layout.index_part(part));
    TRY(file->write(std::as_bytes(std::span(text))));
    TRY(report(text.size()));
  }
  return file->finish();
}

Status Writer::write_text(const std::string& name, const std::string& text) {
  const auto file = TRY(OutputFile::create(folder_.add(name), text.size(), budget_));
  TRY(file->write(std::as_bytes(std::span(text))));
  TRY(file->finish());
  return report(text.size());
}

}  // namespace

Result<SynthSummary> synthesize(const SynthOptions& options, const SynthProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = TRY(make_plan(options));
  NewFolder folder = TRY(NewFolder::create(options.folder));
  TRY(check_room(options.folder, plan.total_bytes));
  TRY(Writer(plan, options, progress, folder).write_all());
  folder.keep();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return SynthSummary{plan.total_bytes, plan.layout.tensor_count(), plan.layout.shard_count(), elapsed.count()};
}

}  // namespace headrace
