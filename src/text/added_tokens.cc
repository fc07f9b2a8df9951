#include "text/added_tokens.h"

#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using Json = nlohmann::json;

constexpr char kSection[] = "added_tokens_decoder";

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
  const bool special = TRY(read_flag(entry, "special"));
  return AddedToken{id, name->get<std::string>(), special};
}

/// Parses JSON, and notes when the table of added tokens, or an id in it, is there twice: the parser would silently
/// keep the last one. The result is "discarded", which is no object, when the text is not JSON.
Json parse_noting_doubles(std::string_view text, std::string& doubled) {
  std::set<std::string> seen;
  std::string section;
  const auto note = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key || depth > 2) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1) section = key;
    if (section == kSection && !seen.insert(key).second) doubled = key;
    return true;
  };
  return Json::parse(text.begin(), text.end(), note, /*allow_exceptions=*/false);
}

}  // namespace

Result<std::vector<AddedToken>> parse_added_tokens(std::string_view tokenizer_config) {
  std::string doubled;
  const Json config = parse_noting_doubles(tokenizer_config, doubled);
  if (!config.is_object()) return error(Code::kFormat, "not a JSON object");
  const auto entries = config.find(kSection);
  if (entries == config.end() || !entries->is_object()) {
    return error(Code::kFormat, "no \"%s\" object, which names the control tokens", kSection);
  }
  if (!doubled.empty()) return error(Code::kFormat, "\"%s\" is there twice", doubled.c_str());
  std::vector<AddedToken> tokens;
  for (const auto& [key, entry] : entries->items()) {
    Result<AddedToken> token = parse_entry(key, entry);
    if (!token) return with_context(token.take_error(), "%s, \"%s\"", kSection, key.c_str());
    tokens.push_back(token.take_value());
  }
  return tokens;
}

}  // namespace headrace
