#pragma once

#include <cstddef>
#include <vector>

#include "base/ensure.h"

namespace headrace {

/// Places of a back end in the order in which they came, each at most once. Memory is taken once.
class PlaceLine {
 public:
  explicit PlaceLine(size_t capacity) : places_(capacity) {}

  bool is_empty() const { return count_ == 0; }
  void push(size_t place) {
    ENSURE(count_ < places_.size());
    places_[(first_ + count_++) % places_.size()] = place;
  }
  size_t pop() {
    ENSURE(count_ > 0);
    const size_t place = places_[first_];
    first_ = (first_ + 1) % places_.size();
    --count_;
    return place;
  }

 private:
  std::vector<size_t> places_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace headrace
