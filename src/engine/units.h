#pragma once

#include <cstdint>
#include <string>

namespace headrace {

/// "512 bytes", "3.2 GiB": for messages; the exact number stands beside it where it matters.
std::string bytes_text(uint64_t bytes);

}  // namespace headrace
