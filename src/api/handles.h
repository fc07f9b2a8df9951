#pragma once

#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "headrace/headrace.h"

/// What the opaque handles of the public header are.
struct headrace_tokenizer {
  const headrace::Tokenizer* tokenizer = nullptr;
  std::unique_ptr<headrace::Tokenizer> owned;  // Null when the tokenizer belongs to a model.
};

struct headrace_model {
  std::unique_ptr<headrace::Engine> engine;
  headrace_tokenizer tokenizer;
};

struct headrace_session {
  std::unique_ptr<headrace::Session> session;
};

namespace headrace {

/// Fills the caller's error (when there is one) and returns its status.
headrace_status report(const Error& failure, headrace_error* error) noexcept;
/// The same for an exception that nobody expected.
headrace_status report_bug(headrace_error* error) noexcept;
/// The same when memory ran out; allocates nothing.
headrace_status report_no_memory(headrace_error* error) noexcept;

/// Calls `body`, which returns a Status, at the border to C: reports its failure, and turns what must not cross, a
/// thrown std::bad_alloc or a bug, into one.
template <class Body>
headrace_status guarded(headrace_error* error, Body&& body) noexcept {
  try {
    const Status status = body();
    return status ? HEADRACE_OK : report(status.error(), error);
  } catch (const std::bad_alloc&) {
    return report_no_memory(error);
  } catch (...) {
    return report_bug(error);
  }
}

/// kArgument when a handle is null.
Status check_handle(const void* handle, const char* what);
/// kArgument when an array with elements is null.
Status check_array(const void* array, size_t count, const char* what);

/// Clears where a result will go; kArgument when that is null.
template <class T>
Status clear_result(T** out, size_t* out_count) {
  TRY(check_handle(out, "result"));
  TRY(check_handle(out_count, "result size"));
  *out = nullptr;
  *out_count = 0;
  return {};
}

/// Copies `text` for the caller, who frees it with headrace_free.
Status hand_over(std::string_view text, char** out, size_t* out_bytes);

/// Copies ids for the caller; an empty list is not null either.
Status hand_over(std::span<const TokenId> ids, int32_t** out, size_t* out_count);

/// Where an array or a text for the caller goes.
template <class T>
struct Out {
  T** elements;
  size_t* count;
};

/// Copies both for the caller, or neither.
Status hand_over_both(std::span<const TokenId> ids, Out<int32_t> ids_out, std::string_view text, Out<char> text_out);

/// Zeroes a struct that a call fills, but for its size; null is allowed. kArgument when the caller's struct is smaller
/// than this build's.
template <class Struct>
Status clear_struct(Struct* out, const char* what) {
  if (!out) return {};
  const size_t struct_size = out->struct_size;
  if (struct_size < sizeof *out) {
    return error(Code::kArgument, "%s: struct_size is %zu, not %zu", what, struct_size, sizeof *out);
  }
  *out = {};
  out->struct_size = struct_size;
  return {};
}

/// The caller's options, of whatever age, as this build knows them: fields that the caller does not have are zero, and
/// fields that this build does not have must be. Null means all zeros.
Status copy_sized(const void* options, void* copy, size_t copy_bytes, const char* what);

template <class Options>
Result<Options> copy_options(const Options* options, const char* what) {
  Options copy{};
  TRY(copy_sized(options, &copy, sizeof copy, what));
  return copy;
}

}  // namespace headrace
