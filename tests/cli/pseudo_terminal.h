#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace headrace::test {

/// A test with a terminal that nobody reads, in an environment where terminals have styles.
class OnATerminal : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(openpty(&master_, &terminal_, nullptr, nullptr, nullptr), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  void TearDown() override {
    close(master_);
    close(terminal_);
  }
  void set_columns(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  }

  /// The end that a program has.
  int terminal_ = -1;

 private:
  int master_ = -1;
};

}  // namespace headrace::test
