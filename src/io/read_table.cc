#include "io/read_table.h"

#include <algorithm>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {

void QueuedRead::skip_finished_parts() {
  while (next_part < part_count && next_begin >= parts[next_part].needed_bytes) {
    ++next_part;
    next_begin = 0;
  }
}

ReadPart QueuedRead::take_piece(size_t piece_bytes_max) {
  ENSURE(has_more());
  const ReadPart& part = parts[next_part];
  // Nothing is read beyond the block in which the needed bytes end.
  const auto end = static_cast<size_t>(align_up(part.needed_bytes, part.file->block_bytes()));
  const size_t remaining = end - next_begin;
  const size_t piece_count = (remaining + piece_bytes_max - 1) / piece_bytes_max;
  // Cut where any file's blocks end.
  const auto even = static_cast<size_t>(align_up((remaining + piece_count - 1) / piece_count, kBlockBytesMax));
  const size_t size = std::min({even, remaining, piece_bytes_max});
  ReadPart piece{part.file, part.offset + next_begin, part.out.subspan(next_begin, size),
                 std::min(part.needed_bytes - next_begin, size)};
  next_begin += size;
  skip_finished_parts();
  return piece;
}

ReadTable::ReadTable() : reads_(ReadQueue::kReadsMax), unused_(ReadQueue::kReadsMax) {
  for (size_t i = 0; i < unused_.size(); ++i) unused_[i] = static_cast<uint32_t>(unused_.size() - 1 - i);
}

QueuedRead& ReadTable::add() {
  ENSURE(!unused_.empty());
  const uint32_t index = unused_.back();
  unused_.pop_back();
  QueuedRead& read = reads_[index];
  read = QueuedRead{};
  // From 1, so that a default ReadId names nothing.
  read.id = ReadId{++serial_ * ReadQueue::kReadsMax + index};
  return read;
}

QueuedRead& ReadTable::find(ReadId id) {
  QueuedRead& read = reads_[static_cast<uint64_t>(id) % ReadQueue::kReadsMax];
  ENSURE(id != ReadId{} && read.id == id);
  return read;
}

void ReadTable::remove(QueuedRead& read) {
  ENSURE(!read.is_in_line);
  read.id = ReadId{};
  read.error.reset();
  unused_.push_back(index_of(read));
}

void ReadTable::enter_line(QueuedRead& read) {
  ENSURE(!read.is_in_line);
  Line& line = line_of(read.priority);
  const uint32_t index = index_of(read);
  read.is_in_line = true;
  read.previous = line.last;
  read.next = QueuedRead::kNone;
  if (line.last == QueuedRead::kNone) {
    line.first = index;
  } else {
    reads_[line.last].next = index;
  }
  line.last = index;
}

void ReadTable::leave_line(QueuedRead& read) {
  if (!read.is_in_line) return;
  Line& line = line_of(read.priority);
  (read.previous == QueuedRead::kNone ? line.first : reads_[read.previous].next) = read.next;
  (read.next == QueuedRead::kNone ? line.last : reads_[read.next].previous) = read.previous;
  read.is_in_line = false;
}

QueuedRead* ReadTable::first(ReadPriority priority) {
  const uint32_t index = line_of(priority).first;
  return index == QueuedRead::kNone ? nullptr : &reads_[index];
}

}  // namespace headrace
