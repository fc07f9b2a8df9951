#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::test {

struct TerminalSetup {
  unsigned short rows = 24;
  unsigned short columns = 80;
  /// On top of the environment of the tests with TERM=xterm, LC_ALL=C.UTF-8 and NO_COLOR=1. An empty value unsets.
  std::vector<std::pair<std::string, std::string>> environment;
  /// Longest wait for anything: the machine may be busy, and a test must end.
  std::chrono::seconds deadline{30};
  /// Called in the child, when the terminal stands, before the program or the function runs.
  std::function<void()> in_child;
};

/// A program, or a function in a child process, on a terminal of its own, driven by keys. Every wait has a bound: what
/// does not come in time is a failure of the test that shows what came instead. The child dies with this.
class TerminalDriver {
 public:
  /// The headrace of this build.
  static TerminalDriver program(const std::vector<std::string>& arguments, const TerminalSetup& setup = {});
  /// What the function returns is the exit status; it must not use GoogleTest.
  static TerminalDriver function(const std::function<int()>& function, const TerminalSetup& setup = {});
  ~TerminalDriver();
  TerminalDriver(TerminalDriver&& other) noexcept;
  TerminalDriver& operator=(TerminalDriver&&) = delete;

  /// Types.
  void send(std::string_view keys);
  /// Waits until the program has written `text` behind what was waited for before; the output up to its end. The output
  /// has "\r\n" where the program wrote "\n".
  std::string expect(std::string_view text);
  /// expect, send: an answer to a prompt.
  void answer(std::string_view prompt, std::string_view keys);
  /// Waits for the end of the program; its exit status, or minus the number of the signal that ended it.
  int wait();
  /// Everything that the program wrote so far, or until its end after `wait`.
  const std::string& output() const { return output_; }

  void resize(unsigned short rows, unsigned short columns);
  void signal(int number);
  /// Modes of the terminal now, and before the program started.
  termios settings() const;
  const termios& settings_before() const { return settings_before_; }
  /// Hangs up, as a terminal window that is closed.
  void close();

 private:
  TerminalDriver(const std::function<int()>& child_main, const TerminalSetup& setup);
  /// Takes in what is there, waiting for it until `end`; false at the end of the output, or of the time.
  bool take_in(std::chrono::steady_clock::time_point end);

  std::chrono::seconds deadline_;
  int master_ = -1;
  pid_t child_ = -1;
  termios settings_before_{};
  std::string output_;
  size_t seen_ = 0;  // Bytes of output_ that expect has consumed.
};

/// Whether two terminals behave alike.
bool same_settings(const termios& a, const termios& b);

}  // namespace headrace::test
