#include "text/utf8.h"

#include "base/ensure.h"

namespace headrace {
namespace {

/// What a first byte demands: continuation bytes, and the range of the first of them. The ranges are what excludes
/// overlong forms (E0, F0), surrogates (ED) and code points above U+10FFFF (F4).
struct Lead {
  uint8_t continuation_count;
  uint8_t second_min;
  uint8_t second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit read_utf8(std::string_view bytes) {
  ENSURE(!bytes.empty());
  const auto first = static_cast<uint8_t>(bytes[0]);
  if (first < 0x80) return {Utf8Unit::Kind::kCharacter, 1, first};
  const Lead lead = lead_of(first);
  if (lead.continuation_count == 0) return {Utf8Unit::Kind::kInvalid, 1, 0};
  char32_t code_point = first & (0x3Fu >> lead.continuation_count);
  for (uint8_t index = 1; index <= lead.continuation_count; ++index) {
    if (index == bytes.size()) return {Utf8Unit::Kind::kIncomplete, index, 0};
    const auto byte = static_cast<uint8_t>(bytes[index]);
    const uint8_t min = index == 1 ? lead.second_min : 0x80;
    const uint8_t max = index == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Unit::Kind::kInvalid, index, 0};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {Utf8Unit::Kind::kCharacter, static_cast<uint8_t>(lead.continuation_count + 1), code_point};
}

size_t valid_utf8_prefix_bytes(std::string_view bytes) {
  size_t offset = 0;
  while (offset < bytes.size()) {
    const Utf8Unit unit = read_utf8(bytes.substr(offset));
    if (unit.kind != Utf8Unit::Kind::kCharacter) break;
    offset += unit.length;
  }
  return offset;
}

}  // namespace headrace
