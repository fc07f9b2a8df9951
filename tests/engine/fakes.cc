#include "engine/fakes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace::test {
namespace {

/// Its positional part are the ids, its recurrent part a hash of them, which every pass checks: a state whose parts do
/// not fit each other ends the program.
class FakeState : public SequenceState {
 public:
  FakeState(size_t capacity, size_t recurrent_numbers, Reservation memory)
      : memory_(std::move(memory)), ids_(capacity), recurrent_(std::max<size_t>(recurrent_numbers, 1)) {
    reset();
  }
  size_t position() const override { return position_; }
  size_t capacity_tokens() const override { return ids_.size(); }
  size_t memory_bytes() const override { return memory_.bytes(); }
  void reset() override {
    position_ = 0;
    recurrent_.assign(recurrent_.size(), 1);
  }
  uint64_t part_bytes(StatePart part, size_t tokens) const override {
    return 4 * (part == StatePart::kRecurrent ? recurrent_.size() : tokens);
  }
  Status visit(StatePart part, size_t tokens, PieceVisitor visitor) override {
    if (part == StatePart::kRecurrent) return visitor(std::as_writable_bytes(std::span(recurrent_)));
    return visitor(std::as_writable_bytes(std::span(ids_).first(tokens)));
  }
  void set_position(size_t tokens) override { position_ = tokens; }
  void copy_from(const SequenceState& other) override {
    const auto& from = static_cast<const FakeState&>(other);
    std::ranges::copy(from.ids(), ids_.begin());
    recurrent_ = from.recurrent_;
    position_ = from.position_;
  }

  std::span<const TokenId> ids() const { return std::span(ids_).first(position_); }
  void add(TokenId id) {
    ENSURE(position_ < ids_.size());
    ids_[position_++] = id;
    for (uint32_t& number : recurrent_) number = next(number, id);
  }
  void check() const {
    uint32_t hash = 1;
    for (const TokenId id : ids()) hash = next(hash, id);
    ENSURE(std::ranges::count(recurrent_, hash) == static_cast<std::ptrdiff_t>(recurrent_.size()));
  }

 private:
  /// Bits of a finite float.
  static uint32_t next(uint32_t hash, TokenId id) {
    return (hash * 2654435761u + static_cast<uint32_t>(id) + 1) & 0x3fffffffu;
  }

  Reservation memory_;
  size_t position_ = 0;
  std::vector<TokenId> ids_;
  std::vector<uint32_t> recurrent_;
};

class FakeModel : public Model {
 public:
  static Result<std::unique_ptr<Model>> open(FakeScript& script, const ModelResources& resources, const ModelOptions&) {
    ++script.open_count;
    std::unique_ptr<FakeModel> model(new FakeModel(script, resources.budget));
    model->directory_ = TRY(resources.budget.reserve(script.open_bytes, "fake directory"));
    return std::unique_ptr<Model>(std::move(model));
  }

  const ModelInfo& info() const override { return info_; }
  Hash128 fingerprint() const override { return script_.fingerprint; }
  ModelNeeds needs() const override {
    return {.pin_order = script_.pin_order,
            .ring_bytes = script_.ring_bytes,
            .expert_cache_fixed_bytes = 0,
            .expert_slot_bytes = script_.slot_bytes,
            .expert_slots_min = script_.slots_min,
            .expert_slots_max = script_.slots_max,
            .row_read_bytes = 10,
            .expert_read_bytes = script_.slot_bytes};
  }
  Result<size_t> scratch_bytes(size_t chunk_tokens) const override {
    return script_.scratch_bytes_per_token * chunk_tokens;
  }
  size_t state_memory_bytes(size_t tokens) const override { return 8 * tokens; }
  Status arrange(const ModelArrangement& wanted) override;
  ModelArrangement arrangement() const override { return arrangement_; }
  bool is_locked() const override { return script_.is_locked; }
  Result<std::unique_ptr<SequenceState>> create_state(size_t capacity_tokens) override {
    Reservation memory = TRY(budget_.reserve(state_memory_bytes(capacity_tokens), "fake state"));
    return std::unique_ptr<SequenceState>(
        std::make_unique<FakeState>(capacity_tokens, script_.recurrent_numbers, std::move(memory)));
  }

  Status forward(SequenceState& sequence, std::span<const TokenId> ids, const ForwardOutput& output) override;

  ModelCounters counters() const override {
    ModelCounters counters;
    for (size_t i = 0; i < script_.pin_order.size(); ++i) {
      const size_t count = script_.pin_order[i].is_head ? 0 : 1;
      (i < arrangement_.pinned_groups ? counters.pinned_layers : counters.streamed_layers) += count;
    }
    return counters;
  }

 private:
  FakeModel(FakeScript& script, Budget& budget) : script_(script), budget_(budget) {
    info_.family = "fake";
    info_.vocabulary_size = script.vocabulary;
    info_.layer_count = 2;
    info_.moe_layer_count = script.slots_max > 0 ? 2 : 0;
    info_.expert_count = script.slots_max / 2;
    info_.experts_per_token = script.slots_max > 0 ? 2 : 0;
    info_.context_tokens_max = script.context_max;
    info_.stop_ids = script.stop_ids;
  }

