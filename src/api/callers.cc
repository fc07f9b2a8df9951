#include "api/callers.h"

namespace headrace {

namespace {

Result<SamplingOptions> sampling_options(const headrace_generate_options& options) {
  SamplingOptions result = {.temperature = options.temperature,
                            .top_k = options.top_k,
                            .top_p = options.top_p == 0 ? 1 : options.top_p,
                            .min_p = options.min_p,
                            .seed = options.seed,
                            .frequency_penalty = options.frequency_penalty,
                            .presence_penalty = options.presence_penalty};
  if (options.repetition_penalty != 0) result.repetition_penalty = options.repetition_penalty;
  if (options.penalty_window != 0) result.penalty_window = options.penalty_window;
  TRY(check_array(options.logit_biases, options.logit_bias_count, "logit_biases"));
  if (options.logit_bias_count > HEADRACE_LOGIT_BIASES_MAX) {
    return error(Code::kArgument, "%zu logit biases; at most %d are allowed", options.logit_bias_count,
                 HEADRACE_LOGIT_BIASES_MAX);
  }
  for (const headrace_logit_bias& bias : std::span(options.logit_biases, options.logit_bias_count)) {
    result.logit_bias.push_back({bias.id, bias.bias});
  }
  return result;
}

}  // namespace

Result<bool> flag(int32_t value, const char* name) {
  if (value != 0 && value != 1) return error(Code::kArgument, "%s is %d, not 0 or 1", name, value);
  return value == 1;
}

Result<GenerateOptions> generate_options(const headrace_generate_options& options) {
  GenerateOptions result;
  result.tokens_max = options.tokens_max;
  result.sampling = TRY(sampling_options(options));
  result.ignore_stop_ids = TRY(flag(options.ignore_stop_ids, "ignore_stop_ids"));
  TRY(check_array(options.stops, options.stop_count, "stops"));
  if (options.stop_count > HEADRACE_STOP_STRINGS_MAX) {
    return error(Code::kArgument, "%zu stop strings; at most %d are allowed", options.stop_count,
                 HEADRACE_STOP_STRINGS_MAX);
  }
  for (size_t i = 0; i < options.stop_count; ++i) {
    if (!options.stops[i]) return error(Code::kArgument, "stop string %zu is null", i);
    result.stops.emplace_back(options.stops[i]);
  }
  return result;
}

bool PieceCaller::operator()(const AnswerPiece& piece) const {
  if (!callback) return true;
  headrace_piece raw{};
  raw.struct_size = sizeof raw;
  raw.text = piece.text.data();
  raw.text_bytes = piece.text.size();
  raw.id = piece.id;
  raw.kind = static_cast<int32_t>(piece.kind);
  return callback(user, &raw) == 0;
}

}  // namespace headrace

static_assert(static_cast<int>(headrace::PieceKind::kText) == HEADRACE_PIECE_TEXT);
static_assert(static_cast<int>(headrace::PieceKind::kReasoning) == HEADRACE_PIECE_REASONING);
static_assert(static_cast<int>(headrace::PieceKind::kContent) == HEADRACE_PIECE_CONTENT);
static_assert(static_cast<int>(headrace::PieceKind::kToolCall) == HEADRACE_PIECE_TOOL_CALL);
static_assert(static_cast<int>(headrace::Finish::kStop) == HEADRACE_FINISH_STOP);
static_assert(static_cast<int>(headrace::Finish::kLength) == HEADRACE_FINISH_LENGTH);
static_assert(static_cast<int>(headrace::Finish::kCancelled) == HEADRACE_FINISH_CANCELLED);
static_assert(static_cast<int>(headrace::Finish::kToolCalls) == HEADRACE_FINISH_TOOL_CALLS);
static_assert(headrace::SamplingOptions::kBiasesMax == HEADRACE_LOGIT_BIASES_MAX);
static_assert(headrace::StopMatcher::kStringsMax == HEADRACE_STOP_STRINGS_MAX);
static_assert(headrace::StopMatcher::kStringBytesMax == HEADRACE_STOP_STRING_BYTES_MAX);
