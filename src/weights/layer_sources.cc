#include "weights/layer_sources.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "weights/json_stream.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

/// Far above what kLayersMax numbers take; bounds the reading of a hostile file.
constexpr uint64_t kFileBytesMax = 256 * 1024;

/// The events of a synth.json. Every key once, and no others.
class SourcesEvents final : public JsonEvents {
 public:
  bool start_object(std::size_t size) override;
  bool key(string_t& name) override;
  bool number_unsigned(number_unsigned_t number) override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool end_object() override;

  size_t shared_layers() const { return shared_layers_; }
  std::vector<uint16_t> take_sources() { return std::move(sources_); }

 private:
  enum class At : uint8_t { kStart, kTop, kVersion, kShared, kLayers, kList, kEnd };
  enum : unsigned { kHasVersion = 1, kHasShared = 2, kHasLayers = 4, kHasAll = 7 };

  std::string place() const override { return at_ == At::kList || at_ == At::kLayers ? "layers" : "top level"; }
  bool start(At at, unsigned flag);

  At at_ = At::kStart;
  unsigned seen_ = 0;
  size_t shared_layers_ = 0;
  std::vector<uint16_t> sources_;
};

bool SourcesEvents::start_object(std::size_t size) {
  if (at_ != At::kStart) return JsonEvents::start_object(size);
  at_ = At::kTop;
  return true;
}

bool SourcesEvents::start(At at, unsigned flag) {
  if (seen_ & flag) return fail(error(Code::kFormat, "a key is there twice"));
  seen_ |= flag;
  at_ = at;
  return true;
}

bool SourcesEvents::key(string_t& name) {
  if (at_ != At::kTop) return JsonEvents::key(name);
  if (name == "version") return start(At::kVersion, kHasVersion);
  if (name == "shared_layers") return start(At::kShared, kHasShared);
  if (name == "layers") return start(At::kLayers, kHasLayers);
  return fail(error(Code::kFormat, "unknown key %s", printable(name).c_str()));
}

bool SourcesEvents::number_unsigned(number_unsigned_t number) {
  switch (at_) {
    case At::kVersion:
      if (number != LayerSources::kVersion) {
        return fail(error(Code::kUnsupported, "version %llu; this build reads %llu",
                          static_cast<unsigned long long>(number),
                          static_cast<unsigned long long>(LayerSources::kVersion)));
      }
      at_ = At::kTop;
      return true;
    case At::kShared:
      if (number > LayerSources::kLayersMax) return fail(error(Code::kFormat, "shared_layers is too large"));
      shared_layers_ = static_cast<size_t>(number);
      at_ = At::kTop;
      return true;
    case At::kList:
      if (sources_.size() == LayerSources::kLayersMax) {
        return fail(error(Code::kFormat, "more than %zu layers", LayerSources::kLayersMax));
      }
      if (number >= LayerSources::kLayersMax) return fail(error(Code::kFormat, "a source that is no layer"));
      sources_.push_back(static_cast<uint16_t>(number));
      return true;
    default:
      return JsonEvents::number_unsigned(number);
  }
}

bool SourcesEvents::start_array(std::size_t size) {
  if (at_ != At::kLayers) return JsonEvents::start_array(size);
  at_ = At::kList;
  return true;
}

bool SourcesEvents::end_array() {
  at_ = At::kTop;
  return true;
}

bool SourcesEvents::end_object() {
  if (at_ != At::kTop) return JsonEvents::end_object();
  if (seen_ != kHasAll) return fail(error(Code::kFormat, "version, shared_layers or layers is missing"));
  at_ = At::kEnd;
  return true;
}

/// Whether the file is to be opened. The file system is asked, because opening fails in many ways; folders that it does
/// not know (tests keep theirs in memory) are left to the opener.
bool may_be_there(const std::string& folder, const std::string& path) {
  std::error_code failure;
  const auto not_found = std::filesystem::file_type::not_found;
  if (std::filesystem::symlink_status(path, failure).type() != not_found) return true;
  return std::filesystem::symlink_status(folder, failure).type() == not_found;
}

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/// Where the number of a layer stands in a name.
struct LayerNumber {
  size_t begin;
  size_t end;
  size_t value;
};

