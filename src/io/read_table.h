#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "io/read_queue.h"

namespace headrace {

/// A read that a queue knows.
struct QueuedRead {
  static constexpr uint32_t kNone = UINT32_MAX;

  ReadId id{};
  std::array<ReadPart, ReadQueue::kPartsMax> parts;
  size_t part_count = 0;
  ReadPriority priority = ReadPriority::kDemand;
  ReadPurpose purpose = ReadPurpose::kTrunk;

  /// What is not issued yet begins here.
  size_t next_part = 0;
  size_t next_begin = 0;
  size_t transfers_in_flight = 0;
  bool is_cancelled = false;
  std::optional<Error> error;  ///< Of the first transfer that failed.

  uint64_t transferred_bytes = 0;
  uint64_t speculative_bytes = 0;  ///< Of these.

  /// Neighbours in the line of its priority, while it stands in one.
  bool is_in_line = false;
  uint32_t previous = kNone;
  uint32_t next = kNone;

  /// Whether bytes remain that may still be issued.
  bool has_more() const { return next_part < part_count && !error && !is_cancelled; }
  bool has_ended() const { return transfers_in_flight == 0 && !has_more(); }
  /// Takes the next piece off what is not issued yet: at most `piece_bytes_max`, and pieces of about one size.
  ReadPart take_piece(size_t piece_bytes_max);
  /// Steps over parts of which nothing (more) is needed.
  void skip_finished_parts();
};

/// The reads of a queue, by id, and those with something left to issue in a line for each priority. Memory is taken
/// once, when the table is made. One thread.
class ReadTable {
 public:
  static constexpr size_t memory_bytes() { return ReadQueue::kReadsMax * sizeof(QueuedRead); }

  ReadTable();

  /// A fresh read with an id of its own. A full table is a bug of the caller.
  QueuedRead& add();
  /// An id that is not known is a bug of the caller.
  QueuedRead& find(ReadId id);
  /// Forgets a read that stands in no line.
  void remove(QueuedRead& read);

  /// Puts a read at the end of the line of its priority.
  void enter_line(QueuedRead& read);
  /// Nothing happens to a read that stands in none.
  void leave_line(QueuedRead& read);
  /// The first of a line; null when nobody stands in it.
  QueuedRead* first(ReadPriority priority);

 private:
  struct Line {
    uint32_t first = QueuedRead::kNone;
    uint32_t last = QueuedRead::kNone;
  };

  uint32_t index_of(const QueuedRead& read) const { return static_cast<uint32_t>(&read - reads_.data()); }
  Line& line_of(ReadPriority priority) { return lines_[static_cast<size_t>(priority)]; }

  std::vector<QueuedRead> reads_;
  std::vector<uint32_t> unused_;
  std::array<Line, kReadPriorityCount> lines_;
  /// Ids are serial numbers times kReadsMax plus the place in the table.
  uint64_t serial_ = 0;
};

}  // namespace headrace
