#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernels.h"

namespace headrace {

/// The tables that this processor can run, best first; never empty, the last is "scalar".
std::vector<const Kernels*> usable_kernels();

/// The best table, or the one called `name` ("scalar", "avx2", "avx512", "neon") when that is not empty. kUnsupported
/// when this processor or build does not have it, kArgument when nothing is called so.
Result<const Kernels*> select_kernels(std::string_view name);

}  // namespace headrace
