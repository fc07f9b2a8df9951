#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace::cli {

/// `text` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
/// "[1,2,3]"
std::string json_ids(std::span<const int32_t> ids);
/// "[0.5,-1.25]": the shortest decimals that read back as the same float32.
std::string json_floats(std::span<const float> values);

}  // namespace headrace::cli
