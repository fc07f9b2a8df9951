#include "text/chat/kimi_xtml.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/json_writer.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

constexpr ControlLiteral kOpen = "<|open|>";
constexpr ControlLiteral kClose = "<|close|>";
constexpr ControlLiteral kSep = "<|sep|>";
constexpr ControlLiteral kEndOfMessage = "<|end_of_msg|>";
constexpr ControlLiteral kControls[] = {kOpen, kClose, kSep, kEndOfMessage};
constexpr ControlLiteral kStops[] = {kEndOfMessage, "[EOS]"};

// Texts that the model was trained on, to the byte.
constexpr std::string_view kToolsIntroduction = "# Tools\nHere are the available tools, described in JSONSchema.\n\n";
constexpr std::string_view kNewToolsIntroduction =
    "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\nYou have access to all "
    "existing and extended tools.\nHere are the specs for the extended tools.\n\n";
constexpr std::string_view kEffortText =
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
    "supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=";
constexpr std::string_view kToolsRequired =
    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
constexpr std::string_view kToolsForbidden =
    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.";
constexpr std::string_view kRawJson =
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting.";

struct Attribute {
  std::string_view key;
  std::string_view value;
};

std::string escape_attribute(std::string_view value) {
  std::string escaped;
  for (const char character : value) {
    if (character == '&') {
      escaped += "&amp;";
    } else if (character == '"') {
      escaped += "&quot;";
    } else {
      escaped += character;
    }
  }
  return escaped;
}

std::string fenced_json(const JsonValue& value) {
  return "```json\n" + sorted_json(value) + "\n```";
}

const char* type_name(const JsonValue& value) {
  static constexpr const char* kNames[] = {"null", "boolean", "number", "string", "array", "object"};
  return kNames[value.data.index()];
}

/// The name of an effort in a prompt.
const char* effort_name(ThinkingEffort effort) {
  switch (effort) {
    case ThinkingEffort::kLow:
      return "low";
    case ThinkingEffort::kHigh:
      return "high";
    default:
      return "max";
  }
}

bool is_no_result(const ChatMessage& message) {
  return message.role != ChatRole::kTool;
}

class Renderer {
 public:
  explicit Renderer(const ChatRequest& request) : request_(request) {}

  Result<Segments> render();

 private:
  using MessageIterator = std::vector<ChatMessage>::const_iterator;

  void open(std::string_view tag, std::initializer_list<Attribute> attributes = {});
  void close(std::string_view tag);
  void open_message(std::string_view role, std::string_view name);
  void close_message();
  void append_system(std::string_view type, std::string body);
  void append_content(const ChatMessage& message);

  void append_settings_in_front();
  void append_settings_at_end();
  Status append_conversation();
  void append_plain_message(std::string_view role, const ChatMessage& message);
  Status append_assistant(const ChatMessage& message);
  Status append_calls(const std::vector<ToolCall>& calls);
  Status append_arguments(const std::string& arguments);
  void append_argument(const JsonMember& argument);
  Status append_results(MessageIterator begin, MessageIterator end);
  Status append_result(const ChatMessage& message, std::string_view name);
  void append_generation_prompt();

  const ChatRequest& request_;
  Segments segments_;
  std::span<const ToolCall> last_calls_;  // Of the last assistant message.
  size_t result_count_ = 0;               // Tool messages since then.
};

void Renderer::open(std::string_view tag, std::initializer_list<Attribute> attributes) {
  segments_.append_control(kOpen);
  segments_.append_text(std::string(tag));
  for (const Attribute& attribute : attributes) {
    // Four segments: other cuts give other ids, for example when a value begins with a space.
    segments_.append_text(" " + std::string(attribute.key));
    segments_.append_text("=\"");
    segments_.append_text(escape_attribute(attribute.value));
    segments_.append_text("\"");
  }
  segments_.append_control(kSep);
}

void Renderer::close(std::string_view tag) {
  segments_.append_control(kClose);
  segments_.append_text(std::string(tag));
  segments_.append_control(kSep);
}

void Renderer::open_message(std::string_view role, std::string_view name) {
  if (name.empty()) {
    open("message", {{"role", role}});
  } else {
    open("message", {{"role", role}, {"name", name}});
  }
}

void Renderer::close_message() {
  close("message");
  segments_.append_control(kEndOfMessage);
}

void Renderer::append_system(std::string_view type, std::string body) {
  open("message", {{"role", "system"}, {"type", type}});
  segments_.append_text(std::move(body));
  close_message();
}

void Renderer::append_content(const ChatMessage& message) {
  for (const ContentPart& part : message.content) segments_.append_text(part.text);
}

Result<Segments> Renderer::render() {
  append_settings_in_front();
  TRY(append_conversation());
  append_settings_at_end();
  if (request_.add_generation_prompt) append_generation_prompt();
  return std::move(segments_);
}

void Renderer::append_settings_in_front() {
  if (!request_.tools.empty()) {
    append_system("tool-declare", std::string(kToolsIntroduction) + fenced_json({request_.tools}));
  }
  if (request_.thinking && request_.effort != ThinkingEffort::kUnsaid) {
    append_system("thinking-effort", std::string(kEffortText) + effort_name(request_.effort) + "`.");
  }
}

