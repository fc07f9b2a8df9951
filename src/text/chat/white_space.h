#pragma once

#include <string_view>

namespace headrace {

/// `text` without the white space around it, as Python's str.strip() sees it: Unicode's White_Space and U+001C to
/// U+001F. Bytes that are no UTF-8 are not white space.
std::string_view strip(std::string_view text);

/// Whether `text` is empty or all white space.
bool is_blank(std::string_view text);

}  // namespace headrace
