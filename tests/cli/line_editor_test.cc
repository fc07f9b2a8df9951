#include "cli/line_editor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "cli/exit_status.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/program.h"
#include "cli/streams.h"
#include "cli/terminal_driver.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::same_settings;
using test::TerminalDriver;
using test::TerminalSetup;

const std::string kPrompt = "you> ";
const std::string kPasteBegin = "\x1b[200~";
const std::string kPasteEnd = "\x1b[201~";
const std::string kUp = "\x1b[A";
const std::string kDown = "\x1b[B";
const std::string kRight = "\x1b[C";
const std::string kLeft = "\x1b[D";
const std::string kHint = "(Ctrl-C again or Ctrl-D ends)\r\n";

/// Says every message in one line that holds no control.
int say_messages(size_t message_bytes_max = cli::LineEditor::kMessageBytesMax) {
  cli::LineEditor editor(message_bytes_max);
  while (const auto message = editor.read("you>")) {
    cli::write_stdout("got " + cli::json_string(*message) + ".\n");
  }
  cli::write_stdout("end.\n");
  return 0;
}

TerminalDriver start(const TerminalSetup& setup = {}) {
  return TerminalDriver::function([] { return say_messages(); }, setup);
}

/// Types `keys` and Enter at a prompt, and expects that the message is `json`.
void expect_message(TerminalDriver& terminal, const std::string& keys, const std::string& json) {
  SCOPED_TRACE(json);
  terminal.answer(kPrompt, keys + "\r");
  terminal.expect("got " + json + ".\r\n");
}

void expect_message(const std::string& keys, const std::string& json) {
  TerminalDriver terminal = start();
  expect_message(terminal, keys, json);
}

TEST(LineEditor, TakesLinesUntilControlD) {
  TerminalDriver terminal = start();
  expect_message(terminal, "hello", R"("hello")");
  expect_message(terminal, "", R"("")");
  expect_message(terminal, "  two  words ", R"("  two  words ")");
  terminal.answer(kPrompt, "\x04");
  terminal.expect("end.\r\n");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(LineEditor, KeysEditTheLine) {
  expect_message(
      "world"
      "\x01"
      "hello ",
      R"("hello world")");  // Ctrl-A.
  expect_message(
      "b"
      "\x01"
      "a"
      "\x05"
      "c",
      R"("abc")");                                                 // Ctrl-E.
  expect_message("abcdef" + kLeft + kLeft + "\x0b", R"("abcd")");  // Ctrl-K.
  expect_message(
      "one two three"
      "\x17",
      R"("one two ")");                                          // Ctrl-W.
  expect_message("abcdef" + kLeft + kLeft + "\x15", R"("ef")");  // Ctrl-U.
  expect_message("ac" + kLeft + "b" + kRight + "d", R"("abcd")");
  expect_message(
      "abx"
      "\x7f"
      "c",
      R"("abc")");                                            // Backspace.
  expect_message("abc" + kLeft + "\x1b[3~", R"("ab")");       // Delete.
  expect_message("b\x1b[Ha\x1b[Fc", R"("abc")");              // Home, End.
  expect_message("abc" + kLeft + kLeft + "\x04", R"("ac")");  // Ctrl-D within a line.
  expect_message(
      "one two"
      "\x1b[1;5D"
      "x",
      R"("one xtwo")");  // Ctrl-Left.
  expect_message("a\tb", R"("a\tb")");
}

TEST(LineEditor, ArrowsWalkThroughTheHistory) {
  TerminalDriver terminal = start();
  expect_message(terminal, "first", R"("first")");
  expect_message(terminal, "second", R"("second")");
  expect_message(terminal, kUp + kUp, R"("first")");
  expect_message(terminal, kUp + kUp + kUp + kDown + "!", R"("second!")");
  expect_message(terminal, "dra" + kUp + kDown + "ft", R"("draft")");
  expect_message(terminal, kDown + "x", R"("x")");
}

TEST(LineEditor, ADraftLongerThanTheBuffersOfTheLibrarySurvivesTheHistory) {
  const std::string draft(5000, 'd');
  TerminalDriver terminal = start();
  expect_message(terminal, "first", R"("first")");
  expect_message(terminal, draft + kUp + kDown, '"' + draft + '"');
  expect_message(terminal, kUp, '"' + draft + '"');
}

TEST(LineEditor, APasteIsOneMessageWithItsNewlines) {
  TerminalDriver terminal = start();
  expect_message(terminal, "see: " + kPasteBegin + "one\rtwo\r\nthree\n\n\tfour" + kPasteEnd + "!",
                 R"("see: one\ntwo\nthree\n\n\tfour!")");
  expect_message(terminal, kUp + "?", R"("see: one\ntwo\nthree\n\n\tfour!?")");
}

TEST(LineEditor, APasteGoesWhereTheCursorIs) {
  expect_message("ad" + kLeft + kPasteBegin + "b\rc" + kPasteEnd, R"("ab\ncd")");
}

TEST(LineEditor, ControlsAreLeftOutOfAPaste) {
  expect_message(kPasteBegin +
                     "a\x1b[31mb\x07\x03\x04\x15"
                     "c\xc2\x9b"
                     "d\xe2\x80\xae"
                     "e\x7f" +
                     kPasteEnd,
                 R"("a[31mbcde")");
}

TEST(LineEditor, APasteOfManyLinesArrivesWhole) {
  std::string pasted;
  std::string json = "\"";
  for (int line = 0; line < 300; ++line) {
    const std::string text = "line " + std::to_string(line) + " of a long paste";
    pasted += text + "\r";
    json += text + "\\n";
  }
  expect_message(kPasteBegin + pasted + kPasteEnd, json + '"');
}

TEST(LineEditor, APasteThatNeverEndsIsLeftWithControlC) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, kPasteBegin + "text");
  // What was pasted is not shown before its end: wait until it was read.
  terminal.send("\x03");
  terminal.expect(kHint);
  expect_message(terminal, "next", R"("next")");
}

