#include "cli/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "cli/exit_status.h"

namespace headrace::cli {
namespace {

constexpr std::string_view kSeparators = ", \t\r\n";

/// True when all of `text` is one number.
template <class T>
bool read_all(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

[[noreturn]] void refuse(std::string_view text, const std::string& allowed) {
  throw UsageError(fmt::format("'{}' is not {}", text, allowed));
}

uint64_t unit_bytes(char unit) {
  switch (unit) {
    case 'K':
    case 'k':
      return uint64_t{1} << 10;
    case 'M':
    case 'm':
      return uint64_t{1} << 20;
    case 'G':
    case 'g':
      return uint64_t{1} << 30;
    case 'T':
    case 't':
      return uint64_t{1} << 40;
    default:
      return 0;
  }
}

}  // namespace

uint64_t whole_number(std::string_view text, WholeRange range) {
  uint64_t value = 0;
  if (read_all(text, value) && value >= range.min && value <= range.max) return value;
  if (range.max == UINT64_MAX) refuse(text, fmt::format("a whole number from {}", range.min));
  refuse(text, fmt::format("a whole number from {} to {}", range.min, range.max));
}

double real_number(std::string_view text, RealRange range) {
  double value = 0;
  if (read_all(text, value) && std::isfinite(value) && value >= range.min && value <= range.max) return value;
  refuse(text, fmt::format("a number from {} to {}", range.min, range.max));
}

uint64_t size_bytes(std::string_view text) {
  constexpr const char* kAllowed = "a size such as 1048576, 64M, 3.2G or 24G";
  if (text.empty()) refuse(text, kAllowed);
  const std::string_view given = text;
  if (text.ends_with("iB")) text.remove_suffix(2);  // As sizes are printed.
  if (text.empty() || (text.size() < given.size() && unit_bytes(text.back()) == 0)) refuse(given, kAllowed);
  const uint64_t unit = unit_bytes(text.back());
  const std::string_view digits = unit > 0 ? text.substr(0, text.size() - 1) : text;
  // No exponents, signs or words: from_chars would take "1e3", "-1" and "inf".
  if (digits.find_first_not_of("0123456789.") != std::string_view::npos) refuse(given, kAllowed);
  uint64_t whole = 0;
  if (unit == 0) {
    constexpr auto kBytesMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!read_all(digits, whole) || whole == 0 || whole > kBytesMax) refuse(given, kAllowed);
    return whole;
  }
  double value = 0;
  if (!read_all(digits, value)) refuse(given, kAllowed);
  const double bytes = std::floor(value * static_cast<double>(unit));
  if (bytes < 1 || bytes >= static_cast<double>(std::numeric_limits<int64_t>::max())) refuse(given, kAllowed);
  return static_cast<uint64_t>(bytes);
}

std::vector<int32_t> token_ids(std::string_view text) {
  std::vector<int32_t> ids;
  size_t begin = text.find_first_not_of(kSeparators);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    int32_t id = 0;
    if (!read_all(word, id) || id < 0) refuse(word, "a token id; ids are whole numbers from 0, such as 1,2,3");
    ids.push_back(id);
    begin = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

bool is_one_of(std::string_view text, std::string_view allowed) {
  for (std::string_view rest = allowed; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (text == rest.substr(0, end)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string one_of(std::string_view text, std::string_view allowed) {
  if (is_one_of(text, allowed)) return std::string(text);
  refuse(text, fmt::format("one of {}", allowed));
}

}  // namespace headrace::cli
