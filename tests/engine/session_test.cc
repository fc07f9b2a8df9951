#include "engine/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/fakes.h"

namespace headrace {
namespace {

using test::fake_engine;
using test::FakeScript;
using test::let_win;

constexpr auto kNoProgress = [](size_t, size_t) { return true; };
constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
constexpr auto kIgnoreToken = [](const EvaluatedToken&) { return true; };

using Ids = std::vector<TokenId>;

Result<Generation> generate(Session& session, const Ids& prompt, const GenerateOptions& options) {
  return session.generate(prompt, options, kIgnorePiece, kNoProgress);
}

std::vector<std::string> letters(size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.emplace_back(1, static_cast<char>('a' + i));
  return texts;
}

TEST(Session, GeneratesUpToTheTokenLimit) {
  FakeScript script;
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  const Generation answer = generate(*session, {3}, {.tokens_max = 4}).value();
  EXPECT_EQ(answer.ids, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(answer.text, "efgh");
  EXPECT_EQ(answer.finish, Finish::kLength);
  EXPECT_EQ(session->token_count(), 5u);
}

TEST(Session, StopsAtAStopIdWithoutItsText) {
  FakeScript script;
  script.stop_ids = {9, 6};
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  std::vector<TokenId> piece_ids;
  const auto keep = [&](const AnswerPiece& piece) {
    piece_ids.push_back(piece.id);
    return true;
  };
  const Generation answer = session->generate(Ids{3}, {.tokens_max = 40}, keep, kNoProgress).value();
  EXPECT_EQ(answer.ids, (Ids{4, 5, 6}));
  EXPECT_EQ(answer.text, "ef");
  EXPECT_EQ(answer.finish, Finish::kStop);
  EXPECT_EQ(piece_ids, answer.ids);
}

TEST(Session, StopsAtTheEndOfTextOfATokenizerWithoutChatFormat) {
  FakeScript script;
  script.stop_ids = {9};
  std::vector<std::string> texts = letters(16);
  texts[6] = "[EOS]";
  const auto engine = fake_engine(script, texts);
  const auto session = engine->create_session().take_value();
  const Generation answer = generate(*session, {3}, {.tokens_max = 40}).value();
  EXPECT_EQ(answer.ids, (Ids{4, 5, 6}));
  EXPECT_EQ(answer.finish, Finish::kStop);
}

TEST(Session, StopIdsAreTokensLikeOthersWhenAskedFor) {
  FakeScript script;
  script.stop_ids = {5};
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(generate(*session, {3}, {.tokens_max = 3, .ignore_stop_ids = true}).value().ids, (Ids{4, 5, 6}));
}

TEST(Session, StopsAtAStopStringOverTwoTokensAndDoesNotPrintIt) {
  FakeScript script;
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  std::string streamed;
  const auto keep = [&](const AnswerPiece& piece) {
    streamed += piece.text;
    return true;
  };
  const Generation answer =
      session->generate(Ids{1}, {.tokens_max = 40, .stops = {"ef", "zzz"}}, keep, kNoProgress).value();
  EXPECT_EQ(answer.text, "cd");
  EXPECT_EQ(streamed, "cd");
  EXPECT_EQ(answer.finish, Finish::kStop);
  EXPECT_EQ(answer.ids, (Ids{2, 3, 4, 5}));
}

TEST(Session, HeldBackTextIsReleasedAtTheEnd) {
  FakeScript script;
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  std::vector<std::string> pieces;
  TokenId last_id = 0;
  const auto keep = [&](const AnswerPiece& piece) {
    pieces.emplace_back(piece.text);
    last_id = piece.id;
    return true;
  };
  const Generation answer = session->generate(Ids{1}, {.tokens_max = 2, .stops = {"cdx"}}, keep, kNoProgress).value();
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "", "cd"}));
  EXPECT_EQ(last_id, -1);
  EXPECT_EQ(answer.text, "cd");
}

