// Real models: whatever a session does with its history, what follows has the bits of a session that did nothing else.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/session.h"
#include "kernels/dispatch.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;
using Logits = std::vector<std::vector<float>>;

constexpr auto kNoProgress = [](size_t, size_t) { return true; };

struct EngineSetup {
  size_t threads = 1;
  size_t chunk_tokens = 0;
  bool is_floor = false;
  std::string isa = {};
};

std::unique_ptr<Engine> open(const std::string& folder, const EngineSetup& setup) {
  EngineOptions options;
  options.budget_kind = setup.is_floor ? EngineOptions::BudgetKind::kFloor : EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = size_t{1} << 30;
  options.context_tokens = 96;
  options.thread_count = setup.threads;
  options.isa = setup.isa;
  options.prefill_chunk_tokens = setup.chunk_tokens;
  options.logits_rows = 64;
  options.reads.backend = ReadBackendKind::kThreads;
  auto engine = Engine::open(options, EngineSources::folder(folder));
  EXPECT_TRUE(engine) << engine.error().message;
  return engine.take_value();
}

Ids some_ids(size_t count, TokenId seed) {
  Ids ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<TokenId>((static_cast<size_t>(seed) + i * i * 7) % 250);
  return ids;
}

/// Logits after each of `ids`.
Logits evaluate(Session& session, const Ids& ids) {
  Logits logits;
  const auto keep = [&](const EvaluatedToken& token) {
    logits.emplace_back(token.logits.begin(), token.logits.end());
    return true;
  };
  const Status status = session.evaluate(ids, {.all_logits = true}, keep, kNoProgress);
  EXPECT_TRUE(status) << status.error().message;
  return logits;
}

/// Sessions that never did anything else, in the plainest engine.
class Plainest {
 public:
  explicit Plainest(const std::string& folder)
      : engine_(open(folder, {.threads = 1, .chunk_tokens = 1, .isa = "scalar"})),
        session_(engine_->create_session().take_value()) {}

  Logits after(const Ids& before, const Ids& ids) {
    EXPECT_TRUE(session_->reset());
    evaluate(*session_, before);
    return evaluate(*session_, ids);
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

class SessionBits : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    folder_.write(test::tiny_checkpoint(GetParam() ? test::tiny_k3_config() : test::tiny_linear_config()));
  }
  const std::string& folder() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Models, SessionBits, testing::Bool(),
                         [](const auto& instance) { return std::string(instance.param ? "K3" : "Linear"); });

const std::vector<EngineSetup> kSetups = {{1, 1, false}, {3, 5, false}, {2, 64, true}, {2, 0, false}};

TEST_P(SessionBits, ARewoundSessionGoesOnAsAFreshOne) {
  const Ids first = some_ids(17, 3), second = some_ids(21, 90), other = some_ids(9, 33);
  Ids all = first;
  all.insert(all.end(), second.begin(), second.end());
  const size_t places[] = {5, 17, 18, 30, 38};
  std::vector<Logits> want;
  Plainest plainest(folder());
  for (const size_t tokens : places) {
    want.push_back(plainest.after({all.begin(), all.begin() + static_cast<ptrdiff_t>(tokens)}, other));
  }
  for (const EngineSetup& setup : kSetups) {
    const auto engine = open(folder(), setup);
    const auto session = engine->create_session().take_value();
    EXPECT_EQ(session->reserve_snapshots(3).value(), setup.is_floor ? 0u : 3u);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(session->reset());
      evaluate(*session, first);
      evaluate(*session, second);
      ASSERT_TRUE(session->rewind(places[i]));
      EXPECT_EQ(evaluate(*session, other), want[i]) << places[i] << " of " << all.size();
      // And once more, from what was kept meanwhile.
      ASSERT_TRUE(session->rewind(places[i]));
      EXPECT_EQ(evaluate(*session, other), want[i]);
    }
  }
}

TEST_P(SessionBits, BranchesGoOnAsFreshOnes) {
  const Ids first = some_ids(13, 1), left = some_ids(8, 60), right = some_ids(11, 17);
  Plainest plainest(folder());
  const Logits want_left = plainest.after(first, left);
  const Logits want_right = plainest.after(first, right);
  for (const EngineSetup& setup : kSetups) {
    if (setup.is_floor) continue;  // Holds one session.
    const auto engine = open(folder(), setup);
    const auto session = engine->create_session().take_value();
    evaluate(*session, first);
    const auto other = session->branch().take_value();
    EXPECT_EQ(evaluate(*session, left), want_left);
    EXPECT_EQ(evaluate(*other, right), want_right);
  }
}

TEST_P(SessionBits, SavedSessionsGoOnElsewhereAsIfNothingHadHappened) {
  const Ids first = some_ids(19, 5), rest = some_ids(12, 71);
  Plainest plainest(folder());
  const Logits want = plainest.after(first, rest);
  std::vector<EngineSetup> setups = kSetups;
  for (const Kernels* kernels : usable_kernels()) setups.push_back({2, 7, false, kernels->name});
  const test::TempFolder files;
  std::string bytes;
  for (size_t i = 0; i < setups.size(); ++i) {
    const auto engine = open(folder(), setups[i]);
    const auto session = engine->create_session().take_value();
    evaluate(*session, first);
    const std::string path = files.file(std::to_string(i));
    Status status = session->save(path);
    ASSERT_TRUE(status) << status.error().message;
    // The same bytes, whoever wrote them; read by the next.
    if (i == 0) bytes = test::plain_read(path);
    EXPECT_TRUE(test::plain_read(path) == bytes) << i;
    const auto other = open(folder(), setups[(i + 1) % setups.size()]);
    const auto loaded = other->create_session().take_value();
    status = loaded->load(path);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(evaluate(*loaded, rest), want) << i;
    EXPECT_EQ(evaluate(*session, rest), want) << i;
  }
}

TEST_P(SessionBits, ASessionOfAnotherModelIsRefused) {
  const test::TempFolder files;
  const auto engine = open(folder(), {});
  const auto session = engine->create_session().take_value();
  evaluate(*session, {1, 2, 3});
  ASSERT_TRUE(session->save(files.file("a")));
  const test::TempFolder other_folder;
  auto config = GetParam() ? test::tiny_k3_config() : test::tiny_linear_config();
  (GetParam() ? config["text_config"] : config)["rms_norm_eps"] = 3e-5;
  other_folder.write(test::tiny_checkpoint(config));
  const auto other = open(other_folder.path(), {});
  const auto refused = other->create_session().take_value()->load(files.file("a"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_NE(refused.error().message.find("another model"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace headrace
