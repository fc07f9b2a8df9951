#include "engine/answer_text.h"

namespace headrace {

Result<AnswerText> AnswerText::create(std::vector<std::string> stops) {
  return AnswerText(TRY(StopMatcher::create(std::move(stops))));
}

bool AnswerText::push(std::string_view bytes) {
  passed_.clear();
  piece_.clear();
  stopped_ = matcher_.push(bytes, passed_);
  utf8_.push(passed_, piece_);
  return stopped_;
}

void AnswerText::release() {
  passed_.clear();
  piece_.clear();
  if (!stopped_) matcher_.finish(passed_);
  utf8_.push(passed_, piece_);
}

void AnswerText::finish() {
  release();
  utf8_.finish(piece_);
}

}  // namespace headrace
