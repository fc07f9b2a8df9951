#include "cli/reply.h"

#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace headrace::cli {

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

api::Reply print_reply(api::Session& session, const std::string& request, api::GenerateOptions options,
                       AnswerPrinter* printer) {
  const InterruptTarget interrupt(session.handle());
  PromptProgress progress;
  options.on_progress = progress.callback();
  api::Reply reply = session.reply(request, options, [&](const headrace_piece& piece) {
    if (printer) print_piece(*printer, piece);
    return true;
  });
  if (printer) printer->finish();
  return reply;
}

}  // namespace headrace::cli
