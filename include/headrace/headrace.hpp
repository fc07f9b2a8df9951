// Headrace for C++20: owning types over headrace.h, whose comments hold the contract. Calls that fail throw
// headrace::api::Error; exceptions of callbacks pass through. Header only.
#ifndef HEADRACE_HEADRACE_HPP
#define HEADRACE_HEADRACE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/errors.hpp"
#include "headrace/headrace.h"
#include "headrace/session.hpp"

namespace headrace::api {

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

  /// Ids of a conversation (see headrace_chat_render).
  std::vector<int32_t> render_chat(std::string_view request) const {
    int32_t* ids = nullptr;
    size_t count = 0;
    detail::call(headrace_chat_render, handle_, request.data(), request.size(), &ids, &count);
    const std::unique_ptr<int32_t, detail::Free> owner(ids);
    return {ids, ids + count};
  }
  /// The message that generated ids consist of, as JSON.
  std::string parse_chat(std::span<const int32_t> ids, bool thinking) const {
    return detail::call_for_text(headrace_chat_parse, handle_, ids.data(), ids.size(), thinking ? 1 : 0);
  }

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
