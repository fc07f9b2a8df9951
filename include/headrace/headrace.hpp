// Headrace for C++20: owning types over headrace.h, whose comments hold the contract. Calls that fail throw
// headrace::api::Error; exceptions of callbacks pass through. Header only.
#ifndef HEADRACE_HEADRACE_HPP
#define HEADRACE_HEADRACE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::api {

/// A failed call: its status, and what failed, on which object, and why.
class Error : public std::runtime_error {
 public:
  Error(headrace_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  headrace_status status() const { return status_; }

 private:
  headrace_status status_;
};

namespace detail {

struct Free {
  void operator()(void* memory) const { headrace_free(memory); }
};

/// Calls `function(arguments..., &error)` and throws its error.
template <class Function, class... Arguments>
void call(Function* function, Arguments... arguments) {
  headrace_error error{};
  error.struct_size = sizeof error;
  const headrace_status status = function(arguments..., &error);
  if (status != HEADRACE_OK) throw Error(status, error.message);
}

/// The text that `function(arguments..., &text, &bytes, &error)` hands over.
template <class Function, class... Arguments>
std::string call_for_text(Function* function, Arguments... arguments) {
  char* text = nullptr;
  size_t bytes = 0;
  call(function, arguments..., &text, &bytes);
  const std::unique_ptr<char, Free> owner(text);
  return std::string(text, bytes);
}

/// Runs a callback that may throw between two functions of C, which may not.
class Guard {
 public:
  /// 0 to go on, or 1 when `body` returned false or threw.
  template <class Body>
  int run(Body&& body) noexcept {
    try {
      return body() ? 0 : 1;
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace detail

inline std::string version() {
  return headrace_version();
}
inline std::string build_json() {
  return detail::call_for_text(headrace_build_json);
}
/// The model in `folder` as JSON, without reading its weights.
inline std::string describe(const std::string& folder) {
  return detail::call_for_text(headrace_describe, folder.c_str());
}

/// Whether spellings of control tokens in a text are control tokens.
enum class TextKind { kPlain, kMarkup };

/// A tokenizer that somebody else owns. From any thread.
class TokenizerView {
 public:
  explicit TokenizerView(const headrace_tokenizer* handle) : handle_(handle) {}

  std::vector<int32_t> tokenize(std::string_view text, TextKind kind) const {
    int32_t* ids = nullptr;
    size_t count = 0;
    detail::call(headrace_tokenize, handle_, text.data(), text.size(), kind == TextKind::kMarkup ? 1 : 0, &ids, &count);
    const std::unique_ptr<int32_t, detail::Free> owner(ids);
    return {ids, ids + count};
  }
  std::string detokenize(std::span<const int32_t> ids) const {
    return detail::call_for_text(headrace_detokenize, handle_, ids.data(), ids.size());
  }
  std::string json() const { return detail::call_for_text(headrace_tokenizer_json, handle_); }

 private:
  const headrace_tokenizer* handle_;
};

/// A tokenizer opened without a model.
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& folder) {
    headrace_tokenizer* handle = nullptr;
    detail::call(headrace_tokenizer_open, folder.c_str(), &handle);
    handle_.reset(handle);
  }
  TokenizerView view() const { return TokenizerView(handle_.get()); }

 private:
  struct Close {
    void operator()(headrace_tokenizer* handle) const { headrace_tokenizer_close(handle); }
  };
  std::unique_ptr<headrace_tokenizer, Close> handle_;
};

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
  void save(const std::string& path) { detail::call(headrace_session_save, handle_.get(), path.c_str()); }
  void load(const std::string& path) { detail::call(headrace_session_load, handle_.get(), path.c_str()); }
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
    std::vector<const char*> stops;
    for (const std::string& stop : options.stops) stops.push_back(stop.c_str());
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

/// Options of `Model`; zero values are the defaults of headrace_model_options.
struct ModelOptions {
  uint64_t budget_bytes = 0;
  size_t context_tokens = 0;
  size_t thread_count = 0;
  std::string cpus;
  std::string isa;
  bool buffered_io = false;
  headrace_log_level log_level = HEADRACE_LOG_ERROR;
  headrace_log_callback log = nullptr;
  void* log_user = nullptr;
  size_t prefill_chunk_tokens = 0;
  size_t logits_rows = 0;
  std::string io_backend;
  size_t io_depth = 0;
  std::string cache_policy;
  int64_t pinned_layers = 0;
  uint64_t ram_bytes = 0;

  /// As C takes them; the pointers live as long as this.
  headrace_model_options raw() const {
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    headrace_model_options raw{};
    raw.struct_size = sizeof raw;
    raw.budget_bytes = budget_bytes;
    raw.context_tokens = context_tokens;
    raw.thread_count = thread_count;
    raw.cpus = text(cpus);
    raw.isa = text(isa);
    raw.buffered_io = buffered_io;
    raw.log_level = log_level;
    raw.log = log;
    raw.log_user = log_user;
    raw.prefill_chunk_tokens = prefill_chunk_tokens;
    raw.logits_rows = logits_rows;
    raw.io_backend = text(io_backend);
    raw.io_depth = io_depth;
    raw.cache_policy = text(cache_policy);
    raw.pinned_layers = pinned_layers;
    raw.ram_bytes = ram_bytes;
    return raw;
  }
};

/// The memory plan of a model folder or a released model as JSON, without loading it.
inline std::string plan_json(const std::string& folder, const ModelOptions& options, double drive_gb_s = 0) {
  const headrace_model_options raw = options.raw();
  return detail::call_for_text(headrace_plan_json, folder.c_str(), &raw, drive_gb_s);
}

/// An open model. Outlives its sessions.
class Model {
 public:
  explicit Model(const std::string& folder, const ModelOptions& options = {}) {
    const headrace_model_options raw = options.raw();
    headrace_model* handle = nullptr;
    detail::call(headrace_model_open, folder.c_str(), static_cast<const headrace_model_options*>(&raw), &handle);
    handle_.reset(handle);
  }

  std::string info_json() const { return detail::call_for_text(headrace_model_info_json, const_handle()); }
  std::string plan_json() const { return detail::call_for_text(headrace_model_plan_json, const_handle()); }
  void set_budget(uint64_t budget_bytes) { detail::call(headrace_model_set_budget, handle_.get(), budget_bytes); }
  size_t vocabulary_size() const { return headrace_model_vocabulary_size(const_handle()); }
  bool has_tokenizer() const { return headrace_model_tokenizer(const_handle()) != nullptr; }
  /// Only when the model has one.
  TokenizerView tokenizer() const { return TokenizerView(headrace_model_tokenizer(const_handle())); }

  Session create_session() {
    headrace_session* session = nullptr;
    detail::call(headrace_session_create, handle_.get(), &session);
    return Session(session);
  }

 private:
  struct Close {
    void operator()(headrace_model* handle) const { headrace_model_close(handle); }
  };
  const headrace_model* const_handle() const { return handle_.get(); }

  std::unique_ptr<headrace_model, Close> handle_;
};

}  // namespace headrace::api

#endif  // HEADRACE_HEADRACE_HPP
