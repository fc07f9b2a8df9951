#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace {

/// What stands at the front of some bytes, by table 3-7 of the Unicode standard: no surrogates, no overlong forms,
/// nothing above U+10FFFF.
struct Utf8Unit {
  enum class Kind : uint8_t {
    kCharacter,  ///< `length` bytes are `code_point`.
    kInvalid,  ///< No following bytes can save the first `length` (1 to 3): a maximal subpart, replaced by one U+FFFD.
    kIncomplete,  ///< All bytes that are left, `length` (1 to 3), begin a character that later bytes may complete.
  };

  Kind kind;
  uint8_t length;
  char32_t code_point;
};

/// Reads the front of `bytes`, which must not be empty.
Utf8Unit read_utf8(std::string_view bytes);

/// Length of the longest valid UTF-8 at the front of `bytes`.
size_t valid_utf8_prefix_bytes(std::string_view bytes);

}  // namespace headrace
