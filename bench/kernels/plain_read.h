#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::bench {

/// Reads all bytes with the widest loads of this processor and returns a number that depends on each: the speed that
/// no kernel can exceed.
uint64_t plain_read(std::span<const std::byte> bytes);

}  // namespace headrace::bench
