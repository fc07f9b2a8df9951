#include "weights/trunk_ring.h"

#include <algorithm>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"
#include "weights/safetensors.h"

namespace headrace {

RowBlock::~RowBlock() {
  if (ring_) ring_->give_back();
}

TrunkRing::~TrunkRing() {
  free();
}

size_t TrunkRing::block_memory_bytes(size_t rows_bytes, size_t io_block_bytes) {
  // Widened at both ends.
  return static_cast<size_t>(align_up(rows_bytes, io_block_bytes)) + io_block_bytes;
}

Status TrunkRing::allocate(Budget& budget, size_t bytes, size_t io_block_bytes) {
  free();
  memory_ = TRY(BlockMemory::allocate(budget, bytes, io_block_bytes, "ring of streamed weights"));
  alignment_ = io_block_bytes;
  queue_.register_memory(memory_.bytes());
  return {};
}

void TrunkRing::free() {
  set_matrices({});
  if (memory_.bytes().empty()) return;
  queue_.unregister_memory(memory_.bytes());
  memory_ = {};
}

void TrunkRing::set_matrices(std::vector<StreamedMatrix> matrices) {
  forget_all();
  matrices_ = std::move(matrices);
  is_whole_ = true;
}

void TrunkRing::forget_all() {
  ENSURE(!is_held_);
  for (; block_count_ > 0; pop()) {
    const ReadId read = front().read;
    if (queue_.cancel(read)) continue;
    queue_.wait_any({&read, 1});
    (void)queue_.take(read);  // Nobody wants these rows any more, so nobody minds that they could not be read.
  }
  cursor_ = {};
}

void TrunkRing::begin_pass(bool with_head) {
  ENSURE(!is_held_);
  if (!is_whole_ || block_count_ == 0) forget_all();
  with_head_ = with_head;
  cursor_.in_next_pass = false;
  read_ahead();
  is_whole_ = block_count_ == 0;  // A pass that wants nothing of the ring.
}

/// Whether nothing follows `block` in the pass.
bool TrunkRing::ends_pass(const Block& block) const {
  const size_t next = block.matrix + 1;
  const bool is_last = next == matrices_.size() || (matrices_[next].is_head && !with_head_);
  return is_last && block.first_row + block.rows == matrices_[block.matrix].view.rows;
}

Result<RowBlock> TrunkRing::acquire(uint32_t index, size_t first_row) {
  ENSURE(!is_held_ && block_count_ > 0);
  const Block block = front();
  const StreamedMatrix& matrix = matrices_[block.matrix];
  ENSURE(matrix.index == index && block.first_row == first_row);
  auto result = queue_.wait(block.read);
  if (!result) {
    pop();
    return with_context(result.take_error(), "tensor %s", printable(matrix.name).c_str());
  }
  is_held_ = true;
  WeightView view = matrix.view;
  view.rows = block.rows;
  view.data = block.data;
  return RowBlock(first_row, view, this);
}

void TrunkRing::give_back() {
  ENSURE(is_held_);
  is_held_ = false;
  ++blocks_passed_;
  is_whole_ = ends_pass(front());
  pop();
  read_ahead();
}

void TrunkRing::pop() {
  ++first_block_;
  --block_count_;
}

void TrunkRing::read_ahead() {
  while (block_count_ < kBlocksMax && move_to_readable() && read_next()) {
  }
}

/// Moves the cursor on to the next matrix that is certain to be wanted; false when none is.
bool TrunkRing::move_to_readable() {
  if (matrices_.empty()) return false;
  const bool at_end = cursor_.matrix == matrices_.size();
  // Whether the next pass wants the head is not known before it begins.
  const bool at_head = !at_end && matrices_[cursor_.matrix].is_head;
  if (at_head && cursor_.in_next_pass) return false;
  if (!at_end && (!at_head || with_head_)) return true;
  if (cursor_.in_next_pass) return false;
  cursor_ = {.in_next_pass = true};
  return !matrices_.front().is_head;
}

/// Starts to read the block at the cursor, if there is room for it.
bool TrunkRing::read_next() {
  const StreamedMatrix& matrix = matrices_[cursor_.matrix];
  const size_t rows = std::min(matrix.block_rows, matrix.view.rows - cursor_.row);
  const ByteRange range{matrix.offset + cursor_.row * matrix.view.row_bytes, rows * matrix.view.row_bytes};
  const size_t bytes =
      static_cast<size_t>(align_up(extent_memory_bytes(range, matrix.file->block_bytes()), alignment_));
  const std::optional<size_t> offset = room_for(bytes);
  if (!offset) return false;
  const auto [part, data] = widened_read(*matrix.file, range, memory_.bytes().subspan(*offset, bytes));
  const ReadId read =
      queue_.submit({&part, 1}, ReadPriority::kTrunk, matrix.is_head ? ReadPurpose::kHead : ReadPurpose::kTrunk);
  blocks_[(first_block_ + block_count_++) % kBlocksMax] = {read,    cursor_.matrix,  cursor_.row, rows,
                                                           *offset, *offset + bytes, data};
  cursor_.row += rows;
  if (cursor_.row == matrix.view.rows) cursor_ = {cursor_.matrix + 1, 0, cursor_.in_next_pass};
  return true;
}

/// Where `bytes` in a row are free: behind the last block, or at the start of the memory.
std::optional<size_t> TrunkRing::room_for(size_t bytes) const {
  const size_t size = memory_.bytes().size();
  if (block_count_ == 0) {
    ENSURE(bytes <= size);
    return size_t{0};
  }
  const size_t used_begin = front().memory_offset;
  const size_t used_end = back().memory_end;
  if (used_end > used_begin) {
    if (size - used_end >= bytes) return used_end;
    if (used_begin >= bytes) return size_t{0};
    return std::nullopt;
  }
  if (used_begin - used_end >= bytes) return used_end;
  return std::nullopt;
}

}  // namespace headrace
