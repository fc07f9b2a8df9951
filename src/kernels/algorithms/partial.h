#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/isa/vector.h"

namespace headrace {

/// The first `count` floats at `source`, `fill` in the lanes behind them; nothing else is read.
template <Vector V>
V load_first(const float* source, size_t count, float fill = 0.0F) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = fill;
  std::memcpy(lanes, source, count * sizeof(float));
  return V::load(lanes);
}

/// Writes the first `count` lanes to `target`, and nothing else.
template <Vector V>
void store_first(V vector, float* target, size_t count) {
  float lanes[kLanes];
  vector.store(lanes);
  std::memcpy(target, lanes, count * sizeof(float));
}

/// How column kernels reach a full vector of neighbouring columns ...
template <Vector V>
struct WholeVector {
  V load(const float* source) const { return V::load(source); }
  void store(V vector, float* target) const { vector.store(target); }
};

/// ... and the last columns of a row, fewer than a vector.
template <Vector V>
struct PartOfVector {
  size_t count;
  V load(const float* source) const { return load_first<V>(source, count); }
  void store(V vector, float* target) const { store_first(vector, target, count); }
};

}  // namespace headrace