TEST(LineEditor, ABackslashAtTheEndContinuesOnTheNextLine) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, "one\\\r");
  terminal.answer("... ", "two\\\r");
  terminal.answer("... ", "three\r");
  terminal.expect(R"(got "one\ntwo\nthree".)");
  expect_message(terminal, kUp, R"("one\ntwo\nthree")");
  terminal.answer(kPrompt, "one\\\r");
  terminal.answer("... ", "\x04");
  terminal.expect(R"(got "one\n".)");
}

TEST(LineEditor, ControlCDropsTheMessageAndASecondOneOnAnEmptyLineEnds) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, "abc\x03");
  terminal.expect(kHint);
  terminal.answer(kPrompt, "x\x03");
  terminal.expect(kHint);
  expect_message(terminal, "kept", R"("kept")");
  terminal.answer(kPrompt, "first\\\r");
  terminal.answer("... ", "\x03");
  terminal.expect(kHint);
  terminal.answer(kPrompt, "\x03");
  terminal.expect("end.\r\n");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(LineEditor, ControlCLeavesTheRowAndWritesBelowIt) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, kPasteBegin + "one\rtwo" + kPasteEnd + kLeft + kLeft + kLeft + kLeft + kLeft);
  terminal.send("\x03");
  const std::string shown = terminal.expect(kHint);
  EXPECT_EQ(shown.find("you>"), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("\x1b[?2004l\r\n" + kHint)) << shown;
}

TEST(LineEditor, AnInterruptFromElsewhereIsAControlC) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, "abc");
  terminal.expect("abc");
  terminal.signal(SIGINT);
  terminal.expect(kHint);
  expect_message(terminal, "next", R"("next")");
}

TEST(LineEditor, CharactersOfEveryWidthAreEdited) {
  expect_message("h\xc3\xa9llo", "\"h\xc3\xa9llo\"");
  expect_message("\xe6\x97\xa5\xe6\x9c\xac" + kLeft + "-", "\"\xe6\x97\xa5-\xe6\x9c\xac\"");  // CJK.
  expect_message(
      "a\xf0\x9f\x98\x80"
      "b\x7f\x7f"
      "c",
      R"("ac")");  // An emoji.
  expect_message("\xe6\x97\xa5\xe6\x9c\xac\x01\x04", "\"\xe6\x9c\xac\"");
}

TEST(LineEditor, BytesThatAreNoUtf8BecomeReplacements) {
  expect_message(
      "a\xff"
      "b",
      "\"a\xef\xbf\xbd"
      "b\"");
}

TEST(LineEditor, Utf8IsEditedInAnyLocale) {
  TerminalSetup setup;
  setup.environment = {{"LC_ALL", "C"}};
  TerminalDriver terminal = start(setup);
  expect_message(terminal, "\xc3\xa9\xe6\x97\xa5", "\"\xc3\xa9\xe6\x97\xa5\"");
}

