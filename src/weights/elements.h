#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/result.h"
#include "formats/format.h"
#include "weights/checkpoint.h"

namespace headrace {

/// The weight format of a type that holds one number per element, or nothing.
std::optional<Format> plain_format(DType dtype);

/// Converts numbers at `data` (any address) to float32, exactly. `format` is one that `plain_format` returns.
void decode_elements(Format format, const std::byte* data, std::span<float> out);

/// kFormat naming the first of `count` elements at `data` (any address) that is infinite or not a number. `format` is
/// one that `plain_format` returns. Reads memory about as fast as it can be read.
Status check_finite(Format format, const std::byte* data, size_t count);

}  // namespace headrace
