#include "cli/line_history.h"

#include <utility>

namespace headrace::cli {

void LineHistory::add(std::wstring entry) {
  rewind();
  if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return;
  characters_ += entry.size();
  entries_.push_back(std::move(entry));
  while (entries_.size() > kEntriesMax || characters_ > kCharactersMax) {
    characters_ -= entries_.front().size();
    entries_.pop_front();
  }
}

void LineHistory::rewind() {
  steps_back_ = 0;
  draft_.clear();
}

const std::wstring* LineHistory::older(std::wstring_view draft) {
  if (steps_back_ == entries_.size()) return nullptr;
  if (steps_back_ == 0) draft_ = draft;
  ++steps_back_;
  return &entries_[entries_.size() - steps_back_];
}

const std::wstring* LineHistory::newer() {
  if (steps_back_ == 0) return nullptr;
  --steps_back_;
  return steps_back_ == 0 ? &draft_ : &entries_[entries_.size() - steps_back_];
}

}  // namespace headrace::cli
