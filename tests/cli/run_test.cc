#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/program.h"
#include "support/sanitizers.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using test::plain_read;
using test::run_for_json;
using test::run_program;
using test::TempFolder;

const std::string kBegin = ", there was a young girl named Tess.";

nlohmann::json reference_prompts() {
  return nlohmann::json::parse(
      plain_read(std::string(HEADRACE_SOURCE_DIR) + "/tests/data/demo/reference.json"))["prompts"];
}

std::string joined(const nlohmann::json& ids) {
  std::string text;
  for (const auto& id : ids) text += (text.empty() ? "" : ",") + id.dump();
  return text;
}

TEST(RunCommand, ContinuesTextAsTheReferenceDoes) {
  const auto greedy = reference_prompts()[0]["greedy"];
  const auto result = run_program({"run", "demo", "--raw", "Once upon a time", "-n", "40"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, greedy["text"].get<std::string>());
  EXPECT_NE(result.error.find("tokens/s"), std::string::npos);
  EXPECT_NE(result.error.find("budget"), std::string::npos);
}

TEST(RunCommand, GreedyIdsOfEveryReferencePromptUpToTheStopId) {
  for (const auto& prompt : reference_prompts()) {
    const auto result = run_for_json({"run", "demo", "--ids", joined(prompt["ids"]), "-n", "40", "--json"});
    std::vector<int> expected = prompt["greedy"]["ids"];
    const auto stop = std::ranges::find(expected, 4098);
    if (stop != expected.end()) expected.erase(stop + 1, expected.end());
    EXPECT_EQ(result["ids"].get<std::vector<int>>(), expected) << prompt["name"];
    EXPECT_EQ(result["finish"], stop == expected.end() && expected.back() != 4098 ? "length" : "stop");
  }
}

// The story that models/demo/README.md shows. It ends with [EOS], which the configuration does not name.
TEST(RunCommand, AStoryEndsByItself) {
  const auto result = run_for_json({"run", "demo", "--raw", "Once upon a time", "--json"});
  const std::string end = "Tess never forgot that a thing is more fun when it is shared.";
  const std::string text = result["text"];
  EXPECT_TRUE(text.ends_with(end)) << text;
  EXPECT_EQ(result["finish"], "stop");
  EXPECT_EQ(result["ids"].back(), 4097);
  const std::string readme = plain_read(std::string(HEADRACE_SOURCE_DIR) + "/models/demo/README.md");
  EXPECT_NE(readme.find("Once upon a time" + text), std::string::npos);
}

TEST(RunCommand, JsonHasEveryKeyOfTheContract) {
  const auto result = run_for_json({"run", "demo", "--raw", "Once upon a time", "-n", "12", "--json"});
  EXPECT_EQ(result["text"].get<std::string>().substr(0, 20), kBegin.substr(0, 20));
  EXPECT_EQ(result["ids"].size(), 12u);
  EXPECT_EQ(result["finish"], "length");
  EXPECT_EQ(result["reasoning"], "");
  EXPECT_EQ(result["tool_calls"], nlohmann::json::array());
  EXPECT_EQ(result["stats"]["tokens"], 12);
  EXPECT_EQ(result["stats"]["prompt_tokens"], 4);
  EXPECT_GT(result["stats"]["peak_rss_bytes"], 0);
}

TEST(RunCommand, TakesThePromptFromAFileAndFromStandardInput) {
  const TempFolder folder;
  folder.write("prompt", "Once upon a time");
  const std::string expected = run_program({"run", "demo", "--raw", "Once upon a time", "-n", "8"}).out;
  EXPECT_EQ(run_program({"run", "demo", "--raw", "--file", folder.file("prompt"), "-n", "8"}).out, expected);
  EXPECT_EQ(run_program({"run", "demo", "--raw", "-n", "8"}, {.input = "Once upon a time"}).out, expected);
  EXPECT_EQ(run_program({"run", "demo", "-n", "8", "--raw", "--", "Once upon a time"}).out, expected);
}

TEST(RunCommand, StopStringsAreNotPrinted) {
  const auto result = run_for_json({"run", "demo", "--raw", "Once upon a time", "-n", "40", "--stop", "named Tess",
                                    "--stop", "never there", "--json"});
  EXPECT_EQ(result["text"], ", there was a young girl ");
  EXPECT_EQ(result["finish"], "stop");
  EXPECT_EQ(run_program({"run", "demo", "--raw", "Once upon a time", "--stop", "named Tess"}).out,
            ", there was a young girl ");
}

// P1: what must not change the text.
TEST(RunCommand, TheTextIsTheSameOnEveryPath) {
  const std::vector<std::string> base = {"run", "demo", "--raw", "Once upon a time, a cow", "-n", "24"};
  const std::string expected = run_program(base).out;
  ASSERT_FALSE(expected.empty());
  const std::vector<std::vector<std::string>> variants = {{"--threads", "1"},
                                                          {"--threads", "3"},
                                                          {"--budget", "40M"},
                                                          {"--budget", "floor"},
                                                          {"--prefill-chunk", "1"},
                                                          {"--prefill-chunk", "3"},
                                                          {"--isa", "scalar"},
                                                          {"--no-direct-io"},
                                                          {"--ctx", "64"},
                                                          {"--temp", "1e-8"},
                                                          {"--temp", "1", "--top-k", "1"},
                                                          {"--temp", "1", "--top-p", "0"}};
  for (const auto& variant : variants) {
    auto words = base;
    words.insert(words.end(), variant.begin(), variant.end());
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_status, 0) << variant[0] << "\n" << result.error;
    EXPECT_EQ(result.out, expected) << variant[0];
  }
}

