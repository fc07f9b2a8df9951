#pragma once

#include <cstddef>
#include <string>

#include "cli/settings.h"

namespace headrace::cli {

/// Most bytes of a text that is not bounded by a context.
inline constexpr size_t kTextBytesMax = size_t{256} << 20;

/// Most bytes of a text that could fit the context asked for: more are refused before they are read, so that a prompt
/// stays small beside the memory budget.
size_t prompt_bytes_max(const Settings& settings);

/// The text that a command works on: argument number `index`, --file, or standard input, byte for byte. UsageError when
/// it is given twice, or longer than `bytes_max`.
std::string text_from(const Settings& settings, size_t index, size_t bytes_max);

}  // namespace headrace::cli
