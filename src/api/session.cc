#include <cstring>
#include <vector>

#include "api/callers.h"
#include "api/handles.h"
#include "engine/snapshot_format.h"

namespace headrace {
namespace {

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
  const ProgressCaller on_progress{options.on_progress, options.progress_user};
  return session.evaluate(ids, wanted, on_token, on_progress);
}

Status hand_over_generation(const Generation& generation, headrace_generation& out) {
  TRY(hand_over_both(generation.ids, {&out.ids, &out.id_count}, generation.text, {&out.text, &out.text_bytes}));
  out.finish = static_cast<headrace_finish>(generation.finish);
  return {};
}

Status generate(Session& session, std::span<const TokenId> ids, const headrace_generate_options* raw_options,
                const PieceCaller& on_piece, headrace_generation* out) {
  TRY(clear_struct(out, "headrace_generation"));
  const headrace_generate_options options = TRY(copy_options(raw_options, "headrace_generate_options"));
  const GenerateOptions wanted = TRY(generate_options(options));
  const ProgressCaller on_progress{options.on_progress, options.progress_user};
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

static_assert(headrace::SnapshotHeader::kNoteBytesMax == HEADRACE_NOTE_BYTES_MAX);

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

headrace_status headrace_session_save(headrace_session* session, const char* path, const char* note, size_t note_bytes,
                                      headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_handle(path, "path"));
    TRY(headrace::check_array(note, note_bytes, "note"));
    return session->session->save(path, {note, note_bytes});
  });
}

headrace_status headrace_session_load(headrace_session* session, const char* path, char** note, size_t* note_bytes,
                                      headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    if (note || note_bytes) TRY(headrace::clear_result(note, note_bytes));
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_handle(path, "path"));
    std::string saved;
    TRY(session->session->load(path, &saved));
    return note ? headrace::hand_over(saved, note, note_bytes) : Status();
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
