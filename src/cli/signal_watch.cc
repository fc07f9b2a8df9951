#include "cli/signal_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "cli/exit_status.h"

namespace headrace::cli {
namespace {

// A signal handler has no other way to its data. Sequentially consistent: a handler may run on any thread, and the
// descriptor is stored before the handlers are set.
std::atomic<int> wake_descriptor{-1};
std::atomic<uint64_t> arrived_signals{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

void keep_signal(int number) {
  const int error_number = errno;
  arrived_signals.fetch_or(uint64_t{1} << number);
  const uint64_t one = 1;
  // A counter that is full wakes as well; there is nobody to tell of another failure.
  [[maybe_unused]] const ssize_t count = ::write(wake_descriptor.load(), &one, sizeof one);
  errno = error_number;
}

}  // namespace

SignalWatch::SignalWatch() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw StreamError(fmt::format("eventfd: {}", std::generic_category().message(errno)));
  wake_descriptor.store(descriptor_);
  arrived_signals.store(0);
  struct sigaction action {};
  action.sa_handler = keep_signal;
  action.sa_flags = SA_RESTART;
  for (size_t index = 0; index < kSignals.size(); ++index) {
    sigaction(kSignals[index], nullptr, &before_[index]);
    if (before_[index].sa_handler != SIG_IGN) sigaction(kSignals[index], &action, nullptr);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t index = 0; index < kSignals.size(); ++index) sigaction(kSignals[index], &before_[index], nullptr);
  wake_descriptor.store(-1);
  close(descriptor_);
}

int SignalWatch::take() {
  uint64_t count = 0;
  // Empty is as good: what counts are the bits.
  [[maybe_unused]] const ssize_t bytes = ::read(descriptor_, &count, sizeof count);
  const uint64_t arrived = arrived_signals.load();
  for (const int number : kSignals) {
    if ((arrived >> number & 1) == 0) continue;
    arrived_signals.fetch_and(~(uint64_t{1} << number));
    return number;
  }
  return 0;
}

}  // namespace headrace::cli
