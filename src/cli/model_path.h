#pragma once

#include <string>

namespace headrace::cli {

/// The folder of MODEL: itself, or for the word `demo` the model that ships with the program, beside an installed
/// program (../share/headrace/models/demo) or in the source tree of the build. UsageError when `demo` is in neither.
std::string model_folder(const std::string& model);

}  // namespace headrace::cli
