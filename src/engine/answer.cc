#include "engine/answer.h"

namespace headrace {

bool PlainAnswer::hand_over(TokenId id) {
  all_ += text_.piece();
  return on_piece_({text_.piece(), id});
}

std::optional<Finish> PlainAnswer::add(TokenId id, std::string_view bytes) {
  const bool is_stop = text_.push(bytes);
  if (!hand_over(id)) return Finish::kCancelled;
  if (is_stop) return Finish::kStop;
  return std::nullopt;
}

Finish PlainAnswer::end(Finish finish) {
  text_.finish();
  if (!text_.piece().empty()) hand_over(-1);  // The answer is over: nothing is left to cancel.
  return finish;
}

}  // namespace headrace
