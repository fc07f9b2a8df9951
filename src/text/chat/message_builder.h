#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/chat_parser.h"

namespace headrace {

/// What parsers of all formats do with what they recognised: builds the message, and the events that tell of it.
class MessageBuilder {
 public:
  void add_reasoning(std::string_view text);
  void add_content(std::string_view text);
  /// Text between calls: white space there is layout and is left out, all other text is content.
  void add_between_calls(std::string_view text);
  /// Forgets white space that add_between_calls held back: an element begins or ends here.
  void end_between_calls() { held_blank_.clear(); }

  /// Whether another call may begin (kToolCallsMax).
  bool has_room_for_call() const;
  /// Begins a call. One at a time.
  void begin_call(std::string id, std::string name);
  /// Ends the call that was begun last.
  void end_call(std::string arguments, bool is_complete);
  /// Ends the message. `is_finished`: the model did.
  void end(bool is_finished);

  bool has_ended() const { return has_ended_; }
  const ParsedMessage& message() const { return message_; }
  std::vector<ChatEvent> take_events();

 private:
  void add_text(ChatEvent::Kind kind, std::string_view text);

  ParsedMessage message_;
  std::vector<ChatEvent> events_;
  std::string held_blank_;
  bool has_ended_ = false;
};

}  // namespace headrace
