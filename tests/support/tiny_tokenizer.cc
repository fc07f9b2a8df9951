#include <algorithm>
#include <set>
#include <utility>

#include "base/ensure.h"
#include "support/tiny_checkpoint.h"

namespace headrace::test {
namespace {

constexpr size_t kRankCount = 512;
constexpr size_t kSpecialCount = 256;

struct Special {
  size_t offset;  ///< From the number of ranks.
  const char* name;
  bool special;
};

constexpr Special kK3Specials[] = {
    {0, "[BOS]", true},
    {1, "[EOS]", true},
    {2, "<|end_of_msg|>", true},
    {3, "<|open|>", false},
    {4, "<|close|>", false},
    {5, "<|sep|>", false},
    {18, "<|media_begin|>", true},
    {19, "<|media_content|>", true},
    {20, "<|media_end|>", true},
    {21, "<|media_pad|>", true},
    {254, "[UNK]", true},
    {255, "[PAD]", true},
};
constexpr Special kLinearSpecials[] = {
    {0, "[BOS]", true},
    {1, "[EOS]", true},
    {2, "<|im_end|>", true},
    {3, "<|im_user|>", true},
    {4, "<|im_assistant|>", true},
    {10, "<|im_system|>", true},
    {11, "<|tool_calls_section_begin|>", false},
    {12, "<|tool_calls_section_end|>", false},
    {13, "<|tool_call_begin|>", false},
    {14, "<|tool_call_argument_begin|>", false},
    {15, "<|tool_call_end|>", false},
    {17, "<|im_middle|>", true},
    {254, "[UNK]", true},
    {255, "[PAD]", true},
};

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = (group << 8) | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) text.push_back(i + j <= bytes.size() ? kDigits[(group >> (18 - 6 * j)) & 63] : '=');
  }
  return text;
}

/// Parts of words, such that every token is two earlier ones joined: what byte pair encoding can reach.
const char* const kWords[] = {
    " the",
    " and",
    " of",
    " to",
    " a",
    " in",
    " is",
    " that",
    " it",
    " was",
    " for",
    " on",
    " are",
    " with",
    " as",
    " be",
    " his",
    " he",
    " at",
    " by",
    " this",
    " have",
    " from",
    " or",
    " had",
    " not",
    " but",
    " what",
    " all",
    " were",
    " we",
    " when",
    " your",
    " can",
    " said",
    " there",
    " use",
    " an",
    " each",
    " which",
    " she",
    " do",
    " how",
    " their",
    " if",
    " will",
    " up",
    " other",
    " about",
    " out",
    " many",
    " then",
    "ing",
    "tion",
    "er",
    "ed",
    "ly",
    "ness",
    "ment",
    "able",
    "est",
    "  ",
    "\n\n",
    "\xC3\xA9",
    "\xE4\xB8\xAD",
    "\xE6\x96\x87",
    "\xF0\x9F\x99\x82",
    "==",
    "--",
    "()",
    "\":",
    "12",
    "00",
    "user",
    "system",
    "tool",
    "name",
    "role",
    "type",
    "think",
    "river",
    "water",
    "turbine",
    "headrace",
};

}  // namespace

std::vector<std::string> tiny_ranks() {
  std::vector<std::string> ranks;
  const auto add_bytes = [&](int first, int last) {
    for (int byte = first; byte <= last; ++byte) ranks.emplace_back(1, static_cast<char>(byte));
  };
  add_bytes(33, 126);
  add_bytes(161, 172);
  add_bytes(174, 255);
  add_bytes(0, 32);
  add_bytes(127, 160);
  add_bytes(173, 173);
  std::set<std::string> known(ranks.begin(), ranks.end());
  // Every beginning of a word: a token and one byte make the next.
  for (const char* word : kWords) {
    const std::string text = word;
    for (size_t size = 2; size <= text.size() && ranks.size() < kRankCount; ++size) {
      const std::string part = text.substr(0, size);
      if (known.insert(part).second) ranks.push_back(part);
    }
  }
  for (char first = 'a'; ranks.size() < kRankCount; ++first) {
    for (char second = 'a'; second <= 'z' && ranks.size() < kRankCount; ++second) {
      const std::string pair = {first, second};
      if (known.insert(pair).second) ranks.push_back(pair);
    }
  }
  ENSURE(ranks.size() == kRankCount);
  return ranks;
}

Files tiny_tokenizer(bool k3) {
  Files files;
  std::string& model = files["tiktoken.model"];
  const std::vector<std::string> ranks = tiny_ranks();
  for (size_t rank = 0; rank < ranks.size(); ++rank) model += base64(ranks[rank]) + " " + std::to_string(rank) + "\n";

  nlohmann::json added = nlohmann::json::object();
  const std::span<const Special> specials = k3 ? std::span<const Special>(kK3Specials) : kLinearSpecials;
  for (const Special& special : specials) {
    ENSURE(special.offset < kSpecialCount);
    added[std::to_string(kRankCount + special.offset)] = {{"content", special.name}, {"lstrip", false},
                                                          {"normalized", false},     {"rstrip", false},
                                                          {"single_word", false},    {"special", special.special}};
  }
  files["tokenizer_config.json"] = nlohmann::json{
      {"added_tokens_decoder", added}, {"bos_token", "[BOS]"}, {"eos_token", k3 ? "[EOS]" : "<|im_end|>"},
      {"model_max_length", 4096},      {"pad_token", "[PAD]"}, {"tokenizer_class", "TikTokenTokenizer"},
      {"unk_token", "[UNK]"}}.dump(1);
  return files;
}

}  // namespace headrace::test
