#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "engine/chat_answer.h"
#include "engine/chat_prompt.h"

namespace headrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// A callback whose time is added to `seconds`.
template <class... Arguments>
auto timed(FunctionRef<bool(Arguments...)> callback, double& seconds) {
  return [callback, &seconds](Arguments... arguments) {
    const SteadyClock::time_point start = SteadyClock::now();
    const bool go_on = callback(arguments...);
    seconds += seconds_since(start);
    return go_on;
  };
}

/// Hands the results of a chunk over; `logits` belong to its last tokens. kCancelled when the receiver wants no more.
Status report(std::span<const TokenId> chunk, size_t first_index, MatrixView<const float> logits,
              const std::vector<std::vector<RoutedExperts>>& routing, Session::OnToken on_token) {
  for (size_t i = 0; i < chunk.size(); ++i) {
    EvaluatedToken token = {.index = first_index + i, .id = chunk[i]};
    if (i + logits.rows() >= chunk.size()) token.logits = logits.row(i + logits.rows() - chunk.size());
    if (!routing.empty()) token.routing = &routing[i];
    if (token.logits.empty() && !token.routing) continue;
    if (!on_token(token)) return error(Code::kCancelled, "cancelled by the caller");
  }
  return {};
}

}  // namespace

/// Adds the time of a scope, without what the caller's callbacks took, to one of the counters, and what of it was not
/// spent waiting for reads to `compute_s`.
class Session::PhaseTimer {
 public:
  PhaseTimer(Session& session, double Statistics::*phase)
      : session_(session),
        phase_(phase),
        wait_at_start_s_(session.engine_.queue().counters().wait_s),
        callbacks_at_start_s_(session.callbacks_s_) {}
  ~PhaseTimer() {
    const double elapsed_s = seconds_since(start_) - (session_.callbacks_s_ - callbacks_at_start_s_);
    session_.counters_.*phase_ += elapsed_s;
    const double wait_s = session_.engine_.queue().counters().wait_s - wait_at_start_s_;
    session_.counters_.compute_s += std::max(0.0, elapsed_s - wait_s);
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Session& session_;
  double Statistics::*const phase_;
  const double wait_at_start_s_;
  const double callbacks_at_start_s_;
  const SteadyClock::time_point start_ = SteadyClock::now();
};

/// The time in which `cancel` stops this call, and not the next one.
class Session::CancelScope {
 public:
  explicit CancelScope(Session& session) : session_(session) {}
  ~CancelScope() { session_.take_cancelled(); }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  Session& session_;
};

Session::~Session() {
  engine_.give_back(std::move(memory_), snapshots_);
}

Status Session::reset() {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  memory_.state->reset();
  snapshots_.forget_after(0);
  token_count_ = 0;
  logits_at_ = 0;
  needs_reset_ = false;
  return {};
}

Status Session::check_usable() const {
  if (needs_reset_) return error(Code::kArgument, "the call before failed; reset the session first");
  return {};
}

Status Session::check_new_ids(std::span<const TokenId> ids) const {
  const size_t vocabulary = engine_.info().vocabulary_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<size_t>(ids[i]) < vocabulary) continue;
    return error(Code::kArgument, "token id %d (number %zu) is outside the vocabulary, 0 to %zu", ids[i], i + 1,
                 vocabulary - 1);
  }
  if (token_count_ + ids.size() <= capacity_tokens()) return {};
  if (token_count_ == 0) {
    return error(Code::kArgument, "%zu tokens do not fit a context of %zu", ids.size(), capacity_tokens());
  }
  return error(Code::kArgument, "%zu more tokens do not fit the context: it holds %zu and takes %zu", ids.size(),
               token_count_, capacity_tokens());
}

void Session::append(std::span<const TokenId> ids) {
  std::ranges::copy(ids, memory_.ids.row(0).begin() + static_cast<std::ptrdiff_t>(token_count_));
  token_count_ += ids.size();
}

/// Ids of the sequence that did not pass through the model yet.
std::span<const TokenId> Session::ids_to_run() const {
  return ids().subspan(memory_.state->position());
}

bool Session::take_cancelled() {
  // Relaxed: the flag carries no data.
  return cancelled_.exchange(false, std::memory_order_relaxed);
}

Status Session::run(std::span<const TokenId> ids, const ForwardOutput& output) {
  if (take_cancelled()) return error(Code::kCancelled, "cancelled after %zu tokens", memory_.state->position());
  logits_at_ = 0;
  Status status = engine_.model().forward(*memory_.state, ids, output);
  for (size_t row = 0; status && row < output.logits.rows(); ++row) {
    if (engine_.kernels().all_finite(output.logits.row(row))) continue;
    status = error(Code::kFormat, "the model gave a logit that is not a finite number; its files are damaged");
  }
  if (!status) needs_reset_ = true;
  if (status && output.logits.rows() == 1) logits_at_ = memory_.state->position();
  return status;
}