TEST(Session, EveryStreamedPieceIsValidUtf8) {
  FakeScript script;
  script.vocabulary = 5;
  const auto engine = fake_engine(script, {"x", "\xF0\x9F", "\x98", "\x80", "ok\xF0\x9F"});
  const auto session = engine->create_session().take_value();
  std::vector<std::string> pieces;
  const auto keep = [&](const AnswerPiece& piece) {
    pieces.emplace_back(piece.text);
    return true;
  };
  const Generation answer = session->generate(Ids{0}, {.tokens_max = 4}, keep, kNoProgress).value();
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "", "\xF0\x9F\x98\x80", "ok", "\xEF\xBF\xBD"}));
  EXPECT_EQ(answer.text, "\xF0\x9F\x98\x80ok\xEF\xBF\xBD");
}

TEST(Session, AModelWithoutTokenizerGivesIdsWithoutText) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  const Generation answer = generate(*session, {3}, {.tokens_max = 2}).value();
  EXPECT_EQ(answer.ids, (Ids{4, 5}));
  EXPECT_EQ(answer.text, "");
}

TEST(Session, AFullContextEndsTheAnswer) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.context_tokens = 8});
  const auto session = engine->create_session().take_value();
  // Eight tokens of context: after a prompt of five, three more can be run, and one more is known.
  const Generation answer = generate(*session, {0, 1, 2, 3, 4}, {}).value();
  EXPECT_EQ(answer.ids, (Ids{5, 6, 7, 8}));
  EXPECT_EQ(answer.finish, Finish::kLength);
  const auto more = generate(*session, {}, {});
  EXPECT_FALSE(more);
}

TEST(Session, APromptThatDoesNotFitIsRefusedBeforeAnyWork) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.context_tokens = 8});
  const auto session = engine->create_session().take_value();
  const auto refused = generate(*session, Ids(9, 1), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_EQ(refused.error().message, "9 tokens do not fit a context of 8");
  EXPECT_EQ(script.pass_count, 0u);
  EXPECT_EQ(generate(*session, Ids(8, 1), {}).value().ids.size(), 1u);
}

TEST(Session, TokenIdsOutsideTheVocabularyAreRefusedByNumber) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  for (const TokenId id : {-1, 16, std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()}) {
    const auto refused = generate(*session, {1, id}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kArgument);
    EXPECT_NE(refused.error().message.find("number 2"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(generate(*session, {0, 15}, {.tokens_max = 1}));
}

TEST(Session, GenerationNeedsAToken) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  const auto refused = generate(*session, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
}

TEST(Session, BadOptionsAreRefusedBeforeAnyWork) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  GenerateOptions hot;
  hot.sampling.temperature = -1;
  EXPECT_EQ(generate(*session, {1}, hot).error().code, Code::kArgument);
  EXPECT_EQ(generate(*session, {1}, {.stops = {""}}).error().code, Code::kArgument);
  EXPECT_EQ(script.pass_count, 0u);
  EXPECT_EQ(session->token_count(), 0u);
}

TEST(Session, PenaltiesSeeThePromptAndTheAnswerEachAsTheyAreDefined) {
  FakeScript script;
  script.fill_logits = [](std::span<const TokenId>, std::span<float> logits) {
    for (size_t id = 0; id < logits.size(); ++id) logits[id] = static_cast<float>(logits.size() - id);  // 16, 15, ...
  };
  const auto engine = fake_engine(script);
  const auto run = [&](const SamplingOptions& sampling) {
    const auto session = engine->create_session().take_value();
    return generate(*session, {0, 1}, {.tokens_max = 4, .sampling = sampling}).value().ids;
  };
  EXPECT_EQ(run({}), (Ids{0, 0, 0, 0}));
  // Both tokens of the prompt count for repetition: 8, 7.5, 14, 13, ...
  EXPECT_EQ(run({.repetition_penalty = 2}), (Ids{2, 3, 4, 5}));
  EXPECT_EQ(run({.repetition_penalty = 2, .penalty_window = 1}), (Ids{0, 1, 0, 1}));
  // The prompt does not count for the others.
  EXPECT_EQ(run({.presence_penalty = 1.5}), (Ids{0, 1, 0, 0}));
  EXPECT_EQ(run({.frequency_penalty = 1.5}), (Ids{0, 1, 0, 2}));
  EXPECT_EQ(run({.logit_bias = {{0, -100}, {5, 10}}}), (Ids{5, 5, 5, 5}));
}

TEST(Session, BiasesThatLeaveNothingEndTheCallButNotTheSession) {
  FakeScript script;
  script.vocabulary = 2;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  GenerateOptions options;
  options.sampling.logit_bias = {{0, -100}, {1, -100}};
  const auto refused = generate(*session, {1}, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 2}).value().ids, (Ids{0, 1}));
  options.sampling.logit_bias = {{2, 0}};
  EXPECT_EQ(generate(*session, {1}, options).error().code, Code::kArgument);
}

