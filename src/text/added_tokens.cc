#include "text/added_tokens.h"

#include <charconv>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using Json = nlohmann::json;

Result<TokenId> parse_id(const std::string& text) {
  TokenId id = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool canonical = problem == std::errc() && std::to_string(id) == text;
  if (!canonical || id < 0) return error(Code::kFormat, "\"%s\" is not a token id", text.c_str());
  return id;
}

/// A flag that is false when absent.
Result<bool> read_flag(const Json& entry, const char* name) {
  const auto flag = entry.find(name);
  if (flag == entry.end()) return false;
  if (!flag->is_boolean()) return error(Code::kFormat, "\"%s\" is not true or false", name);
  return flag->get<bool>();
}

Result<AddedToken> parse_entry(const std::string& key, const Json& entry) {
  const TokenId id = TRY(parse_id(key));
  if (!entry.is_object()) return error(Code::kFormat, "not an object");
  const auto name = entry.find("content");
  if (name == entry.end() || !name->is_string()) return error(Code::kFormat, "no \"content\" string");
  for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
    if (TRY(read_flag(entry, flag))) return error(Code::kUnsupported, "\"%s\" is true", flag);
  }
  return AddedToken{id, name->get<std::string>(), TRY(read_flag(entry, "special"))};
}

}  // namespace

Result<std::vector<AddedToken>> parse_added_tokens(std::string_view tokenizer_config) {
  const Json config =
      Json::parse(tokenizer_config.begin(), tokenizer_config.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return error(Code::kFormat, "not a JSON object");
  const auto entries = config.find("added_tokens_decoder");
  if (entries == config.end() || !entries->is_object()) {
    return error(Code::kFormat, "no \"added_tokens_decoder\" object, which names the control tokens");
  }
  std::vector<AddedToken> tokens;
  for (const auto& [key, entry] : entries->items()) {
    Result<AddedToken> token = parse_entry(key, entry);
    if (!token) return with_context(token.take_error(), "added_tokens_decoder, \"%s\"", key.c_str());
    tokens.push_back(token.take_value());
  }
  return tokens;
}

}  // namespace headrace
