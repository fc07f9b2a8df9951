#pragma once

#include <memory>

#include "text/chat/chat_format.h"

namespace headrace {

/// The format of Kimi K3: messages of nested elements, `<|open|>tag key="value"<|sep|>...<|close|>tag<|sep|>`.
///
/// A conversation that grows loses its prefix where: thinking is switched, or tools or the effort change, which stand
/// in front; tool choice and response format are said, which stand at the end; further results of tools are sorted
/// before earlier ones. After a generation prompt the next assistant message goes on with the same ids unless it has a
/// name or its reasoning is blank; and an answer as the model wrote it may be cut into other tokens than the same text
/// rendered.
extern const ChatFormat kKimiXtml;

/// The prompt. `tool_choice` and `response_format` become sentences of their own; a model is asked, not forced.
Result<Segments> render_kimi_xtml(const ChatRequest& request);

/// Ids of calls are `call_1`, `call_2`, ... in the order in which they were written: the format has no ids, and the
/// number that the model writes may be wrong. Their arguments are spaced_json, each value converted by the type that
/// the model declared, or the model's own text of a `json` element.
std::unique_ptr<ChatParser> create_kimi_xtml_parser(const Tokenizer& tokenizer, bool thinking);

}  // namespace headrace
