#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"
#include "weights/json_stream.h"

namespace headrace {
namespace {

using ull = unsigned long long;

/// The length of the header, little endian, in front of it.
constexpr uint64_t kLengthBytes = 8;

struct DTypeRow {
  DType dtype;
  const char* name;
  size_t bytes;
};
constexpr DTypeRow kDTypes[] = {
    {DType::kF32, "F32", 4},        {DType::kBf16, "BF16", 2},      {DType::kF16, "F16", 2},
    {DType::kU8, "U8", 1},          {DType::kI8, "I8", 1},          {DType::kF8E4m3, "F8_E4M3", 1},
    {DType::kF8E5m2, "F8_E5M2", 1}, {DType::kF8E8m0, "F8_E8M0", 1}, {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},        {DType::kI32, "I32", 4},        {DType::kU32, "U32", 4},
    {DType::kI64, "I64", 8},        {DType::kU64, "U64", 8},        {DType::kF64, "F64", 8},
    {DType::kBool, "BOOL", 1},
};

const DTypeRow& row_of(DType dtype) {
  const auto* row = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                 [dtype](const DTypeRow& candidate) { return candidate.dtype == dtype; });
  ENSURE(row != std::end(kDTypes));
  return *row;
}

/// The bytes that `dtype` and `shape` ask for, or nothing when they are more than 64 bits count.
std::optional<uint64_t> stored_bytes(DType dtype, const Shape& shape) {
  uint64_t bytes = dtype_bytes(dtype);
  // Zeros first: [2^40, 2^40, 0] is empty, not too large.
  const auto* end = shape.dims.begin() + shape.rank;
  if (std::find(shape.dims.begin(), end, uint64_t{0}) != end) return 0;
  for (const auto* dim = shape.dims.begin(); dim != end; ++dim) {
    if (__builtin_mul_overflow(bytes, *dim, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// The events of a header:
/// {"<tensor>": {"dtype": "..", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {"..": ".."}}
class HeaderEvents final : public JsonEvents {
 public:
  HeaderEvents(uint64_t data_begin, uint64_t file_bytes, HeaderSink sink)
      : data_begin_(data_begin), data_bytes_(file_bytes - data_begin), sink_(sink) {}

  uint64_t tensor_count() const { return tensor_count_; }

  bool start_object(std::size_t) override;
  bool end_object() override;
  bool key(string_t& name) override;
  bool string(string_t& text) override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool number_unsigned(number_unsigned_t number) override;

 private:
  enum class At : uint8_t { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  enum class Field : uint8_t { kNone, kDType, kShape, kOffsets };
  enum : uint8_t { kHasDType = 1, kHasShape = 2, kHasOffsets = 4, kHasAll = 7 };

  std::string place() const override;
  bool top_key(const string_t& name);
  bool tensor_key(const string_t& name);
  bool start_field(Field field, uint8_t flag);
  bool end_tensor();
  Result<HeaderTensor> checked_tensor() const;
  bool fail_tensor(Error reason);

  const uint64_t data_begin_;
  const uint64_t data_bytes_;
  HeaderSink sink_;

  At at_ = At::kStart;
  Field field_ = Field::kNone;
  uint8_t fields_seen_ = 0;
  bool metadata_seen_ = false;
  uint64_t tensor_count_ = 0;

  string_t name_;
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::array<uint64_t, 2> offsets_{};
  size_t offset_count_ = 0;
};

std::string HeaderEvents::place() const {
  switch (at_) {
    case At::kStart:
      return "start of the header";
    case At::kTop:
      return "top level of the header";
    case At::kMetadata:
      return "__metadata__";
    case At::kTensor:
      return "tensor " + printable(name_);
    case At::kShape:
      return "tensor " + printable(name_) + ", shape";
    case At::kOffsets:
      return "tensor " + printable(name_) + ", data_offsets";
    case At::kEnd:
      return "end of the header";
  }
  return "header";
}

bool HeaderEvents::fail_tensor(Error reason) {
  return fail(with_context(std::move(reason), "tensor %s", printable(name_).c_str()));
}

bool HeaderEvents::start_object(std::size_t size) {
  if (at_ == At::kStart) {
    at_ = At::kTop;
    return true;
  }
  if (at_ != At::kTop) return JsonEvents::start_object(size);
  if (name_ == "__metadata__") {
    at_ = At::kMetadata;
    return true;
  }
  at_ = At::kTensor;
  field_ = Field::kNone;
  fields_seen_ = 0;
  return true;
}

bool HeaderEvents::end_object() {
  switch (at_) {
    case At::kTop:
      at_ = At::kEnd;
      return true;
    case At::kMetadata:
      at_ = At::kTop;
      return true;
    case At::kTensor:
      return end_tensor();
    default:
      return JsonEvents::end_object();
  }
}

bool HeaderEvents::key(string_t& name) {
  switch (at_) {
    case At::kTop:
      return top_key(name);
    case At::kMetadata:
      return true;
    case At::kTensor:
      return tensor_key(name);
    default:
      return JsonEvents::key(name);
  }
}

bool HeaderEvents::top_key(const string_t& name) {
  name_ = name;
  if (name == "__metadata__") {
    if (metadata_seen_) return fail(error(Code::kFormat, "__metadata__ is there twice"));
    metadata_seen_ = true;
    return true;
  }
  if (name.size() > kTensorNameBytesMax) {
    return fail_tensor(
        error(Code::kFormat, "its name has %zu bytes, at most %zu are taken", name.size(), kTensorNameBytesMax));
  }
  if (name.empty()) return fail(error(Code::kFormat, "a tensor without a name"));
  if (name.find('\0') != string_t::npos) return fail_tensor(error(Code::kFormat, "its name has a zero byte"));
  return true;
}

bool HeaderEvents::tensor_key(const string_t& name) {
  if (name == "dtype") return start_field(Field::kDType, kHasDType);
  if (name == "shape") return start_field(Field::kShape, kHasShape);
  if (name == "data_offsets") return start_field(Field::kOffsets, kHasOffsets);
  return fail_tensor(error(Code::kFormat, "unknown field %s", printable(name).c_str()));
}

bool HeaderEvents::start_field(Field field, uint8_t flag) {
  if (fields_seen_ & flag) return fail_tensor(error(Code::kFormat, "a field is there twice"));
  fields_seen_ = static_cast<uint8_t>(fields_seen_ | flag);
  field_ = field;
  return true;
}

bool HeaderEvents::string(string_t& text) {
  if (at_ == At::kMetadata) return true;
  if (at_ != At::kTensor || field_ != Field::kDType) return JsonEvents::string(text);
  const std::optional<DType> dtype = dtype_of_name(text);
  if (!dtype) return fail_tensor(error(Code::kFormat, "unknown type %s", printable(text).c_str()));
  dtype_ = *dtype;
  return true;
}

bool HeaderEvents::start_array(std::size_t size) {
  if (at_ != At::kTensor) return JsonEvents::start_array(size);
  switch (field_) {
    case Field::kShape:
      shape_ = {};
      at_ = At::kShape;
      return true;
    case Field::kOffsets:
      offset_count_ = 0;
      at_ = At::kOffsets;
      return true;
    default:
      return JsonEvents::start_array(size);
  }
}

bool HeaderEvents::number_unsigned(number_unsigned_t number) {
  if (at_ == At::kShape) {
    if (shape_.rank == Shape::kRankMax)
      return fail_tensor(error(Code::kFormat, "more than %zu dimensions", Shape::kRankMax));
    shape_.dims[shape_.rank++] = number;
    return true;
  }
  if (at_ == At::kOffsets) {
    if (offset_count_ == offsets_.size()) return fail_tensor(error(Code::kFormat, "more than two data_offsets"));
    offsets_[offset_count_++] = number;
    return true;
  }
  return JsonEvents::number_unsigned(number);
}

bool HeaderEvents::end_array() {
  if (at_ == At::kOffsets && offset_count_ != offsets_.size())
    return fail_tensor(error(Code::kFormat, "fewer than two data_offsets"));
  at_ = At::kTensor;
  field_ = Field::kNone;
  return true;
}

bool HeaderEvents::end_tensor() {
  Result<HeaderTensor> tensor = checked_tensor();
  if (!tensor) return fail_tensor(tensor.take_error());
  ++tensor_count_;
  at_ = At::kTop;
  return check(sink_(tensor.value()));
}

Result<HeaderTensor> HeaderEvents::checked_tensor() const {
  if (fields_seen_ != kHasAll) {
    const char* missing = !(fields_seen_ & kHasDType)   ? "dtype"
                          : !(fields_seen_ & kHasShape) ? "shape"
                                                        : "data_offsets";
    return error(Code::kFormat, "%s is missing", missing);
  }
  const auto [begin, end] = offsets_;
  if (end < begin) return error(Code::kFormat, "data_offsets [%llu, %llu] run backwards", ull{begin}, ull{end});
  if (end > data_bytes_) {
    return error(Code::kFormat,
                 "data_offsets [%llu, %llu] reach past the end of the file, which holds %llu bytes of data", ull{begin},
                 ull{end}, ull{data_bytes_});
  }
  const std::optional<uint64_t> wanted_bytes = stored_bytes(dtype_, shape_);
  if (!wanted_bytes) return error(Code::kFormat, "shape %s is too large to be true", shape_.text().c_str());
  if (*wanted_bytes != end - begin) {
    return error(Code::kFormat, "shape %s of %s takes %llu bytes, but data_offsets give it %llu", shape_.text().c_str(),
                 dtype_name(dtype_), ull{*wanted_bytes}, ull{end - begin});
  }
  return HeaderTensor{name_, dtype_, shape_, {data_begin_ + begin, end - begin}};
}

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

Result<uint64_t> read_header_length(ReadableFile& file, std::span<std::byte> chunk, uint64_t& bytes_read) {
  const uint64_t file_bytes = file.size_bytes();
  if (file_bytes < kLengthBytes) {
    return error(Code::kFormat, "%s: %llu bytes are too few for a safetensors file", file.path().c_str(),
                 ull{file_bytes});
  }
  const size_t wanted_bytes = static_cast<size_t>(align_up(kLengthBytes, file.block_bytes()));
  const ReadOutcome outcome = TRY(read_at_least(file, 0, chunk.first(wanted_bytes), kLengthBytes));
  bytes_read += outcome.transferred_bytes;
  uint64_t length = 0;
  std::memcpy(&length, chunk.data(), sizeof(length));
  static_assert(std::endian::native == std::endian::little);
  if (length > file_bytes - kLengthBytes) {
    return error(Code::kFormat, "%s: a header of %llu bytes, but the file has %llu", file.path().c_str(), ull{length},
                 ull{file_bytes});
  }
  if (length > kHeaderBytesMax) {
    return error(Code::kFormat, "%s: a header of %llu bytes, more than the %llu that the format allows",
                 file.path().c_str(), ull{length}, ull{kHeaderBytesMax});
  }
  return length;
}

}  // namespace

const char* dtype_name(DType dtype) {
  return row_of(dtype).name;
}
size_t dtype_bytes(DType dtype) {
  return row_of(dtype).bytes;
}

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

uint64_t Shape::element_count() const {
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= dims[i];
  return count;
}

std::string Shape::text() const {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string printable(std::string_view name) {
  constexpr size_t kShownBytesMax = 100;
  std::string text(name.substr(0, kShownBytesMax));
  for (char& byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = '?';
  }
  if (name.size() > kShownBytesMax) text += "...";
  return text;
}

Result<HeaderSummary> read_safetensors_header(ReadableFile& file, std::span<std::byte> chunk, HeaderSink sink) {
  HeaderSummary summary;
  const uint64_t length = TRY(read_header_length(file, chunk, summary.bytes_read));
  summary.data_begin = kLengthBytes + length;
  HeaderEvents events(summary.data_begin, file.size_bytes(), sink);
  summary.bytes_read += TRY(read_json(file, {kLengthBytes, length}, chunk, events));
  summary.tensor_count = events.tensor_count();
  return summary;
}

Result<uint64_t> read_safetensors_index(ReadableFile& file, std::span<std::byte> chunk, IndexSink sink) {
  IndexEvents events(sink);
  const uint64_t bytes_read = TRY(read_json(file, {0, file.size_bytes()}, chunk, events));
  if (!events.has_weight_map()) return error(Code::kFormat, "%s: weight_map is missing", file.path().c_str());
  return bytes_read;
}

}  // namespace headrace
