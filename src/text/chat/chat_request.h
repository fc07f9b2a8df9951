#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "text/chat/conversation.h"

namespace headrace {

inline constexpr JsonBounds kChatRequestBounds = {
    .bytes_max = size_t{32} << 20, .depth_max = 100, .values_max = 500'000};
inline constexpr size_t kChatMessagesMax = 10'000;
inline constexpr size_t kContentPartsMax = 10'000;  ///< In one message.
inline constexpr size_t kToolsMax = 1'000;          ///< In one list.

/// The door for conversations: a JSON object in the manner of OpenAI's API.
///
///     messages               [{role, content, name, reasoning_content | reasoning, tool_calls, tools,
///                            tool_call_id | id, tool}, ...], at least one
///     tools                  [{...}, ...]
///     tool_choice            "auto", "none", "required"
///     response_format        {"type": "text" | "json_object" | "json_schema", "json_schema": {...}}
///     reasoning_effort       "none" (no thinking), "low", "high", "max"; null: the prompt does not speak of it
///     thinking               true or false, also called enable_thinking
///     add_generation_prompt  true (default) or false
///
/// Roles are system (also called developer), user, assistant, tool. Content is a string, null, or a list of
/// {"type": "text", "text"}. A tool call is {"id", "type": "function", "function": {"name", "arguments"}}, its
/// arguments a string or an object. Null stands for a key that is not there, but for reasoning_effort. Keys of messages
/// that are not listed are ignored, as clients send back all that they got.
///
/// kArgument for anything else, with the place (`messages[3].content[0].text`): other keys beside messages, wrong
/// types, text that is not JSON in UTF-8, anything beyond the bounds above. kUnsupported for images and named tool
/// choices.
Result<ChatRequest> parse_chat_request(std::string_view json);

}  // namespace headrace
