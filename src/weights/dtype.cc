#include <algorithm>
#include <optional>
#include <string>

#include "base/ensure.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

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

}  // namespace headrace
