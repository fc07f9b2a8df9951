#pragma once

#include "headrace/headrace.h"

namespace headrace::cli {

/// Once, at start: a broken pipe and a full file become errors of the write, and Ctrl-C (SIGINT) and SIGTERM end the
/// process with kCancelled at once, which nothing below minds, as nothing is written but what was asked for.
void install_signal_handlers();

/// Whether SIGTERM has come: what runs was cancelled, and the program shall end.
bool was_terminated();

/// While this lives, Ctrl-C and SIGTERM do not end the process: what is at work is to end well. The first that came
/// before an InterruptTarget stood cancels its session at once. At most one lives at a time.
class InterruptHold {
 public:
  InterruptHold();
  ~InterruptHold();
  InterruptHold(const InterruptHold&) = delete;
  InterruptHold& operator=(const InterruptHold&) = delete;

  /// Whether one has come.
  bool was_interrupted() const;
};

/// While this lives, the first Ctrl-C or SIGTERM cancels `session` instead, and the second ends the process, unless
/// it is held.
class InterruptTarget {
 public:
  explicit InterruptTarget(headrace_session* session);
  ~InterruptTarget();
  InterruptTarget(const InterruptTarget&) = delete;
  InterruptTarget& operator=(const InterruptTarget&) = delete;
};

}  // namespace headrace::cli
