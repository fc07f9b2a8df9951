#pragma once

#include "formats/bf16.h"
#include "formats/f16.h"
#include "formats/f32.h"
#include "formats/mxfp4.h"

namespace headrace {

template <class... F>
struct FormatList {
  static constexpr size_t kCount = sizeof...(F);
};

/// All weight formats, in the order of `Format`. Each gives its name, the bytes of a row, and a Decoder over a vector
/// type of 16 lanes.
using Formats = FormatList<F32, Bf16, F16, Mxfp4>;
static_assert(Formats::kCount == kFormatCount);

}  // namespace headrace
