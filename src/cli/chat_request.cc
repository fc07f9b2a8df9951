#include "cli/chat_request.h"

#include <algorithm>

#include "cli/values.h"

namespace headrace::cli {

using Json = nlohmann::ordered_json;

namespace {

/// The object in a text of a stranger; null when there is none, or one that is nested so deep that code which walks it
/// would run out of stack.
Json parse_object(std::string_view text) {
  constexpr int kDepthMax = 16;
  bool is_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > kDepthMax;
    return !is_deep;
  };
  Json object = Json::parse(text, watch, false);
  if (!object.is_object() || is_deep) return nullptr;
  return object;
}

}  // namespace

void ChatRequest::add_user(std::string_view text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
}

void ChatRequest::add_reply(std::string_view message_json) {
  messages_.push_back(Json::parse(message_json));
}

std::string ChatRequest::json() const {
  Json request;
  request["messages"] = Json::array();
  if (!system_.empty()) request["messages"].push_back({{"role", "system"}, {"content", system_}});
  for (const Json& message : messages_) request["messages"].push_back(message);
  if (thinking_ == "on" || thinking_ == "off") {
    request["thinking"] = thinking_ == "on";
  } else if (!thinking_.empty()) {
    request["reasoning_effort"] = thinking_;
  }
  // Bytes that are no UTF-8 cannot stand in JSON: they become U+FFFD.
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ChatRequest::saved() const {
  const Json all = {{"system", system_}, {"thinking", thinking_}, {"messages", messages_}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool ChatRequest::restore(std::string_view saved) {
  const Json all = parse_object(saved);
  for (const char* key : {"system", "thinking", "messages"}) {
    if (!all.contains(key)) return false;
  }
  if (!all["system"].is_string() || !all["thinking"].is_string() || !all["messages"].is_array()) return false;
  const auto is_object = [](const Json& message) { return message.is_object(); };
  if (!std::all_of(all["messages"].begin(), all["messages"].end(), is_object)) return false;
  const auto thinking = all["thinking"].get<std::string>();
  if (!thinking.empty() && !is_one_of(thinking, kThinkingWords)) return false;
  system_ = all["system"].get<std::string>();
  thinking_ = thinking;
  messages_ = all["messages"];
  return true;
}

}  // namespace headrace::cli
