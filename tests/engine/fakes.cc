#include "engine/fakes.h"

#include <algorithm>

namespace headrace::test {
namespace {

class FakeState : public SequenceState {
 public:
  FakeState(size_t capacity, Reservation memory) : capacity_(capacity), memory_(std::move(memory)) {}
  size_t position() const override { return ids.size(); }
  size_t capacity_tokens() const override { return capacity_; }
  size_t memory_bytes() const override { return memory_.bytes(); }
  void reset() override { ids.clear(); }

  std::vector<TokenId> ids;

 private:
  size_t capacity_;
  Reservation memory_;
};

class FakeModel : public Model {
 public:
  static Result<std::unique_ptr<Model>> open(FakeScript& script, const ModelResources& resources,
                                             const ModelOptions& options) {
    ++script.open_count;
    script.chunk_tokens_max = options.chunk_tokens_max;
    std::unique_ptr<FakeModel> model(new FakeModel(script, resources.budget, options));
    const size_t bytes = script.open_bytes + script.open_bytes_per_chunk_token * options.chunk_tokens_max;
    model->memory_.push_back(TRY(resources.budget.reserve(bytes, "fake directory")));
    return std::unique_ptr<Model>(std::move(model));
  }

  const ModelInfo& info() const override { return info_; }
  size_t trunk_memory_bytes() const override { return script_.trunk_bytes; }
  size_t state_memory_bytes(size_t tokens) const override { return 8 * tokens; }
  size_t expert_cache_fixed_bytes() const override { return 0; }
  size_t expert_slot_bytes() const override { return script_.slot_bytes; }
  size_t expert_slots_min() const override { return script_.slots_min; }
  size_t expert_slots_max() const override { return script_.slots_max; }
  Status load_trunk() override {
    ++script_.trunk_load_count;
    memory_.push_back(TRY(budget_.reserve(script_.trunk_bytes, "fake trunk")));
    return {};
  }
  Status create_expert_cache(size_t slot_count) override {
    script_.slot_count = slot_count;
    memory_.push_back(TRY(budget_.reserve(slot_count * script_.slot_bytes, "fake slots")));
    return {};
  }
  Result<std::unique_ptr<SequenceState>> create_state(size_t capacity_tokens) override {
    Reservation memory = TRY(budget_.reserve(state_memory_bytes(capacity_tokens), "fake state"));
    return std::unique_ptr<SequenceState>(std::make_unique<FakeState>(capacity_tokens, std::move(memory)));
  }

  Status forward(SequenceState& sequence, std::span<const TokenId> ids, const ForwardOutput& output) override {
    if (script_.on_pass) script_.on_pass();
    if (script_.pass_count++ == script_.fail_pass) return script_.failure;
    ENSURE(!ids.empty() && ids.size() <= chunk_tokens_max_ && output.logits.rows() <= ids.size());
    script_.chunk_sizes.push_back(ids.size());
    auto& state = static_cast<FakeState&>(sequence);
    ENSURE(state.ids.size() + ids.size() <= state.capacity_tokens());
    if (output.routing) output.routing->clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      state.ids.push_back(ids[i]);
      if (output.routing)
        output.routing->push_back({{.layer = 1, .experts = {static_cast<uint32_t>(ids[i])}, .weights = {1}}});
      if (i + output.logits.rows() >= ids.size()) {
        fill(state.ids, output.logits.row(i + output.logits.rows() - ids.size()));
      }
    }
    return {};
  }

  ModelCounters counters() const override { return {}; }

 private:
  FakeModel(FakeScript& script, Budget& budget, const ModelOptions& options)
      : script_(script), budget_(budget), chunk_tokens_max_(options.chunk_tokens_max) {
    info_.family = "fake";
    info_.vocabulary_size = script.vocabulary;
    info_.layer_count = 2;
    info_.context_tokens_max = script.context_max;
    info_.stop_ids = script.stop_ids;
  }

  void fill(std::span<const TokenId> sequence, std::span<float> logits) {
    if (script_.fill_logits) return script_.fill_logits(sequence, logits);
    let_win(logits, static_cast<TokenId>((static_cast<size_t>(sequence.back()) + 1) % script_.vocabulary));
  }

  FakeScript& script_;
  Budget& budget_;
  size_t chunk_tokens_max_;
  ModelInfo info_;
  std::vector<Reservation> memory_;
};

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
  std::optional<TokenId> control_id(std::string_view) const override { return std::nullopt; }
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

}  // namespace headrace::test
