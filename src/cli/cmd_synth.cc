#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <string>

#include "cli/commands.h"
#include "cli/open_model.h"
#include "cli/streams.h"
#include "tools/synth.h"

namespace headrace::cli::cmd {
namespace {

// A signal handler has no other way to its data. Lock-free, as it must be; the loop of writes looks at it.
std::atomic<bool> is_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_interrupt(int number) {
  is_interrupted = true;
  signal(number, SIG_DFL);  // The second one ends the process.
}

/// While this lives, the first Ctrl-C or SIGTERM ends the work in good order, which removes what was begun.
class InterruptNote {
 public:
  InterruptNote() {
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~InterruptNote() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

ExitStatus exit_status_of(Code code) {
  switch (code) {
    case Code::kArgument:
      return kWrongUse;
    case Code::kBudget:
      return kBudgetBelowFloor;
    case Code::kFormat:
    case Code::kUnsupported:
      return kBadFile;
    case Code::kIo:
      return kReadOrWriteFailed;
    case Code::kCancelled:
      return kCancelled;
  }
  return kBug;
}

/// Shows on a terminal how far the writing is, a few times a second.
class WriteProgress {
 public:
  void show(uint64_t done_bytes, uint64_t total_bytes) {
    if (!is_shown_) return;
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double done = static_cast<double>(done_bytes);
    write_stderr(fmt::format("\rwriting: {} of {}, {:.0f} MB/s\x1b[K", size_text(done),
                             size_text(static_cast<double>(total_bytes)), done / seconds / 1e6));
  }
  void clear() {
    if (is_shown_) write_stderr("\r\x1b[K");
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool is_shown_ = stderr_is_terminal();
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

SynthOptions synth_options(const Settings& settings) {
  SynthOptions options;
  options.shape = settings.arguments[0];
  options.folder = settings.arguments[1];
  options.shared_layers = settings.shared_layers;
  options.layers = settings.layers;
  options.expert_count = settings.expert_count;
  options.order = settings.scattered ? TensorOrder::kScattered : TensorOrder::kName;
  options.seed = settings.seed;
  return options;
}

}  // namespace

ExitStatus synth(const Settings& settings) {
  if (settings.arguments.size() < 2) throw UsageError("SHAPE and OUT are needed; usage: headrace synth SHAPE OUT");
  WriteProgress progress;
  const InterruptNote note;
  const auto written = synthesize(synth_options(settings), [&](uint64_t done_bytes, uint64_t total_bytes) {
    progress.show(done_bytes, total_bytes);
    return !is_interrupted;
  });
  progress.clear();
  if (!written) {
    tell(fmt::format("synth: {}", written.error().message));
    return exit_status_of(written.error().code);
  }
  const SynthSummary& summary = written.value();
  const double bytes = static_cast<double>(summary.bytes);
  tell(fmt::format("{}: {} in {} tensors and {} shards, written in {:.1f} s ({:.0f} MB/s)", settings.arguments[1],
                   size_text(bytes), summary.tensors, summary.shards, summary.seconds, bytes / summary.seconds / 1e6));
  return kDone;
}

}  // namespace headrace::cli::cmd
