#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "cli/exit_status.h"
#include "cli/progress.h"

namespace headrace::cli {
namespace {

// A signal handler has no other way to its data. Sequentially consistent: a handler may run on any thread.
std::atomic<headrace_session*> target{nullptr};
static_assert(std::atomic<headrace_session*>::is_always_lock_free);
std::atomic<bool> terminated{false};
std::atomic<bool> held{false};
std::atomic<bool> interrupted{false};  // While held.

void handle_interrupt(int number) {
  if (number == SIGTERM) terminated.store(true);
  if (held.load()) interrupted.store(true);
  if (headrace_session* session = target.exchange(nullptr)) {
    headrace_session_cancel(session);
  } else if (!held.load()) {
    erase_progress();
    _exit(kCancelled);
  }
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  set_handler(SIGPIPE, SIG_IGN);
  set_handler(SIGXFSZ, SIG_IGN);
  set_handler(SIGINT, handle_interrupt);
  set_handler(SIGTERM, handle_interrupt);
}

bool was_terminated() {
  return terminated.load();
}

InterruptHold::InterruptHold() {
  interrupted.store(false);
  held.store(true);
}

InterruptHold::~InterruptHold() {
  held.store(false);
  interrupted.store(false);
}

bool InterruptHold::was_interrupted() const {
  return interrupted.load();
}

InterruptTarget::InterruptTarget(headrace_session* session) {
  target.store(session);
  if (!interrupted.load()) return;  // Either this sees it, or the handler sees the target.
  target.store(nullptr);
  headrace_session_cancel(session);
}

InterruptTarget::~InterruptTarget() {
  target.store(nullptr);
}

}  // namespace headrace::cli
