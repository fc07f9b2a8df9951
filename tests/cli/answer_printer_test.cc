#include "cli/answer_printer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/program.h"
#include "cli/pseudo_terminal.h"
#include "cli/terminal_driver.h"

namespace headrace {
namespace {

using cli::AnswerPrinter;
using test::TerminalDriver;

const std::string kDim = "\x1b[2m";
const std::string kNormal = "\x1b[22m";

class AnswerOnATerminal : public test::OnATerminal {
 protected:
  AnswerPrinter printer() {
    return AnswerPrinter(cli::Terminal(terminal_), [this](std::string_view text) { written_ += text; });
  }

  std::string written_;
};

TEST_F(AnswerOnATerminal, ReasoningIsDimAndABlankLineFollows) {
  AnswerPrinter answer = printer();
  answer.reasoning("why");
  answer.reasoning(" not");
  answer.content("yes");
  answer.finish();
  EXPECT_EQ(written_, kDim + "why" + kNormal + kDim + " not" + kNormal + "\n\nyes\n");
}

TEST_F(AnswerOnATerminal, NewlinesOfTheModelBetweenThePartsAreNotDoubled) {
  AnswerPrinter answer = printer();
  answer.reasoning("why\n");
  answer.content("\n");
  answer.content("\n\nyes\n");
  answer.finish();
  EXPECT_EQ(written_, kDim + "why\n" + kNormal + "\nyes\n");
}

TEST_F(AnswerOnATerminal, EveryPieceIsWrittenAtOnce) {
  AnswerPrinter answer = printer();
  answer.content("a");
  EXPECT_EQ(written_, "a");
  answer.content("b");
  EXPECT_EQ(written_, "ab");
}

TEST_F(AnswerOnATerminal, ACharacterThatIsCutIsWrittenWhenItIsWhole) {
  AnswerPrinter answer = printer();
  answer.content("a\xe6\x97");
  EXPECT_EQ(written_, "a");
  answer.content("\xa5");
  EXPECT_EQ(written_, "a\xe6\x97\xa5");
  answer.content("\xe6");
  answer.finish();
  EXPECT_EQ(written_, "a\xe6\x97\xa5\xef\xbf\xbd\n");
}

TEST_F(AnswerOnATerminal, TextCannotDriveTheTerminal) {
  AnswerPrinter answer = printer();
  answer.reasoning("\x1b[2J");
  answer.content("\x1b]0;x\x07");
  answer.tool_call("a\x1b", "{\"b\":\"\xc2\x9b\"}");
  answer.finish();
  EXPECT_EQ(written_, kDim + "\xe2\x90\x9b[2J" + kNormal + "\n\n\xe2\x90\x9b]0;x\xe2\x90\x87\n" + kDim +
                          "[calls a\xe2\x90\x9b {\"b\":\"\xef\xbf\xbd\"}]" + kNormal + "\n");
}

TEST_F(AnswerOnATerminal, CallsOfToolsStandOnLinesOfTheirOwn) {
  AnswerPrinter answer = printer();
  answer.content("Let me see.");
  answer.tool_call("get_weather", R"({"city":"Paris"})");
  answer.tool_call("get_time", "{}");
  answer.content("\n\nDone.");
  answer.finish();
  EXPECT_EQ(written_, "Let me see.\n" + kDim + R"([calls get_weather {"city":"Paris"}])" + kNormal + "\n" + kDim +
                          "[calls get_time {}]" + kNormal + "\nDone.\n");
}

TEST_F(AnswerOnATerminal, AnEmptyAnswerPrintsNothing) {
  AnswerPrinter answer = printer();
  answer.content("");
  answer.finish();
  EXPECT_EQ(written_, "");
}

TEST(AnswerPrinter, APipeGetsTheBytesOfTheAnswerAlone) {
  std::string written;
  AnswerPrinter answer(cli::Terminal(), [&](std::string_view text) { written += text; });
  answer.reasoning("why\x1b");
  answer.content("\nyes\x1b[1m\xff\xe6");
  answer.tool_call("get_time", "{}");
  answer.finish();
  EXPECT_EQ(written, "\nyes\x1b[1m\xff\xe6");
}

TEST(AnswerPrinter, TheProgramEndsAnAnswerOnATerminalWithANewline) {
  TerminalDriver terminal = TerminalDriver::program({"run", "demo", "--raw", "Once upon a time", "-n", "8"});
  terminal.expect(", there was a young girl");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_NE(terminal.output().find("\r\nheadrace: prompt 4 tokens"), std::string::npos) << terminal.output();
}

}  // namespace
}  // namespace headrace
