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
#include "base/log.h"
#include "base/result.h"
#include "base/views.h"
#include "formats/format.h"
#include "io/read_queue.h"
#include "weights/checkpoint.h"
#include "weights/row_block.h"

namespace headrace {

/// A matrix of the trunk, known by its number.
struct TrunkMatrix {
  uint32_t index = 0;
  size_t rows = 0;
  size_t cols = 0;
};

/// Matrices that are pinned together or streamed together: those of a layer, or the head.
struct TrunkGroup {
  bool is_head = false;
  size_t memory_bytes = 0;  ///< That pinning takes of the budget.
  uint64_t read_bytes = 0;  ///< From the drive in each pass when it is streamed, widened to blocks.
};

/// All weights but the routed experts, handed out as row blocks in the order of a forward pass. Matrices are added
/// while loading, group by group, in the order of their use. Afterwards some groups are pinned in memory; the others
/// pass through a ring. One thread, that of the queue, calls everything; rows of a block may be read from any thread.
class Trunk {
 public:
  /// Bounds of a streamed block. Between them it is an eighth of the largest matrix.
  static constexpr size_t kBlockBytesMin = size_t{64} << 10;
  static constexpr size_t kBlockBytesMax = size_t{32} << 20;
  static constexpr size_t kRingBlocksMin = 4;

  /// `row_block_bytes_max` bounds a block further (at least one row each), also those of pinned matrices; 0: it does
  /// not.
  Trunk(Checkpoint& checkpoint, Budget& budget, ReadQueue& queue, size_t row_block_bytes_max);
  ~Trunk();
  Trunk(Trunk&&) noexcept;

  /// What is added from here on belongs to a new group. The head, if there is one, comes last.
  void begin_layer();
  void begin_head();

  /// Adds the matrix `name` of shape [rows, cols] (BF16, F16 or F32; trailing or leading dimensions of 1 are ignored).
  Result<TrunkMatrix> add_matrix(std::string_view name, size_t rows, size_t cols);
  /// The same for one of which all rows are wanted at once (spec 6, kv_b_proj): it is one block.
  Result<TrunkMatrix> add_whole_matrix(std::string_view name, size_t rows, size_t cols);
  /// Reads a small tensor of exactly `count` elements (BF16, F16 or F32) as float32, whatever its shape.
  Result<std::vector<float>> read_vector(std::string_view name, size_t count);
  /// The same with at least `count` elements; the first `count` are returned (spec 5.4, A_log).
  Result<std::vector<float>> read_vector_prefix(std::string_view name, size_t count);
  /// Adds a table of which single rows are read on demand (embeddings); it is never resident.
  Result<TrunkMatrix> add_row_table(std::string_view name, size_t rows, size_t cols);

  /// The groups in the order in which they are pinned: far from each other first, so that streamed and pinned layers
  /// alternate and the drive works while pinned ones compute. A larger number of pinned groups contains the smaller.
  std::vector<TrunkGroup> groups_in_pin_order() const;
  /// Of the ring, if any group is streamed.
  size_t ring_memory_bytes() const;

  /// Pins the first `count` groups of the pin order, and streams the others; not during a pass. Gives memory back
  /// before it takes any, reads what is newly pinned, and checks that its numbers are finite (kFormat). After an error
  /// only what was pinned before is sure to be. Call once before the first pass.
  Status pin(size_t count);
  size_t pinned_count() const;
  size_t pinned_layer_count() const;  ///< Without the head.
  size_t layer_count() const;         ///< Without the head.
  /// Whether the system lets all pinned rows stay in memory, whatever else wants it.
  bool is_locked() const;

  /// Starts a pass over all matrices in order, with the head or without.
  void begin_pass(bool with_head);
  /// The block that starts at `first_row`, which is 0 or the end_row() of the block before. kIo and kFormat name the
  /// tensor; the pass is then over. Numbers that are not finite are not looked for: whoever multiplies sees to it.
  Result<RowBlock> acquire(const TrunkMatrix& matrix, size_t first_row);
  /// All rows of a matrix that was added as a whole; its numbers are finite.
  Result<RowBlock> acquire_whole(const TrunkMatrix& matrix);
  /// Lets the queue go on, in the middle of long work.
  void pump();
  /// Rows of a row table as float32, one row of `out` for each: small reads, several at once. kFormat when a number is
  /// not finite.
  Status read_rows(const TrunkMatrix& table, std::span<const uint32_t> rows, MatrixView<float> out);

  /// Bytes of the blocks that one row of a table touches, the mean of its first rows.
  uint64_t row_read_bytes(const TrunkMatrix& table) const;
  /// Where a matrix comes from, for messages.
  std::string matrix_name(const TrunkMatrix& matrix) const;
  /// Streamed so far.
  uint64_t blocks_streamed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
