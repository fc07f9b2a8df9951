// Conversations through the public header, on the demo model, against its reference.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "headrace/headrace.hpp"

namespace {

namespace api = headrace::api;
using Json = nlohmann::json;

const std::string kDemo = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";

Json reference_prompt(const std::string& name) {
  std::ifstream file(std::string(HEADRACE_SOURCE_DIR) + "/tests/data/demo/reference.json");
  const Json reference = Json::parse(file);
  for (const Json& prompt : reference["prompts"]) {
    if (prompt["name"] == name) return prompt;
  }
  throw std::runtime_error("no such prompt: " + name);
}

Json request_of(const Json& prompt) {
  return {{"messages", prompt["messages"]},
          {"thinking", prompt["thinking"]},
          {"reasoning_effort", prompt.value("effort", Json(nullptr))}};
}

class Chat : public ::testing::Test {
 protected:
  static api::ModelOptions small_options() {
    api::ModelOptions options;
    options.budget_bytes = uint64_t{256} << 20;
    return options;
  }

  api::Reply reply(const Json& request, const api::GenerateOptions& options = {}) {
    return session_.reply(request.dump(), options, nullptr);
  }

  const Json thinking_ = reference_prompt("chat, thinking on, effort max");
  const Json plain_ = reference_prompt("chat, thinking off");
  api::Model model_{kDemo, small_options()};
  api::Session session_ = model_.create_session();
};

TEST_F(Chat, RendersTheIdsOfTheReference) {
  for (const Json& prompt : {plain_, thinking_}) {
    EXPECT_EQ(model_.tokenizer().render_chat(request_of(prompt).dump()), prompt["ids"].get<std::vector<int32_t>>());
  }
}

TEST_F(Chat, AnswersAsTheReferenceDoesInItsParts) {
  const api::Reply answer = reply(request_of(thinking_));
  std::vector<int32_t> expected = thinking_["greedy"]["ids"];
  expected.erase(std::find(expected.begin(), expected.end(), 4098) + 1, expected.end());
  EXPECT_EQ(answer.ids, expected);
  EXPECT_EQ(answer.finish, HEADRACE_FINISH_STOP);
  EXPECT_EQ(Json::parse(answer.message), Json({{"role", "assistant"},
                                               {"content", "The story is about a boy named Sam."},
                                               {"reasoning_content", "The story gives the answer."}}));
  EXPECT_EQ(answer.prompt_tokens, thinking_["ids"].size());
  EXPECT_EQ(answer.reused_tokens, 0u);
  EXPECT_EQ(model_.tokenizer().parse_chat(answer.ids, true), answer.message);
}

TEST_F(Chat, PiecesHaveTheirKindsAndJoinToTheMessage) {
  std::string reasoning, content;
  session_.reply(request_of(thinking_).dump(), {}, [&](const headrace_piece& piece) {
    (piece.kind == HEADRACE_PIECE_REASONING ? reasoning : content).append(piece.text, piece.text_bytes);
    EXPECT_NE(piece.kind, HEADRACE_PIECE_TEXT);
    return true;
  });
  EXPECT_EQ(reasoning, "The story gives the answer.");
  EXPECT_EQ(content, "The story is about a boy named Sam.");
}

TEST_F(Chat, AConversationThatGoesOnIsNotReadAgain) {
  Json request = request_of(thinking_);
  const api::Reply first = reply(request);
  request["messages"].push_back(Json::parse(first.message));
  request["messages"].push_back({{"role", "user"}, {"content", "Where did Sam live?"}});
  const api::Reply second = reply(request);
  // The last id of an answer has not passed through the model when it is chosen.
  EXPECT_EQ(second.reused_tokens, first.prompt_tokens + first.ids.size() - 1);
  EXPECT_GT(second.prompt_tokens, second.reused_tokens);

  session_.reset();
  const api::Reply fresh = reply(request);
  EXPECT_EQ(fresh.reused_tokens, 0u);
  EXPECT_EQ(fresh.ids, second.ids);
}

// A prompt that was cancelled where the conversation ends: all tokens are there, but not the logits of the last one.
TEST_F(Chat, TokensThatAreReadAgainDoNotCountAsReused) {
  const std::string request = request_of(plain_).dump();
  const std::vector<int32_t> ids = model_.tokenizer().render_chat(request);
  api::ModelOptions options = small_options();
  options.prefill_chunk_tokens = ids.size();
  api::Model model(kDemo, options);
  api::Session session = model.create_session();
  std::vector<int32_t> longer = ids;
  longer.push_back(5);
  api::GenerateOptions cancelled;
  cancelled.on_progress = [](size_t, size_t) { return false; };
  ASSERT_EQ(session.generate(longer, cancelled, nullptr).finish, HEADRACE_FINISH_CANCELLED);
  const api::Reply answer = session.reply(request, {}, nullptr);
  EXPECT_EQ(answer.reused_tokens, 0u);
  EXPECT_EQ(answer.ids, reply(request_of(plain_)).ids);
}

TEST_F(Chat, AnEditedConversationAnswersAsAFreshOne) {
  Json request = request_of(thinking_);
  reply(request);
  request["messages"][0]["content"] = request["messages"][0]["content"].get<std::string>() + " Tell me.";
  const api::Reply edited = reply(request);
  EXPECT_LT(edited.reused_tokens, edited.prompt_tokens);
  session_.reset();
  EXPECT_EQ(reply(request).ids, edited.ids);
}

TEST_F(Chat, AskingTheSameAgainGivesTheSameAgain) {
  const api::Reply first = reply(request_of(plain_));
  const api::Reply again = reply(request_of(plain_));
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.message, first.message);
}

