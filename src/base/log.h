#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace headrace {

enum class LogLevel : uint8_t { kError, kWarn, kInfo, kDebug };

/// Lines for a person, handed to the caller's sink; nothing below `cli` prints. A default Log drops everything.
/// The sink may be called from any thread, one call per line, without a newline.
class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  Log() = default;
  Log(LogLevel level_max, Sink sink) : level_max_(level_max), sink_(std::move(sink)) {}

  bool enabled(LogLevel level) const { return sink_ && level <= level_max_; }
  /// printf-style line at `level`; cut after 1023 bytes.
  void line(LogLevel level, const char* format, ...) const __attribute__((format(printf, 3, 4)));

 private:
  LogLevel level_max_ = LogLevel::kError;
  Sink sink_;
};

}  // namespace headrace
