#include "cli/terminal_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>

namespace headrace::test {
namespace {

using Clock = std::chrono::steady_clock;

void set_environment(const TerminalSetup& setup) {
  setenv("TERM", "xterm", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  setenv("NO_COLOR", "1", 1);
  for (const auto& [name, value] : setup.environment) {
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
}

[[noreturn]] void be_child(int slave, const std::function<int()>& child_main, const TerminalSetup& setup) {
  if (login_tty(slave) != 0) _exit(126);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
  set_environment(setup);
  if (setup.in_child) setup.in_child();
  try {
    _exit(child_main());
  } catch (const std::exception& failure) {
    dprintf(STDERR_FILENO, "exception: %s\n", failure.what());
    _exit(125);
  }
}

/// The output with its controls visible, for a message.
std::string visible(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (character == '\x1b') {
      result += "\\e";
    } else if (static_cast<unsigned char>(character) < ' ' && character != '\n') {
      result += std::string("^") + static_cast<char>(character + '@');
    } else {
      result += character;
    }
  }
  return result;
}

int exit_status_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TerminalDriver TerminalDriver::program(const std::vector<std::string>& arguments, const TerminalSetup& setup) {
  const auto become_program = [&arguments] {
    std::vector<char*> words = {const_cast<char*>(HEADRACE_PROGRAM)};
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    execv(HEADRACE_PROGRAM, words.data());
    return 127;
  };
  return {become_program, setup};
}

TerminalDriver TerminalDriver::function(const std::function<int()>& function, const TerminalSetup& setup) {
  return {function, setup};
}

TerminalDriver::TerminalDriver(const std::function<int()>& child_main, const TerminalSetup& setup)
    : deadline_(setup.deadline) {
  int slave = -1;
  winsize size{};
  size.ws_row = setup.rows;
  size.ws_col = setup.columns;
  if (openpty(&master_, &slave, nullptr, nullptr, &size) != 0) {
    ADD_FAILURE() << "openpty: error " << errno;
    return;
  }
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  tcgetattr(slave, &settings_before_);
  child_ = fork();
  if (child_ == 0) {
    ::close(master_);
    be_child(slave, child_main, setup);
  }
  ::close(slave);
}

TerminalDriver::TerminalDriver(TerminalDriver&& other) noexcept
    : deadline_(other.deadline_),
      master_(std::exchange(other.master_, -1)),
      child_(std::exchange(other.child_, -1)),
      settings_before_(other.settings_before_),
      output_(std::move(other.output_)),
      seen_(other.seen_) {}

TerminalDriver::~TerminalDriver() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  close();
}

void TerminalDriver::send(std::string_view keys) {
  const auto end = Clock::now() + deadline_;
  while (!keys.empty()) {
    // The program may write before it reads on: a terminal holds a few KiB each way.
    pollfd polled{master_, POLLIN | POLLOUT, 0};
    if (Clock::now() > end || poll(&polled, 1, 1000) < 0) break;
    if ((polled.revents & POLLIN) != 0) take_in(end);
    if ((polled.revents & POLLOUT) == 0) continue;
    const ssize_t count = write(master_, keys.data(), std::min<size_t>(keys.size(), 256));
    if (count < 0) break;
    keys.remove_prefix(static_cast<size_t>(count));
  }
  EXPECT_TRUE(keys.empty()) << keys.size() << " bytes could not be typed; output so far:\n" << visible(output_);
}

std::string TerminalDriver::expect(std::string_view text) {
  const auto end = Clock::now() + deadline_;
  for (;;) {
    const size_t position = output_.find(text, seen_);
    if (position != std::string::npos) {
      const size_t begin = std::exchange(seen_, position + text.size());
      return output_.substr(begin, seen_ - begin);
    }
    if (!take_in(end)) break;
  }
  ADD_FAILURE() << "not written: \"" << visible(text) << "\"; instead:\n" << visible(output_.substr(seen_));
  return {};
}

void TerminalDriver::answer(std::string_view prompt, std::string_view keys) {
  expect(prompt);
  send(keys);
}

int TerminalDriver::wait() {
  const auto end = Clock::now() + deadline_;
  while (master_ >= 0 && take_in(end)) {
  }
  int status = 0;
  while (child_ > 0) {
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == child_) break;
    if (Clock::now() > end) {
      ADD_FAILURE() << "the program did not end; its output:\n" << visible(output_);
      return -SIGKILL;
    }
    // The output has ended: the program is about to.
    poll(nullptr, 0, 1);
  }
  child_ = -1;
  return exit_status_of(status);
}

void TerminalDriver::resize(unsigned short rows, unsigned short columns) {
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
}

void TerminalDriver::signal(int number) {
  EXPECT_EQ(kill(child_, number), 0);
}

termios TerminalDriver::settings() const {
  termios settings{};
  EXPECT_EQ(tcgetattr(master_, &settings), 0);
  return settings;
}

void TerminalDriver::close() {
  if (master_ >= 0) ::close(master_);
  master_ = -1;
}

bool TerminalDriver::take_in(Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{master_, POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(left.count())) > 0) break;
  }
  char buffer[1 << 16];
  // Linux answers EIO when nobody has the terminal open any more.
  const ssize_t count = read(master_, buffer, sizeof buffer);
  if (count > 0) output_.append(buffer, static_cast<size_t>(count));
  return count > 0;
}

bool same_settings(const termios& a, const termios& b) {
  return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_cflag == b.c_cflag && a.c_lflag == b.c_lflag &&
         std::ranges::equal(a.c_cc, b.c_cc);
}

}  // namespace headrace::test
