// libFuzzer target: conversations that a stranger sent, from JSON to ids. The first byte chooses the format, from the
// table, or that the rest is JSON alone.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "fuzz/text_chat_tokenizer.h"
#include "text/chat/chat_format.h"
#include "text/chat/chat_request.h"
#include "text/chat/json_writer.h"

namespace {

using namespace headrace;

/// Text stays text: as many control tokens as the format set, and all bytes are there.
void render(const ChatFormat& format, const Tokenizer& tokenizer, std::string_view json) {
  const auto request = parse_chat_request(json);
  if (!request) return;
  const auto segments = format.render(request.value());
  if (!segments || !segments.value().is_whole()) return;
  std::string text;
  size_t control_count = 0;
  for (const Segment& segment : segments.value().list()) {
    const auto* control = std::get_if<ControlLiteral>(&segment);
    text += control != nullptr ? control->name() : std::string_view(std::get<TextSegment>(segment).text);
    control_count += control != nullptr;
  }
  const auto ids = encode_segments(tokenizer, segments.value());
  ENSURE(bool(ids));
  size_t control_id_count = 0;
  for (const TokenId id : ids.value()) control_id_count += tokenizer.is_control(id);
  ENSURE(control_id_count == control_count);
  const auto decoded = decode(tokenizer, ids.value());
  ENSURE(bool(decoded) && decoded.value() == text);
}

/// What was written reads back, and is written the same.
void read_back(std::string_view json) {
  const auto value = parse_json(json, kChatRequestBounds);
  if (!value) return;
  for (const auto write : {spaced_json, sorted_json}) {
    const std::string text = write(value.value());
    const auto again = parse_json(text, {.bytes_max = size_t{1} << 30, .depth_max = 100, .values_max = 1'000'000});
    ENSURE(bool(again) && write(again.value()) == text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t choice = data[0] % (chat_formats().size() + 1);
  if (choice < chat_formats().size()) {
    render(*chat_formats()[choice], fuzz::tokenizer_of(choice), rest);
  } else {
    read_back(rest);
  }
  return 0;
}
