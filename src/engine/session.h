#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/answer.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/snapshot_store.h"
#include "engine/statistics.h"
#include "text/chat/chat_format.h"

namespace headrace {

/// What evaluation found at one token; valid during the callback.
struct EvaluatedToken {
  size_t index = 0;  ///< Among the ids of the call.
  TokenId id = 0;
  std::span<const float> logits;                        ///< Of the token that follows; empty when not asked for.
  const std::vector<RoutedExperts>* routing = nullptr;  ///< Null when not asked for.
};

struct Generation {
  Finish finish = Finish::kStop;
  std::vector<TokenId> ids;  ///< A stop id included.
  std::string text;          ///< All pieces.
};

/// What a reply to a conversation came to.
struct ChatReply {
  Finish finish = Finish::kStop;
  std::vector<TokenId> ids;  ///< Generated; a stop id included.
  ParsedMessage message;
  size_t prompt_tokens = 0;  ///< Of the rendered conversation ...
  size_t reused_tokens = 0;  ///< ... of which the session had these already.
};

struct GenerateOptions {
  size_t tokens_max = 0;  ///< 0: as many as the context holds.
  SamplingOptions sampling;
  std::vector<std::string> stops;
  bool ignore_stop_ids = false;
};

struct EvaluateOptions {
  bool all_logits = false;
  bool routing = false;
};

/// One sequence of tokens in a model. Calls take the engine's turn, so one thread at a time; `cancel` from any thread.
/// After a call that computes and fails with neither kArgument nor kCancelled, only `reset`, `load` and destruction are
/// allowed; all else is refused when the failure damaged the state.
class Session {
 public:
  /// Progress through a prompt; false cancels.
  using OnProgress = FunctionRef<bool(size_t done_tokens, size_t total_tokens)>;
  /// false cancels.
  using OnToken = FunctionRef<bool(const EvaluatedToken&)>;
  using OnPiece = headrace::OnPiece;

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Back to the empty sequence. kArgument when the engine is busy.
  Status reset();
  /// Tokens in the sequence.
  size_t token_count() const { return token_count_; }
  size_t capacity_tokens() const { return memory_.state->capacity_tokens(); }
  /// The sequence.
  std::span<const TokenId> ids() const { return memory_.ids.row(0).first(token_count_); }

  /// Another session with the same sequence; the two go on independently, and as if each were alone. kBudget when
  /// memory for one more is not there. Snapshots stay with this one.
  Result<std::unique_ptr<Session>> branch();
  /// Back to the first `tokens` tokens. The session goes back to its last snapshot at or before them, or to the empty
  /// sequence, and the next call runs the tokens between again: what follows is the same, to the bit, as in a session
  /// that never went further. Nothing is computed here. kArgument when there are fewer tokens.
  Status rewind(size_t tokens);
  /// Rewinds to the longest prefix that the sequence has in common with `ids`, the ones that are wanted now; how many
  /// tokens that are. The caller appends the rest of them.
  Result<size_t> keep_common_prefix(std::span<const TokenId> ids);

  /// Asks for memory for up to `count` snapshots: copies of the recurrent part of the state, to rewind to without
  /// running the tokens before again. How many it got: the budget allows no more than `snapshot_allowance_bytes`, so
  /// none at the floor, and takes them back when it becomes smaller. From then on the session keeps its state before
  /// and after each prompt, and every kSnapshotSpacingTokens or more on the way through long prompts and answers.
  Result<size_t> reserve_snapshots(size_t count);
  /// Keeps the state as it is now, as a snapshot that goes last. kArgument when there is no memory for any.
  Status mark();
  static constexpr size_t kSnapshotSpacingTokens = 256;

  /// Stops the running call, or the next one when none runs. Async-signal-safe.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  /// Appends `ids` (at least one); `on_token` is called in order for each that has logits or routing.
  Status evaluate(std::span<const TokenId> ids, const EvaluateOptions& options, OnToken on_token,
                  OnProgress on_progress);

  /// Appends `prompt` and continues it. Cancelling is no error. kArgument before any work when prompt or options are
  /// impossible; also on the way when the biases leave no token to choose, and then what was generated stays.
  Result<Generation> generate(std::span<const TokenId> prompt, const GenerateOptions& options, OnPiece on_piece,
                              OnProgress on_progress);

