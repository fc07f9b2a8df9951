#include "text/chat/kimi_k2.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/json_writer.h"

namespace headrace {
namespace {

constexpr ControlLiteral kEnd = "<|im_end|>";
constexpr ControlLiteral kUser = "<|im_user|>";
constexpr ControlLiteral kAssistant = "<|im_assistant|>";
constexpr ControlLiteral kSystem = "<|im_system|>";
constexpr ControlLiteral kMiddle = "<|im_middle|>";
constexpr ControlLiteral kSectionBegin = "<|tool_calls_section_begin|>";
constexpr ControlLiteral kSectionEnd = "<|tool_calls_section_end|>";
constexpr ControlLiteral kCallBegin = "<|tool_call_begin|>";
constexpr ControlLiteral kCallArgument = "<|tool_call_argument_begin|>";
constexpr ControlLiteral kCallEnd = "<|tool_call_end|>";
constexpr ControlLiteral kControls[] = {kEnd,          kUser,       kAssistant, kSystem,       kMiddle,
                                        kSectionBegin, kSectionEnd, kCallBegin, kCallArgument, kCallEnd};
constexpr ControlLiteral kStops[] = {kEnd, "[EOS]"};

ControlLiteral role_control(ChatRole role) {
  if (role == ChatRole::kUser) return kUser;
  return role == ChatRole::kAssistant ? kAssistant : kSystem;
}

const char* role_name(ChatRole role) {
  static constexpr const char* kNames[] = {"system", "user", "assistant", "tool"};
  return kNames[static_cast<size_t>(role)];
}

std::string joined_content(const ChatMessage& message) {
  std::string text;
  for (const ContentPart& part : message.content) text += part.text;
  return text;
}

class Renderer {
 public:
  explicit Renderer(const ChatRequest& request) : request_(request) {}

  Result<Segments> render();

 private:
  void begin(ControlLiteral role, std::string header);
  Status append_message(const ChatMessage& message);
  void append_calls(const std::vector<ToolCall>& calls);
  Status append_result(const ChatMessage& message);

  const ChatRequest& request_;
  Segments segments_;
  size_t call_count_ = 0;              // In the whole conversation so far.
  std::vector<std::string> last_ids_;  // Of the calls of the last assistant message.
  size_t result_count_ = 0;            // Tool messages since then.
};

void Renderer::begin(ControlLiteral role, std::string header) {
  segments_.append_control(role);
  segments_.append_text(std::move(header));
  segments_.append_control(kMiddle);
}

Status check_expressible(const ChatRequest& request) {
  if (request.tool_choice == ToolChoice::kRequired) {
    return error(Code::kUnsupported, "tool_choice: this model's chat format cannot require a call");
  }
  if (request.response_format.kind != ResponseFormat::Kind::kText) {
    return error(Code::kUnsupported, "response_format: this model's chat format cannot ask for JSON");
  }
  for (const ChatMessage& message : request.messages) {
    if (message.tools.empty()) continue;
    return error(Code::kUnsupported, "tools of a system message: this model's chat format has all tools in front");
  }
  return {};
}

Result<Segments> Renderer::render() {
  TRY(check_expressible(request_));
  if (!request_.tools.empty() && request_.tool_choice != ToolChoice::kNone) {
    begin(kSystem, "tool_declare");
    segments_.append_text(sorted_json({request_.tools}));
    segments_.append_control(kEnd);
  }
  for (const ChatMessage& message : request_.messages) TRY(append_message(message));
  if (request_.add_generation_prompt) begin(kAssistant, "assistant");
  return std::move(segments_);
}

Status Renderer::append_message(const ChatMessage& message) {
  begin(role_control(message.role), message.name.empty() ? role_name(message.role) : message.name);
  if (message.role == ChatRole::kTool) {
    TRY(append_result(message));
  } else {
    segments_.append_text(joined_content(message));
  }
  if (message.role == ChatRole::kAssistant) append_calls(message.tool_calls);
  segments_.append_control(kEnd);
  return {};
}

void Renderer::append_calls(const std::vector<ToolCall>& calls) {
  last_ids_.clear();
  result_count_ = 0;
  if (calls.empty()) return;
  segments_.append_control(kSectionBegin);
  for (const ToolCall& call : calls) {
    const std::string own_id = "functions." + call.name + ":" + std::to_string(call_count_++);
    last_ids_.push_back(call.id.empty() ? own_id : call.id);
    segments_.append_control(kCallBegin);
    segments_.append_text(last_ids_.back());
    segments_.append_control(kCallArgument);
    segments_.append_text(call.arguments);
    segments_.append_control(kCallEnd);
  }
  segments_.append_control(kSectionEnd);
}

Status Renderer::append_result(const ChatMessage& message) {
  const size_t index = result_count_++;
  if (message.tool_call_id.empty() && index >= last_ids_.size()) {
    return error(Code::kArgument, "a tool message without tool_call_id answers no call");
  }
  const std::string& id = message.tool_call_id.empty() ? last_ids_[index] : message.tool_call_id;
  segments_.append_text("## Return of " + id + "\n" + joined_content(message));
  return {};
}

}  // namespace

Result<Segments> render_kimi_k2(const ChatRequest& request) {
  return Renderer(request).render();
}

constexpr ChatFormat kKimiK2 = {
    .name = "kimi-linear",
    .controls = kControls,
    .stops = kStops,
    .has_thinking = false,
    .sampling = std::nullopt,  // The publisher recommends nothing for this model.
    .render = render_kimi_k2,
    .create_parser = create_kimi_k2_parser,
};

}  // namespace headrace
