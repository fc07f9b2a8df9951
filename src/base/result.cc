#include "base/result.h"

#include <cstdio>

namespace headrace {
namespace {

std::string format_message(const char* format, va_list arguments) {
  va_list measured;
  va_copy(measured, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, measured);
  va_end(measured);
  if (length < 0) return format;
  std::string text(static_cast<size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

Error error(Code code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Error result{code, format_message(format, arguments)};
  va_end(arguments);
  return result;
}

Error with_context(Error error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error.message = format_message(format, arguments) + ": " + error.message;
  va_end(arguments);
  return error;
}

}  // namespace headrace