TEST(Session, PromptsPassThroughInChunks) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 4});
  const auto session = engine->create_session().take_value();
  Ids prompt(10);
  std::iota(prompt.begin(), prompt.end(), 0);
  std::vector<std::pair<size_t, size_t>> progress;
  const auto keep = [&](size_t done, size_t total) {
    progress.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(session->generate(prompt, {.tokens_max = 2}, kIgnorePiece, keep));
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{4, 4, 2, 1}));
  EXPECT_EQ(progress, (std::vector<std::pair<size_t, size_t>>{{4, 10}, {8, 10}, {10, 10}}));
}

TEST(Session, ASecondCallContinuesTheSequence) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, {3}, {.tokens_max = 2}));
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 2}).value().ids, (Ids{6, 7}));
  EXPECT_EQ(generate(*session, {1, 10}, {.tokens_max = 1}).value().ids, (Ids{11}));
  const Ids all(session->ids().begin(), session->ids().end());
  EXPECT_EQ(all, (Ids{3, 4, 5, 6, 7, 1, 10, 11}));
}

TEST(Session, TheModelSeesEveryTokenOnce) {
  FakeScript script;
  Ids seen;
  script.fill_logits = [&](std::span<const TokenId> sequence, std::span<float> logits) {
    seen.assign(sequence.begin(), sequence.end());
    let_win(logits, 2);
  };
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, {3}, {.tokens_max = 2}));
  ASSERT_TRUE(generate(*session, {7, 8}, {.tokens_max = 1}));
  EXPECT_EQ(seen, (Ids{3, 2, 2, 7, 8}));
}

TEST(Session, ResetStartsAnew) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, {3}, {.tokens_max = 2}));
  ASSERT_TRUE(session->reset());
  EXPECT_EQ(session->token_count(), 0u);
  EXPECT_EQ(generate(*session, {9}, {.tokens_max = 1}).value().ids, (Ids{10}));
}

TEST(Session, ACallbackCancelsAndKeepsTheAnswerSoFar) {
  FakeScript script;
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  int pieces = 0;
  const auto stop_at_second = [&](const AnswerPiece&) { return ++pieces < 2; };
  const Generation answer = session->generate(Ids{3}, {.tokens_max = 9}, stop_at_second, kNoProgress).value();
  EXPECT_EQ(answer.finish, Finish::kCancelled);
  EXPECT_EQ(answer.text, "ef");
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 1}).value().ids, (Ids{6}));
}

TEST(Session, CancelStopsAtTheNextTokenAndCountsOnce) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  script.on_pass = [&] {
    if (script.pass_count == 3) session->cancel();  // During the fourth pass: as from another thread.
  };
  const Generation answer = generate(*session, {3}, {.tokens_max = 9}).value();
  EXPECT_EQ(answer.finish, Finish::kCancelled);
  EXPECT_EQ(answer.ids, (Ids{4, 5, 6}));
  script.on_pass = nullptr;
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 1}).value().finish, Finish::kLength);
}

TEST(Session, CancelDuringAPromptStopsAtTheNextChunkAndTheRestIsTakenInLater) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 2});
  const auto session = engine->create_session().take_value();
  script.on_pass = [&] {
    if (script.pass_count == 1) session->cancel();
  };
  EXPECT_EQ(generate(*session, {1, 2, 3, 4, 5, 6}, {.tokens_max = 9}).value().finish, Finish::kCancelled);
  EXPECT_EQ(script.pass_count, 2u);
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 1}).value().ids, (Ids{7}));
}

