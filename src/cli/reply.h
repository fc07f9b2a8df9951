#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/answer_printer.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {

// Both print an answer as it is made (null: print nothing), with progress on standard error while the prompt is read.
// The first Ctrl-C stops the answer.

/// Continues the sequence.
api::Generation print_generation(api::Session& session, std::span<const int32_t> ids, api::GenerateOptions options,
                                 AnswerPrinter* printer);
/// Lets the model answer a conversation.
api::Reply print_reply(api::Session& session, const std::string& request, api::GenerateOptions options,
                       AnswerPrinter* printer);

}  // namespace headrace::cli
