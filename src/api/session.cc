#include <cstring>
#include <vector>

#include "api/handles.h"

namespace headrace {
namespace {

/// A progress callback of C, or none.
auto progress_caller(headrace_progress_callback callback, void* user) {
  return [callback, user](size_t done, size_t total) { return !callback || callback(user, done, total) == 0; };
}

Result<bool> flag(int32_t value, const char* name) {
  if (value != 0 && value != 1) return error(Code::kArgument, "%s is %d, not 0 or 1", name, value);
  return value == 1;
}

/// Hands tokens of an evaluation to a callback of C.
class TokenCaller {
 public:
  TokenCaller(headrace_token_callback callback, void* user) : callback_(callback), user_(user) {}

  bool operator()(const EvaluatedToken& token) {
    if (!callback_) return true;
    routed_.clear();
    if (token.routing) {
      for (const RoutedExperts& layer : *token.routing) {
        routed_.push_back(
            {layer.layer, static_cast<uint32_t>(layer.experts.size()), layer.experts.data(), layer.weights.data()});
      }
    }
    headrace_token_result result{};
    result.struct_size = sizeof result;
    result.index = token.index;
    result.id = token.id;
    result.logits = token.logits.empty() ? nullptr : token.logits.data();
    result.routed_count = static_cast<uint32_t>(routed_.size());
    result.routed = token.routing ? routed_.data() : nullptr;
    return callback_(user_, &result) == 0;
  }

 private:
  headrace_token_callback callback_;
  void* user_;
  std::vector<headrace_routed_experts> routed_;
};

Status evaluate(Session& session, std::span<const TokenId> ids, const headrace_evaluate_options* raw_options,
                TokenCaller on_token) {
  const headrace_evaluate_options options = TRY(copy_options(raw_options, "headrace_evaluate_options"));
  EvaluateOptions wanted;
  wanted.all_logits = TRY(flag(options.all_logits, "all_logits"));
  wanted.routing = TRY(flag(options.routing, "routing"));
  const auto on_progress = progress_caller(options.on_progress, options.progress_user);
  return session.evaluate(ids, wanted, on_token, on_progress);
}

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

Status hand_over_generation(const Generation& generation, headrace_generation& out) {
  TRY(hand_over(generation.ids, &out.ids, &out.id_count));
  const Status status = hand_over(generation.text, &out.text, &out.text_bytes);
  if (!status) {
    headrace_free(std::exchange(out.ids, nullptr));
    out.id_count = 0;
    return status;
  }
  out.finish = static_cast<headrace_finish>(generation.finish);
  return {};
}

Status clear_generation(headrace_generation* generation) {
  if (!generation) return {};
  if (generation->struct_size < sizeof *generation) {
    return error(Code::kArgument, "headrace_generation: struct_size is %zu, not %zu", generation->struct_size,
                 sizeof *generation);
  }
  const size_t struct_size = generation->struct_size;
  *generation = {};
  generation->struct_size = struct_size;
  return {};
}

struct PieceCaller {
  headrace_piece_callback callback;
  void* user;

  bool operator()(const AnswerPiece& piece) const {
    if (!callback) return true;
    const headrace_piece raw = {sizeof raw, piece.text.data(), piece.text.size(), piece.id};
    return callback(user, &raw) == 0;
  }
};

Status generate(Session& session, std::span<const TokenId> ids, const headrace_generate_options* raw_options,
                const PieceCaller& on_piece, headrace_generation* out) {
  TRY(clear_generation(out));
  const headrace_generate_options options = TRY(copy_options(raw_options, "headrace_generate_options"));
  const GenerateOptions wanted = TRY(generate_options(options));
  const auto on_progress = progress_caller(options.on_progress, options.progress_user);
  const Generation generation = TRY(session.generate(ids, wanted, on_piece, on_progress));
  if (!out) return {};
  return hand_over_generation(generation, *out);
}

Status create(headrace_model* model, headrace_session** out) {
  if (!model || !out) return error(Code::kArgument, "headrace_session_create: model and session must not be null");
  *out = nullptr;
  auto handle = std::make_unique<headrace_session>();
  handle->session = TRY(model->engine->create_session());
  *out = handle.release();
  return {};
}

Status branch(headrace_session* session, headrace_session** out) {
  TRY(check_handle(session, "session"));
  TRY(check_handle(out, "branch"));
  *out = nullptr;
  auto handle = std::make_unique<headrace_session>();
  handle->session = TRY(session->session->branch());
  *out = handle.release();
  return {};
}

}  // namespace
}  // namespace headrace