TEST(RunCommand, ASeedGivesTheSameTextStreamedOrNot) {
  const std::vector<std::string> base = {"run", "demo", "--raw", "Once upon a", "-n", "24", "--temp", "1.5", "--seed"};
  const auto with = [&](std::vector<std::string> more) {
    auto words = base;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string first = run_program(with({"7"})).out;
  EXPECT_EQ(run_program(with({"7"})).out, first);
  EXPECT_EQ(run_for_json(with({"7", "--json"}))["text"], first);
  EXPECT_NE(run_program(with({"8"})).out, first);
}

TEST(RunCommand, AContextThatIsFullEndsTheAnswer) {
  const auto result = run_for_json({"run", "demo", "--raw", "Once upon a time", "--ctx", "10", "--json"});
  EXPECT_EQ(result["finish"], "length");
  EXPECT_EQ(result["ids"].size(), 7u);
  const auto refused = run_program({"run", "demo", "--raw", "Once upon a time", "--ctx", "3"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_NE(refused.error.find("4 tokens do not fit a context of 3"), std::string::npos) << refused.error;
  const auto beyond = run_program({"run", "demo", "--raw", "Once", "--ctx", "4097"});
  EXPECT_EQ(beyond.exit_status, 2);
  EXPECT_NE(beyond.error.find("4096"), std::string::npos) << beyond.error;
}

TEST(RunCommand, IdsOutsideTheVocabularyAreWrongUse) {
  const auto result = run_program({"run", "demo", "--ids", "1,4352"});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.error.find("4352"), std::string::npos);
}

TEST(RunCommand, BudgetsBelowTheFloorExitWithThree) {
  for (const char* budget : {"1", "1K", "25M", "29M"}) {
    const auto result = run_program({"run", "demo", "--raw", "Once", "--budget", budget});
    EXPECT_EQ(result.exit_status, 3) << budget << "\n" << result.error;
    EXPECT_NE(result.error.find("floor of"), std::string::npos) << result.error;
    EXPECT_EQ(result.out, "");
  }
}

TEST(RunCommand, PeakMemoryStaysBelowTheBudget) {
  if (test::kIsSanitized) GTEST_SKIP() << "the ceiling is not tested: sanitizers take memory of their own";
  for (const char* budget : {"floor", "64M"}) {
    const auto stats =
        run_for_json({"run", "demo", "--raw", "Once upon a time", "-n", "8", "--budget", budget, "--json"})["stats"];
    EXPECT_LE(stats["budget_used_bytes"], stats["budget_bytes"]);
    EXPECT_LE(stats["peak_rss_bytes"], stats["budget_bytes"]) << budget;
  }
}

TEST(RunCommand, DamagedAndUnsupportedModelsExitWithFour) {
  const TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_linear_config()));
  folder.write("config.json", "{\"model_type\": \"gpt2\"}");
  const auto unsupported = run_program({"run", folder.path(), "--ids", "1,2"});
  EXPECT_EQ(unsupported.exit_status, 4) << unsupported.error;
  EXPECT_NE(unsupported.error.find("gpt2"), std::string::npos);
  folder.write("config.json", "{");
  EXPECT_EQ(run_program({"run", folder.path(), "--ids", "1,2"}).exit_status, 4);
}

