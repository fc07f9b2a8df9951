#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/chat/json_value.h"

namespace headrace {

/// Calls in one message, of a conversation and of what a model writes.
inline constexpr size_t kToolCallsMax = 256;

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant, kTool };

/// Arguments of a call. Some formats show the text, others the object.
struct ToolArguments {
  /// As it was given; of arguments that were given as an object, spaced_json. "{}" when none were given.
  std::string text = "{}";
  /// What `text` says; nothing when it is blank or not JSON.
  std::optional<JsonValue> json = JsonValue{JsonObject()};
};

struct ToolCall {
  std::string id;    ///< Empty when it has none.
  std::string name;  ///< Not empty.
  ToolArguments arguments;
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
