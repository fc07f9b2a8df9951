#include "text/chat/message_builder.h"

#include <utility>

#include "text/chat/conversation.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

constexpr size_t kHeldBlankBytesMax = 4096;

}  // namespace

void MessageBuilder::add_text(ChatEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (events_.empty() || events_.back().kind != kind) events_.push_back({kind, "", 0});
  events_.back().text += text;
}

void MessageBuilder::add_reasoning(std::string_view text) {
  message_.reasoning += text;
  add_text(ChatEvent::Kind::kReasoning, text);
}

void MessageBuilder::add_content(std::string_view text) {
  message_.content += text;
  add_text(ChatEvent::Kind::kContent, text);
}

void MessageBuilder::add_between_calls(std::string_view text) {
  held_blank_ += text;
  if (is_blank(held_blank_) && held_blank_.size() <= kHeldBlankBytesMax) return;
  add_content(held_blank_);
  held_blank_.clear();
}

bool MessageBuilder::has_room_for_call() const {
  return message_.calls.size() < kToolCallsMax;
}

void MessageBuilder::begin_call(std::string id, std::string name) {
  message_.calls.push_back({std::move(id), std::move(name), "", false});
  events_.push_back({ChatEvent::Kind::kCallBegun, "", message_.calls.size() - 1});
}

void MessageBuilder::end_call(std::string arguments, bool is_complete) {
  ParsedCall& call = message_.calls.back();
  call.arguments = std::move(arguments);
  call.is_complete = is_complete;
  events_.push_back({ChatEvent::Kind::kCallEnded, "", message_.calls.size() - 1});
}

void MessageBuilder::end(bool is_finished) {
  message_.is_finished = is_finished;
  has_ended_ = true;
  events_.push_back({ChatEvent::Kind::kEnded, "", 0});
}

std::vector<ChatEvent> MessageBuilder::take_events() {
  return std::exchange(events_, {});
}

}  // namespace headrace
