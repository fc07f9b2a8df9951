#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace headrace {

/// Where long text is cut before it is encoded, so that ids equal those of Kimi's published encoder: slices of 400,000
/// characters, and inside a slice no part with a run of more than 25,000 characters that are all white space, or all
/// not. Returns the byte offsets at which parts end, ascending, the last one the end of the text. An invalid byte
/// counts as one character.
std::vector<size_t> part_ends(std::string_view text);

}  // namespace headrace
