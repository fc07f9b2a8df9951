#pragma once

#include <cstddef>

namespace headrace::test {

/// Uses of `new` by all threads of this program so far.
size_t allocation_count();

}  // namespace headrace::test
