#include <gtest/gtest.h>

#include <cmath>
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
using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json plan(const Words& more) {
  return run_for_json(joined({"plan", "demo", "--json"}, more));
}

TEST(PlanCommand, JsonHasEveryKeyOfTheContract) {
  const Json at_floor = plan({"--budget", "floor"});
  for (const char* key : {"floor_bytes", "budget_bytes", "fixed_bytes", "ring_bytes", "pinned_bytes", "slots",
                          "slot_bytes", "chunk_tokens", "bytes_per_token", "prefill_bytes"}) {
    EXPECT_TRUE(at_floor[key].is_number_unsigned()) << key;
  }
  EXPECT_TRUE(at_floor.contains("expected_tok_s"));
  EXPECT_TRUE(at_floor["expected_tok_s"].is_null());
  EXPECT_EQ(at_floor["name"], "Kimi K3");
}

TEST(PlanCommand, ThePiecesMakeUpTheBudget) {
  for (const char* budget : {"floor", "30M", "32M", "34M", "64M", "1G"}) {
    const Json plan_of = plan({"--budget", budget});
    const auto bytes = [&](const char* key) { return plan_of[key].get<uint64_t>(); };
    EXPECT_EQ(bytes("fixed_bytes") + bytes("ring_bytes") + bytes("pinned_bytes") +
                  bytes("slots") * bytes("slot_bytes") + bytes("spare_bytes"),
              bytes("budget_bytes"))
        << budget;
    EXPECT_EQ(bytes("pinned_layers") + bytes("streamed_layers"), 6u);
  }
}