TEST(Session, CancelThatComesWithTheLastTokenDoesNotStopTheNextCall) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  const auto cancel = [&](const AnswerPiece&) {
    session->cancel();
    return true;
  };
  EXPECT_EQ(session->generate(Ids{1}, {.tokens_max = 1}, cancel, kNoProgress).value().finish, Finish::kLength);
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 2}).value().ids.size(), 2u);
  const auto cancel_in_progress = [&](size_t done, size_t total) {
    if (done == total) session->cancel();
    return true;
  };
  EXPECT_TRUE(session->evaluate(Ids{5}, {}, kIgnoreToken, cancel_in_progress));
  EXPECT_EQ(generate(*session, {}, {.tokens_max = 2}).value().ids.size(), 2u);
}

TEST(Session, CancelBeforeACallStopsItAtOnce) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  session->cancel();
  EXPECT_EQ(generate(*session, {1}, {.tokens_max = 9}).value().finish, Finish::kCancelled);
  EXPECT_EQ(script.pass_count, 0u);
}

TEST(Session, AFailedPassEndsTheCallAndAsksForAReset) {
  for (size_t fail_pass = 0; fail_pass < 4; ++fail_pass) {
    FakeScript script;
    script.fail_pass = fail_pass;
    const auto engine = fake_engine(script);
    const auto session = engine->create_session().take_value();
    const auto failed = generate(*session, {3}, {.tokens_max = 9});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kIo);
    EXPECT_EQ(generate(*session, {3}, {}).error().code, Code::kArgument);
    ASSERT_TRUE(session->reset());
    EXPECT_TRUE(generate(*session, {3}, {.tokens_max = 2}));
  }
}

TEST(Session, LogitsThatAreNotFiniteStopTheRun) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    FakeScript script;
    script.fill_logits = [bad](std::span<const TokenId> sequence, std::span<float> logits) {
      let_win(logits, 1);
      if (sequence.size() == 3) logits[7] = bad;
    };
    const auto engine = fake_engine(script);
    const auto session = engine->create_session().take_value();
    const auto failed = generate(*session, {3}, {.tokens_max = 9});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kFormat);
  }
}

TEST(Session, TheSameSeedGivesTheSameTextAfterOtherWorkAndInOtherChunks) {
  FakeScript script;
  script.fill_logits = [](std::span<const TokenId>, std::span<float> logits) {
    for (float& logit : logits) logit = 0;
  };
  GenerateOptions options;
  options.tokens_max = 30;
  options.sampling = {.temperature = 1, .seed = 11};
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 1});
  const auto session = engine->create_session().take_value();
  const Ids first = generate(*session, {1, 2, 3}, options).value().ids;
  EXPECT_NE(first, Ids(30, first[0]));
  ASSERT_TRUE(session->reset());
  ASSERT_TRUE(generate(*session, {9}, options));
  ASSERT_TRUE(session->reset());
  EXPECT_EQ(generate(*session, {1, 2, 3}, options).value().ids, first);
  const auto other_engine = fake_engine(script, {}, {.prefill_chunk_tokens = 7});
  const auto other = other_engine->create_session().take_value();
  EXPECT_EQ(generate(*other, {1, 2, 3}, options).value().ids, first);
}

struct Seen {
  size_t index;
  TokenId id;
  TokenId best;  // -1 without logits.
  size_t routed;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> evaluate(Session& session, const Ids& ids, const EvaluateOptions& options) {
  std::vector<Seen> seen;
  const auto keep = [&](const EvaluatedToken& token) {
    const auto best = std::ranges::max_element(token.logits) - token.logits.begin();
    seen.push_back({token.index, token.id, token.logits.empty() ? -1 : static_cast<TokenId>(best),
                    token.routing ? token.routing->size() : 0});
    return true;
  };
  EXPECT_TRUE(session.evaluate(ids, options, keep, kNoProgress));
  return seen;
}

TEST(Session, EvaluationGivesTheLastLogitsOrAllInOrder) {
  for (const size_t rows : {1u, 2u, 3u, 64u}) {
    FakeScript script;
    const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 3, .logits_rows = rows});
    const auto session = engine->create_session().take_value();
    const Ids ids = {5, 1, 2, 9, 0};
    EXPECT_EQ(evaluate(*session, ids, {}), (std::vector<Seen>{{4, 0, 1, 0}}));
    ASSERT_TRUE(session->reset());
    EXPECT_EQ(evaluate(*session, ids, {.all_logits = true}),
              (std::vector<Seen>{{0, 5, 6, 0}, {1, 1, 2, 0}, {2, 2, 3, 0}, {3, 9, 10, 0}, {4, 0, 1, 0}}));
    EXPECT_EQ(generate(*session, {}, {.tokens_max = 2}).value().ids, (Ids{1, 2}));
  }
}

