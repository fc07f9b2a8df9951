#pragma once

#include <cstddef>
#include <utility>

#include "formats/format.h"

namespace headrace {

class TrunkRing;

/// Consecutive rows of a trunk matrix, resident while this lives. Move-only; dropped on the thread that acquired it.
class RowBlock {
 public:
  /// `ring` gets the memory back; null for rows that stay in memory anyway.
  RowBlock(size_t first_row, WeightView weights, TrunkRing* ring = nullptr)
      : first_row_(first_row), weights_(weights), ring_(ring) {}
  RowBlock(RowBlock&& other) noexcept
      : first_row_(other.first_row_), weights_(other.weights_), ring_(std::exchange(other.ring_, nullptr)) {}
  RowBlock& operator=(RowBlock&&) = delete;
  ~RowBlock();

  size_t first_row() const { return first_row_; }
  size_t end_row() const { return first_row_ + weights_.rows; }
  const WeightView& weights() const { return weights_; }

 private:
  size_t first_row_;
  WeightView weights_;
  TrunkRing* ring_;
};

}  // namespace headrace
