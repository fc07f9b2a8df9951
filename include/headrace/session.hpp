// Sessions of the C++ wrapper. Part of headrace.hpp.
#ifndef HEADRACE_SESSION_HPP
#define HEADRACE_SESSION_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/errors.hpp"
#include "headrace/headrace.h"

namespace headrace::api {

/// Returns false to cancel.
using Progress = std::function<bool(size_t done_tokens, size_t total_tokens)>;

/// Options of `Session::generate`; zero values are the defaults of headrace_generate_options.
struct GenerateOptions {
  size_t tokens_max = 0;
  double temperature = 0;
  double top_p = 0;
  double min_p = 0;
  size_t top_k = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;
  bool ignore_stop_ids = false;
  Progress on_progress;
  double repetition_penalty = 0;
  size_t penalty_window = 0;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<headrace_logit_bias> logit_biases;
};

/// A finished generation.
struct Generation {
  headrace_finish finish = HEADRACE_FINISH_STOP;
  std::vector<int32_t> ids;
  std::string text;
};

/// A finished reply.
struct Reply {
  headrace_finish finish = HEADRACE_FINISH_STOP;
  std::vector<int32_t> ids;
  std::string message;  ///< A JSON object, for the `messages` of the next request.
  size_t prompt_tokens = 0;
  size_t reused_tokens = 0;
};

/// Options of `Session::evaluate`.
struct EvaluateOptions {
  bool all_logits = false;
  bool routing = false;
  Progress on_progress;
};

/// A sequence of tokens. One call at a time per model; `cancel` from any thread.
class Session {
 public:
  /// Return false to cancel.
  using OnToken = std::function<bool(const headrace_token_result&)>;
  using OnPiece = std::function<bool(const headrace_piece&)>;

  void reset() { detail::call(headrace_session_reset, handle_.get()); }
  size_t token_count() const { return headrace_session_token_count(handle_.get()); }
  std::vector<int32_t> ids() const {
    int32_t* ids = nullptr;
    size_t count = 0;
    detail::call(headrace_session_ids, static_cast<const headrace_session*>(handle_.get()), &ids, &count);
    const std::unique_ptr<int32_t, detail::Free> owner(ids);
    return {ids, ids + count};
  }
  Session branch() {
    headrace_session* other = nullptr;
    detail::call(headrace_session_branch, handle_.get(), &other);
    return Session(other);
  }
  void rewind(size_t token_count) { detail::call(headrace_session_rewind, handle_.get(), token_count); }
  /// How many tokens of `ids` are kept.
  size_t keep_prefix(std::span<const int32_t> ids) {
    size_t kept_count = 0;
    detail::call(headrace_session_keep_prefix, handle_.get(), ids.data(), ids.size(), &kept_count);
    return kept_count;
  }
  /// How many there are then.
  size_t keep_copies(size_t count) {
    size_t granted_count = 0;
    detail::call(headrace_session_keep_copies, handle_.get(), count, &granted_count);
    return granted_count;
  }
  void mark() { detail::call(headrace_session_mark, handle_.get()); }
  void save(const std::string& path, std::string_view note = {}) {
    detail::call(headrace_session_save, handle_.get(), path.c_str(), note.data(), note.size());
  }
  /// The note that was saved with it.
  std::string load(const std::string& path) {
    return detail::call_for_text(headrace_session_load, handle_.get(), path.c_str());
  }
  void cancel() { headrace_session_cancel(handle_.get()); }
  std::string stats_json() const { return detail::call_for_text(headrace_session_stats_json, handle_.get()); }
  headrace_session* handle() const { return handle_.get(); }

  void evaluate(std::span<const int32_t> ids, const EvaluateOptions& options, const OnToken& on_token) {
    Call<OnToken> call{{}, on_token, options.on_progress};
    headrace_evaluate_options raw{};
    raw.struct_size = sizeof raw;
    raw.all_logits = options.all_logits;
    raw.routing = options.routing;
    raw.on_progress = options.on_progress ? &Call<OnToken>::progress : nullptr;
    raw.progress_user = &call;
    call.finish([&] {
      detail::call(headrace_session_evaluate, handle_.get(), ids.data(), ids.size(),
                   static_cast<const headrace_evaluate_options*>(&raw),
                   static_cast<headrace_token_callback>(&Call<OnToken>::template result<headrace_token_result>),
                   static_cast<void*>(&call));
    });
  }

