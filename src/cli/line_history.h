#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace headrace::cli {

/// What was entered before, in memory only, and a walk through it. One thread at a time.
class LineHistory {
 public:
  static constexpr size_t kEntriesMax = 1000;
  static constexpr size_t kCharactersMax = size_t{4} << 20;  // Of all entries; 16 MiB.

  /// Keeps `entry` unless it is empty or equals the newest, forgets the oldest beyond the bounds, and ends the walk.
  void add(std::wstring entry);
  /// The walk begins again behind the newest entry.
  void rewind();
  /// One step back: the entry, or null at the oldest. `draft`, what stands in the line now, is kept when the walk
  /// begins.
  const std::wstring* older(std::wstring_view draft);
  /// One step forward, at last to the draft; null behind it.
  const std::wstring* newer();

 private:
  std::deque<std::wstring> entries_;  // Oldest first.
  size_t characters_ = 0;
  size_t steps_back_ = 0;
  std::wstring draft_;
};

}  // namespace headrace::cli
