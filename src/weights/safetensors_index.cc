#include <utility>

#include "base/ensure.h"
#include "weights/json_stream.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

/// The events of an index: {"metadata": {"total_size": n, ..}, "weight_map": {"<tensor>": "<file>", ..}, ..}
class IndexEvents final : public JsonEvents {
 public:
  explicit IndexEvents(IndexSink sink) : sink_(sink) {}

  bool null() override { return pass_over() || JsonEvents::null(); }
  bool boolean(bool value) override { return pass_over() || JsonEvents::boolean(value); }
  bool number_integer(number_integer_t value) override { return pass_over() || JsonEvents::number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& text) override;
  bool start_object(std::size_t size) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t size) override { return deeper() || JsonEvents::start_array(size); }
  bool end_array() override { return shallower(); }

  bool has_weight_map() const { return weight_map_seen_; }

 private:
  enum class At : uint8_t { kStart, kTop, kMetadata, kWeightMap, kEnd };
  /// Deepest nesting inside a value that is passed over.
  static constexpr int kDepthMax = 32;

  std::string place() const override;
  /// Whether the reader is inside, or at, a value that nobody asked for.
  bool pass_over() const {
    return depth_ > 0 || (at_ == At::kTop && key_ == Key::kOther) || (at_ == At::kMetadata && key_ == Key::kOther);
  }
  bool deeper();
  bool shallower();
  bool take_total_size(uint64_t bytes);

  enum class Key : uint8_t { kOther, kMetadata, kWeightMap, kTotalSize };

  IndexSink sink_;
  At at_ = At::kStart;
  Key key_ = Key::kOther;
  int depth_ = 0;
  bool metadata_seen_ = false;
  bool weight_map_seen_ = false;
  bool total_size_seen_ = false;
  string_t tensor_;
};

std::string IndexEvents::place() const {
  switch (at_) {
    case At::kStart:
      return "start of the index";
    case At::kTop:
      return "top level of the index";
    case At::kMetadata:
      return "metadata";
    case At::kWeightMap:
      return "weight_map, tensor " + printable(tensor_);
    case At::kEnd:
      return "end of the index";
  }
  return "index";
}

bool IndexEvents::deeper() {
  if (!pass_over()) return false;
  if (++depth_ > kDepthMax) return fail(error(Code::kFormat, "nested deeper than %d", kDepthMax));
  return true;
}

bool IndexEvents::shallower() {
  ENSURE(depth_ > 0);  // The parser pairs them, and only `deeper` lets one open.
  --depth_;
  return true;
}

bool IndexEvents::take_total_size(uint64_t bytes) {
  if (total_size_seen_) return fail(error(Code::kFormat, "metadata: total_size is there twice"));
  total_size_seen_ = true;
  return check(sink_.total_size(bytes));
}

bool IndexEvents::number_unsigned(number_unsigned_t value) {
  if (pass_over()) return true;
  if (at_ == At::kMetadata) return take_total_size(value);
  return JsonEvents::number_unsigned(value);
}

bool IndexEvents::number_float(number_float_t value, const string_t& text) {
  if (pass_over()) return true;
  // Some writers add the sizes up in floating point.
  const bool whole = value >= 0 && value < 0x1p53 && value == static_cast<double>(static_cast<uint64_t>(value));
  if (at_ == At::kMetadata && whole) return take_total_size(static_cast<uint64_t>(value));
  return JsonEvents::number_float(value, text);
}

bool IndexEvents::string(string_t& text) {
  if (pass_over()) return true;
  if (at_ == At::kWeightMap) return check(sink_.entry(tensor_, text));
  return JsonEvents::string(text);
}

bool IndexEvents::start_object(std::size_t size) {
  if (at_ == At::kStart) {
    at_ = At::kTop;
    return true;
  }
  if (at_ == At::kTop && depth_ == 0 && key_ == Key::kMetadata) {
    at_ = At::kMetadata;
    return true;
  }
  if (at_ == At::kTop && depth_ == 0 && key_ == Key::kWeightMap) {
    at_ = At::kWeightMap;
    return true;
  }
  return deeper() || JsonEvents::start_object(size);
}

bool IndexEvents::key(string_t& name) {
  if (depth_ > 0) return true;
  if (at_ == At::kWeightMap) {
    tensor_ = name;
    return true;
  }
  key_ = Key::kOther;
  if (at_ == At::kMetadata) {
    if (name == "total_size") key_ = Key::kTotalSize;
    return true;
  }
  if (name == "metadata") {
    if (std::exchange(metadata_seen_, true)) return fail(error(Code::kFormat, "metadata is there twice"));
    key_ = Key::kMetadata;
  } else if (name == "weight_map") {
    if (std::exchange(weight_map_seen_, true)) return fail(error(Code::kFormat, "weight_map is there twice"));
    key_ = Key::kWeightMap;
  }
  return true;
}

bool IndexEvents::end_object() {
  if (depth_ > 0) return shallower();
  at_ = at_ == At::kTop ? At::kEnd : At::kTop;
  return true;
}

}  // namespace

Result<uint64_t> read_safetensors_index(ReadableFile& file, std::span<std::byte> chunk, IndexSink sink) {
  IndexEvents events(sink);
  const uint64_t bytes_read = TRY(read_json(file, {0, file.size_bytes()}, chunk, events));
  if (!events.has_weight_map()) return error(Code::kFormat, "%s: weight_map is missing", file.path().c_str());
  return bytes_read;
}

}  // namespace headrace