  /// Makes the sequence that of `request`, in the model's chat format, keeping what it already has of it, and appends
  /// the model's answer. Pieces are of the kinds kReasoning, kContent and kToolCall. kUnsupported for a model without
  /// chat format, kArgument for a request without generation prompt; otherwise as `generate`.
  Result<ChatReply> reply(const ChatRequest& request, const GenerateOptions& options, OnPiece on_piece,
                          OnProgress on_progress);

  /// Writes the sequence and its state to `path`, as a whole or not at all: what was there before stays when anything
  /// fails (kIo), and then nothing else remains. (When only the folder's entry cannot be sent to the drive, the new
  /// file is there.) Changes nothing here. kArgument when `path` is no place for a file. `note` is for whoever loads
  /// it: at most SnapshotHeader::kNoteBytesMax bytes.
  Status save(const std::string& path, std::string_view note = {});
  /// Becomes what was saved, under whatever budget, threads and instruction set, and goes on with the same bits.
  /// Allowed after a failure, too. The file is read twice: everything is looked at before anything here changes.
  /// kFormat: it is damaged; kArgument: it is of another model (as far as Model::fingerprint tells), or longer than the
  /// context; kUnsupported: of a newer version. Only a file that changes, or a drive that fails, between the readings
  /// leaves a session that needs `reset` or another `load`. Snapshots are forgotten. `note` receives
  /// what was saved with it.
  Status load(const std::string& path, std::string* note = nullptr);

  Statistics statistics() const;

 private:
  friend class Engine;
  class PhaseTimer;
  class CancelScope;

  Session(Engine& engine, SessionMemory memory) : engine_(engine), memory_(std::move(memory)) {}

  Status check_usable() const;
  Status check_new_ids(std::span<const TokenId> ids) const;
  void append(std::span<const TokenId> ids);
  size_t common_tokens(std::span<const TokenId> wanted) const;
  void go_back(size_t tokens);
  void restore_at(size_t tokens);
  void go_back_for_logits();
  void keep_snapshot(bool is_marked = false);
  void begin_prompt();
  void after_chunk();
  void keep_spaced_snapshot();
  std::span<std::byte> file_buffer() const;
  bool has_last_logits() const { return logits_at_ == token_count_ && token_count_ > 0; }
  std::span<const TokenId> ids_to_run() const;
  bool take_cancelled();
  Status run(std::span<const TokenId> ids, const ForwardOutput& output);
  Status prefill(OnProgress on_progress);
  Status prefill_chunks(OnProgress on_progress);
  Status end_prompt(const Status& status);
  Status evaluate_all(const EvaluateOptions& options, OnToken on_token, OnProgress on_progress);
  Status evaluate_chunk(size_t first, size_t count, const EvaluateOptions& options, OnToken on_token);
  Status begin_conversation(std::span<const TokenId> prompt);
  Result<Finish> continue_sequence(Answer& answer, const GenerateOptions& options, std::vector<TokenId>& ids,
                                   OnProgress on_progress);
  Result<Finish> decode(Answer& answer, const GenerateOptions& options, std::vector<TokenId>& ids);
  Result<TokenId> choose(const SamplingOptions& options, std::span<const TokenId> generated);
  bool is_stop_id(TokenId id, const GenerateOptions& options) const;

  Engine& engine_;
  SessionMemory memory_;
  size_t token_count_ = 0;
  size_t evaluated_from_ = 0;    // Where the ids of the running evaluation begin in the sequence.
  size_t logits_at_ = 0;         // memory_.logits row 0 follows this many tokens of the sequence; 0: nothing.
  SnapshotStore snapshots_;      // Of this sequence.
  bool is_prompt_kept_ = false;  // The running prompt is long enough for snapshots.
  bool needs_reset_ = false;
  std::atomic<bool> cancelled_{false};
  Statistics counters_;
  double callbacks_s_ = 0;  // Spent in the caller's callbacks.
  std::chrono::steady_clock::time_point answer_start_;
};

}  // namespace headrace
