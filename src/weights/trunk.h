#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "formats/format.h"
#include "weights/checkpoint.h"

namespace headrace {

/// A matrix of the trunk, known by its number.
struct TrunkMatrix {
  uint32_t index = 0;
  size_t rows = 0;
  size_t cols = 0;
};

/// Consecutive rows of a trunk matrix, resident while this lives. Move-only.
class RowBlock {
 public:
  RowBlock(size_t first_row, WeightView weights) : first_row_(first_row), weights_(weights) {}
  RowBlock(RowBlock&&) noexcept = default;
  RowBlock& operator=(RowBlock&&) noexcept = default;
  RowBlock(const RowBlock&) = delete;
  RowBlock& operator=(const RowBlock&) = delete;

  size_t first_row() const { return first_row_; }
  size_t end_row() const { return first_row_ + weights_.rows; }
  const WeightView& weights() const { return weights_; }

 private:
  size_t first_row_;
  WeightView weights_;
};

/// All weights but the routed experts, handed out as row blocks in a fixed order. Matrices are added while loading, in
/// the order in which a forward pass uses them, then `load` reads what stays resident. One thread acquires blocks;
/// their rows may be read from any thread.
class Trunk {
 public:
  /// `row_block_bytes_max` bounds a block (at least one row each); 0 means whole matrices.
  Trunk(Checkpoint& checkpoint, Budget& budget, size_t row_block_bytes_max);
  ~Trunk();
  Trunk(Trunk&&) noexcept;

  /// Adds the matrix `name` of shape [rows, cols] (BF16, F16 or F32; trailing or leading dimensions of 1 are ignored).
  Result<TrunkMatrix> add_matrix(std::string_view name, size_t rows, size_t cols);
  /// Reads a small tensor of exactly `count` elements (BF16, F16 or F32) as float32, whatever its shape.
  Result<std::vector<float>> read_vector(std::string_view name, size_t count);
  /// The same with at least `count` elements; the first `count` are returned (spec 5.4, A_log).
  Result<std::vector<float>> read_vector_prefix(std::string_view name, size_t count);
  /// Adds a table of which single rows are read on demand (embeddings); it is never resident.
  Result<TrunkMatrix> add_row_table(std::string_view name, size_t rows, size_t cols);

  /// Reads the resident matrices. Call once, after the last `add_matrix`.
  Status load();

  /// The block that starts at `first_row`, which is 0 or the end_row() of the block before.
  Result<RowBlock> acquire(const TrunkMatrix& matrix, size_t first_row);
  /// All rows at once, for the matrices that are used out of order (spec 6, kv_b_proj).
  Result<RowBlock> acquire_whole(const TrunkMatrix& matrix);
  /// Row `row` of a row table: a small read, decoded to float32.
  Status read_row(const TrunkMatrix& table, size_t row, std::span<float> out);

  uint64_t matrix_bytes_read() const;  ///< From the drive so far, by all but `read_row`.
  uint64_t row_bytes_read() const;     ///< By `read_row`.
  size_t resident_bytes() const;       ///< That `load` takes of the budget for the matrices added so far.
  double wait_s() const;               ///< Spent waiting for reads after `load`.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
