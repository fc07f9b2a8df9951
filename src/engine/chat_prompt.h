#pragma once

#include <vector>

#include "base/result.h"
#include "text/chat/chat_format.h"
#include "text/chat/conversation.h"
#include "text/tokenizer.h"

namespace headrace {

/// The chat format of the model with this tokenizer. kUnsupported when there is no tokenizer (null), or no format that
/// we know.
Result<const ChatFormat*> chat_format_of(const Tokenizer* tokenizer);

/// Token ids of a conversation in the chat format of the model with this tokenizer. Errors as
/// chat_format_of and ChatFormat::render.
Result<std::vector<TokenId>> render_chat(const Tokenizer* tokenizer, const ChatRequest& request);

}  // namespace headrace
