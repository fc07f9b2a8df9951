#include "api/handles.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace headrace {
namespace {

headrace_status status_of(Code code) {
  switch (code) {
    case Code::kIo:
      return HEADRACE_IO;
    case Code::kFormat:
      return HEADRACE_FORMAT;
    case Code::kBudget:
      return HEADRACE_BUDGET;
    case Code::kArgument:
      return HEADRACE_ARGUMENT;
    case Code::kUnsupported:
      return HEADRACE_UNSUPPORTED;
    case Code::kCancelled:
      return HEADRACE_CANCELLED;
  }
  return HEADRACE_BUG;
}

/// Length of the longest front of `text` that fits `bytes_max` and does not end inside a character.
size_t cut_between_characters(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  size_t length = bytes_max;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return length;
}

headrace_status fill(headrace_status status, std::string_view message, headrace_error* error) noexcept {
  if (!error) return status;
  error->status = status;
  if (error->struct_size <= offsetof(headrace_error, message)) return status;
  const size_t room = std::min(error->struct_size - offsetof(headrace_error, message), sizeof error->message);
  const size_t length = cut_between_characters(message, room - 1);
  std::memcpy(error->message, message.data(), length);
  error->message[length] = '\0';
  return status;
}

/// Memory that headrace_free takes back.
Result<void*> allocate(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (!memory) return error(Code::kBudget, "the system refused %zu bytes for a result", bytes);
  return memory;
}

}  // namespace

headrace_status report(const Error& failure, headrace_error* error) noexcept {
  return fill(status_of(failure.code), failure.message, error);
}

headrace_status report_bug(headrace_error* error) noexcept {
  return fill(HEADRACE_BUG, "an exception inside the library; please report this", error);
}

headrace_status report_no_memory(headrace_error* error) noexcept {
  return fill(HEADRACE_BUDGET, "the system has no memory left", error);
}

Status check_handle(const void* handle, const char* what) {
  if (!handle) return error(Code::kArgument, "%s must not be null", what);
  return {};
}

Status check_array(const void* array, size_t count, const char* what) {
  if (!array && count > 0) return error(Code::kArgument, "%s must not be null when there are %zu", what, count);
  return {};
}

Status hand_over(std::string_view text, char** out, size_t* out_bytes) {
  auto* copy = static_cast<char*>(TRY(allocate(text.size() + 1)));
  std::ranges::copy(text, copy);
  copy[text.size()] = '\0';
  *out = copy;
  *out_bytes = text.size();
  return {};
}

Status hand_over(std::span<const TokenId> ids, int32_t** out, size_t* out_count) {
  auto* copy = static_cast<int32_t*>(TRY(allocate(std::max<size_t>(ids.size_bytes(), 1))));
  std::ranges::copy(ids, copy);
  *out = copy;
  *out_count = ids.size();
  return {};
}

Status hand_over_both(std::span<const TokenId> ids, Out<int32_t> ids_out, std::string_view text, Out<char> text_out) {
  TRY(hand_over(ids, ids_out.elements, ids_out.count));
  Status status = hand_over(text, text_out.elements, text_out.count);
  if (!status) {
    headrace_free(std::exchange(*ids_out.elements, nullptr));
    *ids_out.count = 0;
  }
  return status;
}

Status copy_sized(const void* options, void* copy, size_t copy_bytes, const char* what) {
  if (!options) return {};
  size_t given_bytes = 0;
  std::memcpy(&given_bytes, options, sizeof given_bytes);  // Every option struct begins with its size.
  constexpr size_t kBytesMax = 4096;                       // No version will need more: a larger size was never set.
  if (given_bytes < sizeof given_bytes || given_bytes > kBytesMax) {
    return error(Code::kArgument, "%s: struct_size is not set", what);
  }
  const auto* bytes = static_cast<const unsigned char*>(options);
  for (size_t i = copy_bytes; i < given_bytes; ++i) {
    if (bytes[i] == 0) continue;
    return error(Code::kArgument, "%s: a field is set that version %s does not know", what, HEADRACE_VERSION);
  }
  std::memcpy(copy, options, std::min(given_bytes, copy_bytes));
  return {};
}

}  // namespace headrace

const char* headrace_status_name(headrace_status status) {
  switch (status) {
    case HEADRACE_OK:
      return "ok";
    case HEADRACE_ARGUMENT:
      return "argument";
    case HEADRACE_BUDGET:
      return "budget";
    case HEADRACE_FORMAT:
      return "format";
    case HEADRACE_UNSUPPORTED:
      return "unsupported";
    case HEADRACE_IO:
      return "io";
    case HEADRACE_CANCELLED:
      return "cancelled";
    case HEADRACE_BUG:
      return "bug";
  }
  return "unknown";
}

void headrace_free(void* memory) {
  std::free(memory);
}

const char* headrace_version(void) {
  return HEADRACE_VERSION;
}