// Clients write the arguments of a call again in their own way.
TEST_F(Chat, ACallThatComesBackInOtherSpacingIsTheSameConversation) {
  const auto request = [](const std::string& arguments) {
    const Json call = {{"id", "a"}, {"type", "function"}, {"function", {{"name", "look"}, {"arguments", arguments}}}};
    return Json{{"thinking", false},
                {"messages",
                 {{{"role", "user"}, {"content", "Look in the box."}},
                  {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
                  {{"role", "tool"}, {"tool_call_id", "a"}, {"content", "a red kite"}}}}};
  };
  api::GenerateOptions options;
  options.tokens_max = 5;
  const api::Reply first = reply(request(R"({"box":1,"deep":[true,null]})"), options);
  const api::Reply again = reply(request("{ \"box\" : 1,\n \"deep\": [true , null] }"), options);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.prompt_tokens, first.prompt_tokens);
  // Keys in another order are another text: the answer is that of a fresh session.
  const Json other_order = request(R"({"deep":[true,null],"box":1})");
  const api::Reply turned = reply(other_order, options);
  session_.reset();
  EXPECT_EQ(reply(other_order, options).ids, turned.ids);
}

TEST_F(Chat, ASeedGivesTheSameAnswerAfterOtherRequests) {
  api::GenerateOptions options;
  options.temperature = 1;
  options.seed = 7;
  options.tokens_max = 30;
  const api::Reply first = reply(request_of(plain_), options);
  options.seed = 8;
  EXPECT_NE(reply(request_of(plain_), options).ids, first.ids);
  reply(request_of(thinking_), options);
  options.seed = 7;
  EXPECT_EQ(reply(request_of(plain_), options).ids, first.ids);
}

TEST_F(Chat, ATokenLimitIsLengthAndKeepsWhatIsThere) {
  api::GenerateOptions options;
  options.tokens_max = 3;
  const api::Reply answer = reply(request_of(thinking_), options);
  EXPECT_EQ(answer.finish, HEADRACE_FINISH_LENGTH);
  EXPECT_EQ(Json::parse(answer.message),
            Json({{"role", "assistant"}, {"content", ""}, {"reasoning_content", "The story gives"}}));
}

TEST_F(Chat, StopStringsEndTheContentAlone) {
  api::GenerateOptions options;
  options.stops = {"story"};
  const api::Reply answer = reply(request_of(thinking_), options);
  EXPECT_EQ(answer.finish, HEADRACE_FINISH_STOP);
  EXPECT_EQ(Json::parse(answer.message)["content"], "The ");
  EXPECT_EQ(Json::parse(answer.message)["reasoning_content"], "The story gives the answer.");
}

TEST_F(Chat, WrongRequestsAreRefusedAndChangeNothing) {
  const api::Reply first = reply(request_of(plain_));
  const size_t tokens = session_.token_count();
  const auto refused = [&](const std::string& request, headrace_status status, const std::string& word) {
    try {
      session_.reply(request, {}, nullptr);
      ADD_FAILURE() << request;
    } catch (const api::Error& failure) {
      EXPECT_EQ(failure.status(), status) << failure.what();
      EXPECT_NE(std::string(failure.what()).find(word), std::string::npos) << failure.what();
    }
    EXPECT_EQ(session_.token_count(), tokens);
  };
  refused("", HEADRACE_ARGUMENT, "JSON");
  refused("{\"messages\":[]}", HEADRACE_ARGUMENT, "messages");
  refused(R"({"messages":[{"role":"user","content":7}]})", HEADRACE_ARGUMENT, "messages[0].content");
  refused(R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false})", HEADRACE_ARGUMENT,
          "add_generation_prompt");
  refused(R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})",
          HEADRACE_UNSUPPORTED, "image");
  const Json too_long = {{"messages", {{{"role", "user"}, {"content", std::string(400000, 'x')}}}}};
  refused(too_long.dump(), HEADRACE_ARGUMENT, "context");
  const Json far_too_long = {{"messages", {{{"role", "user"}, {"content", std::string(4000000, 'x')}}}}};
  refused(far_too_long.dump(), HEADRACE_ARGUMENT, "bytes");
  EXPECT_EQ(reply(request_of(plain_)).ids, first.ids);
}

TEST_F(Chat, TheTokenizerTellsHowTheModelConverses) {
  const Json info = Json::parse(model_.tokenizer().json());
  EXPECT_EQ(info["chat_format"], "kimi-k3");
  EXPECT_EQ(info["thinking"], true);
  EXPECT_EQ(info["sampling"], Json({{"temperature", 1.0}, {"top_p", 0.95}}));
}

TEST_F(Chat, CallsFromCAreChecked) {
  headrace_error error{};
  error.struct_size = sizeof error;
  EXPECT_EQ(headrace_session_reply(nullptr, "{}", 2, nullptr, nullptr, nullptr, nullptr, &error), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_reply(session_.handle(), nullptr, 2, nullptr, nullptr, nullptr, nullptr, &error),
            HEADRACE_ARGUMENT);
  headrace_reply reply{};
  reply.struct_size = 8;
  const std::string request = request_of(plain_).dump();
  EXPECT_EQ(headrace_session_reply(session_.handle(), request.data(), request.size(), nullptr, nullptr, nullptr, &reply,
                                   &error),
            HEADRACE_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("headrace_reply"), std::string::npos);
  char* text = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(headrace_chat_parse(nullptr, nullptr, 0, 0, &text, &bytes, &error), HEADRACE_ARGUMENT);
}

}  // namespace
