#pragma once

#include <array>
#include <csignal>

namespace headrace::cli {

/// While this lives, the signals that end or stop a program and those that tell of its terminal do not act: they are
/// kept, and wake who polls the descriptor, on whatever thread they arrive. So a terminal in another mode can be put
/// right first. Signals that were ignored stay ignored. At most one lives at a time.
class SignalWatch {
 public:
  /// StreamError when the system gives no descriptor.
  SignalWatch();
  /// The handlers of before are back.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Readable when a signal has come.
  int descriptor() const { return descriptor_; }
  /// The number of a signal that came, each kind once; 0: none.
  int take();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

  int descriptor_;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace headrace::cli
