#include "formats/format.h"

#include <array>

#include "formats/formats.h"

namespace headrace {
namespace {

struct FormatTraits {
  Format format;
  const char* name;
  size_t column_multiple;
  size_t (*row_bytes)(size_t cols);
  size_t (*scale_row_bytes)(size_t cols);
};

template <class... F>
constexpr std::array<FormatTraits, sizeof...(F)> list_traits(FormatList<F...>) {
  return {FormatTraits{F::kFormat, F::kName, F::kColumnMultiple, F::row_bytes, F::scale_row_bytes}...};
}

constexpr auto kTraits = list_traits(Formats{});

constexpr bool in_order() {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].format != static_cast<Format>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "Formats must stand in the order of the enumeration");

const FormatTraits& traits(Format format) {
  return kTraits[static_cast<size_t>(format)];
}

}  // namespace

size_t format_row_bytes(Format format, size_t cols) {
  ENSURE(cols % traits(format).column_multiple == 0);
  return traits(format).row_bytes(cols);
}

size_t format_scale_row_bytes(Format format, size_t cols) {
  ENSURE(cols % traits(format).column_multiple == 0);
  return traits(format).scale_row_bytes(cols);
}

const char* format_name(Format format) {
  return traits(format).name;
}

WeightView float_weights(const float* data, size_t rows, size_t cols, size_t stride) {
  ENSURE(stride >= cols);
  return {.format = Format::kF32,
          .rows = rows,
          .cols = cols,
          .data = reinterpret_cast<const std::byte*>(data),
          .row_bytes = stride * sizeof(float)};
}

}  // namespace headrace
