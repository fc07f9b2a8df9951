// Going back and branching off: what a session does with the states of its sequence.

#include <algorithm>

#include "engine/session.h"

namespace headrace {

Result<std::unique_ptr<Session>> Session::branch() {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  std::unique_ptr<Session> other = TRY(engine_.make_session());
  other->memory_.state->copy_from(*memory_.state);
  other->append(ids());
  std::ranges::copy(memory_.logits.row(0), other->memory_.logits.row(0).begin());
  other->logits_at_ = logits_at_;
  return other;
}

Status Session::rewind(size_t tokens) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  if (tokens > token_count_) {
    return error(Code::kArgument, "a sequence of %zu tokens cannot be rewound to %zu", token_count_, tokens);
  }
  go_back(tokens);
  return {};
}

Result<size_t> Session::keep_common_prefix(std::span<const TokenId> wanted) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  const size_t common = common_tokens(wanted);
  go_back(common);
  return common;
}

/// How many tokens the sequence and `wanted` begin with alike.
size_t Session::common_tokens(std::span<const TokenId> wanted) const {
  return static_cast<size_t>(std::ranges::mismatch(ids(), wanted).in1 - ids().begin());
}

void Session::go_back(size_t tokens) {
  snapshots_.forget_after(tokens);
  token_count_ = tokens;
  if (logits_at_ > tokens) logits_at_ = 0;
  if (memory_.state->position() > tokens) restore_at(tokens);
}

/// Takes the state back to the last place at or before `tokens`, which are fewer than it has taken in.
void Session::restore_at(size_t tokens) {
  const size_t position = snapshots_.last_position(tokens);
  logits_at_ = 0;
  if (position == 0) return memory_.state->reset();
  if (snapshots_.restore(position, *memory_.state, memory_.logits.row(0))) logits_at_ = position;
}

/// A sequence that has run without its last logits runs its last token again, from wherever it can go back to.
void Session::go_back_for_logits() {
  if (ids_to_run().empty() && !has_last_logits()) restore_at(token_count_ - 1);
}

Result<size_t> Session::reserve_snapshots(size_t count) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  return engine_.provide_snapshots(snapshots_, count);
}

Status Session::mark() {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  if (snapshots_.slot_count() == 0) {
    return error(Code::kArgument, "there is no memory for snapshots; reserve some, under a budget above the floor");
  }
  keep_snapshot(true);
  return {};
}

void Session::keep_snapshot(bool is_marked) {
  const bool has_logits = logits_at_ == memory_.state->position();
  snapshots_.keep(*memory_.state, has_logits ? memory_.logits.row(0) : std::span<float>(), is_marked);
}

/// The end of the turn before, where an edited prompt begins. One token left over from an answer is no prompt.
void Session::begin_prompt() {
  is_prompt_kept_ = ids_to_run().size() > 1;
  if (is_prompt_kept_) keep_snapshot();
}

/// Keeps the end of a prompt, and places on the way through a long one.
void Session::after_chunk() {
  if (is_prompt_kept_ && ids_to_run().empty()) {
    keep_snapshot();
  } else {
    keep_spaced_snapshot();
  }
}

void Session::keep_spaced_snapshot() {
  const size_t position = memory_.state->position();
  if (position - snapshots_.last_position(position) >= kSnapshotSpacingTokens) keep_snapshot();
}

}  // namespace headrace
