#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/json_writer.h"
#include "text/chat/kimi_xtml.h"
#include "text/chat/token_parser.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

constexpr size_t kHeaderBytesMax = 4096;
constexpr size_t kElementsMax = 32;     // Open at the same time.
constexpr size_t kArgumentsMax = 1024;  // In one call.

/// What is written between `<|open|>` or `<|close|>` and `<|sep|>`.
struct Header {
  bool opens;
  std::string text;
};

std::string_view tag_of(std::string_view header) {
  return header.substr(0, header.find(' '));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The value of an attribute of a header; nothing when it has none such.
std::optional<std::string> attribute_of(std::string_view header, std::string_view wanted) {
  size_t begin = header.find(' ');
  while (begin != std::string_view::npos) {
    const size_t equals = header.find("=\"", begin);
    if (equals == std::string_view::npos) break;
    const size_t value_begin = equals + 2;
    const size_t value_end = header.find('"', value_begin);
    if (value_end == std::string_view::npos) break;
    if (header.substr(begin + 1, equals - begin - 1) == wanted) {
      std::string value(header.substr(value_begin, value_end - value_begin));
      replace_all(value, "&quot;", "\"");  // Quotes first: "&amp;quot;" stands for "&quot;".
      replace_all(value, "&amp;", "&");
      return value;
    }
    begin = header.find(' ', value_end);
  }
  return std::nullopt;
}

/// The value that an argument's text stands for; the text itself as a string when it is not of its type.
JsonValue convert_argument(std::string text, std::string_view type) {
  if (type == "string") return {std::move(text)};
  if (type == "null" && (text == "null" || is_blank(text))) return {nullptr};
  if (type == "boolean" && (text == "true" || text == "false")) return {text == "true"};
  if (type == "null" || type == "boolean") return {std::move(text)};
  auto json = parse_json(text, kInnerJsonBounds);
  return json ? json.take_value() : JsonValue{std::move(text)};
}

enum class Element : uint8_t { kThink, kResponse, kTools, kCall, kArgument, kJson, kOther };

class Parser final : public TokenParser {
 public:
  Parser(const Tokenizer& tokenizer, bool thinking)
      : TokenParser(tokenizer),
        open_(tokenizer.control_id("<|open|>")),
        close_(tokenizer.control_id("<|close|>")),
        sep_(tokenizer.control_id("<|sep|>")),
        end_of_message_(tokenizer.control_id("<|end_of_msg|>")),
        end_of_text_(tokenizer.control_id("[EOS]")) {
    // The prompt ended inside this element.
    stack_.push_back(thinking ? Open{Element::kThink, "think"} : Open{Element::kResponse, "response"});
  }

 private:
  struct Open {
    Element element;
    std::string tag;
  };
  struct Argument {
    std::string key;
    std::string type;
    std::string text;
  };
  /// The call that is being written.
  struct Call {
    JsonObject arguments;
    std::optional<Argument> argument;  // That is being written.
    std::optional<std::string> json;   // All arguments, as the model wrote them.
  };

  void take_text(std::string_view text) override;
  void take_control(TokenId id) override;
  void end(bool is_finished) override;

  void begin_header(bool opens);
  void finish_header();
  void abandon_header();

  void open_element(const std::string& header);
  Element recognise(const std::string& header);
  Element open_call(const std::string& header);
  Element open_argument(const std::string& header);
  Element open_json();
  void close_element(std::string_view tag);
  void pop_to(size_t size, bool is_complete);
  void store_argument();
  void end_call(bool is_complete);
  bool is_top(Element element) const { return !stack_.empty() && stack_.back().element == element; }
  size_t index_of(Element element) const;

  const std::optional<TokenId> open_, close_, sep_, end_of_message_, end_of_text_;
  std::vector<Open> stack_;
  std::optional<Header> header_;
  std::optional<Call> call_;
};

void Parser::take_control(TokenId id) {
  if (id == open_ || id == close_) {
    begin_header(id == open_);
  } else if (id == sep_) {
    finish_header();
  } else if (id == end_of_message_ || id == end_of_text_) {
    end(true);
  }
}

void Parser::take_text(std::string_view text) {
  if (text.empty()) return;
  if (header_) {
    header_->text += text;
    if (header_->text.size() > kHeaderBytesMax) abandon_header();
    return;
  }
  switch (stack_.empty() ? Element::kOther : stack_.back().element) {
    case Element::kThink:
      return builder().add_reasoning(text);
    case Element::kTools:
    case Element::kCall:
      return builder().add_between_calls(text);
    case Element::kArgument:
      call_->argument->text += text;
      return;
    case Element::kJson:
      *call_->json += text;
      return;
    case Element::kResponse:
    case Element::kOther:
      return builder().add_content(text);
  }
}

void Parser::begin_header(bool opens) {
  end_text();
  abandon_header();
  header_ = {opens, ""};
}

/// What looked like a header is text.
void Parser::abandon_header() {
  if (!header_) return;
  const std::string text = std::exchange(header_, std::nullopt)->text;
  take_text(text);
}

void Parser::finish_header() {
  end_text();
  if (!header_) return;
  const Header header = *std::exchange(header_, std::nullopt);
  builder().end_between_calls();
  if (!header.opens) return close_element(tag_of(header.text));
  if (stack_.size() < kElementsMax) return open_element(header.text);
  take_text(header.text);
}

void Parser::end(bool is_finished) {
  end_text();
  // Every value has its own end: a message that ends inside of one is cut, whoever cut it.
  const bool in_value = header_ || is_top(Element::kArgument) || is_top(Element::kJson);
  abandon_header();
  pop_to(0, is_finished && !in_value);
  builder().end(is_finished);
}

void Parser::open_element(const std::string& header) {
  const Element element = recognise(header);
  stack_.push_back({element, std::string(tag_of(header))});
}

/// The element that a header opens, which begins to take text. Elements in places where they mean nothing are kOther.
Element Parser::recognise(const std::string& header) {
  const std::string_view tag = tag_of(header);
  if (tag == "think") return Element::kThink;
  if (tag == "response") return Element::kResponse;
  if (tag == "tools") return Element::kTools;
  if (tag == "call") return open_call(header);
  if (tag == "argument") return open_argument(header);
  if (tag == "json") return open_json();
  return Element::kOther;
}

Element Parser::open_call(const std::string& header) {
  std::optional<std::string> name = attribute_of(header, "tool");
  if (!name || name->empty() || !builder().has_room_for_call()) return Element::kOther;
  // A call inside a call: its end was forgotten.
  if (call_) pop_to(index_of(Element::kCall), true);
  builder().begin_call("call_" + std::to_string(message().calls.size() + 1), std::move(*name));
  call_.emplace();
  return Element::kCall;
}

Element Parser::open_argument(const std::string& header) {
  std::optional<std::string> key = attribute_of(header, "key");
  if (!call_ || call_->json || !key || call_->arguments.size() == kArgumentsMax) return Element::kOther;
  if (call_->argument) pop_to(index_of(Element::kArgument), true);
  call_->argument = {std::move(*key), attribute_of(header, "type").value_or(""), ""};
  return Element::kArgument;
}

Element Parser::open_json() {
  if (!call_ || call_->json || call_->argument || !call_->arguments.empty()) return Element::kOther;
  call_->json.emplace();
  return Element::kJson;
}

void Parser::close_element(std::string_view tag) {
  const auto from_top = std::find_if(stack_.rbegin(), stack_.rend(), [&](const Open& open) { return open.tag == tag; });
  if (from_top == stack_.rend()) return;
  pop_to(static_cast<size_t>(stack_.rend() - from_top) - 1, true);
}

/// Closes all elements but the `size` outermost. `is_complete`: the model meant them to end.
void Parser::pop_to(size_t size, bool is_complete) {
  while (stack_.size() > size) {
    const Element element = stack_.back().element;
    stack_.pop_back();
    if (element == Element::kArgument) store_argument();
    if (element == Element::kCall) end_call(is_complete);
  }
}

/// A key that is there twice keeps its first place and its last value.
void Parser::store_argument() {
  Argument argument = *std::exchange(call_->argument, std::nullopt);
  JsonValue value = convert_argument(std::move(argument.text), argument.type);
  const auto same = std::ranges::find(call_->arguments, argument.key, &JsonMember::key);
  if (same != call_->arguments.end()) {
    same->value = std::move(value);
  } else {
    call_->arguments.push_back({std::move(argument.key), std::move(value)});
  }
}

void Parser::end_call(bool is_complete) {
  Call call = *std::exchange(call_, std::nullopt);
  builder().end_call(call.json ? std::move(*call.json) : spaced_json({std::move(call.arguments)}), is_complete);
}

/// Where the element stands, which is open.
size_t Parser::index_of(Element element) const {
  return static_cast<size_t>(std::ranges::find(stack_, element, &Open::element) - stack_.begin());
}

}  // namespace

std::unique_ptr<ChatParser> create_kimi_xtml_parser(const Tokenizer& tokenizer, bool thinking) {
  return std::make_unique<Parser>(tokenizer, thinking);
}

}  // namespace headrace