TEST(LineEditor, TheTerminalIsAsBeforeBetweenMessagesAndAtTheEnd) {
  TerminalDriver terminal = start();
  terminal.expect(kPrompt);
  EXPECT_FALSE(same_settings(terminal.settings(), terminal.settings_before()));
  terminal.send("abc\r");
  const std::string shown = terminal.expect("got \"abc\"");
  EXPECT_NE(shown.find("\x1b[?2004l"), std::string::npos);
  terminal.answer(kPrompt, "\x04");
  terminal.expect("end.");
  EXPECT_TRUE(same_settings(terminal.settings(), terminal.settings_before()));
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_LT(terminal.output().rfind("\x1b[?2004h"), terminal.output().rfind("\x1b[?2004l"));
}

TEST(LineEditor, TheTerminalIsAsBeforeWhileAnAnswerIsPrinted) {
  TerminalDriver terminal = TerminalDriver::function([] {
    cli::LineEditor editor;
    editor.read("you>");
    cli::write_stdout("answering\n");
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) == 1 ? 0
                                             : 1;  // A line, as a terminal gives it to a program that reads plainly.
  });
  terminal.answer(kPrompt, "abc\r");
  terminal.expect("answering\r\n");
  EXPECT_TRUE(same_settings(terminal.settings(), terminal.settings_before()));
  terminal.send("\n");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(LineEditor, ASignalThatEndsTheProgramLeavesTheTerminalAsBefore) {
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    SCOPED_TRACE(number);
    TerminalDriver terminal = TerminalDriver::function([] {
      cli::install_signal_handlers();
      return say_messages();
    });
    terminal.answer(kPrompt, "abc");
    terminal.expect("abc");
    terminal.signal(number);
    terminal.expect("\x1b[?2004l");
    EXPECT_EQ(terminal.wait(), number == SIGTERM ? cli::kCancelled : -number);
    EXPECT_TRUE(same_settings(terminal.settings(), terminal.settings_before()));
  }
}

TEST(LineEditor, AnIgnoredSignalStaysIgnored) {
  TerminalSetup setup;
  setup.in_child = [] { std::signal(SIGTERM, SIG_IGN); };
  TerminalDriver terminal = start(setup);
  terminal.expect(kPrompt);
  terminal.signal(SIGTERM);
  terminal.send("abc\r");
  terminal.expect(R"(got "abc")");
}

TEST(LineEditor, AClosedTerminalEnds) {
  TerminalSetup setup;
  setup.in_child = [] { std::signal(SIGHUP, SIG_IGN); };
  TerminalDriver terminal = start(setup);
  terminal.answer(kPrompt, "abc");
  terminal.expect("abc");
  terminal.close();
  // Its last words fail, as nobody is there to hear them.
  EXPECT_GT(terminal.wait(), 0);
}

TEST(LineEditor, AWindowOfAnotherSizeIsDrawnAgain) {
  TerminalSetup setup;
  setup.columns = 20;
  TerminalDriver terminal = start(setup);
  terminal.answer(kPrompt, "abc");
  terminal.expect("abc");
  terminal.resize(24, 100);
  EXPECT_EQ(terminal.expect("you> abc"), "\r\x1b[Jyou> abc");
  terminal.send("d\r");
  terminal.expect(R"(got "abcd")");
}

TEST(LineEditor, AWindowThatBecameNarrowerIsDrawnFromTheFirstRow) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, "one" + kPasteBegin + "\r" + kPasteEnd + std::string(30, 'x'));
  terminal.expect("xxxxx");
  terminal.send("\x05.");
  terminal.expect(".");
  terminal.resize(24, 10);  // "you> one" in one row, 31 characters in four.
  terminal.expect("\x1b[4A\r\x1b[Jyou> one");
  terminal.send("\r");
  terminal.expect("got \"one\\n" + std::string(30, 'x') + ".\"");
}

TEST(LineEditor, AProgramThatWasStoppedGoesOn) {
  TerminalDriver terminal = start();
  terminal.answer(kPrompt, "abc");
  terminal.expect("abc");
  terminal.signal(SIGSTOP);
  terminal.signal(SIGCONT);
  terminal.expect("you> abc");
  terminal.send("d\r");
  terminal.expect(R"(got "abcd")");
}

