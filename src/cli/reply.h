#pragma once

#include <string>

#include "cli/answer_printer.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {

/// Hands the pieces of an answer to a printer.
void print_piece(AnswerPrinter& printer, const headrace_piece& piece);

/// Lets the model answer, and prints the answer as it is made (null: prints nothing): progress on standard error while
/// the prompt is read, and the first Ctrl-C stops the answer.
api::Reply print_reply(api::Session& session, const std::string& request, api::GenerateOptions options,
                       AnswerPrinter* printer);

}  // namespace headrace::cli
