#include "cli/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

#include "cli/exit_status.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/pseudo_terminal.h"
#include "cli/terminal_driver.h"

namespace headrace {
namespace {

using cli::ProgressLine;
using cli::prompt_progress_text;
using test::TerminalDriver;

class ProgressLineOnATerminal : public test::OnATerminal {
 protected:
  ProgressLine::Writer writer() {
    return [this](std::string_view text) { written_ += text; };
  }

  std::string written_;
};

TEST_F(ProgressLineOnATerminal, OverwritesItselfAndIsErasedOnce) {
  {
    ProgressLine line(cli::Terminal(terminal_), writer());
    line.show("one", 0);
    line.show("two", 1);
    EXPECT_EQ(written_, "\rone\x1b[K\rtwo\x1b[K");
    written_.clear();
    line.erase();
    line.erase();
  }
  EXPECT_EQ(written_, "\r\x1b[K");
}

TEST_F(ProgressLineOnATerminal, IsErasedWhenItIsDestroyed) {
  { ProgressLine(cli::Terminal(terminal_), writer()).show("one", 0); }
  EXPECT_EQ(written_, "\rone\x1b[K\r\x1b[K");
}

TEST_F(ProgressLineOnATerminal, ShowsAtMostTenLinesASecond) {
  ProgressLine line(cli::Terminal(terminal_), writer());
  for (int millisecond = 0; millisecond < 1000; ++millisecond) line.show("x", millisecond * 1e-3);
  EXPECT_LE(std::ranges::count(written_, 'x'), 10);
  EXPECT_GE(std::ranges::count(written_, 'x'), 9);
}

TEST_F(ProgressLineOnATerminal, IsCutToTheWindowAndHoldsNoControls) {
  set_columns(40);
  ProgressLine line(cli::Terminal(terminal_), writer());
  line.show(std::string(100, 'x'), 0);
  EXPECT_EQ(written_, "\r" + std::string(39, 'x') + "\x1b[K");
  written_.clear();
  line.show("a\x1b[2Jb", 1);
  EXPECT_EQ(written_, "\ra\xe2\x90\x9b[2Jb\x1b[K");
}

TEST(ProgressLine, WritesNothingWhereThereIsNoTerminal) {
  std::string written;
  {
    ProgressLine line(cli::Terminal(), [&](std::string_view text) { written += text; });
    line.show("one", 0);
  }
  EXPECT_EQ(written, "");
}

TEST(PromptProgress, TellsSpeedAndTimeOnceThereIsEnoughToTell) {
  EXPECT_EQ(prompt_progress_text(0, 2048, 0.5), "reading prompt: 0 of 2,048 tokens");
  EXPECT_EQ(prompt_progress_text(0, 2048, 60), "reading prompt: 0 of 2,048 tokens");
  EXPECT_EQ(prompt_progress_text(64, 999, 0.5), "reading prompt: 64 of 999 tokens");
  // 512 tokens in 36 s are 14.22 a second; 1536 more take 108 s.
  EXPECT_EQ(prompt_progress_text(512, 2048, 36),
            "reading prompt: 512 of 2,048 tokens, 14.2 tokens/s, about 1 min 48 s left");
  EXPECT_EQ(prompt_progress_text(1000, 1234567, 10),
            "reading prompt: 1,000 of 1,234,567 tokens, 100 tokens/s, about 3 h 25 min left");
  EXPECT_EQ(prompt_progress_text(1, 5, 20), "reading prompt: 1 of 5 tokens, 0.05 tokens/s, about 1 min 20 s left");
  EXPECT_EQ(prompt_progress_text(5, 5, 20), "reading prompt: 5 of 5 tokens");
}

TEST(PromptProgress, DurationsAreReadable) {
  EXPECT_EQ(cli::duration_text(0), "0 s");
  EXPECT_EQ(cli::duration_text(59.4), "59 s");
  EXPECT_EQ(cli::duration_text(59.6), "1 min 0 s");
  EXPECT_EQ(cli::duration_text(108), "1 min 48 s");
  EXPECT_EQ(cli::duration_text(7500), "2 h 5 min");
}

TEST(PromptProgress, IsErasedBeforeWhatComesNext) {
  TerminalDriver terminal = TerminalDriver::function([] {
    ProgressLine line;
    line.show("busy", 1);
    cli::tell("said");
    line.show("busy again", 2);
    cli::write_stdout("text\n");
    return 0;
  });
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_EQ(terminal.output(), "\rbusy\x1b[K\r\x1b[Kheadrace: said\r\n\rbusy again\x1b[K\r\x1b[Ktext\r\n");
}

TEST(Tell, NamesOfFilesCannotDriveATerminal) {
  TerminalDriver terminal = TerminalDriver::program({"run", "no\x1b[2Jmodel", "text"});
  EXPECT_EQ(terminal.wait(), cli::kReadOrWriteFailed);
  EXPECT_NE(terminal.output().find("no\xe2\x90\x9b[2Jmodel"), std::string::npos);
  EXPECT_EQ(terminal.output().find('\x1b'), std::string::npos);
}

TEST(PromptProgress, IsErasedWhenASignalEndsTheProgram) {
  TerminalDriver terminal = TerminalDriver::function([] {
    cli::install_signal_handlers();
    ProgressLine line;
    line.show("busy", 1);
    for (;;) pause();
    return 0;
  });
  terminal.expect("busy\x1b[K");
  terminal.signal(SIGTERM);
  EXPECT_EQ(terminal.wait(), cli::kCancelled);
  EXPECT_TRUE(terminal.output().ends_with("busy\x1b[K\r\x1b[K"));
}

TEST(PromptProgress, TheProgramShowsItOnATerminalAndErasesIt) {
  TerminalDriver terminal =
      TerminalDriver::program({"run", "demo", "--raw", "Once upon a time, a cow", "--prefill-chunk", "1", "-n", "4"});
  terminal.expect("\rreading prompt: 1 of ");
  terminal.expect("\r\x1b[K");
  EXPECT_EQ(terminal.wait(), 0);
  const std::string& output = terminal.output();
  EXPECT_EQ(output.find("reading prompt", output.rfind("\r\x1b[K")), std::string::npos);
}

TEST(PromptProgress, NothingOfItReachesAPipe) {
  const auto result =
      test::run_program({"run", "demo", "--raw", "Once upon a time", "--prefill-chunk", "1", "-n", "4"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.error.find("reading prompt"), std::string::npos);
  EXPECT_EQ(result.error.find('\x1b'), std::string::npos);
  EXPECT_EQ(result.error.find('\r'), std::string::npos);
}

TEST(OpeningProgress, SaysWhatIsOpenedOnlyWhenItTakesLong) {
  TerminalDriver terminal = TerminalDriver::function([] {
    { const cli::OpeningProgress progress("quick"); }
    const cli::OpeningProgress progress("slow/\x1b[2Jmodel");
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) == 1 ? 0 : 1;
  });
  terminal.expect("\ropening slow/\xe2\x90\x9b[2Jmodel ...\x1b[K");
  terminal.send("\n");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_TRUE(terminal.output().ends_with("\r\x1b[K"));
  EXPECT_EQ(terminal.output().find("quick"), std::string::npos);
}

}  // namespace
}  // namespace headrace