  Generation generate(std::span<const int32_t> ids, const GenerateOptions& options, const OnPiece& on_piece) {
    Call<OnPiece> call{{}, on_piece, options.on_progress};
    const std::vector<const char*> stops = raw_stops(options);
    const headrace_generate_options raw = raw_options(options, stops, call);
    headrace_generation result{};
    result.struct_size = sizeof result;
    call.finish([&] {
      detail::call(headrace_session_generate, handle_.get(), ids.data(), ids.size(), &raw,
                   static_cast<headrace_piece_callback>(&Call<OnPiece>::template result<headrace_piece>),
                   static_cast<void*>(&call), &result);
    });
    const std::unique_ptr<int32_t, detail::Free> ids_owner(result.ids);
    const std::unique_ptr<char, detail::Free> text_owner(result.text);
    call.guard.rethrow();
    return {result.finish, {result.ids, result.ids + result.id_count}, std::string(result.text, result.text_bytes)};
  }

  /// The model's answer to a conversation (see headrace_session_reply).
  Reply reply(std::string_view request, const GenerateOptions& options, const OnPiece& on_piece) {
    Call<OnPiece> call{{}, on_piece, options.on_progress};
    const std::vector<const char*> stops = raw_stops(options);
    const headrace_generate_options raw = raw_options(options, stops, call);
    headrace_reply result{};
    result.struct_size = sizeof result;
    call.finish([&] {
      detail::call(headrace_session_reply, handle_.get(), request.data(), request.size(), &raw,
                   static_cast<headrace_piece_callback>(&Call<OnPiece>::template result<headrace_piece>),
                   static_cast<void*>(&call), &result);
    });
    const std::unique_ptr<int32_t, detail::Free> ids_owner(result.ids);
    const std::unique_ptr<char, detail::Free> message_owner(result.message);
    call.guard.rethrow();
    return {result.finish,
            {result.ids, result.ids + result.id_count},
            std::string(result.message, result.message_bytes),
            result.prompt_tokens,
            result.reused_tokens};
  }

 private:
  friend class Model;
  struct Destroy {
    void operator()(headrace_session* handle) const { headrace_session_destroy(handle); }
  };
  explicit Session(headrace_session* handle) : handle_(handle) {}

  /// The callbacks of one call, and what they threw.
  template <class OnResult>
  struct Call {
    detail::Guard guard;
    const OnResult& on_result;
    const Progress& on_progress;

    template <class Item>
    static int result(void* user, const Item* item) {
      Call& call = *static_cast<Call*>(user);
      return call.guard.run([&] { return !call.on_result || call.on_result(*item); });
    }
    static int progress(void* user, size_t done_tokens, size_t total_tokens) {
      Call& call = *static_cast<Call*>(user);
      return call.guard.run([&] { return call.on_progress(done_tokens, total_tokens); });
    }
    /// What a callback threw comes before the error that this became.
    template <class Body>
    void finish(Body&& body) {
      try {
        body();
      } catch (...) {
        guard.rethrow();
        throw;
      }
    }
  };

  static std::vector<const char*> raw_stops(const GenerateOptions& options) {
    std::vector<const char*> stops;
    for (const std::string& stop : options.stops) stops.push_back(stop.c_str());
    return stops;
  }
  static headrace_generate_options raw_options(const GenerateOptions& options, const std::vector<const char*>& stops,
                                               Call<OnPiece>& call) {
    headrace_generate_options raw{};
    raw.struct_size = sizeof raw;
    raw.tokens_max = options.tokens_max;
    raw.temperature = options.temperature;
    raw.top_p = options.top_p;
    raw.min_p = options.min_p;
    raw.top_k = options.top_k;
    raw.seed = options.seed;
    raw.stops = stops.data();
    raw.stop_count = stops.size();
    raw.ignore_stop_ids = options.ignore_stop_ids;
    raw.on_progress = options.on_progress ? &Call<OnPiece>::progress : nullptr;
    raw.progress_user = &call;
    raw.repetition_penalty = options.repetition_penalty;
    raw.penalty_window = options.penalty_window;
    raw.frequency_penalty = options.frequency_penalty;
    raw.presence_penalty = options.presence_penalty;
    raw.logit_biases = options.logit_biases.data();
    raw.logit_bias_count = options.logit_biases.size();
    return raw;
  }

  std::unique_ptr<headrace_session, Destroy> handle_;
};

}  // namespace headrace::api

#endif  // HEADRACE_SESSION_HPP
