#include "text/base64.h"

#include <array>
#include <cstdint>

namespace headrace {
namespace {

constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> make_digits() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> digits = {};
  digits.fill(kNoDigit);
  for (size_t value = 0; value < kAlphabet.size(); ++value) {
    digits[static_cast<uint8_t>(kAlphabet[value])] = static_cast<uint8_t>(value);
  }
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = make_digits();

/// Appends the bytes of one group of four digits, of which the last `padding_count` (0 to 2) are '='.
Status append_group(std::string_view group, size_t padding_count, std::string& bytes) {
  uint32_t bits = 0;
  for (size_t index = 0; index < 4; ++index) {
    const bool is_padding = index + padding_count >= 4;
    const uint8_t digit = is_padding ? 0 : kDigits[static_cast<uint8_t>(group[index])];
    if (digit == kNoDigit) return error(Code::kFormat, "a character that is not base64");
    bits = bits << 6 | digit;
  }
  const uint32_t unused = padding_count == 0 ? 0 : bits & ((1u << 8 * padding_count) - 1);
  if (unused != 0) return error(Code::kFormat, "base64 with stray bits at its end");
  for (size_t index = 0; index + padding_count < 3; ++index)
    bytes += static_cast<char>(bits >> (16 - 8 * index) & 0xFF);
  return {};
}

}  // namespace

Status append_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return error(Code::kFormat, "base64 of %zu characters, not a multiple of 4", text.size());
  for (size_t offset = 0; offset < text.size(); offset += 4) {
    const std::string_view group = text.substr(offset, 4);
    const bool last = offset + 4 == text.size();
    const size_t padding_count = !last || group[3] != '=' ? 0 : group[2] != '=' ? 1 : 2;
    TRY(append_group(group, padding_count, bytes));
  }
  return {};
}

}  // namespace headrace
