#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "headrace/headrace.hpp"
#include "support/test_files.h"

namespace {

namespace api = headrace::api;
using headrace::test::TempFolder;
using Ids = std::vector<int32_t>;

const std::string kDemo = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";
const Ids kPrompt = {483, 502, 258, 386};

api::ModelOptions options_with(uint64_t budget_bytes, size_t threads) {
  api::ModelOptions options;
  options.budget_bytes = budget_bytes;
  options.thread_count = threads;
  return options;
}

api::GenerateOptions tokens(size_t count) {
  api::GenerateOptions options;
  options.tokens_max = count;
  options.ignore_stop_ids = true;
  return options;
}

Ids generate(api::Session& session, const Ids& prompt, size_t count) {
  return session.generate(prompt, tokens(count), nullptr).ids;
}

headrace_status status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const api::Error& error) {
    return error.status();
  }
  return HEADRACE_OK;
}

class SessionHistoryApi : public testing::Test {
 protected:
  api::Model model_{kDemo, options_with(uint64_t{256} << 20, 2)};
  api::Session session_ = model_.create_session();
};

TEST_F(SessionHistoryApi, RewindsAndAnswersAgain) {
  EXPECT_GT(session_.keep_copies(4), 0u);
  const Ids answer = generate(session_, kPrompt, 12);
  Ids all = kPrompt;
  all.insert(all.end(), answer.begin(), answer.end());
  EXPECT_EQ(session_.ids(), all);
  session_.rewind(kPrompt.size());
  EXPECT_EQ(session_.ids(), kPrompt);
  EXPECT_EQ(generate(session_, {}, 12), answer);
  session_.rewind(kPrompt.size() + 5);
  EXPECT_EQ(generate(session_, {}, 7), Ids(answer.begin() + 5, answer.end()));
  session_.mark();
  EXPECT_EQ(status_of([&] { session_.rewind(100); }), HEADRACE_ARGUMENT);
}

TEST_F(SessionHistoryApi, KeepsThePrefixThatIsWanted) {
  generate(session_, kPrompt, 3);
  Ids wanted = kPrompt;
  wanted[3] = 7;
  EXPECT_EQ(session_.keep_prefix(wanted), 3u);
  const Ids answer = generate(session_, {7}, 5);
  api::Session fresh = session_.branch();
  fresh.reset();
  EXPECT_EQ(generate(fresh, wanted, 5), answer);
}

TEST_F(SessionHistoryApi, BranchesGoOnIndependently) {
  const Ids answer = generate(session_, kPrompt, 12);
  session_.reset();
  session_.evaluate(kPrompt, {}, nullptr);
  api::Session other = session_.branch();
  EXPECT_EQ(generate(other, {}, 12), answer);
  EXPECT_EQ(generate(session_, {}, 12), answer);
}

TEST_F(SessionHistoryApi, SavedSessionsGoOnUnderAnotherBudget) {
  const TempFolder folder;
  const Ids answer = generate(session_, kPrompt, 12);
  session_.rewind(kPrompt.size() + 4);
  session_.save(folder.file("story"), "Once\0upon");
  api::Model small(kDemo, options_with(HEADRACE_BUDGET_FLOOR, 1));
  api::Session other = small.create_session();
  EXPECT_EQ(other.load(folder.file("story")), "Once");
  EXPECT_EQ(other.token_count(), kPrompt.size() + 4);
  EXPECT_EQ(generate(other, {}, 8), Ids(answer.begin() + 4, answer.end()));
  EXPECT_EQ(other.keep_copies(3), 0u);  // At the floor.
  EXPECT_EQ(status_of([&] { other.mark(); }), HEADRACE_ARGUMENT);
  EXPECT_EQ(status_of([&] { other.branch(); }), HEADRACE_BUDGET);
}

TEST_F(SessionHistoryApi, DamagedFilesAndBadPlacesAreRefusedAndChangeNothing) {
  const TempFolder folder;
  const Ids answer = generate(session_, kPrompt, 6);
  session_.rewind(kPrompt.size() + 2);
  session_.save(folder.file("story"));
  std::string bytes = headrace::test::plain_read(folder.file("story"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder.write("story", bytes);
  EXPECT_EQ(status_of([&] { session_.load(folder.file("story")); }), HEADRACE_FORMAT);
  EXPECT_EQ(status_of([&] { session_.load(folder.file("none")); }), HEADRACE_IO);
  EXPECT_EQ(status_of([&] { session_.save(folder.file("no/folder")); }), HEADRACE_IO);
  EXPECT_EQ(status_of([&] { session_.save(folder.path()); }), HEADRACE_ARGUMENT);
  EXPECT_EQ(generate(session_, {}, 4), Ids(answer.begin() + 2, answer.end()));
}

TEST_F(SessionHistoryApi, NullHandlesAndPlacesAreRefused) {
  size_t count = 0;
  int32_t* ids = nullptr;
  headrace_session* const session = session_.handle();
  EXPECT_EQ(headrace_session_ids(nullptr, &ids, &count, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_ids(session, nullptr, &count, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_branch(session, nullptr, nullptr), HEADRACE_ARGUMENT);
  headrace_session* branch = session;
  EXPECT_EQ(headrace_session_branch(nullptr, &branch, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_rewind(nullptr, 0, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_keep_prefix(session, nullptr, 1, &count, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_keep_prefix(session, nullptr, 0, nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_keep_copies(nullptr, 1, &count, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_keep_copies(session, 1, nullptr, nullptr), HEADRACE_OK);
  EXPECT_EQ(headrace_session_mark(nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_save(session, nullptr, nullptr, 0, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_load(session, nullptr, nullptr, nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_save(nullptr, "x", nullptr, 0, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_load(nullptr, "x", nullptr, nullptr, nullptr), HEADRACE_ARGUMENT);
}

}  // namespace
