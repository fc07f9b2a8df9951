#include "engine/stop_matcher.h"

#include <algorithm>

namespace headrace {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  if (stops.size() > kStringsMax) {
    return error(Code::kArgument, "%zu stop strings; at most %zu are allowed", stops.size(), kStringsMax);
  }
  for (const std::string& stop : stops) {
    if (stop.empty()) return error(Code::kArgument, "a stop string is empty");
    if (stop.size() > kStringBytesMax) {
      return error(Code::kArgument, "a stop string has %zu bytes; at most %zu are allowed", stop.size(),
                   kStringBytesMax);
    }
  }
  return StopMatcher(std::move(stops));
}

bool StopMatcher::push(std::string_view bytes, std::string& passed) {
  if (stops_.empty()) {
    passed.append(bytes);
    return false;
  }
  // Byte by byte, so that the cuts between tokens cannot matter. Strings are few and short.
  for (const char byte : bytes) {
    held_.push_back(byte);
    if (const size_t match_bytes = longest_stop_at_end(); match_bytes > 0) {
      passed.append(held_, 0, held_.size() - match_bytes);
      held_.clear();
      return true;
    }
    const size_t free_bytes = held_.size() - longest_beginning_at_end();
    passed.append(held_, 0, free_bytes);
    held_.erase(0, free_bytes);
  }
  return false;
}

void StopMatcher::finish(std::string& passed) {
  passed.append(held_);
  held_.clear();
}

size_t StopMatcher::longest_stop_at_end() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    if (std::string_view(held_).ends_with(stop)) longest = std::max(longest, stop.size());
  }
  return longest;
}

/// Length of the longest proper beginning of a stop string with which `held_` ends.
size_t StopMatcher::longest_beginning_at_end() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > longest; --length) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) longest = length;
    }
  }
  return longest;
}

}  // namespace headrace