Status Session::evaluate(std::span<const TokenId> ids, const EvaluateOptions& options, OnToken on_token,
                         OnProgress on_progress) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  if (ids.empty()) return error(Code::kArgument, "evaluation needs at least one token");
  TRY(check_new_ids(ids));
  const CancelScope cancel_scope(*this);
  const PhaseTimer timer(*this, &Statistics::prefill_s);
  const auto timed_on_token = timed(on_token, callbacks_s_);
  const auto timed_on_progress = timed(on_progress, callbacks_s_);
  evaluated_from_ = token_count_;
  append(ids);
  begin_prompt();
  const size_t total = ids_to_run().size();
  TRY(engine_.arrange_for_prompt(options.all_logits ? std::min(total, memory_.logits.rows()) : total));
  return end_prompt(evaluate_all(options, timed_on_token, timed_on_progress));
}

/// Runs what is left of the sequence, in chunks.
Status Session::evaluate_all(const EvaluateOptions& options, OnToken on_token, OnProgress on_progress) {
  const size_t total = ids_to_run().size();
  while (const size_t left = ids_to_run().size()) {
    if (engine_.has_pending_budget()) TRY(engine_.arrange_for_prompt(left));
    const size_t position = memory_.state->position();
    size_t count = std::min(left, engine_.chunk_tokens());
    // Ids that an earlier call left behind have no results, so they go in chunks of their own.
    if (position < evaluated_from_) count = std::min(count, evaluated_from_ - position);
    if (position >= evaluated_from_ && options.all_logits) count = std::min(count, memory_.logits.rows());
    TRY(evaluate_chunk(position, count, options, on_token));
    if (!on_progress(total - ids_to_run().size(), total)) {
      return error(Code::kCancelled, "cancelled by the caller");
    }
  }
  return {};
}

/// Runs `count` ids from place `first` of the sequence, and reports those that belong to the running evaluation.
Status Session::evaluate_chunk(size_t first, size_t count, const EvaluateOptions& options, OnToken on_token) {
  const bool is_asked_for = first >= evaluated_from_;
  const bool is_last = first + count == token_count_;
  const size_t rows = !is_asked_for ? 0 : options.all_logits ? count : is_last ? 1 : 0;
  std::vector<std::vector<RoutedExperts>> routing;
  const MatrixView<float> logits = memory_.logits.view().row_range(0, rows);
  const std::span<const TokenId> chunk = ids().subspan(first, count);
  TRY(run(chunk, {logits, is_asked_for && options.routing ? &routing : nullptr}));
  ++counters_.prefill_chunks;
  counters_.prompt_tokens += count;
  const Status status = is_asked_for ? report(chunk, first - evaluated_from_, logits, routing, on_token) : Status();
  if (is_last && rows > 0) {  // Where a generation that follows looks for them.
    if (rows > 1) std::ranges::copy(logits.row(rows - 1), logits.row(0).begin());
    logits_at_ = token_count_;
  }
  after_chunk();
  return status;
}

Result<Generation> Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options, OnPiece on_piece,
                                     OnProgress on_progress) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  TRY(check_sampling(options.sampling, engine_.info().vocabulary_size));
  TRY(check_new_ids(prompt));
  if (token_count_ + prompt.size() == 0) return error(Code::kArgument, "generation needs at least one token");
  const auto timed_on_piece = timed(on_piece, callbacks_s_);
  PlainAnswer answer{TRY(AnswerText::create(options.stops)), timed_on_piece};
  append(prompt);
  Generation result;
  result.finish = TRY(continue_sequence(answer, options, result.ids, on_progress));
  result.text = answer.take_text();
  return result;
}

Result<ChatReply> Session::reply(const ChatRequest& request, const GenerateOptions& options, OnPiece on_piece,
                                 OnProgress on_progress) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  TRY(check_sampling(options.sampling, engine_.info().vocabulary_size));
  const Tokenizer* tokenizer = engine_.tokenizer();
  const std::vector<TokenId> prompt = TRY(render_chat(tokenizer, request));
  if (!request.add_generation_prompt) return error(Code::kArgument, "a reply needs add_generation_prompt");
  const auto timed_on_piece = timed(on_piece, callbacks_s_);
  auto parser = find_chat_format(*tokenizer)->create_parser(*tokenizer, request.thinking);
  ChatAnswer answer(std::move(parser), TRY(AnswerText::create(options.stops)), timed_on_piece);
  TRY(begin_conversation(prompt));
  ChatReply result;
  append(std::span(prompt).subspan(token_count_));
  go_back_for_logits();
  result.prompt_tokens = prompt.size();
  result.reused_tokens = memory_.state->position();
  result.finish = TRY(continue_sequence(answer, options, result.ids, on_progress));
  result.message = answer.message();
  return result;
}

