// Sessions as files, with fakes: a fake state whose parts do not fit each other ends the program.

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "engine/fakes.h"
#include "engine/session.h"
#include "engine/snapshot_format.h"
#include "support/failing_writes.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::g_calls;
using test::g_fail_at;
using test::kFailingCalls;

using test::fake_engine;
using test::FakeScript;
using test::generate;
using test::ids_of;
using test::kIgnorePiece;
using test::kIgnoreToken;
using test::kNoProgress;
using test::plain_read;
using Ids = std::vector<TokenId>;

constexpr size_t kHeaderBytes = SnapshotHeader::kBytes;

EngineOptions options_with(size_t context_tokens) {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = size_t{1} << 30;
  options.context_tokens = context_tokens;
  options.thread_count = 1;
  return options;
}

size_t file_count(const test::TempFolder& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

/// A file with hashes that fit its bytes again.
std::string with_hashes(std::string bytes) {
  const uint64_t header = XXH3_128bits(bytes.data(), 120).low64;
  std::memcpy(bytes.data() + 120, &header, 8);
  const XXH128_hash_t whole = XXH3_128bits(bytes.data(), bytes.size() - 16);
  std::memcpy(bytes.data() + bytes.size() - 16, &whole.low64, 8);
  std::memcpy(bytes.data() + bytes.size() - 8, &whole.high64, 8);
  return bytes;
}

std::string put(std::string bytes, size_t offset, uint32_t number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
  return bytes;
}

class SessionFile : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = fake_engine(script_, {}, options_with(64));
    session_ = engine_->create_session().take_value();
  }
  std::string path() const { return folder_.file("session"); }
  /// What is saved of a sequence of six tokens, the last of which has not run.
  std::string saved() {
    EXPECT_TRUE(session_->reset());
    generate(*session_, {1, 2, 3}, 3);
    EXPECT_TRUE(session_->save(path()));
    return plain_read(path());
  }
  /// Loading is refused, with this code, and the session goes on as if nothing had been tried.
  void expect_refused(Code code, const std::string& words = "") {
    ASSERT_TRUE(session_->reset());
    generate(*session_, {8, 9}, 2);
    const Ids before = ids_of(*session_);
    const Status refused = session_->load(path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code) << refused.error().message;
    EXPECT_NE(refused.error().message.find(path()), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
    EXPECT_EQ(ids_of(*session_), before);
    EXPECT_EQ(generate(*session_, {}, 2), (Ids{12, 13}));
  }

  test::TempFolder folder_;
  FakeScript script_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionFile, IsGoneOnFromInAnotherEngine) {
  saved();
  FakeScript script;
  const auto engine = fake_engine(script, {}, options_with(20));
  const auto other = engine->create_session().take_value();
  generate(*other, {7, 7, 7}, 5);  // What was there goes.
  ASSERT_TRUE(other->load(path()));
  EXPECT_EQ(ids_of(*other), (Ids{1, 2, 3, 4, 5, 6}));
  script.chunk_sizes.clear();
  EXPECT_EQ(generate(*other, {}, 3), (Ids{7, 8, 9}));
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(generate(*session_, {}, 3), (Ids{7, 8, 9}));  // Saving changed nothing.
}

TEST_F(SessionFile, KnownLogitsNeedNoPass) {
  ASSERT_TRUE(session_->evaluate(Ids{1, 2, 3}, {}, kIgnoreToken, kNoProgress));
  ASSERT_TRUE(session_->save(path()));
  ASSERT_TRUE(session_->reset());
  ASSERT_TRUE(session_->load(path()));
  script_.chunk_sizes.clear();
  EXPECT_EQ(generate(*session_, {}, 1), (Ids{4}));
  EXPECT_TRUE(script_.chunk_sizes.empty());
}

TEST_F(SessionFile, HoldsWhatItsDescriptionSays) {
  const std::string bytes = saved();
  // Header, 6 ids, logits of 16, a recurrent part of 2 numbers, 5 positions, hash.
  EXPECT_EQ(bytes.size(), 128u + 24 + 64 + 8 + 20 + 16);
  const int32_t ids[] = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(std::memcmp(bytes.data() + 128, ids, sizeof ids), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 128 + 24 + 64 + 8, ids, 20), 0);
  float logits[16] = {};
  std::memcpy(logits, bytes.data() + 128 + 24, sizeof logits);
  for (size_t id = 0; id < 16; ++id) EXPECT_EQ(logits[id], id == 6 ? 1 : 0);
  EXPECT_EQ(bytes, with_hashes(bytes));
}

