#include "engine/chat_prompt.h"

namespace headrace {

Result<const ChatFormat*> chat_format_of(const Tokenizer* tokenizer) {
  if (!tokenizer) return error(Code::kUnsupported, "the model folder has no tokenizer: it takes token ids only");
  const ChatFormat* format = find_chat_format(*tokenizer);
  if (!format) return error(Code::kUnsupported, "the model has no chat format that this version knows");
  return format;
}

Result<std::vector<TokenId>> render_chat(const Tokenizer* tokenizer, const ChatRequest& request) {
  const ChatFormat& format = *TRY(chat_format_of(tokenizer));
  const Segments segments = TRY(format.render(request));
  return encode_segments(*tokenizer, segments);
}

}  // namespace headrace
