#include "text/utf8_stream.h"

namespace headrace {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void Utf8Stream::push(std::string_view bytes, std::string& text) {
  size_t offset = complete_held(bytes, text);
  while (offset < bytes.size()) {
    const std::string_view rest = bytes.substr(offset);
    const size_t valid_bytes = valid_utf8_prefix_bytes(rest);
    text.append(rest.substr(0, valid_bytes));
    offset += valid_bytes;
    if (offset == bytes.size()) return;
    const Utf8Unit unit = read_utf8(bytes.substr(offset));
    if (unit.kind == Utf8Unit::Kind::kIncomplete) {
      held_count_ = bytes.copy(held_, unit.length, offset);
      return;
    }
    text.append(kReplacement);
    offset += unit.length;
  }
}

/// Resolves the held bytes with the front of `bytes`; returns how many of `bytes` that took. The held bytes are a valid
/// beginning, so one more byte either extends them, or ends them without being part of them.
size_t Utf8Stream::complete_held(std::string_view bytes, std::string& text) {
  size_t taken = 0;
  while (held_count_ > 0 && taken < bytes.size()) {
    held_[held_count_] = bytes[taken];
    const Utf8Unit unit = read_utf8({held_, held_count_ + 1});
    if (unit.kind == Utf8Unit::Kind::kInvalid) {
      text.append(kReplacement);
      held_count_ = 0;
      break;
    }
    ++taken;
    ++held_count_;
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      text.append(held_, held_count_);
      held_count_ = 0;
    }
  }
  return taken;
}

void Utf8Stream::finish(std::string& text) {
  if (held_count_ > 0) text.append(kReplacement);
  held_count_ = 0;
}

}  // namespace headrace
