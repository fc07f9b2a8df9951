#include "text/toy_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "text/tiktoken.h"

namespace headrace::testing {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t offset = 0; offset < bytes.size(); offset += 3) {
    unsigned bits = 0;
    for (size_t index = 0; index < 3; ++index) {
      const bool there = offset + index < bytes.size();
      bits = bits << 8 | (there ? static_cast<unsigned char>(bytes[offset + index]) : 0u);
    }
    for (size_t index = 0; index < 4; ++index) {
      const bool there = offset + index <= bytes.size();
      text += there ? kAlphabet[bits >> (18 - 6 * index) & 63] : '=';
    }
  }
  return text;
}

void append_range(std::vector<std::string>& tokens, int first, int last) {
  for (int byte = first; byte <= last; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
}

}  // namespace

std::vector<std::string> single_bytes() {
  std::vector<std::string> tokens;
  append_range(tokens, 33, 126);
  append_range(tokens, 161, 172);
  append_range(tokens, 174, 255);
  append_range(tokens, 0, 32);
  append_range(tokens, 127, 160);
  append_range(tokens, 173, 173);
  return tokens;
}

std::vector<std::string> toy_tokens() {
  std::vector<std::string> tokens = single_bytes();
  for (const char* token : {"he", "ll", "hell", "hello", " w", "or", " wor", "ld", " world", "xyz", "中", "中文", "  ",
                            " t", "th", " th"}) {
    tokens.emplace_back(token);
  }
  return tokens;
}

std::string rank_line(std::string_view token, const std::string& rank) {
  return base64(token) + " " + rank + "\n";
}

std::string rank_file(const std::vector<std::string>& tokens) {
  std::string file;
  for (size_t rank = 0; rank < tokens.size(); ++rank) file += rank_line(tokens[rank], std::to_string(rank));
  return file;
}

std::string toy_config(size_t first_id) {
  const std::vector<std::string> names = {"[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"};
  std::string entries;
  for (size_t offset = 0; offset < names.size(); ++offset) {
    entries += (offset == 0 ? "" : ",") + ("\"" + std::to_string(first_id + offset)) + "\":{\"content\":\"" +
               names[offset] + "\",\"lstrip\":false,\"normalized\":false,\"rstrip\":false,\"single_word\":false," +
               "\"special\":" + (offset < 3 ? "true" : "false") + "}";
  }
  return "{\"added_tokens_decoder\":{" + entries + "},\"bos_token\":\"[BOS]\"}";
}

std::unique_ptr<Tokenizer> toy_tokenizer() {
  const std::vector<std::string> tokens = toy_tokens();
  const std::string ranks = rank_file(tokens);
  const std::string config = toy_config(tokens.size());
  auto tokenizer = load_tiktoken({"toy.model", ranks}, {"toy_config.json", config});
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }
  return tokenizer.take_value();
}

std::string repeat(std::string_view text, size_t count) {
  std::string result;
  for (; count > 0; --count) result += text;
  return result;
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace headrace::testing