TEST(RunCommand, TruncatedShardsNeverGiveText) {
  const TempFolder folder;
  const auto files = test::tiny_checkpoint(test::tiny_linear_config());
  folder.write(files);
  for (const auto& [name, contents] : files) {
    if (!name.ends_with(".safetensors")) continue;
    for (const size_t size : {contents.size() - 1, contents.size() / 2, size_t{0}}) {
      std::filesystem::resize_file(folder.file(name), size);
      const auto result = run_program({"run", folder.path(), "--ids", "1,2"});
      EXPECT_EQ(result.exit_status, 4) << name << " of " << size << "\n" << result.error;
      EXPECT_NE(result.error.find(name), std::string::npos) << result.error;
      EXPECT_EQ(result.out, "");
    }
    folder.write(name, contents);
  }
  EXPECT_EQ(run_program({"run", folder.path(), "--ids", "1,2", "-n", "2"}).exit_status, 0);
}

TEST(RunCommand, ModelsAndFilesThatAreNotThereExitWithFive) {
  const auto no_model = run_program({"run", "/nowhere/model", "--raw", "x"});
  EXPECT_EQ(no_model.exit_status, 5);
  EXPECT_NE(no_model.error.find("/nowhere/model"), std::string::npos);
  const auto no_file = run_program({"run", "demo", "--raw", "--file", "/nowhere/file"});
  EXPECT_EQ(no_file.exit_status, 5);
  EXPECT_NE(no_file.error.find("/nowhere/file"), std::string::npos);
  const TempFolder folder;
  folder.write("file", "");
  EXPECT_EQ(run_program({"run", folder.file("file"), "--raw", "x"}).exit_status, 5);
}

TEST(RunCommand, ControlCStopsCleanlyAndKeepsTheTextSoFar) {
  const auto result = run_program({"run", "demo", "--raw", "Once upon a time", "-n", "4000"},
                                  {.on_first_output = [](pid_t child) { kill(child, SIGINT); }});
  EXPECT_EQ(result.exit_status, 6) << result.error;
  EXPECT_EQ(result.out.substr(0, 1), ",");
  EXPECT_NE(result.error.find("tokens/s"), std::string::npos) << "no statistics: " << result.error;
}

TEST(RunCommand, ControlCIsToldInJsonAndStatistics) {
  const TempFolder folder;
  // With --json nothing comes before the end, so the signal comes by an alarm that the program inherits. This seed's
  // noise goes on for 3,878 tokens, some seconds.
  const auto result = run_program({"run", "demo", "--raw", "Once upon a time", "-n", "4000", "--temp", "5", "--seed",
                                   "9", "--json", "--stats", folder.file("stats")},
                                  {.in_child = [] {
                                    const pid_t parent = getpid();
                                    if (fork() == 0) {
                                      usleep(800000);
                                      kill(parent, SIGINT);
                                      _exit(0);
                                    }
                                  }});
  EXPECT_EQ(result.exit_status, 6) << result.error;
  if (result.out.empty()) GTEST_SKIP() << "the signal came before the session: this machine is too busy to tell";
  EXPECT_EQ(nlohmann::json::parse(result.out)["finish"], "cancelled");
  EXPECT_TRUE(nlohmann::json::parse(plain_read(folder.file("stats"))).contains("tokens"));
}

TEST(RunCommand, AReaderThatIsGoneEndsTheRunQuietly) {
  const auto result = run_program({"run", "demo", "--raw", "Once upon a time", "-n", "100"}, {.close_output = true});
  EXPECT_EQ(result.exit_status, 5);
  EXPECT_EQ(result.error.find("Broken pipe"), std::string::npos);
}

TEST(RunCommand, StatisticsReplaceTheFileBehindALinkAndKeepItsMode) {
  const TempFolder folder;
  folder.write("real.json", "old");
  std::filesystem::permissions(folder.file("real.json"), std::filesystem::perms::owner_read);
  std::filesystem::create_symlink("real.json", folder.file("link.json"));
  const auto result = run_program({"run", "demo", "--raw", "Once", "-n", "2", "--stats", folder.file("link.json")});
  EXPECT_EQ(result.exit_status, 0) << result.error;
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.json")));
  EXPECT_TRUE(nlohmann::json::parse(plain_read(folder.file("real.json"))).contains("tokens"));
  EXPECT_EQ(std::filesystem::status(folder.file("real.json")).permissions(), std::filesystem::perms::owner_read);
}

