#pragma once

#include <cstddef>
#include <optional>

namespace headrace::test {

/// Uses of `new` by all threads of this program so far; nothing under sanitizers, which bring their own.
std::optional<size_t> allocation_count();

}  // namespace headrace::test
