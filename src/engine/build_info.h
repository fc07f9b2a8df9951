#pragma once

#include <string>

namespace headrace {

/// The only way to read in this version: blocking reads of the calling threads.
inline constexpr const char* kIoBackend = "threads";

/// The build of that `version` and what it can use on this machine, as the JSON object that headrace_build_json
/// describes.
std::string build_info_json(const char* version);

}  // namespace headrace
