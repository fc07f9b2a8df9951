#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"

namespace headrace {
namespace {

using test::run_program;
using Words = std::vector<std::string>;

/// Wrong use: exit status 2, nothing on standard output, and every one of `named` in the message.
void expect_refused(const Words& words, const Words& named) {
  const auto result = run_program(words);
  std::string line;
  for (const std::string& word : words) line += " " + word;
  EXPECT_EQ(result.exit_status, 2) << line << "\n" << result.error;
  EXPECT_EQ(result.out, "") << line;
  for (const std::string& name : named) {
    EXPECT_NE(result.error.find(name), std::string::npos) << line << ": no " << name << " in\n" << result.error;
  }
}

Words with_option(const std::string& command, const Words& option) {
  Words words = {command, "demo"};
  if (command == "run") words.push_back("--raw");
  words.push_back("hi");
  words.insert(words.end(), option.begin(), option.end());
  return words;
}

TEST(Usage, UnknownOptionsAreRefusedByName) {
  for (const char* command : {"run", "eval", "tokenize", "detokenize", "plan", "info", "version"}) {
    expect_refused({command, "--frobnicate"}, {"--frobnicate", command});
    expect_refused({command, "-q"}, {"-q"});
  }
  expect_refused({"tokenize", "demo", "x", "--raw"}, {"--raw"});
  expect_refused({"run", "demo", "x", "--raw", "--perplexity"}, {"--perplexity"});
  expect_refused({"--budget", "1G"}, {"--budget"});
}

TEST(Usage, UnknownCommandsAreRefusedByName) {
  expect_refused({"dance"}, {"'dance'"});
  expect_refused({}, {"headrace COMMAND"});
}

TEST(Usage, CommandsOfLaterVersionsAreRefusedByName) {
  for (const char* command : {"serve", "pack", "verify", "pull", "bench", "doctor", "trace", "cachesim"}) {
    expect_refused({command, "demo"}, {command, "not available in this version"});
  }
}

TEST(Usage, StrayAndMissingArgumentsAreRefused) {
  expect_refused({"run", "demo", "--raw", "one", "two"}, {"'two'"});
  expect_refused({"eval", "demo", "one", "two"}, {"'two'"});
  expect_refused({"info", "demo", "more"}, {"'more'"});
  expect_refused({"version", "more"}, {"'more'"});
  for (const char* command : {"run", "eval", "tokenize", "detokenize", "plan", "info"})
    expect_refused({command}, {"MODEL"});
}

TEST(Usage, NumbersAreReadStrictly) {
  const Words whole_options = {"--ctx", "--threads", "--prefill-chunk", "--io-depth"};
  for (const char* command : {"run", "eval"}) {
    for (const std::string& option : whole_options) {
      for (const char* value :
           {"16k", "-1", "nan", "", "0", " 4", "4 ", "0x10", "1.5", "1e3", "+4", "99999999999999999999999", "four"}) {
        expect_refused(with_option(command, {option, value}), {option, "whole number"});
      }
    }
  }
  for (const char* value : {"-1", "nan", "", "inf", "1,5", "1e999", "0x1p3", "hot"}) {
    expect_refused(with_option("run", {"--temp", value}), {"--temp", "a number from 0"});
  }
  for (const char* option : {"--top-p", "--min-p"}) {
    for (const char* value : {"1.01", "-0.1", "nan", ""}) {
      expect_refused(with_option("run", {option, value}), {option, "a number from 0 to 1"});
    }
  }
  for (const char* value : {"-1", "x", "1.5", ""}) {
    expect_refused(with_option("run", {"--top-k", value}), {"--top-k"});
    expect_refused(with_option("run", {"--seed", value}), {"--seed"});
  }
  expect_refused(with_option("run", {"--io-depth", "257"}), {"--io-depth", "256"});
  expect_refused(with_option("run", {"--pin-layers", "-1"}), {"--pin-layers", "whole number"});
  for (const char* value : {"-1", "nan", "inf", "fast", ""}) {
    expect_refused({"plan", "demo", "--drive", value}, {"--drive", "a number from 0"});
  }
  expect_refused(with_option("run", {"-n", "0"}), {"-n", "whole number from 1"});
  expect_refused(with_option("eval", {"--top", "0"}), {"--top", "whole number from 1"});
}

TEST(Usage, SizesAreReadStrictly) {
  for (const char* value :
       {"", "0", "-1", "nan", "inf", "12X", "G", "1.5", "1e9", "64MB", "0M", "1..5G", "99999999T"}) {
    expect_refused(with_option("run", {"--budget", value}), {"--budget", "a size such as"});
    expect_refused({"plan", "demo", "--ram", value}, {"--ram", "a size such as"});
  }
}

TEST(Usage, ChoicesNameWhatIsAllowed) {
  expect_refused(with_option("run", {"--isa", "sse2"}), {"--isa", "scalar|avx2|avx512|neon"});
  expect_refused(with_option("run", {"--log", "loud"}), {"--log", "error|warn|info|debug"});
  expect_refused(with_option("eval", {"--logits", "some", "--json"}), {"--logits", "all|last"});
  for (const char* value : {"", "io_uring", "aio"}) {
    expect_refused(with_option("run", {"--io", value}), {"--io", "uring|threads"});
  }
  for (const char* value : {"", "fifo", "Phase"}) {
    expect_refused(with_option("run", {"--cache-policy", value}), {"--cache-policy", "phase|vote|lru"});
  }
}

TEST(Usage, TokenIdsAreReadStrictly) {
  for (const char* value : {"", ",", "1,x", "1,-2", "1.5", "99999999999"}) {
    expect_refused({"run", "demo", "--ids", value}, {"--ids"});
  }
  expect_refused({"detokenize", "demo", "1,-2"}, {"-2"});
}

TEST(Usage, OptionsWithoutTheirValueOrGivenTwiceAreRefused) {
  expect_refused({"run", "demo", "hi", "--raw", "--ctx"}, {"--ctx", "needs a value"});
  expect_refused(with_option("run", {"--ctx", "8", "--ctx", "9"}), {"--ctx", "twice"});
  expect_refused(with_option("run", {"--json=1"}), {"--json", "no value"});
}

TEST(Usage, WhatThisVersionLacksIsRefusedByNameAndItsNeutralValuePasses) {
  const std::vector<std::pair<std::string, std::string>> lacking = {
      {"--numeric", "fast"},      {"--kv", "qat"},          {"--image", "cat.png"},    {"--image-patches-max", "9"},
      {"--mirror", "/tmp"},       {"--warm", "usage.json"}, {"--session-dir", "/tmp"}, {"--session-space", "1G"},
      {"--cache-policy", "vote"}, {"--lookahead", "2"}};
  for (const char* command : {"run", "eval"}) {
    for (const auto& [option, value] : lacking) {
      expect_refused(with_option(command, {option, value}), {option, value, "not available in this version"});
    }
    expect_refused(with_option(command, {"--verify"}), {"--verify", "not available in this version"});
    const auto neutral =
        run_program(with_option(command, {"--numeric", "exact", "--kv", "exact", "--cache-policy", "lru", "--lookahead",
                                          "0", "--io", "threads", "--io-depth", "1", "--log=error"}));
    EXPECT_EQ(neutral.exit_status, 0) << neutral.error;
  }
  expect_refused({"eval", "demo", "--compare", "other"}, {"--compare", "not available in this version"});
}

TEST(Usage, AnInstructionSetThatIsNotThereIsRefused) {
#if defined(__x86_64__)
  expect_refused(with_option("run", {"--isa", "neon"}), {"neon"});
#else
  expect_refused(with_option("run", {"--isa", "avx2"}), {"avx2"});
#endif
}

TEST(Usage, ContradictionsAreRefused) {
  expect_refused({"run", "demo", "--raw", "hi", "--file", "x"}, {"--file"});
  expect_refused({"run", "demo", "--ids", "1", "hi"}, {"--ids"});
  expect_refused({"run", "demo", "--ids", "1", "--raw"}, {"--ids", "--raw"});
  expect_refused({"eval", "demo", "--ids", "1", "hi"}, {"--ids"});
  expect_refused({"eval", "demo", "hi", "--temp", "1"}, {"--temp"});
  expect_refused({"eval", "demo", "hi", "-n", "3"}, {"-n"});
  expect_refused({"eval", "demo", "hi", "--think", "high"}, {"--think", "conversations"});
  expect_refused({"eval", "demo", "hi", "--system", "x"}, {"--system", "conversations"});
  expect_refused({"eval", "demo", "hi", "--logits", "all"}, {"--logits", "--json"});
  expect_refused({"eval", "demo", "hi", "--perplexity", "--top", "3"}, {"--perplexity"});
  expect_refused({"tokenize", "demo", "hi", "--file", "x"}, {"--file"});
  expect_refused({"plan", "demo", "-n", "3"}, {"-n"});
  expect_refused({"run", "demo", "--raw", "hi", "--drive", "3"}, {"--drive"});
  expect_refused({"eval", "demo", "hi", "--ram", "3G"}, {"--ram"});
}

TEST(Usage, EmptyPromptsAreRefused) {
  expect_refused({"run", "demo", "--raw", ""}, {"empty"});
  expect_refused({"eval", "demo", ""}, {"empty"});
}

TEST(Usage, EveryCommandHelpsWithExamples) {
  const auto all = run_program({"--help"});
  EXPECT_EQ(all.exit_status, 0);
  for (const char* command : {"run", "eval", "tokenize", "detokenize", "plan", "info", "version"}) {
    EXPECT_NE(all.out.find(command), std::string::npos);
    const auto help = run_program({command, "--help"});
    EXPECT_EQ(help.exit_status, 0);
    EXPECT_NE(help.out.find(std::string("headrace ") + command), std::string::npos);
    EXPECT_NE(help.out.find("Examples:"), std::string::npos);
    EXPECT_NE(help.out.find("--json"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
