#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using test::run_for_json;
using test::run_program;
using test::TempFolder;

TEST(TokenizeCommand, PrintsIdsOfTheArgument) {
  const auto result = run_program({"tokenize", "demo", "Once upon a time"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, "483,502,258,386\n");
  EXPECT_EQ(run_for_json({"tokenize", "demo", "Once upon a time", "--json"})["ids"],
            (std::vector<int>{483, 502, 258, 386}));
}

TEST(TokenizeCommand, BytesPassUnchangedThroughFileAndStandardInput) {
  using namespace std::string_literals;  // The length counts the zero byte.
  const std::string text = "  tab\t, \r\n\n zero \0 emoji \xF0\x9F\x98\x80 broken \xFF\xC3 end\n"s;
  const TempFolder folder;
  folder.write("text", text);
  const auto from_file = run_program({"tokenize", "demo", "--file", folder.file("text")});
  const auto from_input = run_program({"tokenize", "demo"}, {.input = text});
  EXPECT_EQ(from_file.exit_status, 0);
  EXPECT_EQ(from_file.out, from_input.out);
  EXPECT_EQ(run_program({"tokenize", "demo", "--file", "-"}, {.input = text}).out, from_input.out);
  EXPECT_EQ(run_program({"detokenize", "demo"}, {.input = from_input.out}).out, text);
  const std::string ids = from_input.out.substr(0, from_input.out.size() - 1);
  EXPECT_EQ(run_program({"detokenize", "demo", ids}).out, text);
}

TEST(TokenizeCommand, ControlTokensAreTextUnlessMarkupIsAskedFor) {
  const std::string text = "a<|open|>b";
  EXPECT_EQ(run_program({"tokenize", "demo", text}).out.find("4099"), std::string::npos);
  EXPECT_NE(run_program({"tokenize", "demo", text, "--markup"}).out.find("4099"), std::string::npos);
}

TEST(TokenizeCommand, AnEmptyTextHasNoIds) {
  EXPECT_EQ(run_program({"tokenize", "demo", ""}).out, "\n");
  EXPECT_EQ(run_for_json({"tokenize", "demo", "", "--json"})["ids"].size(), 0u);
  EXPECT_EQ(run_program({"detokenize", "demo", ""}).out, "");
}

TEST(TokenizeCommand, NeitherLoadsWeights) {
  const TempFolder folder;
  folder.write(test::tiny_tokenizer(true));  // No config.json, no tensors.
  EXPECT_EQ(run_program({"tokenize", folder.path(), "hi"}).exit_status, 0);
  EXPECT_EQ(run_program({"detokenize", folder.path(), "1,2"}).exit_status, 0);
}

TEST(DetokenizeCommand, IdsOutsideTheVocabularyAreWrongUse) {
  for (const char* ids : {"4352", "2147483647", "0,1,99999"}) {
    const auto result = run_program({"detokenize", "demo", ids});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_EQ(result.out, "");
  }
}

TEST(DetokenizeCommand, JsonIsValidUtf8WhateverTheBytesAre) {
  const auto ids = run_program({"tokenize", "demo"}, {.input = "\xFFok"}).out;
  EXPECT_EQ(run_for_json({"detokenize", "demo", ids, "--json"})["text"], "\xEF\xBF\xBDok");
}

TEST(InfoCommand, TellsWhatTheModelIs) {
  const auto info = run_for_json({"info", "demo", "--json"});
  EXPECT_EQ(info["family"], "kimi");
  EXPECT_EQ(info["name"], "Kimi K3");
  EXPECT_EQ(info["layers"], 6);
  EXPECT_EQ(info["moe_layers"], 5);
  EXPECT_EQ(info["experts"], 32);
  EXPECT_EQ(info["experts_per_token"], 4);
  EXPECT_EQ(info["expert_bytes"], 19584);
  EXPECT_EQ(info["expert_format"], "MXFP4");
  EXPECT_EQ(info["tensors"], 1116);
  EXPECT_EQ(info["layer_kinds"],
            (std::vector<std::string>{"kda+dense", "kda+moe", "kda+moe", "mla+moe", "kda+moe", "mla+moe"}));
  EXPECT_NEAR(info["parameters"].get<double>(), 9.7e6, 0.1e6);
  const auto help = run_program({"info", "--help"}).out;
  for (const auto& [key, value] : info.items()) EXPECT_NE(help.find(key), std::string::npos) << key;
  const auto readable = run_program({"info", "demo"});
  EXPECT_EQ(readable.exit_status, 0);
  EXPECT_NE(readable.out.find("Kimi K3"), std::string::npos);
}

TEST(VersionCommand, TellsBuildInstructionSetsAndIo) {
  const auto version = run_for_json({"version", "--json"});
  EXPECT_EQ(version["isas"].back(), "scalar");
  EXPECT_EQ(version["io_backends"].back(), "threads");
  EXPECT_EQ(version["io_backends"][0], version["io_backend"]);
  const auto readable = run_program({"version"}).out;
  for (const auto& key : {"version", "compiler", "isa", "io_backend"}) {
    EXPECT_NE(readable.find(version[key].get<std::string>()), std::string::npos) << key;
  }
  EXPECT_EQ(run_program({"--version"}).out, readable);
}

}  // namespace
}  // namespace headrace