TEST_F(SessionFile, KeepsTheNoteOfItsCallerByteForByte) {
  generate(*session_, {1, 2, 3}, 3);
  for (const std::string& note :
       {std::string(), std::string("a\0c", 3), std::string("four"), std::string(9999, '\xff')}) {
    ASSERT_TRUE(session_->save(path(), note));
    EXPECT_EQ(plain_read(path()).size() % 4, 0u);
    std::string loaded = "not this";
    ASSERT_TRUE(session_->load(path(), &loaded));
    EXPECT_EQ(loaded, note);
  }
  EXPECT_EQ(session_->save(path(), std::string((16 << 20) + 1, 'x')).error().code, Code::kArgument);
}

TEST_F(SessionFile, EmptyCancelledAndFullSequencesComeBack) {
  ASSERT_TRUE(session_->save(path()));
  generate(*session_, {5}, 2);
  ASSERT_TRUE(session_->load(path()));
  EXPECT_EQ(session_->token_count(), 0u);
  EXPECT_EQ(generate(*session_, {5}, 2), (Ids{6, 7}));
  // Most of a prompt has not run.
  ASSERT_TRUE(session_->reset());
  session_->cancel();
  EXPECT_EQ(session_->generate(Ids{1, 2, 3, 4}, {}, kIgnorePiece, kNoProgress).value().finish, Finish::kCancelled);
  ASSERT_TRUE(session_->save(path()));
  ASSERT_TRUE(session_->load(path()));
  EXPECT_EQ(generate(*session_, {}, 1), (Ids{5}));
  // One token more than the context can run is known.
  ASSERT_TRUE(session_->reset());
  generate(*session_, Ids(60, 1), 0);
  EXPECT_EQ(session_->token_count(), 65u);
  ASSERT_TRUE(session_->save(path()));
  ASSERT_TRUE(session_->load(path()));
  EXPECT_EQ(session_->token_count(), 65u);
}

TEST_F(SessionFile, CanBeRewoundAndBranchedOnceItIsBack) {
  saved();
  ASSERT_TRUE(session_->load(path()));
  ASSERT_TRUE(session_->rewind(2));
  EXPECT_EQ(generate(*session_, {}, 2), (Ids{3, 4}));
  ASSERT_TRUE(session_->load(path()));
  const auto other = session_->branch().take_value();
  EXPECT_EQ(generate(*other, {}, 1), (Ids{7}));
  EXPECT_EQ(generate(*session_, {}, 1), (Ids{7}));
}

TEST_F(SessionFile, SnapshotsOfAnotherSequenceAreForgotten) {
  ASSERT_EQ(session_->reserve_snapshots(4).value(), 4u);
  saved();
  ASSERT_TRUE(session_->reset());
  generate(*session_, {9, 9, 9, 9}, 4);
  ASSERT_TRUE(session_->load(path()));
  ASSERT_TRUE(session_->rewind(5));
  EXPECT_EQ(generate(*session_, {}, 2), (Ids{6, 7}));
}

TEST_F(SessionFile, TruncatedAnywhereOrContinuedIsRefused) {
  const std::string bytes = saved();
  for (size_t size = 0; size < bytes.size(); ++size) {
    folder_.write("session", bytes.substr(0, size));
    expect_refused(Code::kFormat);
  }
  folder_.write("session", bytes + '\0');
  expect_refused(Code::kFormat);
  folder_.write("session", bytes + bytes);
  expect_refused(Code::kFormat);
}

TEST_F(SessionFile, AFlippedBitInAnyByteIsRefused) {
  const std::string bytes = saved();
  for (size_t byte = 0; byte < bytes.size(); ++byte) {
    const size_t bit = byte % 8;
    std::string damaged = bytes;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
    folder_.write("session", damaged);
    const bool is_greater_version = byte >= 8 && byte < 12 && !(byte == 8 && bit == 0);
    expect_refused(is_greater_version ? Code::kUnsupported : Code::kFormat);
  }
}

