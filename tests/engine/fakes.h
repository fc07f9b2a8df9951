#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/session.h"

namespace headrace::test {

/// What a fake model does and saw; shared by a test and the models that its engine makes.
struct FakeScript {
  size_t vocabulary = 16;
  size_t context_max = 100000;
  std::vector<TokenId> stop_ids;
  /// Logits after a sequence; by default the id after the last one (modulo the vocabulary) wins.
  std::function<void(std::span<const TokenId> sequence, std::span<float> logits)> fill_logits;
  Hash128 fingerprint = {1, 2};
  /// Numbers of the recurrent part of a state.
  size_t recurrent_numbers = 2;
  /// Fails this forward pass, counted from 0 over all models.
  size_t fail_pass = SIZE_MAX;
  Error failure = {Code::kIo, "the drive is gone"};
  /// Called at the start of every pass.
  std::function<void()> on_pass;

  // Memory, in bytes.
  size_t open_bytes = 1000;
  size_t scratch_bytes_per_token = 10;
  std::vector<TrunkGroup> pin_order = {{false, 2500, 2500}, {true, 1500, 1500}, {false, 2500, 2500}};
  size_t ring_bytes = 1200;
  size_t slot_bytes = 100;
  size_t slots_min = 6;
  size_t slots_max = 64;
  bool is_locked = true;
  /// Fails this step of an arrangement (each that takes memory is one), counted from 0 over all of them.
  size_t fail_step = SIZE_MAX;

  // What happened.
  size_t open_count = 0;
  size_t pass_count = 0;
  size_t step_count = 0;
  std::vector<ModelArrangement> arrangements;  ///< All that were carried out.
  std::vector<size_t> chunk_sizes;             ///< Of all passes ...
  std::vector<ModelArrangement> arranged_as;   ///< ... and the arrangement in which each ran.

  const ModelArrangement& last() const { return arrangements.back(); }
};

/// Parts of an engine around fakes. `script` outlives the engine. Token i of the tokenizer has the text `texts[i]`;
/// without texts there is no tokenizer.
EngineSources fake_sources(FakeScript& script, std::vector<std::string> texts = {});

/// An engine of fakes with plenty of memory.
std::unique_ptr<Engine> fake_engine(FakeScript& script, std::vector<std::string> texts = {},
                                    EngineOptions options = {});

/// Logits with which `id` wins.
inline void let_win(std::span<float> logits, TokenId id) {
  for (float& logit : logits) logit = 0;
  logits[static_cast<size_t>(id)] = 1;
}

inline constexpr auto kNoProgress = [](size_t, size_t) { return true; };
inline constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
inline constexpr auto kIgnoreToken = [](const EvaluatedToken&) { return true; };

/// The ids of an answer of at most `tokens` tokens, which must come.
std::vector<TokenId> generate(Session& session, const std::vector<TokenId>& prompt, size_t tokens);
/// The sequence.
std::vector<TokenId> ids_of(const Session& session);

}  // namespace headrace::test