/// Makes the sequence `prompt`, keeping the beginning that it has in common with it.
Status Session::begin_conversation(std::span<const TokenId> prompt) {
  if (prompt.size() > capacity_tokens()) {
    return error(Code::kArgument, "the conversation has %zu tokens, which do not fit a context of %zu", prompt.size(),
                 capacity_tokens());
  }
  go_back(common_tokens(prompt));
  return {};
}

/// Runs what is left of the sequence and appends an answer, whose tokens `ids` receives. Cancelling is no error.
Result<Finish> Session::continue_sequence(Answer& answer, const GenerateOptions& options, std::vector<TokenId>& ids,
                                          OnProgress on_progress) {
  const CancelScope cancel_scope(*this);
  const size_t tokens_most = capacity_tokens() + 1;
  ids.reserve(options.tokens_max == 0 ? tokens_most : std::min(options.tokens_max, tokens_most));
  counters_.ttft_s.reset();
  answer_start_ = SteadyClock::now();
  const Status read = prefill(timed(on_progress, callbacks_s_));
  Result<Finish> finish = read ? decode(answer, options, ids) : Result<Finish>(read.error());
  if (!finish && finish.error().code != Code::kCancelled) return finish;
  return answer.end(finish ? finish.value() : Finish::kCancelled);
}

/// Runs what is left of the sequence, so that the logits of its last token are there.
Status Session::prefill(OnProgress on_progress) {
  const PhaseTimer timer(*this, &Statistics::prefill_s);
  go_back_for_logits();
  begin_prompt();
  TRY(engine_.arrange_for_prompt(ids_to_run().size()));
  return end_prompt(prefill_chunks(on_progress));
}

/// Takes back what was lent to a prompt, whatever became of it.
Status Session::end_prompt(const Status& status) {
  const Status arranged = engine_.arrange_for_answer();
  if (!arranged) needs_reset_ = true;
  return status ? arranged : status;
}

Status Session::prefill_chunks(OnProgress on_progress) {
  const size_t total = ids_to_run().size();
  while (const size_t left = ids_to_run().size()) {
    if (engine_.has_pending_budget()) TRY(engine_.arrange_for_prompt(left));
    const size_t count = std::min(left, engine_.chunk_tokens());
    TRY(run(ids_to_run().first(count), {memory_.logits.view().row_range(0, count == left ? 1 : 0)}));
    ++counters_.prefill_chunks;
    counters_.prompt_tokens += count;
    after_chunk();
    if (!on_progress(total - ids_to_run().size(), total)) return error(Code::kCancelled, "cancelled by the caller");
  }
  return {};
}

Result<Finish> Session::decode(Answer& answer, const GenerateOptions& options, std::vector<TokenId>& ids) {
  const PhaseTimer timer(*this, &Statistics::decode_s);
  for (;;) {
    if (take_cancelled()) return Finish::kCancelled;
    const TokenId id = TRY(choose(options.sampling, ids));
    if (ids.empty()) counters_.ttft_s = seconds_since(answer_start_);
    ids.push_back(id);
    ++counters_.tokens;
    append({&id, 1});
    if (is_stop_id(id, options)) return answer.add(id, {}).value_or(Finish::kStop);
    const Tokenizer* tokenizer = engine_.tokenizer();
    const std::string_view bytes = tokenizer ? tokenizer->token_bytes(id).value_or("") : "";
    if (const std::optional<Finish> finish = answer.add(id, bytes)) return *finish;
    if (ids.size() == options.tokens_max || token_count_ > capacity_tokens()) return Finish::kLength;
    if (engine_.has_pending_budget()) TRY(engine_.adopt_pending_budget());
    TRY(run(ids_to_run(), {memory_.logits.view().row_range(0, 1)}));
    ++counters_.decode_passes;
    keep_spaced_snapshot();
  }
}

Result<TokenId> Session::choose(const SamplingOptions& options, std::span<const TokenId> generated) {
  const SamplingPlace place = {.position = token_count_, .sequence = ids(), .generated = generated};
  auto chosen = sample_token(memory_.logits.row(0), options, place, memory_.candidates.row(0));
  if (!chosen && chosen.error().code != Code::kArgument) needs_reset_ = true;
  return chosen;
}

bool Session::is_stop_id(TokenId id, const GenerateOptions& options) const {
  return !options.ignore_stop_ids && std::ranges::count(engine_.stop_ids(), id) > 0;
}

Statistics Session::statistics() const {
  Statistics statistics = counters_;
  engine_.fill(statistics);
  return statistics;
}

}  // namespace headrace
