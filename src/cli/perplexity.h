#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/headrace.hpp"

namespace headrace::cli {

/// Perplexity of `ids`, at least two: consecutive windows of the model's context (the last may be shorter), each from
/// an empty state; every token of a window but its first is scored, given those before it in the window. A JSON object,
/// or lines for a person.
std::string perplexity_report(const api::Model& model, api::Session& session, std::span<const int32_t> ids, bool json);

}  // namespace headrace::cli
