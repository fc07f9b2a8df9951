#pragma once

#include <cstddef>
#include <string>

#include "cli/settings.h"

namespace headrace::cli {

/// The text that a command works on: argument number `index`, --file, or standard input, byte for byte. UsageError when
/// it is given twice.
std::string text_from(const Settings& settings, size_t index);

}  // namespace headrace::cli
