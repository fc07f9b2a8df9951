#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/chat/kimi_k2.h"
#include "text/chat/token_parser.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

constexpr size_t kCallIdBytesMax = 4096;

/// The name in an id `functions.NAME:INDEX`.
std::string_view name_of(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == id.size()) return id;
  const bool is_number = id.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return is_number ? id.substr(0, colon) : id;
}

class Parser final : public TokenParser {
 public:
  explicit Parser(const Tokenizer& tokenizer)
      : TokenParser(tokenizer),
        end_of_message_(tokenizer.control_id("<|im_end|>")),
        end_of_text_(tokenizer.control_id("[EOS]")),
        section_begin_(tokenizer.control_id("<|tool_calls_section_begin|>")),
        section_end_(tokenizer.control_id("<|tool_calls_section_end|>")),
        call_begin_(tokenizer.control_id("<|tool_call_begin|>")),
        call_argument_(tokenizer.control_id("<|tool_call_argument_begin|>")),
        call_end_(tokenizer.control_id("<|tool_call_end|>")) {}

 private:
  enum class State : uint8_t {
    kContent,
    kBetweenCalls,  // In a section, outside of calls.
    kCallId,
    kArguments,
  };

  void take_text(std::string_view text) override;
  void take_control(TokenId id) override;
  void end(bool is_finished) override;

  void enter(State state);
  void end_structure(bool is_complete);
  void begin_arguments();
  void end_id(bool is_complete);
  void abandon_call();

  const std::optional<TokenId> end_of_message_, end_of_text_, section_begin_, section_end_, call_begin_, call_argument_,
      call_end_;
  State state_ = State::kContent;
  bool in_section_ = false;
  std::string text_;  // Of the id or the arguments that are being written.
};

void Parser::take_control(TokenId id) {
  if (id == end_of_message_ || id == end_of_text_) {
    end(true);
  } else if (id == call_argument_) {
    if (state_ == State::kCallId) begin_arguments();
  } else if (id == call_begin_) {
    end_structure(true);
    enter(State::kCallId);
  } else if (id == section_begin_ || id == section_end_ || id == call_end_) {
    end_structure(true);
    if (id != call_end_) in_section_ = id == section_begin_;
    enter(in_section_ ? State::kBetweenCalls : State::kContent);
  }
}

void Parser::take_text(std::string_view text) {
  switch (state_) {
    case State::kContent:
      return builder().add_content(text);
    case State::kBetweenCalls:
      return builder().add_between_calls(text);
    case State::kCallId:
      text_ += text;
      if (text_.size() > kCallIdBytesMax) abandon_call();
      return;
    case State::kArguments:
      text_ += text;
      return;
  }
}

void Parser::enter(State state) {
  builder().end_between_calls();
  state_ = state;
  text_.clear();
}

/// Ends the text that is being written, and the call if it is of one. `is_complete`: the model meant it to end.
void Parser::end_structure(bool is_complete) {
  end_text();
  if (state_ == State::kCallId) {
    end_id(is_complete);
  } else if (state_ == State::kArguments) {
    builder().end_call(std::string(strip(text_)), is_complete);
  }
}

/// An id, and no arguments after it.
void Parser::end_id(bool is_complete) {
  if (!is_complete) return abandon_call();
  begin_arguments();
  if (state_ == State::kArguments) builder().end_call("{}", true);
}

void Parser::begin_arguments() {
  end_text();
  if (state_ != State::kCallId) return;  // Too long with what was held back.
  const std::string id(strip(text_));
  const std::string_view name = name_of(id);
  if (name.empty() || !builder().has_room_for_call()) return abandon_call();
  builder().begin_call(id, std::string(name));
  enter(State::kArguments);
}

/// What looked like a call is text, and so is what follows.
void Parser::abandon_call() {
  const std::string text = std::exchange(text_, "");
  state_ = State::kContent;
  builder().add_content(text);
}

void Parser::end(bool is_finished) {
  end_structure(is_finished);
  builder().end(is_finished);
}

}  // namespace

std::unique_ptr<ChatParser> create_kimi_k2_parser(const Tokenizer& tokenizer, bool /*thinking*/) {
  return std::make_unique<Parser>(tokenizer);
}

}  // namespace headrace