void Renderer::append_settings_at_end() {
  if (request_.tool_choice == ToolChoice::kRequired) append_system("tool-choice", std::string(kToolsRequired));
  if (request_.tool_choice == ToolChoice::kNone) append_system("tool-choice", std::string(kToolsForbidden));
  const auto append_format = [this](const std::string& kind, const std::string& rest) {
    append_system("response-format",
                  "The system is invoked with `response_format=" + kind + "`.\n" + std::string(kRawJson) + rest);
  };
  const ResponseFormat& format = request_.response_format;
  if (format.kind == ResponseFormat::Kind::kJsonObject) append_format("json_object", "");
  if (format.kind == ResponseFormat::Kind::kJsonSchema) {
    append_format("json_schema", "\nThe JSON data must match the following schema:\n" + fenced_json(format.schema));
  }
}

void Renderer::append_generation_prompt() {
  open_message("assistant", "");
  open(request_.thinking ? "think" : "response");
}

Status Renderer::append_conversation() {
  const auto end = request_.messages.end();
  for (auto message = request_.messages.begin(); message != end;) {
    // The message, or the run of tool messages that it begins.
    const bool is_result = message->role == ChatRole::kTool;
    const auto next = is_result ? std::find_if(message, end, is_no_result) : message + 1;
    if (is_result) {
      TRY(append_results(message, next));
    } else if (message->role == ChatRole::kAssistant) {
      TRY(append_assistant(*message));
    } else {
      append_plain_message(message->role == ChatRole::kSystem ? "system" : "user", *message);
    }
    message = next;
  }
  return {};
}

void Renderer::append_plain_message(std::string_view role, const ChatMessage& message) {
  if (!message.tools.empty()) {  // Only a system message has them; its content is not shown.
    append_system("tool-declare", std::string(kNewToolsIntroduction) + fenced_json({message.tools}));
    return;
  }
  open_message(role, message.name);
  append_content(message);
  close_message();
}

Status Renderer::append_assistant(const ChatMessage& message) {
  open_message("assistant", message.name);
  if (request_.thinking) {
    open("think");
    if (!is_blank(message.reasoning)) segments_.append_text(message.reasoning);
    close("think");
  }
  open("response");
  append_content(message);
  close("response");
  TRY(append_calls(message.tool_calls));
  close_message();
  last_calls_ = message.tool_calls;
  result_count_ = 0;
  return {};
}

Status Renderer::append_calls(const std::vector<ToolCall>& calls) {
  if (calls.empty()) return {};
  open("tools");
  for (size_t index = 0; index < calls.size(); ++index) {
    open("call", {{"tool", calls[index].name}, {"index", std::to_string(index + 1)}});
    TRY(append_arguments(calls[index].arguments));
    close("call");
  }
  close("tools");
  return {};
}

Status Renderer::append_arguments(const std::string& arguments) {
  if (is_blank(arguments)) return {};
  const auto json = parse_json(arguments, kInnerJsonBounds);
  if (!json && json.error().code != Code::kFormat) {
    return error(Code::kArgument, "the arguments of a tool call: %s", json.error().message.c_str());
  }
  if (!json) {
    open("json", {{"type", "object"}});
    segments_.append_text(arguments);
    close("json");
    return {};
  }
  if (std::holds_alternative<std::nullptr_t>(json.value().data)) return {};
  const auto* object = std::get_if<JsonObject>(&json.value().data);
  if (object == nullptr) {
    return error(Code::kArgument, "the arguments of a tool call are JSON, but not an object");
  }
  for (const JsonMember& argument : *object) append_argument(argument);
  return {};
}

void Renderer::append_argument(const JsonMember& argument) {
  open("argument", {{"key", argument.key}, {"type", type_name(argument.value)}});
  const auto* text = std::get_if<std::string>(&argument.value.data);
  segments_.append_text(text != nullptr ? *text : spaced_json(argument.value));
  close("argument");
}

/// A run of tool messages, in the order of the calls when each of them names its call.
Status Renderer::append_results(MessageIterator begin, MessageIterator end) {
  struct Match {
    const ChatMessage* message;
    std::span<const ToolCall>::iterator call;
  };
  std::vector<Match> matches;
  bool all_match = true;
  for (auto message = begin; message != end; ++message) {
    const auto call = std::ranges::find(last_calls_, message->tool_call_id, &ToolCall::id);
    all_match = all_match && !message->tool_call_id.empty() && call != last_calls_.end();
    matches.push_back({&*message, call});
  }
  if (all_match) std::ranges::stable_sort(matches, {}, &Match::call);
  for (const Match& match : matches) {
    TRY(append_result(*match.message, all_match ? std::string_view(match.call->name) : std::string_view()));
  }
  return {};
}

/// One result, of the tool `name` if that is known.
Status Renderer::append_result(const ChatMessage& message, std::string_view name) {
  const size_t index = result_count_++;
  if (name.empty()) name = message.tool;
  if (name.empty()) name = message.name;
  if (name.empty() && index < last_calls_.size()) name = last_calls_[index].name;
  if (name.empty()) {
    return error(Code::kArgument, "a tool message says neither the tool nor a call that it answers");
  }
  open("message", {{"role", "tool"}, {"tool", name}, {"index", std::to_string(index + 1)}});
  append_content(message);
  close_message();
  return {};
}

}  // namespace

Result<Segments> render_kimi_xtml(const ChatRequest& request) {
  return Renderer(request).render();
}

constexpr ChatFormat kKimiXtml = {
    .name = "kimi-k3",
    .controls = kControls,
    .stops = kStops,
    .has_thinking = true,
    .sampling = RecommendedSampling{.temperature = 1.0, .top_p = 0.95},
    .render = render_kimi_xtml,
    .create_parser = create_kimi_xtml_parser,
};

}  // namespace headrace
