#pragma once

#include <memory>

#include "text/chat/chat_format.h"

namespace headrace {

/// The format of Kimi-Linear (and, but for its default system message, of Kimi K2): flat messages,
/// `<|im_user|>name<|im_middle|>...<|im_end|>`, without reasoning.
///
/// A conversation that grows keeps its prefix unless the declared tools change. An answer as the model wrote it may be
/// cut into other tokens than the same text rendered, and white space around arguments that it wrote is not kept.
extern const ChatFormat kKimiK2;

/// The prompt. Without default system message. The format has no words for a tool choice: with `none` the tools are not
/// declared, `required` is kUnsupported, as are response formats and tools that a system message brings.
Result<Segments> render_kimi_k2(const ChatRequest& request);

/// Ids of calls are the model's own, `functions.NAME:INDEX`, and must come back unchanged with the results. Arguments
/// are the model's text without the white space around it. `thinking` means nothing.
std::unique_ptr<ChatParser> create_kimi_k2_parser(const Tokenizer& tokenizer, bool thinking);

}  // namespace headrace
