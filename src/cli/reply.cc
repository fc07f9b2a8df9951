#include "cli/reply.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace headrace::cli {
namespace {

/// Hands a piece of an answer to a printer.
void print_piece(AnswerPrinter& printer, const headrace_piece& piece) {
  const std::string_view text(piece.text, piece.text_bytes);
  switch (static_cast<headrace_piece_kind>(piece.kind)) {
    case HEADRACE_PIECE_REASONING:
      return printer.reasoning(text);
    case HEADRACE_PIECE_TEXT:
    case HEADRACE_PIECE_CONTENT:
      return printer.content(text);
    case HEADRACE_PIECE_TOOL_CALL:
      break;
  }
  const auto call = nlohmann::json::parse(text);
  printer.tool_call(call["name"].get<std::string>(), call["arguments"].get<std::string>());
}

/// `call(options, on_piece)` makes the answer.
template <class Call>
auto printed(api::Session& session, api::GenerateOptions options, AnswerPrinter* printer, Call&& call) {
  const InterruptTarget interrupt(session.handle());
  PromptProgress progress;
  options.on_progress = progress.callback();
  auto result = call(options, [printer](const headrace_piece& piece) {
    if (printer) print_piece(*printer, piece);
    return true;
  });
  if (printer) printer->finish();
  return result;
}

}  // namespace

api::Generation print_generation(api::Session& session, std::span<const int32_t> ids, api::GenerateOptions options,
                                 AnswerPrinter* printer) {
  return printed(session, std::move(options), printer, [&](const auto& all_options, const auto& on_piece) {
    return session.generate(ids, all_options, on_piece);
  });
}

api::Reply print_reply(api::Session& session, const std::string& request, api::GenerateOptions options,
                       AnswerPrinter* printer) {
  return printed(session, std::move(options), printer, [&](const auto& all_options, const auto& on_piece) {
    return session.reply(request, all_options, on_piece);
  });
}

}  // namespace headrace::cli
