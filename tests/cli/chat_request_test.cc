#include "cli/chat_request.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

using cli::ChatRequest;

ChatRequest some_request() {
  ChatRequest request;
  request.set_system("Be brief.");
  request.set_thinking("low");
  request.add_user("Hi");
  request.add_reply(R"({"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]})");
  return request;
}

TEST(ChatRequest, HasTheSystemMessageFirstAndTheEffortOfItsThinking) {
  EXPECT_EQ(some_request().json(),
            R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},)"
            R"({"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}],)"
            R"("reasoning_effort":"low"})");
}

TEST(ChatRequest, WhatIsSavedComesBack) {
  ChatRequest restored;
  ASSERT_TRUE(restored.restore(some_request().saved()));
  EXPECT_EQ(restored.json(), some_request().json());
}

TEST(ChatRequest, WhatWasNotSavedByItChangesNothing) {
  const std::string deep(100'000, '[');
  const std::string nested = R"({"system":"","thinking":"","messages":[)" + deep + std::string(100'000, ']') + "]}";
  for (const std::string& text : {std::string(), std::string("{}"), std::string("[1]"), std::string("not JSON"), deep,
                                  nested, std::string(R"({"system":"","thinking":"","messages":{}})"),
                                  std::string(R"({"system":1,"thinking":"","messages":[]})"),
                                  std::string(R"({"system":"","thinking":"loud","messages":[]})"),
                                  std::string(R"({"system":"","thinking":"","messages":[1]})")}) {
    ChatRequest request = some_request();
    EXPECT_FALSE(request.restore(text)) << text.substr(0, 80);
    EXPECT_EQ(request.json(), some_request().json());
  }
}

}  // namespace
}  // namespace headrace