/// What a shell does with a job that stops: takes the terminal, and gives it back when a line is typed.
int run_as_a_job() {
  std::signal(SIGTTOU, SIG_IGN);
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    std::signal(SIGTTOU, SIG_DFL);
    _exit(say_messages());
  }
  int status = 0;
  if (waitpid(job, &status, WUNTRACED) != job || !WIFSTOPPED(status)) return 1;
  tcsetpgrp(STDIN_FILENO, getpid());
  cli::write_stdout("stopped\n");
  char byte = 0;
  if (read(STDIN_FILENO, &byte, 1) != 1) return 2;
  tcsetpgrp(STDIN_FILENO, job);
  kill(job, SIGCONT);
  waitpid(job, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

TEST(LineEditor, ControlZStopsTheProgramWithTheTerminalAsBefore) {
  TerminalDriver terminal = TerminalDriver::function(run_as_a_job);
  terminal.answer(kPrompt, "abc\x1a");
  terminal.expect("\x1b[?2004l");
  terminal.expect("stopped\r\n");
  EXPECT_TRUE(same_settings(terminal.settings(), terminal.settings_before()));
  terminal.send("\n");
  terminal.expect("you> abc");
  terminal.send("d\r");
  terminal.expect(R"(got "abcd")");
  terminal.answer(kPrompt, "\x04");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(LineEditor, APasteBeyondTheBoundIsLeftOut) {
  TerminalDriver terminal = TerminalDriver::function([] { return say_messages(40); });
  terminal.answer(kPrompt, "short " + kPasteBegin + std::string(100, 'x') + kPasteEnd);
  terminal.expect("[at most 40 bytes] ");
  terminal.send("text\r");
  terminal.expect(R"(got "short text")");
  const std::string shown = terminal.expect(kPrompt);
  EXPECT_EQ(shown.find("at most"), std::string::npos);
}

TEST(LineEditor, WhatIsTypedBeyondTheBoundIsLeftOut) {
  TerminalDriver terminal = TerminalDriver::function([] { return say_messages(40); });
  terminal.answer(kPrompt, std::string(60, 'x'));
  terminal.expect("[at most 40 bytes] ");
  terminal.send(kLeft + "\x7f\x05\r");
  terminal.expect("got \"" + std::string(36, 'x') + "\".");
}

TEST(LineEditor, AMessageThatGrewBeyondTheBoundIsNotSent) {
  TerminalDriver terminal = TerminalDriver::function([] { return say_messages(40); });
  terminal.answer(kPrompt, std::string(30, 'x') + "\x15\x19\x19\r");  // Ctrl-U, and Ctrl-Y twice.
  terminal.expect("longer than 40 bytes; not sent\r\n");
  terminal.answer(kPrompt, kUp +
                               "\x15"
                               "short\r");
  terminal.expect(R"(got "short")");
}

TEST(LineEditor, ThePromptIsBoldWhereStylesAre) {
  TerminalSetup setup;
  setup.environment = {{"NO_COLOR", ""}};
  TerminalDriver terminal = start(setup);
  terminal.answer("\x1b[1myou>\x1b[22m ", "a\r");
  terminal.expect(R"(got "a")");
}

TEST(LineEditor, ATerminalWithoutACursorKeepsItsOwnKeys) {
  TerminalSetup setup;
  setup.environment = {{"TERM", "dumb"}};
  TerminalDriver terminal = start(setup);
  terminal.answer(kPrompt,
                  "abx\x7f"
                  "c\\\n");
  terminal.answer("... ", "d\n");
  terminal.expect(R"(got "abc\nd")");
  terminal.answer(kPrompt, "\x04");
  terminal.expect("end.");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_EQ(terminal.output().find('\x1b'), std::string::npos);
}

/// Reads lines of a file as standard input.
std::string lines_of_file(const std::string& text, size_t message_bytes_max = cli::LineEditor::kMessageBytesMax) {
  const test::TempFolder folder;
  folder.write("input", text);
  const int input = open(folder.file("input").c_str(), O_RDONLY | O_CLOEXEC);
  const int before = dup(STDIN_FILENO);
  dup2(input, STDIN_FILENO);
  close(input);
  std::string result;
  try {
    cli::LineEditor editor(message_bytes_max);
    while (const auto message = editor.read("you>")) result += cli::json_string(*message) + ",";
  } catch (const cli::UsageError& failure) {
    result += failure.what();
  }
  dup2(before, STDIN_FILENO);
  close(before);
  return result;
}

TEST(LineEditor, LinesOfAFileComeByteForByte) {
  EXPECT_EQ(lines_of_file("one\ntwo\\\n\nthree\r\n\x1b[A"), R"("one","two\\","","three\r","\u001b[A",)");
  EXPECT_EQ(lines_of_file(""), "");
  EXPECT_EQ(lines_of_file("\n"), R"("",)");
}

TEST(LineEditor, ALineOfAFileThatIsTooLongIsRefused) {
  EXPECT_EQ(lines_of_file("1234\n12345\n", 4), R"("1234",standard input: a line is longer than 4 bytes)");
  EXPECT_EQ(lines_of_file("12345", 4), "standard input: a line is longer than 4 bytes");
}

}  // namespace
}  // namespace headrace
