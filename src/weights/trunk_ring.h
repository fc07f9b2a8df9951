#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/result.h"
#include "formats/format.h"
#include "io/read_queue.h"
#include "weights/extent.h"
#include "weights/row_block.h"

namespace headrace {

/// A matrix whose rows pass through the ring.
struct StreamedMatrix {
  uint32_t index = 0;  ///< What its owner calls it.
  std::string name;    ///< For messages.
  ReadableFile* file = nullptr;
  uint64_t offset = 0;    ///< Of the first row in the file.
  WeightView view;        ///< Without data.
  size_t block_rows = 0;  ///< Rows of a block; all of them where they are wanted at once.
  bool is_head = false;   ///< At the end of some passes only.
};

/// A fixed piece of memory through which the rows of streamed matrices pass in the order of their use, read ahead
/// across layers and into the next pass. A block is as long as its rows; blocks lie one behind the other and wrap
/// around, so small ones do not waste room. One thread, that of the queue.
class TrunkRing {
 public:
  explicit TrunkRing(ReadQueue& queue) : queue_(queue) {}
  ~TrunkRing();
  TrunkRing(const TrunkRing&) = delete;
  TrunkRing& operator=(const TrunkRing&) = delete;

  /// Memory of a block of `rows_bytes` bytes of rows that begin anywhere in a file.
  static size_t block_memory_bytes(size_t rows_bytes, size_t io_block_bytes);

  /// Takes `bytes` from the budget, aligned to the largest block of the files. Gives back what it had before.
  Status allocate(Budget& budget, size_t bytes, size_t io_block_bytes);
  /// Gives the memory back, and forgets the matrices.
  void free();
  size_t memory_bytes() const { return memory_.bytes().size(); }

  /// What passes, in the order of use; the head, if it is among them, comes last. Forgets what was on its way.
  void set_matrices(std::vector<StreamedMatrix> matrices);

  /// A pass begins: every matrix will be acquired in order, block by block; the head only if it is said here. What was
  /// read ahead for this pass is kept; after a pass that broke off, all is read again.
  void begin_pass(bool with_head);
  /// The next block. It is matrix `index`, rows from `first_row`; anything else is a bug. Waits until it has landed. At
  /// most one block is held at a time. kIo and kFormat name the tensor.
  Result<RowBlock> acquire(uint32_t index, size_t first_row);

  uint64_t blocks_passed() const { return blocks_passed_; }

 private:
  friend class RowBlock;

  /// Most blocks on their way at once.
  static constexpr size_t kBlocksMax = 64;

  struct Block {
    ReadId read{};
    size_t matrix = 0;  ///< Place in `matrices_`.
    size_t first_row = 0;
    size_t rows = 0;
    size_t memory_offset = 0;
    size_t memory_end = 0;
    const std::byte* data = nullptr;
  };
  /// The place of the next block to read.
  struct Cursor {
    size_t matrix = 0;
    size_t row = 0;
    bool in_next_pass = false;
  };

  void give_back();
  void read_ahead();
  bool move_to_readable();
  bool read_next();
  std::optional<size_t> room_for(size_t bytes) const;
  void forget_all();
  Block& front() { return blocks_[first_block_ % kBlocksMax]; }
  const Block& front() const { return blocks_[first_block_ % kBlocksMax]; }
  const Block& back() const { return blocks_[(first_block_ + block_count_ - 1) % kBlocksMax]; }
  void pop();
  bool ends_pass(const Block& block) const;

  ReadQueue& queue_;
  BlockMemory memory_;
  size_t alignment_ = 1;
  std::vector<StreamedMatrix> matrices_;
  std::array<Block, kBlocksMax> blocks_{};
  size_t first_block_ = 0;
  size_t block_count_ = 0;
  Cursor cursor_;
  bool with_head_ = false;
  bool is_whole_ = true;  ///< The last pass acquired all that it was to.
  bool is_held_ = false;
  uint64_t blocks_passed_ = 0;
};

}  // namespace headrace
