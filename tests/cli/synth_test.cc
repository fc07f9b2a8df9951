#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
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
using Words = std::vector<std::string>;

/// A folder with the config file of a tiny model.
class SynthCommand : public testing::Test {
 protected:
  SynthCommand() { folder_.write("shape.json", test::tiny_k3_config().dump()); }

  test::ProgramResult synth(const Words& options, const test::ProgramSetup& setup = {}) const {
    Words words = {"synth", folder_.file("shape.json"), out()};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words, setup);
  }
  std::string out() const { return folder_.file("out"); }
  bool is_there() const { return std::filesystem::exists(out()); }

  const TempFolder folder_;
};

TEST_F(SynthCommand, WritesAModelThatRuns) {
  const auto result = synth({"--share-layers", "1", "--layers", "7", "--expert-count", "8", "--seed", "3"});
  ASSERT_EQ(result.exit_status, 0) << result.error;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.error.find("written in"), std::string::npos) << result.error;
  const auto info = run_for_json({"info", out(), "--json"});
  EXPECT_EQ(info["synthetic"], "shared 1");
  EXPECT_EQ(info["layers"], 7);
  EXPECT_EQ(info["experts"], 8);
  EXPECT_NE(run_program({"info", out()}).out.find("\nsynthetic: shared 1\n"), std::string::npos);
  EXPECT_EQ(run_for_json({"run", out(), "--ids", "1,2,3", "-n", "4", "--json"})["ids"].size(), 4u);
}

TEST_F(SynthCommand, SaysThatAModelWithAllItsLayersIsMadeUpToo) {
  ASSERT_EQ(synth({"--tensor-order", "scattered"}).exit_status, 0);
  EXPECT_EQ(run_for_json({"info", out(), "--json"})["synthetic"], "shared 0");
  EXPECT_EQ(run_for_json({"info", "demo", "--json"})["synthetic"], nullptr);
}

TEST_F(SynthCommand, RefusesWhatItLacksByName) {
  for (const Words& options :
       {Words{"--routing", "trace.bin"}, Words{"--vision-only"}, Words{"--tensor-order", "random"},
        Words{"--share-layers", "0"}, Words{"--layers", "many"}, Words{"--ctx", "9"}}) {
    const auto result = synth(options);
    EXPECT_EQ(result.exit_status, 2) << options[0];
    EXPECT_NE(result.error.find(options[0]), std::string::npos) << result.error;
    EXPECT_FALSE(is_there());
  }
  const auto shape = run_program({"synth", "deepseek-v4-flash", out()});
  EXPECT_EQ(shape.exit_status, 2);
  EXPECT_NE(shape.error.find("deepseek-v4-flash: not available in this version"), std::string::npos) << shape.error;
  EXPECT_EQ(run_program({"synth", "kimi-k3"}).exit_status, 2);
  EXPECT_EQ(run_program({"synth"}).exit_status, 2);
}

TEST_F(SynthCommand, AFolderInUseIsWrongUse) {
  const auto result = run_program({"synth", folder_.file("shape.json"), folder_.path()});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.error.find("not empty"), std::string::npos) << result.error;
  EXPECT_TRUE(std::filesystem::exists(folder_.file("shape.json")));
}

TEST_F(SynthCommand, ADamagedShapeIsABadFile) {
  folder_.write("shape.json", "{");
  EXPECT_EQ(synth({}).exit_status, 4);
  EXPECT_FALSE(is_there());
}

TEST_F(SynthCommand, AWriteThatFailsLeavesNothing) {
  const auto limit_files = [] {
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  const auto result = synth({}, {.in_child = limit_files});
  EXPECT_EQ(result.exit_status, 5) << result.error;
  EXPECT_NE(result.error.find(".safetensors"), std::string::npos) << result.error;
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace headrace
