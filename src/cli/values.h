#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::cli {

// Strict readers of option values: the whole text must be the value. Failures are UsageErrors that say what is allowed.

struct WholeRange {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
};
/// Digits only.
uint64_t whole_number(std::string_view text, WholeRange range);

struct RealRange {
  double min = 0;
  double max = 0;
};
/// A finite decimal number.
double real_number(std::string_view text, RealRange range);

/// Bytes: "1048576", "64M", "3.2G", "29.1MiB". K, M, G and T are powers of 1024.
uint64_t size_bytes(std::string_view text);

/// Token ids separated by commas or white space; may be empty.
std::vector<int32_t> token_ids(std::string_view text);

/// Whether `text` is one of `allowed` (separated by '|').
bool is_one_of(std::string_view text, std::string_view allowed);
/// `text` when it is one of `allowed` (separated by '|').
std::string one_of(std::string_view text, std::string_view allowed);

}  // namespace headrace::cli
