// libFuzzer target: text, rank files, configurations and token streams that a stranger wrote.
// The first byte of an input chooses what the rest is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "text/rank_table.h"
#include "text/tiktoken.h"
#include "text/utf8_stream.h"

namespace {

using namespace headrace;

std::string base64_of_byte(unsigned byte) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return {kAlphabet[byte >> 2], kAlphabet[(byte & 3) << 4], '=', '='};
}

/// A rank file of the 256 single bytes.
const std::string& byte_ranks() {
  static const std::string file = [] {
    std::string lines;
    for (unsigned byte = 0; byte < 256; ++byte) lines += base64_of_byte(byte) + " " + std::to_string(byte) + "\n";
    return lines;
  }();
  return file;
}

constexpr std::string_view kMerges =
    "aGU= 256\nbGw= 257\naGVsbA== 258\naGVsbG8= 259\nICA= 260\n5Lit 261\nLS0= 262\nLS0tLQ== 263\nCgo= 264\n";
constexpr std::string_view kConfig =
    R"({"added_tokens_decoder":{"265":{"content":"[BOS]"},"266":{"content":"<|a|>"},"267":{"content":"<|a"}}})";

const Tokenizer& tokenizer() {
  static const auto loaded = [] {
    const std::string ranks = byte_ranks() + std::string(kMerges);
    return load_tiktoken({"ranks", ranks}, {"config", kConfig}).take_value();
  }();
  return *loaded;
}

template <class Text>
void round_trip(std::string_view bytes, bool controls_allowed) {
  const auto ids = tokenizer().encode(Text{bytes});
  ENSURE(bool(ids));
  for (const TokenId id : ids.value()) ENSURE(controls_allowed || !tokenizer().is_control(id));
  const auto text = decode(tokenizer(), ids.value());
  ENSURE(bool(text) && text.value() == bytes);
}

void parse_ranks(std::string_view lines) {
  (void)RankTable::parse(lines, "fuzz");  // Accepted or refused: it must return.
  const std::string file = byte_ranks() + std::string(lines);
  const auto table = RankTable::parse(file, "fuzz");
  if (!table) return;
  for (uint32_t rank = 0; rank < table.value().size(); ++rank) {
    ENSURE(table.value().find(table.value().bytes(rank)) == rank);
  }
}

void parse_config(std::string_view config) {
  const auto loaded = load_tiktoken({"ranks", byte_ranks()}, {"config", config});
  if (!loaded) return;
  for (TokenId id = 256; id < 512; ++id) {
    const auto name = loaded.value()->token_bytes(id);
    ENSURE(name && loaded.value()->control_id(*name) == id);
  }
}

/// However the bytes are cut, the text is the same and every delta is valid.
void stream(std::string_view bytes) {
  Utf8Stream at_once;
  Utf8Stream in_parts;
  std::string expected;
  std::string text;
  at_once.push(bytes, expected);
  at_once.finish(expected);
  for (size_t offset = 0; offset < bytes.size();) {
    const size_t count = 1 + static_cast<unsigned char>(bytes[offset]) % 3;
    std::string delta;
    in_parts.push(bytes.substr(offset, count), delta);
    ENSURE(valid_utf8_prefix_bytes(delta) == delta.size());
    text += delta;
    offset += count;
  }
  in_parts.finish(text);
  ENSURE(text == expected && valid_utf8_prefix_bytes(text) == text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      round_trip<PlainText>(rest, false);
      break;
    case 1:
      round_trip<Markup>(rest, true);
      break;
    case 2:
      parse_ranks(rest);
      break;
    case 3:
      parse_config(rest);
      break;
    default:
      stream(rest);
      break;
  }
  return 0;
}