TEST_F(SessionFile, WhatDoesNotFitIsRefusedWithAReason) {
  const std::string bytes = saved();
  folder_.write("session", with_hashes(put(bytes, 16, 77)));
  expect_refused(Code::kArgument, "another model");
  folder_.write("session", with_hashes(put(bytes, 32, 1)));
  expect_refused(Code::kArgument, "numeric mode");
  folder_.write("session", with_hashes(put(bytes, kHeaderBytes + 8, 16)));
  expect_refused(Code::kFormat, "token id 16");
  folder_.write("session", with_hashes(put(bytes, kHeaderBytes, UINT32_MAX)));
  expect_refused(Code::kFormat, "token id -1");
  const uint32_t nan = 0x7fc00000;
  for (const size_t offset : {kHeaderBytes + 24, kHeaderBytes + 24 + 64, bytes.size() - 20}) {
    folder_.write("session", with_hashes(put(bytes, offset, nan)));
    expect_refused(Code::kFormat, "not finite");
  }
  folder_.write("session", with_hashes(put(bytes, 8, 2)));
  expect_refused(Code::kUnsupported, "newer version");
  // Of a model with a larger state: a fake of the same fingerprint.
  FakeScript script;
  script.recurrent_numbers = 3;
  const auto engine = fake_engine(script, {}, options_with(64));
  const auto other = engine->create_session().take_value();
  ASSERT_TRUE(other->save(path()));
  expect_refused(Code::kFormat, "sizes");
}

TEST_F(SessionFile, AForeignFileIsRefused) {
  folder_.write("session", std::string(100000, 'x'));
  expect_refused(Code::kFormat, "no snapshot");
  folder_.write("session", "");
  expect_refused(Code::kFormat, "no snapshot");
  std::filesystem::remove(path());
  expect_refused(Code::kIo);
  std::filesystem::create_directory(path());
  expect_refused(Code::kIo);
}

