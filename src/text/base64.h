#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

/// Length of the base64 of `byte_count` bytes.
constexpr size_t base64_bytes(size_t byte_count) {
  return (byte_count + 2) / 3 * 4;
}

/// Appends the bytes that `text` stands for (RFC 4648 section 4). Strict: padded, no other characters, and no bits set
/// that no byte takes. kFormat; `bytes` may then have grown.
Status append_base64(std::string_view text, std::string& bytes);

}  // namespace headrace