using headrace::Status;

static_assert(static_cast<int>(headrace::Finish::kStop) == HEADRACE_FINISH_STOP);
static_assert(static_cast<int>(headrace::Finish::kLength) == HEADRACE_FINISH_LENGTH);
static_assert(static_cast<int>(headrace::Finish::kCancelled) == HEADRACE_FINISH_CANCELLED);
static_assert(headrace::StopMatcher::kStringsMax == HEADRACE_STOP_STRINGS_MAX);
static_assert(headrace::SamplingOptions::kBiasesMax == HEADRACE_LOGIT_BIASES_MAX);
static_assert(headrace::StopMatcher::kStringBytesMax == HEADRACE_STOP_STRING_BYTES_MAX);

headrace_status headrace_session_create(headrace_model* model, headrace_session** session, headrace_error* error) {
  return headrace::guarded(error, [&] { return headrace::create(model, session); });
}

void headrace_session_destroy(headrace_session* session) {
  delete session;
}

headrace_status headrace_session_reset(headrace_session* session, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    return session->session->reset();
  });
}

size_t headrace_session_token_count(const headrace_session* session) {
  return session ? session->session->token_count() : 0;
}

headrace_status headrace_session_ids(const headrace_session* session, int32_t** ids, size_t* id_count,
                                     headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(ids, id_count));
    TRY(headrace::check_handle(session, "session"));
    return headrace::hand_over(session->session->ids(), ids, id_count);
  });
}

headrace_status headrace_session_branch(headrace_session* session, headrace_session** branch, headrace_error* error) {
  return headrace::guarded(error, [&] { return headrace::branch(session, branch); });
}

headrace_status headrace_session_rewind(headrace_session* session, size_t token_count, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    return session->session->rewind(token_count);
  });
}

headrace_status headrace_session_keep_prefix(headrace_session* session, const int32_t* ids, size_t id_count,
                                             size_t* kept_count, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_handle(kept_count, "kept_count"));
    TRY(headrace::check_array(ids, id_count, "ids"));
    *kept_count = 0;
    *kept_count = TRY(session->session->keep_common_prefix({ids, id_count}));
    return {};
  });
}

headrace_status headrace_session_keep_copies(headrace_session* session, size_t count, size_t* granted_count,
                                             headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    const size_t granted = TRY(session->session->reserve_snapshots(count));
    if (granted_count) *granted_count = granted;
    return {};
  });
}

headrace_status headrace_session_mark(headrace_session* session, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    return session->session->mark();
  });
}

headrace_status headrace_session_save(headrace_session* session, const char* path, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_handle(path, "path"));
    return session->session->save(path);
  });
}

headrace_status headrace_session_load(headrace_session* session, const char* path, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_handle(path, "path"));
    return session->session->load(path);
  });
}

void headrace_session_cancel(headrace_session* session) {
  if (session) session->session->cancel();
}

headrace_status headrace_session_evaluate(headrace_session* session, const int32_t* ids, size_t id_count,
                                          const headrace_evaluate_options* options, headrace_token_callback on_token,
                                          void* user, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_array(ids, id_count, "ids"));
    return headrace::evaluate(*session->session, {ids, id_count}, options, {on_token, user});
  });
}

headrace_status headrace_session_generate(headrace_session* session, const int32_t* ids, size_t id_count,
                                          const headrace_generate_options* options, headrace_piece_callback on_piece,
                                          void* user, headrace_generation* generation, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_array(ids, id_count, "ids"));
    return headrace::generate(*session->session, {ids, id_count}, options, {on_piece, user}, generation);
  });
}

headrace_status headrace_session_stats_json(headrace_session* session, char** json, size_t* json_bytes,
                                            headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(session, "session"));
    return headrace::hand_over(headrace::statistics_json(session->session->statistics()), json, json_bytes);
  });
}