TEST_F(SessionFile, OneThatIsLongerThanTheContextIsRefused) {
  ASSERT_TRUE(session_->evaluate(Ids(21, 1), {}, kIgnoreToken, kNoProgress));
  ASSERT_TRUE(session_->save(path()));
  FakeScript script;
  const auto engine = fake_engine(script, {}, options_with(20));
  const auto other = engine->create_session().take_value();
  const Status refused = other->load(path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_NE(refused.error().message.find("21 tokens"), std::string::npos) << refused.error().message;
  EXPECT_EQ(generate(*other, {3}, 1), (Ids{4}));
}

TEST_F(SessionFile, ASessionThatFailedCannotBeSavedButLoaded) {
  saved();
  script_.fail_pass = script_.pass_count;
  EXPECT_FALSE(session_->generate(Ids{1}, {}, kIgnorePiece, kNoProgress));
  EXPECT_EQ(session_->save(path()).error().code, Code::kArgument);
  ASSERT_TRUE(session_->load(path()));
  EXPECT_EQ(generate(*session_, {}, 1), (Ids{7}));
}

TEST_F(SessionFile, ACallbackCannotSaveOrLoad) {
  saved();
  const auto meddle = [&](const AnswerPiece&) {
    EXPECT_EQ(session_->save(path()).error().code, Code::kArgument);
    EXPECT_EQ(session_->load(path()).error().code, Code::kArgument);
    return true;
  };
  ASSERT_TRUE(session_->generate(Ids{1}, {.tokens_max = 2}, meddle, kNoProgress));
}

TEST_F(SessionFile, NothingIsTakenOfTheBudget) {
  const size_t used = engine_->budget().used_bytes();
  const size_t peak = engine_->budget().peak_bytes();
  saved();
  ASSERT_TRUE(session_->load(path()));
  EXPECT_EQ(engine_->budget().used_bytes(), used);
  EXPECT_EQ(engine_->budget().peak_bytes(), peak);
}

// ---- Failing calls ----

TEST_F(SessionFile, WhicheverWriteFailsTheOldFileSurvivesAndTheSessionGoesOn) {
  const std::string old = saved();
  FakeScript script;
  script.recurrent_numbers = 5000;  // More than the buffer: many writes.
  EngineSources sources = test::fake_sources(script);
  sources.write_calls = &kFailingCalls;
  const auto engine = Engine::open(options_with(64), sources).take_value();
  const auto session = engine->create_session().take_value();
  TokenId last = generate(*session, {3}, 2).back();
  g_fail_at = -1;
  g_calls = 0;
  ASSERT_TRUE(session->save(path()));
  const int calls = g_calls;
  EXPECT_GE(calls, 6);
  for (g_fail_at = 0; g_fail_at < calls; ++g_fail_at) {
    g_calls = 0;
    folder_.write("session", old);
    const Status status = session->save(path());
    ASSERT_FALSE(status) << g_fail_at;
    EXPECT_EQ(status.error().code, Code::kIo);
    EXPECT_EQ(file_count(folder_), 1u);
    // The last call sends the folder to the drive: the new file has its name by then.
    const bool is_old = plain_read(path()) == old;
    EXPECT_EQ(is_old, g_fail_at < calls - 1) << g_fail_at;
    const TokenId next = generate(*session, {}, 1).back();
    EXPECT_EQ(next, (last + 1) % 16);
    last = next;
  }
  ASSERT_TRUE(session->load(path()));
}

TEST_F(SessionFile, WhicheverReadFailsBeforeTheFileIsKnownToBeSoundNothingChanges) {
  saved();
  test::FaultPlan plan;
  EngineSources sources = test::fake_sources(script_);
  sources.opener = test::faulty_opener(open_file, plan);
  const auto engine = Engine::open(options_with(64), sources).take_value();
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(session->load(path()));
  const uint64_t reads = plan.read_count;
  ASSERT_EQ(reads, 2u);
  for (uint64_t n = 0; n < reads; ++n) {
    ASSERT_TRUE(session->reset());
    generate(*session, {8, 9}, 2);
    plan.reset_counts();
    plan.fail_at = n;
    EXPECT_EQ(session->load(path()).error().code, Code::kIo);
    plan.fail_at = test::FaultPlan::kNever;
    if (n == 0) {
      EXPECT_EQ(generate(*session, {}, 1), (Ids{12}));
    } else {
      EXPECT_EQ(session->generate(Ids{1}, {}, kIgnorePiece, kNoProgress).error().code, Code::kArgument);
      ASSERT_TRUE(session->load(path()));
      EXPECT_EQ(generate(*session, {}, 1), (Ids{7}));
    }
  }
  plan.reset_counts();
  plan.fail_open_at = 0;
  EXPECT_EQ(session->load(path()).error().code, Code::kIo);
  EXPECT_EQ(generate(*session, {}, 1), (Ids{8}));
}

/// A file whose bytes are others when it is read a second time.
class ChangingFile : public ReadableFile {
 public:
  ChangingFile(std::string path, std::string first, std::string second)
      : path_(std::move(path)), contents_{std::move(first), std::move(second)} {}
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return contents_[0].size(); }
  size_t block_bytes() const override { return 1; }
  bool is_direct() const override { return false; }
  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    if (offset == 0) ++round_;
    const std::string& contents = contents_[round_ - 1];
    const size_t size = std::min(out.size(), contents.size() - static_cast<size_t>(offset));
    std::memcpy(out.data(), contents.data() + offset, size);
    return size;
  }

 private:
  std::string path_;
  std::string contents_[2];
  size_t round_ = 0;
};

TEST_F(SessionFile, AFileThatChangesWhileItIsReadIsNoticed) {
  const std::string good = saved();
  const std::string changes[] = {
      put(good, kHeaderBytes + 24 + 64, 1),               // Damaged,
      with_hashes(put(good, kHeaderBytes + 24 + 64, 1)),  // or sound, but another,
      with_hashes(put(good, kHeaderBytes, 99999)),        // which was not looked at;
      with_hashes(put(good, 48, 4)),                      // or another header.
  };
  for (const std::string& changed : changes) {
    EngineSources sources = test::fake_sources(script_);
    sources.opener = [&](const std::string& path, ReadMode) -> Result<std::unique_ptr<ReadableFile>> {
      return std::unique_ptr<ReadableFile>(std::make_unique<ChangingFile>(path, good, changed));
    };
    const auto engine = Engine::open(options_with(64), sources).take_value();
    const auto session = engine->create_session().take_value();
    generate(*session, {8, 9}, 2);
    const Status refused = session->load(path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
    EXPECT_EQ(session->generate(Ids{1}, {}, kIgnorePiece, kNoProgress).error().code, Code::kArgument);
    ASSERT_TRUE(session->reset());
    EXPECT_EQ(generate(*session, {8, 9}, 2), (Ids{10, 11}));
  }
}

}  // namespace
}  // namespace headrace
