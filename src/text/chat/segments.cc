#include "text/chat/segments.h"

namespace headrace {
namespace {

Result<std::vector<TokenId>> encode_segment(const Tokenizer& tokenizer, const Segment& segment) {
  if (const auto* text = std::get_if<TextSegment>(&segment)) return tokenizer.encode(PlainText{text->text});
  const std::string name(std::get<ControlLiteral>(segment).name());
  const std::optional<TokenId> id = tokenizer.control_id(name);
  if (!id) return error(Code::kFormat, "the tokenizer has no control token %s", name.c_str());
  return std::vector<TokenId>{*id};
}

}  // namespace

Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer, const Segments& segments) {
  if (!segments.is_whole()) {
    return error(Code::kArgument, "the prompt has more than the %zu parts allowed", Segments::kSegmentsMax);
  }
  std::vector<TokenId> ids;
  for (const Segment& segment : segments.list()) {
    const std::vector<TokenId> segment_ids = TRY(encode_segment(tokenizer, segment));
    ids.insert(ids.end(), segment_ids.begin(), segment_ids.end());
  }
  return ids;
}

}  // namespace headrace
