#pragma once

#include <cstddef>
#include <span>

#include "base/views.h"
#include "kernels/algorithms/functions.h"
#include "kernels/algorithms/partial.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V, class Access>
V convolve(std::span<const float* const> window, MatrixView<const float> taps, size_t col, const Access& access) {
  const float* tap = taps.data() + col;
  V total = access.load(tap) * access.load(window.data()[0] + col);
  for (size_t j = 1; j < window.size(); ++j) {
    tap += taps.stride();
    total = fma(access.load(tap), access.load(window.data()[j] + col), total);
  }
  return total * sigmoid(total);
}

template <Vector V>
void short_conv(std::span<const float* const> window, MatrixView<const float> taps, std::span<float> out) {
  const size_t whole = out.size() - out.size() % kLanes;
  for (size_t col = 0; col < whole; col += kLanes) {
    convolve<V>(window, taps, col, WholeVector<V>{}).store(out.data() + col);
  }
  const PartOfVector<V> rest{out.size() - whole};
  if (rest.count > 0) rest.store(convolve<V>(window, taps, whole, rest), out.data() + whole);
}

}  // namespace headrace
