#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "cli/terminal_text.h"
#include "cli/utf8.h"

namespace headrace::cli {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";

// Known to all who write to the terminal, signal handlers too. Sequentially consistent; nothing else depends on it.
std::atomic<bool> line_stands{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// `text` without controls, at most `columns` characters.
std::string fitted(std::string_view text, size_t columns) {
  std::wstring wide = wide_of(terminal_text(text));
  if (wide.size() > columns) wide.resize(columns);
  return utf8_of(wide);
}

/// "2,048"
std::string grouped(size_t number) {
  std::string text = std::to_string(number);
  for (size_t left = text.size(); left > 3; left -= 3) text.insert(left - 3, ",");
  return text;
}

std::string rate_text(double tokens_per_s) {
  const int digits = tokens_per_s < 1 ? 2 : tokens_per_s < 100 ? 1 : 0;
  return fmt::format("{:.{}f} tokens/s", tokens_per_s, digits);
}

}  // namespace

void erase_progress() {
  if (line_stands.exchange(false)) write_stderr(kErase);
}

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressLine::ProgressLine(const Terminal& terminal, Writer write) : terminal_(terminal), write_(std::move(write)) {}

ProgressLine::~ProgressLine() {
  erase();
}

void ProgressLine::show(std::string_view text, double now_s) {
  constexpr double kIntervalS = 0.1;
  if (!is_shown() || now_s < next_s_) return;
  next_s_ = now_s + kIntervalS;
  // A full row would wrap in some terminals.
  const std::string row = fitted(text, terminal_.columns() - 1);
  line_stands.store(true);
  write_(fmt::format("\r{}\x1b[K", row));
}

void ProgressLine::erase() {
  if (line_stands.exchange(false)) write_(kErase);
}

OpeningProgress::OpeningProgress(const std::string& folder) {
  if (!line_.is_shown()) return;
  waiter_ = std::jthread([this, folder](const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kDelay(300);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, kDelay, [] { return false; });
    if (!stop.stop_requested()) line_.show(fmt::format("opening {} ...", folder), steady_now_s());
  });
}

OpeningProgress::~OpeningProgress() {
  if (!waiter_.joinable()) return;
  waiter_.request_stop();
  waiter_.join();
}

api::Progress PromptProgress::callback() {
  if (!line_.is_shown()) return nullptr;
  return [this](size_t done_tokens, size_t total_tokens) {
    const double now_s = steady_now_s();
    if (done_tokens == total_tokens) {
      line_.erase();
    } else {
      line_.show(prompt_progress_text(done_tokens, total_tokens, now_s - start_s_), now_s);
    }
    return true;
  };
}

std::string prompt_progress_text(size_t done_tokens, size_t total_tokens, double elapsed_s) {
  // The first chunks of a prompt also wait for the first reads.
  constexpr double kEnoughS = 1;
  std::string text = fmt::format("reading prompt: {} of {} tokens", grouped(done_tokens), grouped(total_tokens));
  if (elapsed_s < kEnoughS || done_tokens == 0 || done_tokens >= total_tokens) return text;
  const double tokens_per_s = static_cast<double>(done_tokens) / elapsed_s;
  const double left_s = static_cast<double>(total_tokens - done_tokens) / tokens_per_s;
  return text + fmt::format(", {}, about {} left", rate_text(tokens_per_s), duration_text(left_s));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace headrace::cli