/// The number after the first part "layers" of a name, as written without leading zeroes, with a part after it.
std::optional<LayerNumber> layer_number(std::string_view name) {
  constexpr std::string_view kPart = "layers.";
  constexpr size_t kDigitsMax = 6;
  for (size_t found = name.find(kPart); found != std::string_view::npos; found = name.find(kPart, found + 1)) {
    if (found > 0 && name[found - 1] != '.') continue;
    LayerNumber number{found + kPart.size(), found + kPart.size(), 0};
    while (number.end < name.size() && is_digit(name[number.end]) && number.end - number.begin < kDigitsMax) {
      number.value = 10 * number.value + static_cast<size_t>(name[number.end++] - '0');
    }
    const size_t digits = number.end - number.begin;
    const bool is_canonical = digits == 1 || (digits > 1 && name[number.begin] != '0');
    if (!is_canonical || number.end == name.size() || name[number.end] != '.') return std::nullopt;
    return number;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<LayerSources>> LayerSources::open(const std::string& folder, const FileOpener& opener,
                                                       std::span<std::byte> chunk, Budget& budget) {
  const std::string path = (std::filesystem::path(folder) / kFileName).string();
  if (!may_be_there(folder, path)) return std::optional<LayerSources>();
  Result<std::unique_ptr<ReadableFile>> file = opener(path, ReadMode::kDirect);
  std::error_code failure;
  const bool is_named = std::filesystem::symlink_status(path, failure).type() != std::filesystem::file_type::not_found;
  if (!file && is_named) return file.take_error();
  if (!file) return std::optional<LayerSources>();
  if (file.value()->size_bytes() > kFileBytesMax) {
    return error(Code::kFormat, "%s: more than %llu bytes", path.c_str(),
                 static_cast<unsigned long long>(kFileBytesMax));
  }
  LayerSources sources;
  sources.memory_ = TRY(budget.reserve(4 * kLayersMax, "list of shared layers"));
  SourcesEvents events;
  sources.bytes_read_ = TRY(read_json(*file.value(), {0, file.value()->size_bytes()}, chunk, events));
  sources.path_ = path;
  sources.shared_layers_ = events.shared_layers();
  sources.sources_ = events.take_sources();
  sources.is_stored_.resize(sources.sources_.size());
  TRY(sources.check(path));
  return std::optional<LayerSources>(std::move(sources));
}

Status LayerSources::check(const std::string& path) {
  if (sources_.empty()) return error(Code::kFormat, "%s: no layers", path.c_str());
  for (size_t layer = 0; layer < sources_.size(); ++layer) {
    const size_t source = sources_[layer];
    if (source >= sources_.size()) {
      return error(Code::kFormat, "%s: layer %zu comes from layer %zu, but there are %zu", path.c_str(), layer, source,
                   sources_.size());
    }
    if (sources_[source] != source) {
      return error(Code::kFormat, "%s: layer %zu comes from layer %zu, which comes from layer %u itself", path.c_str(),
                   layer, source, sources_[source]);
    }
    if (shared_layers_ == 0 && source != layer) {
      return error(Code::kFormat, "%s: layer %zu comes from layer %zu, but no layers are shared", path.c_str(), layer,
                   source);
    }
  }
  return {};
}

std::string LayerSources::text(size_t shared_layers, std::span<const size_t> sources) {
  nlohmann::ordered_json json = {{"version", kVersion}, {"shared_layers", shared_layers}, {"layers", sources}};
  return json.dump() + "\n";
}

std::string_view LayerSources::stored_name(std::string_view name, std::string& buffer) const {
  const auto number = layer_number(name);
  if (!number || number->value >= sources_.size() || sources_[number->value] == number->value) return name;
  buffer.assign(name.substr(0, number->begin));
  buffer += std::to_string(sources_[number->value]);
  buffer += name.substr(number->end);
  return buffer;
}

Status LayerSources::note_stored(std::string_view name) {
  const auto number = layer_number(name);
  if (!number) return {};
  if (number->value >= sources_.size()) {
    return error(Code::kFormat, "%s: it has %zu layers, but there is a tensor %s", path_.c_str(), sources_.size(),
                 printable(name).c_str());
  }
  if (sources_[number->value] != number->value) {
    return error(Code::kFormat, "%s: layer %zu comes from layer %u, but there is a tensor %s", path_.c_str(),
                 number->value, sources_[number->value], printable(name).c_str());
  }
  is_stored_[number->value] = true;
  return {};
}

Status LayerSources::check_sources_stored() const {
  for (size_t layer = 0; layer < sources_.size(); ++layer) {
    if (is_stored_[sources_[layer]]) continue;
    return error(Code::kFormat, "%s: layer %zu comes from layer %u, which has no tensors", path_.c_str(), layer,
                 sources_[layer]);
  }
  return {};
}

}  // namespace headrace