TEST(Session, EvaluationGivesTheRoutingOfEveryToken) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 2});
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(evaluate(*session, {5, 1, 2}, {.routing = true}),
            (std::vector<Seen>{{0, 5, -1, 1}, {1, 1, -1, 1}, {2, 2, 3, 1}}));
}

TEST(Session, EvaluationLeavesIdsOfEarlierCallsOut) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, {5}, {.tokens_max = 1}));  // Its one token has not run yet.
  EXPECT_EQ(evaluate(*session, {8, 9}, {.all_logits = true, .routing = true}),
            (std::vector<Seen>{{0, 8, 9, 1}, {1, 9, 10, 1}}));
}

TEST(Session, EvaluationIsCancelledByItsCallbackAndByCancel) {
  FakeScript script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  const auto refuse = [](const EvaluatedToken&) { return false; };
  EXPECT_EQ(session->evaluate(Ids{1, 2}, {}, refuse, kNoProgress).error().code, Code::kCancelled);
  session->cancel();
  EXPECT_EQ(session->evaluate(Ids{1, 2}, {}, kIgnoreToken, kNoProgress).error().code, Code::kCancelled);
}

TEST(Session, EvaluationNeedsATokenThatFits) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.context_tokens = 4});
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(session->evaluate(Ids{}, {}, kIgnoreToken, kNoProgress).error().code, Code::kArgument);
  EXPECT_EQ(session->evaluate(Ids(5, 1), {}, kIgnoreToken, kNoProgress).error().code, Code::kArgument);
  EXPECT_TRUE(session->evaluate(Ids(4, 1), {}, kIgnoreToken, kNoProgress));
}

TEST(Session, TheCallersCallbacksAreNotItsTime) {
  using Clock = std::chrono::steady_clock;
  FakeScript script;
  const auto engine = fake_engine(script, letters(16));
  const auto session = engine->create_session().take_value();
  std::chrono::duration<double> spent{};
  const auto slow = [&](const AnswerPiece&) {
    const auto start = Clock::now();
    while (Clock::now() - start < std::chrono::milliseconds(5)) {
    }
    spent += Clock::now() - start;
    return true;
  };
  const auto start = Clock::now();
  ASSERT_TRUE(session->generate(Ids{3}, {.tokens_max = 4}, slow, kNoProgress));
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  const Statistics statistics = session->statistics();
  EXPECT_LE(statistics.prefill_s + statistics.decode_s, elapsed.count() - spent.count());
  EXPECT_LE(statistics.compute_s, elapsed.count() - spent.count());
}

TEST(Session, CountsWhatItDid) {
  FakeScript script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 4});
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, Ids(10, 1), {.tokens_max = 5}));
  const Statistics statistics = session->statistics();
  EXPECT_EQ(statistics.prompt_tokens, 10u);
  EXPECT_EQ(statistics.prefill_chunks, 3u);
  EXPECT_EQ(statistics.tokens, 5u);
  EXPECT_EQ(statistics.decode_passes, 4u);
  EXPECT_GT(statistics.prefill_s, 0);
  EXPECT_GT(statistics.decode_s, 0);
  EXPECT_GE(statistics.ttft_s.value(), statistics.prefill_s);
  EXPECT_EQ(statistics.expert_slots, 64u);
  EXPECT_EQ(statistics.pinned_layers, 2u);
}

}  // namespace
}  // namespace headrace
