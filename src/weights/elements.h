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

/// kFormat naming the first element that is infinite or not a number.
Status check_finite(std::span<const float> values);

}  // namespace headrace
