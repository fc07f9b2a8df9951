#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/function_ref.h"

namespace headrace {
namespace {

TEST(Log, HandsOverLinesUpToItsLevel) {
  std::vector<std::string> lines;
  const Log log(LogLevel::kInfo, [&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  log.line(LogLevel::kError, "a %d", 1);
  log.line(LogLevel::kInfo, "b %s", "two");
  log.line(LogLevel::kDebug, "c");
  EXPECT_EQ(lines, (std::vector<std::string>{"a 1", "b two"}));
  EXPECT_TRUE(log.enabled(LogLevel::kWarn));
  EXPECT_FALSE(log.enabled(LogLevel::kDebug));
}

TEST(Log, DropsEverythingByDefault) {
  const Log log;
  EXPECT_FALSE(log.enabled(LogLevel::kError));
  log.line(LogLevel::kError, "nobody listens");
}

TEST(Log, CutsLongLines) {
  std::string line;
  const Log log(LogLevel::kError, [&](LogLevel, std::string_view text) { line = text; });
  log.line(LogLevel::kError, "%s", std::string(5000, 'x').c_str());
  EXPECT_EQ(line, std::string(1023, 'x'));
}

int apply(FunctionRef<int(int)> function) {
  return function(20);
}

TEST(FunctionRef, CallsLambdasThatAreSharedConstOrTemporary) {
  int calls = 0;
  const auto shared = [&](int value) { return value + ++calls; };
  EXPECT_EQ(apply(shared), 21);
  EXPECT_EQ(apply(shared), 22);
  EXPECT_EQ(apply([state = 1](int value) mutable { return value * ++state; }), 40);
}

}  // namespace
}  // namespace headrace
