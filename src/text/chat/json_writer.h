#pragma once

#include <string>
#include <string_view>

#include "text/chat/json_value.h"

namespace headrace {

/// `value` as Python's json.dumps(value, ensure_ascii=False) writes it: keys in their order, separators ", " and ": ".
std::string spaced_json(const JsonValue& value);

/// As json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")): compact, keys sorted by code point
/// in every object.
std::string sorted_json(const JsonValue& value);

/// Appends `text` as a JSON string. Only quotes, backslashes and characters below U+0020 are escaped.
void append_json_string(std::string_view text, std::string& json);

}  // namespace headrace