  Status take(Reservation& memory, size_t bytes) {
    if (script_.step_count++ == script_.fail_step) return script_.failure;
    memory = TRY(budget_.reserve(bytes, "fake"));
    return {};
  }
  Status resize_slots(size_t count) {
    if (slots_.bytes() == count * script_.slot_bytes) return {};
    slots_ = {};
    return take(slots_, count * script_.slot_bytes);
  }

  void fill(std::span<const TokenId> sequence, std::span<float> logits) {
    if (script_.fill_logits) return script_.fill_logits(sequence, logits);
    let_win(logits, static_cast<TokenId>((static_cast<size_t>(sequence.back()) + 1) % script_.vocabulary));
  }

  FakeScript& script_;
  Budget& budget_;
  ModelInfo info_;
  ModelArrangement arrangement_;
  Reservation directory_, scratch_, ring_, slots_;
  std::vector<Reservation> pinned_;
};

/// In the order of a real model: what becomes smaller gives back before anything takes.
Status FakeModel::arrange(const ModelArrangement& wanted) {
  arrangement_ = {};
  scratch_ = {};
  if (wanted.expert_slots * script_.slot_bytes < slots_.bytes()) TRY(resize_slots(wanted.expert_slots));
  pinned_.resize(std::min(pinned_.size(), wanted.pinned_groups));
  const bool needs_ring = wanted.pinned_groups < script_.pin_order.size();
  if (!needs_ring) ring_ = {};
  while (pinned_.size() < wanted.pinned_groups) {
    Reservation memory;
    TRY(take(memory, script_.pin_order[pinned_.size()].memory_bytes));
    pinned_.push_back(std::move(memory));
  }
  if (needs_ring && ring_.bytes() == 0) TRY(take(ring_, script_.ring_bytes));
  TRY(resize_slots(wanted.expert_slots));
  TRY(take(scratch_, script_.scratch_bytes_per_token * wanted.chunk_tokens));
  arrangement_ = wanted;
  script_.arrangements.push_back(wanted);
  return {};
}

Status FakeModel::forward(SequenceState& sequence, std::span<const TokenId> ids, const ForwardOutput& output) {
  if (script_.on_pass) script_.on_pass();
  if (script_.pass_count++ == script_.fail_pass) return script_.failure;
  ENSURE(!ids.empty() && ids.size() <= arrangement_.chunk_tokens && output.logits.rows() <= ids.size());
  script_.chunk_sizes.push_back(ids.size());
  script_.arranged_as.push_back(arrangement_);
  auto& state = static_cast<FakeState&>(sequence);
  state.check();
  if (output.routing) output.routing->clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    state.add(ids[i]);
    if (output.routing) {
      output.routing->push_back({{.layer = 1, .experts = {static_cast<uint32_t>(ids[i])}, .weights = {1}}});
    }
    if (i + output.logits.rows() >= ids.size()) {
      fill(state.ids(), output.logits.row(i + output.logits.rows() - ids.size()));
    }
  }
  return {};
}

class FakeTokenizer : public Tokenizer {
 public:
  explicit FakeTokenizer(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  Result<std::vector<TokenId>> encode(PlainText) const override { return error(Code::kUnsupported, "not in a fake"); }
  Result<std::vector<TokenId>> encode(Markup) const override { return error(Code::kUnsupported, "not in a fake"); }
  std::optional<std::string_view> token_bytes(TokenId id) const override {
    if (id < 0 || static_cast<size_t>(id) >= texts_.size()) return std::nullopt;
    return texts_[static_cast<size_t>(id)];
  }
  bool is_control(TokenId) const override { return false; }
  bool is_special(TokenId) const override { return false; }
  /// Texts are names as well, for whoever asks.
  std::optional<TokenId> control_id(std::string_view name) const override {
    const auto found = std::ranges::find(texts_, name);
    if (found == texts_.end()) return std::nullopt;
    return static_cast<TokenId>(found - texts_.begin());
  }
  size_t vocabulary_size() const override { return texts_.size(); }
  size_t memory_bytes() const override { return 100; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace

EngineSources fake_sources(FakeScript& script, std::vector<std::string> texts) {
  EngineSources sources;
  sources.opener = open_file;
  sources.make_model = [&script](const ModelResources& resources, const ModelOptions& options) {
    return FakeModel::open(script, resources, options);
  };
  sources.make_tokenizer = [texts = std::move(texts)]() -> Result<std::unique_ptr<Tokenizer>> {
    if (texts.empty()) return std::unique_ptr<Tokenizer>();
    return std::unique_ptr<Tokenizer>(std::make_unique<FakeTokenizer>(texts));
  };
  return sources;
}

std::unique_ptr<Engine> fake_engine(FakeScript& script, std::vector<std::string> texts, EngineOptions options) {
  if (options.budget_kind == EngineOptions::BudgetKind::kAutomatic) {
    options.budget_kind = EngineOptions::BudgetKind::kBytes;
    options.budget_bytes = size_t{1} << 30;
  }
  if (options.thread_count == 0) options.thread_count = 1;
  return Engine::open(options, fake_sources(script, std::move(texts))).take_value();
}

std::vector<TokenId> generate(Session& session, const std::vector<TokenId>& prompt, size_t tokens) {
  auto answer = session.generate(prompt, {.tokens_max = tokens}, kIgnorePiece, kNoProgress);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? answer.value().ids : std::vector<TokenId>();
}

std::vector<TokenId> ids_of(const Session& session) {
  return {session.ids().begin(), session.ids().end()};
}

}  // namespace headrace::test
