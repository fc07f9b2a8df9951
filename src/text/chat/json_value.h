#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace headrace {

struct JsonMember;
struct JsonValue;

/// A number as Python prints it: integers keep their digits whatever their length, other numbers are the shortest text
/// that reads back as the same double (`1.0`, `1e-05`).
struct JsonNumber {
  std::string text;
};

using JsonArray = std::vector<JsonValue>;
/// Members in the order of their first mention; keys are unique.
using JsonObject = std::vector<JsonMember>;

/// A JSON value that keeps what models see of it: the order of keys, and the digits of numbers. Strings are UTF-8. Null
/// when nothing else is said.
struct JsonValue {
  std::variant<std::nullptr_t, bool, JsonNumber, std::string, JsonArray, JsonObject> data;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// What a text may ask for; a value of one byte of text takes about fifty bytes of memory.
struct JsonBounds {
  size_t bytes_max;
  size_t depth_max;  ///< Arrays and objects inside each other. Code that walks a value recurses this deep.
  size_t values_max;
};

/// Bounds of JSON inside a message: arguments of a call, one value of an argument.
inline constexpr JsonBounds kInnerJsonBounds = {.bytes_max = size_t{8} << 20, .depth_max = 100, .values_max = 200'000};

/// Parses one value. A key that is there twice keeps its first position and its last value. kFormat, with the position,
/// when the text is not JSON in UTF-8; kArgument when it is beyond `bounds` or a number is beyond a double's range.
Result<JsonValue> parse_json(std::string_view text, const JsonBounds& bounds);

/// The member called `key`, or null.
const JsonValue* find_member(const JsonObject& object, std::string_view key);

}  // namespace headrace
