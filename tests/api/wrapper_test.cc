#include <gtest/gtest.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "headrace/headrace.hpp"

namespace {

namespace api = headrace::api;

const std::string kDemo = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";

api::ModelOptions small_options() {
  api::ModelOptions options;
  options.budget_bytes = uint64_t{256} << 20;
  options.thread_count = 1;
  return options;
}

TEST(Wrapper, ErrorsAreThrownWithTheirStatus) {
  try {
    const api::Model model("/nowhere");
    FAIL();
  } catch (const api::Error& error) {
    EXPECT_EQ(error.status(), HEADRACE_IO);
    EXPECT_NE(std::string(error.what()).find("/nowhere"), std::string::npos);
  }
}

TEST(Wrapper, GeneratesAndEvaluates) {
  api::Model model(kDemo, small_options());
  api::Session session = model.create_session();
  const std::vector<int32_t> ids = model.tokenizer().tokenize("Once upon a time", api::TextKind::kPlain);
  EXPECT_EQ(ids, (std::vector<int32_t>{483, 502, 258, 386}));
  api::GenerateOptions options;
  options.tokens_max = 5;
  const api::Generation answer = session.generate(ids, options, nullptr);
  EXPECT_EQ(answer.text, ", there was a young");
  EXPECT_EQ(model.tokenizer().detokenize(answer.ids), answer.text);
  session.reset();
  size_t count = 0;
  api::EvaluateOptions all;
  all.all_logits = true;
  session.evaluate(ids, all, [&](const headrace_token_result&) { return ++count > 0; });
  EXPECT_EQ(count, 4u);
}

TEST(Wrapper, PlansAndChangesTheBudget) {
  api::ModelOptions options = small_options();
  const std::string planned = api::plan_json(kDemo, options, 3);
  EXPECT_NE(planned.find("\"floor_bytes\":"), std::string::npos) << planned;
  EXPECT_EQ(planned.find("\"expected_tok_s\":null"), std::string::npos) << planned;
  options.budget_bytes = HEADRACE_BUDGET_FLOOR;
  options.pinned_layers = -1;
  options.io_backend = "threads";
  options.io_depth = 2;
  api::Model model(kDemo, options);
  model.set_budget(uint64_t{64} << 20);
  EXPECT_NE(model.plan_json().find("\"budget_bytes\":67108864,"), std::string::npos) << model.plan_json();
  EXPECT_NE(model.plan_json().find("\"pinned_layers\":0,"), std::string::npos);
  EXPECT_THROW(model.set_budget(1), api::Error);
}

TEST(Wrapper, ExceptionsOfCallbacksPassThroughTheLibrary) {
  api::Model model(kDemo, small_options());
  api::Session session = model.create_session();
  const std::vector<int32_t> ids = {483, 502};
  const auto throws_on_piece = [](const headrace_piece&) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW(session.generate(ids, {}, throws_on_piece), std::out_of_range);
  const auto throws_on_token = [](const headrace_token_result&) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW(session.evaluate(ids, {}, throws_on_token), std::out_of_range);
  api::GenerateOptions options;
  options.on_progress = [](size_t, size_t) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW(session.generate(ids, options, nullptr), std::out_of_range);
}

std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, count);
  EXPECT_EQ(pclose(pipe), 0);
  return output;
}

TEST(Examples, ContinueAText) {
  const std::string arguments = " '" + kDemo + "' 'Once upon a time'";
  const std::string c_output = output_of(std::string(HEADRACE_EXAMPLES "generate_c") + arguments);
  EXPECT_TRUE(c_output.starts_with(", there was a young girl named Tess.")) << c_output;
  EXPECT_EQ(output_of(std::string(HEADRACE_EXAMPLES "generate_cpp") + arguments), c_output);
}

TEST(Examples, ConverseAndKeepWhatWasRead) {
  const std::string arguments = " '" + kDemo + "' 'Tell me a story about a red kite.' 'And then?'";
  const std::string c_output = output_of(std::string(HEADRACE_EXAMPLES "chat_c") + arguments);
  EXPECT_TRUE(c_output.starts_with("Once upon a time, there was a small girl named Kira.")) << c_output;
  EXPECT_NE(c_output.find(", 0 of them kept"), std::string::npos) << c_output;
  EXPECT_EQ(c_output.find(", 0 of them kept", c_output.find("kept") + 4), std::string::npos) << c_output;
  EXPECT_EQ(output_of(std::string(HEADRACE_EXAMPLES "chat_cpp") + arguments), c_output);
}

}  // namespace
