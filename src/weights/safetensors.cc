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

/// What %llu prints.
using Printed = unsigned long long;

/// The length of the header, little endian, in front of it.
constexpr uint64_t kLengthBytes = 8;

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
  if (end < begin) return error(Code::kFormat, "data_offsets [%llu, %llu] run backwards", Printed{begin}, Printed{end});
  if (end > data_bytes_) {
    return error(Code::kFormat,
                 "data_offsets [%llu, %llu] reach past the end of the file, which holds %llu bytes of data",
                 Printed{begin}, Printed{end}, Printed{data_bytes_});
  }
  const std::optional<uint64_t> wanted_bytes = stored_bytes(dtype_, shape_);
  if (!wanted_bytes) return error(Code::kFormat, "shape %s is too large to be true", shape_.text().c_str());
  if (*wanted_bytes != end - begin) {
    return error(Code::kFormat, "shape %s of %s takes %llu bytes, but data_offsets give it %llu", shape_.text().c_str(),
                 dtype_name(dtype_), Printed{*wanted_bytes}, Printed{end - begin});
  }
  return HeaderTensor{name_, dtype_, shape_, {data_begin_ + begin, end - begin}};
}

Result<uint64_t> read_header_length(ReadableFile& file, std::span<std::byte> chunk, uint64_t& bytes_read) {
  const uint64_t file_bytes = file.size_bytes();
  if (file_bytes < kLengthBytes) {
    return error(Code::kFormat, "%s: %llu bytes are too few for a safetensors file", file.path().c_str(),
                 Printed{file_bytes});
  }
  const size_t wanted_bytes = static_cast<size_t>(align_up(kLengthBytes, file.block_bytes()));
  const ReadOutcome outcome = TRY(read_at_least(file, 0, chunk.first(wanted_bytes), kLengthBytes));
  bytes_read += outcome.transferred_bytes;
  uint64_t length = 0;
  std::memcpy(&length, chunk.data(), sizeof(length));
  static_assert(std::endian::native == std::endian::little);
  if (length > file_bytes - kLengthBytes) {
    return error(Code::kFormat, "%s: a header of %llu bytes, but the file has %llu", file.path().c_str(),
                 Printed{length}, Printed{file_bytes});
  }
  if (length > kHeaderBytesMax) {
    return error(Code::kFormat, "%s: a header of %llu bytes, more than the %llu that the format allows",
                 file.path().c_str(), Printed{length}, Printed{kHeaderBytesMax});
  }
  return length;
}

}  // namespace

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

}  // namespace headrace
