#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cli/streams.h"
#include "cli/terminal.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {

/// Erases the line of progress that stands on standard error, if one does. Whoever writes to the terminal calls it
/// first. From any thread, and from a signal handler.
void erase_progress();

/// Seconds of a clock that only goes forward.
double steady_now_s();

/// A line on standard error that overwrites itself, and is erased when this is destroyed; nothing where that is no
/// terminal. At most one stands at a time. One thread at a time.
class ProgressLine {
 public:
  using Writer = std::function<void(std::string_view)>;

  explicit ProgressLine(const Terminal& terminal = Terminal(STDERR_FILENO), Writer write = write_stderr);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether it shows anything.
  bool is_shown() const { return terminal_.has_cursor(); }
  /// Shows `text` in place of what stood there, cut to the width of the window. `now_s` is the time by steady_now_s:
  /// what comes less than 100 ms after a line is left out.
  void show(std::string_view text, double now_s);
  void erase();

 private:
  const Terminal terminal_;
  const Writer write_;
  double next_s_ = 0;
};

/// Says "opening FOLDER ..." when that takes longer than 300 ms, until this is destroyed.
class OpeningProgress {
 public:
  explicit OpeningProgress(const std::string& folder);
  ~OpeningProgress();
  OpeningProgress(const OpeningProgress&) = delete;
  OpeningProgress& operator=(const OpeningProgress&) = delete;

 private:
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread waiter_;  // Alone uses line_ while it runs.
};

/// How far the reading of a prompt is, from now until it is read, or this is destroyed.
class PromptProgress {
 public:
  PromptProgress() = default;
  /// For GenerateOptions and EvaluateOptions; no longer than this lives.
  api::Progress callback();

 private:
  ProgressLine line_;
  const double start_s_ = steady_now_s();
};

/// "reading prompt: 512 of 2,048 tokens, 14.2 tokens/s, about 1 min 48 s left", without a speed and an estimate before
/// there is enough to tell.
std::string prompt_progress_text(size_t done_tokens, size_t total_tokens, double elapsed_s);
/// "48 s", "1 min 48 s", "2 h 5 min"
std::string duration_text(double seconds);

}  // namespace headrace::cli
