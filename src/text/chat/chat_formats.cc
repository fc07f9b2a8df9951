#include <algorithm>

#include "text/chat/chat_format.h"
#include "text/chat/kimi_k2.h"
#include "text/chat/kimi_xtml.h"

namespace headrace {
namespace {

constexpr const ChatFormat* kFormats[] = {&kKimiXtml, &kKimiK2};

bool has_controls(const Tokenizer& tokenizer, const ChatFormat& format) {
  return std::ranges::all_of(
      format.controls, [&](const ControlLiteral& control) { return tokenizer.control_id(control.name()).has_value(); });
}

}  // namespace

const ChatFormat* find_chat_format(const Tokenizer& tokenizer) {
  for (const ChatFormat* format : kFormats) {
    if (has_controls(tokenizer, *format)) return format;
  }
  return nullptr;
}

std::span<const ChatFormat* const> chat_formats() {
  return kFormats;
}

}  // namespace headrace
