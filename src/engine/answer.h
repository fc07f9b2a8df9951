#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "engine/answer_text.h"
#include "text/tokenizer.h"

namespace headrace {

/// Why a generation ended. kToolCalls: the model ended its message, which calls tools.
enum class Finish : uint8_t { kStop, kLength, kCancelled, kToolCalls };

/// What the text of a piece is. Plain generation gives kText, replies give the others.
enum class PieceKind : uint8_t { kText, kReasoning, kContent, kToolCall };

/// A piece of an answer; valid during the callback.
struct AnswerPiece {
  std::string_view text;  ///< Valid UTF-8, possibly empty; of kToolCall the whole call as a JSON object.
  TokenId id = -1;        ///< The token just generated; -1 for pieces that release what was held back at the end.
  PieceKind kind = PieceKind::kText;
};

/// false cancels.
using OnPiece = FunctionRef<bool(const AnswerPiece&)>;

/// Makes pieces of generated tokens, as they come.
class Answer {
 public:
  virtual ~Answer() = default;

  /// Takes a token in, whose text is `bytes` (empty for one that ends the generation). The reason to end, if it is one.
  virtual std::optional<Finish> add(TokenId id, std::string_view bytes) = 0;
  /// The generation has ended, because of `finish`: hands over what was held back. The reason as the receiver of the
  /// answer sees it.
  virtual Finish end(Finish finish) = 0;
};

/// An answer that is one text.
class PlainAnswer final : public Answer {
 public:
  PlainAnswer(AnswerText text, OnPiece on_piece) : text_(std::move(text)), on_piece_(on_piece) {}

  std::optional<Finish> add(TokenId id, std::string_view bytes) override;
  Finish end(Finish finish) override;

  /// All pieces.
  std::string take_text() { return std::move(all_); }

 private:
  bool hand_over(TokenId id);

  AnswerText text_;
  OnPiece on_piece_;
  std::string all_;
};

}  // namespace headrace