TEST(PlanCommand, TheTextSaysWhatIsWhere) {
  const auto result = run_program({"plan", "demo", "--budget", "32M", "--drive", "5"});
  EXPECT_EQ(result.exit_status, 0) << result.error;
  EXPECT_EQ(result.error, "");
  for (const char* word :
       {"Kimi K3", "context of 4096 tokens", "budget", "32.0 MiB", "floor", "fixed", "ring", "pinned", "of 6 layers",
        "expert slots", "of 160 experts", "per token", "prompt", "tokens/s"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << "no " << word << " in\n" << result.out;
  }
}

TEST(PlanCommand, BelowTheFloorThePlanIsPrintedAndTheStatusIsThree) {
  const std::string floor = plan({"--budget", "floor"})["floor_bytes"].dump();
  const std::string below = std::to_string(std::stoull(floor) - 1);
  for (const char* budget : {"1", "1K", "25M"}) {
    const auto text = run_program({"plan", "demo", "--budget", budget});
    EXPECT_EQ(text.exit_status, 3) << budget;
    EXPECT_NE(text.out.find("below the floor"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find(floor), std::string::npos) << text.out;
    EXPECT_NE(text.error.find(floor), std::string::npos) << text.error;
    const auto json = run_program({"plan", "demo", "--budget", budget, "--json"});
    EXPECT_EQ(json.exit_status, 3);
    EXPECT_EQ(Json::parse(json.out)["fits"], false);
    EXPECT_EQ(Json::parse(json.out)["floor_bytes"].dump(), floor);
  }
  EXPECT_EQ(run_program({"plan", "demo", "--budget", below}).exit_status, 3);
  EXPECT_EQ(run_program({"plan", "demo", "--budget", floor}).exit_status, 0);
}

TEST(PlanCommand, TheFloorIsTheOneThatRunNames) {
  const std::string floor = plan({"--budget", "floor"})["floor_bytes"].dump();
  const std::string below = std::to_string(std::stoull(floor) - 1);
  const auto refused = run_program({"run", "demo", "--raw", "Once", "--budget", below});
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_NE(refused.error.find(floor), std::string::npos) << refused.error;
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(run_program({"run", "demo", "--raw", "Once", "-n", "2", "--budget", floor}).exit_status, 0);
}

TEST(PlanCommand, APlanIsWhatARunThenDoes) {
  for (const char* budget : {"floor", "31M", "34M", "128M"}) {
    const Words common = {"--budget", budget, "--ctx", "512", "--threads", "1"};
    const Json planned = plan(common);
    const Json stats =
        run_for_json(joined({"run", "demo", "--raw", "Once upon a time", "-n", "4", "--json"}, common))["stats"];
    EXPECT_EQ(stats["budget_bytes"], planned["budget_bytes"]);
    EXPECT_EQ(stats["expert_slots"], planned["slots"]) << budget;
    EXPECT_EQ(stats["pinned_layers"], planned["pinned_layers"]) << budget;
    EXPECT_EQ(stats["streamed_layers"], planned["streamed_layers"]) << budget;
    EXPECT_LE(stats["budget_used_bytes"], stats["budget_bytes"]);
  }
}

TEST(PlanCommand, ALongerContextHasAHigherFloor) {
  EXPECT_LT(plan({"--budget", "floor", "--ctx", "64"})["floor_bytes"], plan({"--budget", "floor"})["floor_bytes"]);
}

TEST(PlanCommand, TheSpeedIsThatOfTheDriveOverTheBytesOfAToken) {
  const Json at_floor = plan({"--budget", "floor", "--drive", "5"});
  EXPECT_NEAR(at_floor["expected_tok_s"].get<double>(), 5e9 / at_floor["bytes_per_token"].get<double>(), .01);
}

TEST(PlanCommand, TheMemoryOfAnotherMachineGivesItsAutomaticBudget) {
  EXPECT_EQ(plan({"--ram", "1G"})["budget_bytes"], uint64_t{858993459});
}

TEST(PlanCommand, LayersArePinnedAsAskedFor) {
  for (const int layers : {0, 1, 4, 6}) {
    EXPECT_EQ(plan({"--pin-layers", std::to_string(layers)})["pinned_layers"], layers);
  }
  const auto refused = run_program({"plan", "demo", "--pin-layers", "7"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_NE(refused.error.find("6"), std::string::npos) << refused.error;
}

TEST(PlanCommand, DamagedAndMissingModelsAreRefusedAsByRun) {
  EXPECT_EQ(run_program({"plan", "/nowhere/model"}).exit_status, 5);
  const TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_linear_config()));
  folder.write("config.json", "{\"model_type\": \"gpt2\"}");
  EXPECT_EQ(run_program({"plan", folder.path()}).exit_status, 4);
}

// P1 again, for what is about memory and reading.
TEST(RunCommand, TheTextIsTheSameHoweverWeightsAreReadAndKept) {
  const Words base = {"run", "demo", "--raw", "Once upon a time, a cow", "-n", "12", "--json"};
  const Json expected = run_for_json(base)["ids"];
  std::vector<Words> variants = {{"--io", "threads"},
                                 {"--io", "threads", "--budget", "floor", "--io-depth", "1"},
                                 {"--io-depth", "256", "--budget", "64M"},
                                 {"--cache-policy", "lru", "--budget", "floor"},
                                 {"--cache-policy", "phase", "--budget", "31M"},
                                 {"--pin-layers", "0"},
                                 {"--pin-layers", "3", "--budget", "40M"},
                                 {"--budget", "floor", "--no-direct-io"}};
  if (run_program({"version"}).out.find("io_uring") != std::string::npos) {
    variants.push_back({"--io", "uring"});
    variants.push_back({"--io", "uring", "--budget", "floor", "--io-depth", "3"});
  }
  for (const Words& variant : variants) {
    const Json result = run_for_json(joined(base, variant));
    EXPECT_EQ(result["ids"], expected) << variant[0] << " " << variant[1];
  }
}

TEST(RunCommand, TheBackEndThatWasAskedForReads) {
  const Words base = {"run", "demo", "--raw", "Once", "-n", "2", "--json", "--io"};
  EXPECT_EQ(run_for_json(joined(base, {"threads"}))["stats"]["io_backend"], "threads");
  const auto uring = run_program(joined(base, {"uring"}));
  if (uring.exit_status == 2) {
    EXPECT_NE(uring.error.find("io_uring"), std::string::npos) << uring.error;
    GTEST_SKIP() << "io_uring does not work here: " << uring.error;
  }
  EXPECT_EQ(Json::parse(uring.out)["stats"]["io_backend"], "io_uring");
}

TEST(RunCommand, AtTheFloorLayersAreStreamed) {
  const Json stats =
      run_for_json({"run", "demo", "--raw", "Once upon a time", "-n", "4", "--budget", "floor", "--json"})["stats"];
  EXPECT_EQ(stats["streamed_layers"], 6);
  EXPECT_EQ(stats["pinned_layers"], 0);
  EXPECT_GT(stats["blocks_streamed"], 0);
  EXPECT_EQ(stats["expert_slots"], 6);
  EXPECT_GT(stats["expert_misses"], 0);
}

}  // namespace
}  // namespace headrace
