#pragma once

#include <string>

namespace headrace {

/// The build of that `version` and what it can use on this machine, as the JSON object that headrace_build_json
/// describes. Back ends of reading are tried, since whether the kernel allows them is not known otherwise.
std::string build_info_json(const char* version);

}  // namespace headrace
