#include "base/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace headrace {
namespace {
constexpr size_t kLineBytesMax = 1024;
}

void Log::line(LogLevel level, const char* format, ...) const {
  if (!enabled(level)) return;
  char text[kLineBytesMax];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  sink_(level, std::string_view(text, std::min<size_t>(static_cast<size_t>(length), sizeof text - 1)));
}

}  // namespace headrace
