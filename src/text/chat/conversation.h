#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/chat/json_value.h"

namespace headrace {

/// Calls in one message, of a conversation and of what a model writes.
inline constexpr size_t kToolCallsMax = 256;

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant, kTool };

struct ToolCall {
  std::string id;    ///< Empty when it has none.
  std::string name;  ///< Not empty.
  /// As they were given; of arguments that were given as an object, spaced_json. A client may send back what a model
  /// wrote, so it may be no JSON. Text only: as values it would take many times the memory.
  std::string arguments = "{}";
};

/// One part of a message's content.
struct ContentPart {
  std::string text;
};

/// One message. All text is plain text (P6), in UTF-8 when it came through parse_chat_request. Empty strings stand for
/// what was not given.
struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string name;
  std::vector<ContentPart> content;
  std::string reasoning;             ///< Of an assistant.
  std::vector<ToolCall> tool_calls;  ///< Of an assistant.
  std::string tool_call_id;          ///< Of a tool: the call that it answers.
  std::string tool;                  ///< Of a tool: its name.
  JsonArray tools;                   ///< Of a system message: tools that are new from here on.
};

/// How much the model is asked to think.
enum class ThinkingEffort : uint8_t {
  kDefault,  ///< What the format asks for when nobody says anything.
  kUnsaid,   ///< The prompt says nothing about it.
  kLow,
  kHigh,
  kMax,
};

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired };

struct ResponseFormat {
  enum class Kind : uint8_t { kText, kJsonObject, kJsonSchema };

  Kind kind = Kind::kText;
  JsonValue schema;  ///< Of kJsonSchema.
};

/// What a model is asked: all that goes into its prompt.
struct ChatRequest {
  std::vector<ChatMessage> messages;
  JsonArray tools;
  bool thinking = true;  ///< Without meaning for formats that have no reasoning.
  ThinkingEffort effort = ThinkingEffort::kDefault;
  ToolChoice tool_choice = ToolChoice::kAuto;
  ResponseFormat response_format;
  bool add_generation_prompt = true;
};

}  // namespace headrace
