#pragma once

#include "api/handles.h"

namespace headrace {

// Options and callbacks of generation, from C.

/// 0 or 1; kArgument otherwise.
Result<bool> flag(int32_t value, const char* name);

/// Checks what a session does not check itself.
Result<GenerateOptions> generate_options(const headrace_generate_options& options);

/// A progress callback of C, or none.
struct ProgressCaller {
  headrace_progress_callback callback;
  void* user;

  bool operator()(size_t done_tokens, size_t total_tokens) const {
    return !callback || callback(user, done_tokens, total_tokens) == 0;
  }
};

/// Hands pieces of an answer to a callback of C, or to none.
struct PieceCaller {
  headrace_piece_callback callback;
  void* user;

  bool operator()(const AnswerPiece& piece) const;
};

}  // namespace headrace
