#include "engine/chat_answer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "text/chat/json_value.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

/// Whether a call may be carried out: it has ended, and if its arguments are JSON, they are an object. (Those that are
/// none go to the tool, and back to the model, as they are.)
bool is_callable(const ParsedCall& call) {
  if (!call.is_complete) return false;
  const auto json = parse_json(call.arguments, kInnerJsonBounds);
  if (!json) return json.error().code == Code::kFormat;
  const auto& data = json.value().data;
  return std::holds_alternative<JsonObject>(data) || std::holds_alternative<std::nullptr_t>(data);
}

}  // namespace

std::optional<Finish> ChatAnswer::add(TokenId id, std::string_view /*bytes*/) {
  std::optional<Finish> finish;
  for (const ChatEvent& event : parser_->push(id)) {
    if (is_stopped_) break;
    const std::optional<Finish> reason = take(event, id);
    if (!finish) finish = reason;
  }
  return finish;
}

std::optional<Finish> ChatAnswer::take(const ChatEvent& event, TokenId id) {
  switch (event.kind) {
    case ChatEvent::Kind::kReasoning:
      return hand_over(PieceKind::kReasoning, event.text, id);
    case ChatEvent::Kind::kContent:
      return take_content(event, id);
    case ChatEvent::Kind::kCallBegun:
      // A stop string does not reach over a call.
      content_.release();
      return hand_over_content(id);
    case ChatEvent::Kind::kCallEnded:
      return hand_over_call(event.call_index, id);
    case ChatEvent::Kind::kEnded:
      is_ended_ = true;
      return Finish::kStop;
  }
  return std::nullopt;
}

std::optional<Finish> ChatAnswer::take_content(const ChatEvent& event, TokenId id) {
  is_stopped_ = content_.push(event.text);
  if (const auto finish = hand_over_content(id)) return finish;
  if (is_stopped_) return Finish::kStop;
  return std::nullopt;
}

std::optional<Finish> ChatAnswer::hand_over(PieceKind kind, std::string_view text, TokenId id) {
  if (text.empty()) return std::nullopt;
  // The rest of a token that was cut off is still part of the message.
  if (!is_cancelled_) is_cancelled_ = !on_piece_({text, id, kind});
  return is_cancelled_ ? std::optional(Finish::kCancelled) : std::nullopt;
}

std::optional<Finish> ChatAnswer::hand_over_content(TokenId id) {
  content_so_far_ += content_.piece();
  return hand_over(PieceKind::kContent, content_.piece(), id);
}

std::optional<Finish> ChatAnswer::hand_over_call(size_t index, TokenId id) {
  return hand_over(PieceKind::kToolCall, tool_call_json(parser_->message().calls[index], index), id);
}

Finish ChatAnswer::end(Finish finish) {
  if (!is_ended_ && !is_stopped_) {
    for (const ChatEvent& event : parser_->finish()) take(event, -1);  // Nothing is left to cancel.
  }
  if (!is_stopped_) {
    content_.finish();
    hand_over_content(-1);
  }
  const bool has_calls = std::ranges::any_of(parser_->message().calls, is_callable);
  return finish == Finish::kStop && !is_stopped_ && has_calls ? Finish::kToolCalls : finish;
}

ParsedMessage ChatAnswer::message() const {
  ParsedMessage message = parser_->message();
  message.content = content_so_far_;
  return message;
}

std::string tool_call_json(const ParsedCall& call, size_t index) {
  return Json{{"index", index},
              {"id", call.id},
              {"name", call.name},
              {"arguments", call.arguments},
              {"complete", is_callable(call)}}
      .dump();
}

std::string message_json(const ParsedMessage& message) {
  Json json{{"role", "assistant"}, {"content", message.content}};
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  Json calls = Json::array();
  for (const ParsedCall& call : message.calls) {
    if (!is_callable(call)) continue;
    calls.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!calls.empty()) json["tool_calls"] = std::move(calls);
  return json.dump();
}

}  // namespace headrace