TEST(RunCommand, StatisticsToStandardOutputLeaveItsNameAlone) {
  const auto result = run_program({"run", "demo", "--raw", "Once", "-n", "2", "--json", "--stats", "/dev/stdout"});
  EXPECT_EQ(result.exit_status, 0) << result.error;
  EXPECT_NE(result.out.find("\"finish\""), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

TEST(RunCommand, APromptThatCannotFitIsRefusedBeforeItIsRead) {
  const TempFolder folder;
  folder.write("prompt", std::string(4096 * 256 + 1, 'a'));
  const auto result = run_program({"run", "demo", "--raw", "--file", folder.file("prompt")});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.error.find("prompt"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("budget"), std::string::npos) << "the model was opened first";
}

TEST(RunCommand, ARankFileWithoutItsLastLinesIsRefused) {
  const TempFolder folder;
  std::filesystem::copy(std::string(HEADRACE_SOURCE_DIR) + "/models/demo", folder.file("model"));
  std::string ranks = plain_read(folder.file("model/tiktoken.model"));
  for (int lines = 0; lines < 97; ++lines) ranks.erase(ranks.rfind('\n', ranks.size() - 2) + 1);
  folder.write("model/tiktoken.model", ranks);
  const auto result = run_program({"run", folder.file("model"), "--ids", "1,2", "-n", "2"});
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_NE(result.error.find("tokenizer"), std::string::npos) << result.error;
  EXPECT_EQ(result.out, "");
}

TEST(RunCommand, HalfATokenizerIsRefused) {
  for (const char* missing : {"tiktoken.model", "tokenizer_config.json"}) {
    const TempFolder folder;
    std::filesystem::copy(std::string(HEADRACE_SOURCE_DIR) + "/models/demo", folder.file("model"));
    std::filesystem::remove(folder.file("model") + "/" + missing);
    const auto result = run_program({"run", folder.file("model"), "--ids", "1,2", "-n", "2"});
    EXPECT_EQ(result.exit_status, 4) << missing;
    EXPECT_NE(result.error.find(missing), std::string::npos) << result.error;
  }
}

TEST(RunCommand, WritesNothingWithoutBeingAsked) {
  const auto forbid_writing = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
  };
  for (const char* backend : {"uring", "threads"}) {
    for (const char* budget : {"floor", "64M"}) {
      const auto result =
          run_program({"run", "demo", "--raw", "Once upon a time", "-n", "12", "--io", backend, "--budget", budget},
                      {.in_child = forbid_writing});
      if (result.exit_status == 2) continue;  // No io_uring here.
      EXPECT_EQ(result.exit_status, 0) << result.error;
      EXPECT_EQ(result.out.substr(0, 20), kBegin.substr(0, 20));
    }
  }
  const TempFolder folder;
  const auto stats = run_program({"run", "demo", "--raw", "Once", "-n", "2", "--stats", folder.file("stats")},
                                 {.in_child = forbid_writing});
  EXPECT_EQ(stats.exit_status, 5);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a torn file was left behind";
}

TEST(RunCommand, OutputThatCannotBeWrittenIsAFailedWrite) {
  const auto full = [] {
    const int device = open("/dev/full", O_WRONLY);
    dup2(device, STDOUT_FILENO);
  };
  EXPECT_EQ(run_program({"run", "demo", "--raw", "Once", "-n", "2"}, {.in_child = full}).exit_status, 5);
  EXPECT_EQ(run_program({"version"}, {.in_child = full}).exit_status, 5);
}

TEST(RunCommand, StatisticsFileHasTheCountersAndReplacesAnOldOne) {
  const TempFolder folder;
  folder.write("stats", "old");
  ASSERT_EQ(
      run_program({"run", "demo", "--raw", "Once upon a time", "-n", "3", "--stats", folder.file("stats")}).exit_status,
      0);
  const auto stats = nlohmann::json::parse(plain_read(folder.file("stats")));
  EXPECT_EQ(stats["tokens"], 3);
  EXPECT_GT(stats["bytes_read"], 0);
  EXPECT_EQ(stats["bytes_read"], stats["bytes_read_trunk"].get<uint64_t>() +
                                     stats["bytes_read_experts"].get<uint64_t>() +
                                     stats["bytes_read_head"].get<uint64_t>());
  EXPECT_GT(stats["expert_misses"], 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace headrace
