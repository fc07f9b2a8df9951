#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "formats/mxfp4.h"
#include "models/attention_residual.h"
#include "models/families.h"
#include "models/families/kimi_config.h"
#include "models/gated_mlp.h"

namespace headrace {
namespace {

/// Attention state of all layers for one sequence.
class KimiState : public SequenceState {
 public:
  size_t position() const override { return position_; }
  size_t capacity_tokens() const override { return capacity_tokens_; }
  size_t memory_bytes() const override { return memory_bytes_; }
  void reset() override {
    position_ = 0;
    for (auto& layer : layers_) {
      if (auto* kda = std::get_if<KdaState>(&layer)) kda->reset();
      // MLA rows are written before they are read.
    }
  }
  uint64_t part_bytes(StatePart part, size_t tokens) const override {
    uint64_t bytes = 0;
    for (const auto& layer : layers_) {
      const bool is_kda = std::holds_alternative<KdaState>(layer);
      if (is_kda != (part == StatePart::kRecurrent)) continue;
      bytes += is_kda ? KdaState::stored_bytes(config_.kda) : MlaState::stored_bytes(config_.mla, tokens);
    }
    return bytes;
  }
  Status visit(StatePart part, size_t tokens, PieceVisitor visitor) override {
    ENSURE(tokens <= capacity_tokens_);
    for (auto& layer : layers_) {
      auto* kda = std::get_if<KdaState>(&layer);
      if (kda && part == StatePart::kRecurrent) TRY(kda->visit(visitor));
      if (!kda && part == StatePart::kPositional) TRY(std::get<MlaState>(layer).visit(tokens, visitor));
    }
    return {};
  }
  void set_position(size_t tokens) override {
    ENSURE(tokens <= capacity_tokens_);
    position_ = tokens;
  }
  void copy_from(const SequenceState& sequence) override {
    const auto& other = static_cast<const KimiState&>(sequence);
    ENSURE(other.layers_.size() == layers_.size() && other.position_ <= capacity_tokens_);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (auto* kda = std::get_if<KdaState>(&layers_[i])) {
        kda->copy_from(std::get<KdaState>(other.layers_[i]));
      } else {
        std::get<MlaState>(layers_[i]).copy_from(std::get<MlaState>(other.layers_[i]), other.position_);
      }
    }
    position_ = other.position_;
  }

 private:
  friend class KimiModel;
  explicit KimiState(const KimiConfig& config) : config_(config) {}

  const KimiConfig& config_;  // Of the model, which outlives its states.
  size_t position_ = 0;
  size_t capacity_tokens_ = 0;
  size_t memory_bytes_ = 0;
  std::vector<std::variant<KdaState, MlaState>> layers_;
  Matrix<float> scores_;
};

struct KimiLayer {
  std::vector<float> input_norm, post_attention_norm;
  std::optional<ResidualMixer> attention_mixer, ffn_mixer;
  std::variant<KdaLayer, MlaLayer> attention;
  std::variant<GatedMlp, MoeLayer> ffn;
};

/// Memory of one forward pass; [tokens, hidden] unless the part says otherwise.
struct KimiScratch {
  Matrix<float> sum;                  // The residual stream; with attention residuals, the running sum P of the block.
  Matrix<float> mixed;                // Input of a sub-layer before its norm.
  Matrix<float> normalized;           // ... and after it.
  Matrix<float> delta;                // Output of a sub-layer.
  std::vector<Matrix<float>> blocks;  // Block vectors of attention residuals, in order of insertion.
  std::vector<MatrixView<float>> block_views;  // Room for all blocks.
  std::optional<KdaLayer::Scratch> kda;
  std::optional<MlaLayer::Scratch> mla;
  std::optional<MoeLayer::Scratch> moe;
  GatedMlp::Scratch mlp;  // For dense layers.
};

/// Kimi-Linear and Kimi K3 (spec 4 to 9), one forward pass for both: every difference is a value of the configuration.
class KimiModel : public Model {
 public:
  static Result<std::unique_ptr<Model>> open(const ModelSource& source);

  const ModelInfo& info() const override { return info_; }
  Hash128 fingerprint() const override { return fingerprint_; }
  ModelNeeds needs() const override;
  Result<size_t> scratch_bytes(size_t chunk_tokens) const override;
  size_t state_memory_bytes(size_t tokens) const override;
  Status arrange(const ModelArrangement& arrangement) override;
  ModelArrangement arrangement() const override { return arrangement_; }
  bool is_locked() const override { return trunk_.is_locked(); }
  Result<std::unique_ptr<SequenceState>> create_state(size_t capacity_tokens) override;
  Status forward(SequenceState& state, std::span<const int32_t> ids, const ForwardOutput& output) override;
  ModelCounters counters() const override;

 private:
  KimiModel(const ModelSource& source, KimiConfig config, Checkpoint checkpoint)
      : resources_(source.resources),
        config_(std::move(config)),
        checkpoint_(std::make_unique<Checkpoint>(std::move(checkpoint))),
        trunk_(*checkpoint_, source.resources.budget, source.resources.queue, source.options.row_block_bytes_max) {}

  bool reads_directly() const;
  Status load_tensors(const ConfigObject& config);
  Hash128 find_fingerprint(const ConfigObject& config, const TensorLoader& loader) const;
  Result<KimiLayer> load_layer(TensorLoader& loader, size_t index, uint32_t moe_index);
  Status load_experts();
  Status check_all_claimed();
  void describe(const TensorLoader& loader);
  Result<KimiScratch> make_scratch(Budget& budget, size_t tokens) const;
  Status resize_expert_cache(size_t slot_count);

  Compute compute() { return {resources_.kernels, resources_.pool, trunk_}; }
  MatrixView<float> rows(Matrix<float>& matrix, size_t tokens) { return matrix.view().row_range(0, tokens); }
  Status check_ids(std::span<const int32_t> ids) const;
  Status embed(std::span<const int32_t> ids);
  Status run_layer(KimiState& state, size_t index, size_t tokens, const ForwardOutput& output);
  Status run_attention(KimiState& state, size_t index, MatrixView<const float> x, MatrixView<float> out);
  Status run_ffn(size_t index, const ForwardOutput& output, MatrixView<const float> x, MatrixView<float> out);
  MatrixView<float> mix(const std::optional<ResidualMixer>& mixer, size_t tokens);
  std::span<const MatrixView<float>> block_views(size_t tokens);
  Status compute_logits(size_t tokens, MatrixView<float> logits);

  ModelResources resources_;
  KimiConfig config_;
  const EvictionPolicyKind* policy_ = &default_eviction_policy();
  ModelInfo info_;
  Hash128 fingerprint_;
  std::unique_ptr<Checkpoint> checkpoint_;  // Its address is known to trunk, catalog and cache.
  Trunk trunk_;
  std::optional<ExpertCatalog> catalog_;
  std::unique_ptr<ExpertCache> experts_;
  std::vector<Reservation> vector_memory_;
  TrunkMatrix embedding_, head_;
  std::vector<float> final_norm_;
  std::optional<ResidualMixer> output_mixer_;
  std::vector<KimiLayer> layers_;
  std::optional<KimiScratch> scratch_;  // For the chunk of the arrangement; none after a failed one.
  ModelArrangement arrangement_;
  size_t block_count_ = 0;  // Block vectors in use by the pass at work.
};

std::string layer_name(size_t index) {
  return "model.layers." + std::to_string(index);
}

Result<std::unique_ptr<Model>> KimiModel::open(const ModelSource& source) {
  KimiConfig config = TRY(read_kimi_config(source.config));
  if (source.options.context_tokens > config.context_tokens_max) {
    return error(Code::kArgument, "a context of %zu tokens is more than the %zu of this model",
                 source.options.context_tokens, config.context_tokens_max);
  }
  const EvictionPolicyKind* policy = TRY(find_eviction_policy(source.options.cache_policy));
  Checkpoint checkpoint =
      TRY(Checkpoint::open(source.folder, source.resources.opener, source.options.data_mode, source.resources.budget));
  std::unique_ptr<KimiModel> model(new KimiModel(source, std::move(config), std::move(checkpoint)));
  model->policy_ = policy;
  if (source.options.data_mode == ReadMode::kDirect && !model->reads_directly()) {
    source.resources.log.line(LogLevel::kWarn,
                              "the file system of %s refuses reads past the page cache; reading through it, and "
                              "dropping its pages behind us",
                              source.folder.c_str());
  }
  TRY(model->load_tensors(source.config));
  return std::unique_ptr<Model>(std::move(model));
}

bool KimiModel::reads_directly() const {
  for (size_t file = 0; file < checkpoint_->file_count(); ++file) {
    if (!checkpoint_->file(file).is_direct()) return false;
  }
  return true;
}

Status KimiModel::load_tensors(const ConfigObject& config) {
  TensorLoader loader(*checkpoint_, trunk_, resources_.budget, config_.tensor_prefix);
  embedding_ = TRY(loader.row_table("model.embed_tokens.weight", config_.vocabulary_size, config_.hidden));
  uint32_t moe_index = 0;
  for (size_t index = 0; index < config_.layer_count(); ++index) {
    trunk_.begin_layer();
    layers_.push_back(TRY(load_layer(loader, index, moe_index)));
    if (config_.layer_is_moe[index]) ++moe_index;
  }
  if (config_.residual_block > 0) {
    output_mixer_ = TRY(ResidualMixer::load(loader, "model.output_attn", config_.hidden, config_.epsilon));
  }
  final_norm_ = TRY(loader.vector("model.norm.weight", config_.hidden));
  trunk_.begin_head();
  head_ = TRY(loader.matrix("lm_head.weight", config_.vocabulary_size, config_.hidden));
  vector_memory_ = loader.take_reservations();
  info_.moe_layer_count = moe_index;
  if (moe_index > 0) TRY(load_experts());
  TRY(check_all_claimed());
  describe(loader);
  fingerprint_ = find_fingerprint(config, loader);
  return {};
}

Hash128 KimiModel::find_fingerprint(const ConfigObject& config, const TensorLoader& loader) const {
  Hasher hasher;
  hasher.add(info_.family);
  hasher.add(config.canonical_text());
  const Hash128 trunk = loader.digest();
  for (const uint64_t number : {trunk.low, trunk.high, uint64_t{info_.tensor_count}, info_.checkpoint_bytes}) {
    hasher.add(number);
  }
  hasher.add(info_.expert_format);
  hasher.add(info_.expert_bytes);
  return hasher.digest();
}

Result<KimiLayer> KimiModel::load_layer(TensorLoader& loader, size_t index, uint32_t moe_index) {
  const std::string name = layer_name(index);
  const size_t hidden = config_.hidden;
  KimiLayer layer;
  if (config_.residual_block > 0 && index > 0) {
    layer.attention_mixer = TRY(ResidualMixer::load(loader, name + ".self_attention", hidden, config_.epsilon));
  } else if (config_.residual_block > 0) {  // The first layer has this mixer, but nothing to mix yet (spec 9).
    TRY(loader.skip(name + ".self_attention_res_norm.weight", hidden));
    TRY(loader.skip(name + ".self_attention_res_proj.weight", hidden));
  }
  layer.input_norm = TRY(loader.vector(name + ".input_layernorm.weight", hidden));
  if (config_.layer_is_kda[index]) {
    layer.attention = TRY(KdaLayer::load(loader, name + ".self_attn", config_.kda, resources_.kernels));
  } else {
    layer.attention = TRY(MlaLayer::load(loader, name + ".self_attn", config_.mla));
  }
  if (config_.residual_block > 0) {
    layer.ffn_mixer = TRY(ResidualMixer::load(loader, name + ".mlp", hidden, config_.epsilon));
  }
  layer.post_attention_norm = TRY(loader.vector(name + ".post_attention_layernorm.weight", hidden));
  if (config_.layer_is_moe[index]) {
    layer.ffn = TRY(MoeLayer::load(loader, name + ".block_sparse_moe", config_.moe, moe_index));
  } else {
    layer.ffn = TRY(GatedMlp::load(loader, name + ".mlp", hidden, config_.dense_width));
  }
  return layer;
}

/// How routed experts are stored: by the tensors that exist, not by the configuration (spec 2.3.10).
Result<Format> expert_format(const Checkpoint& checkpoint, const std::string& first_matrix) {
  if (checkpoint.find(first_matrix + ".weight_packed")) return Format::kMxfp4;
  const auto plain = checkpoint.find(first_matrix + ".weight");
  if (!plain) {
    return error(Code::kFormat, "%s: neither .weight nor .weight_packed is there", first_matrix.c_str());
  }
  switch (plain->dtype) {
    case DType::kBf16:
      return Format::kBf16;
    case DType::kF16:
      return Format::kF16;
    case DType::kF32:
      return Format::kF32;
    default:
      return error(Code::kUnsupported, "%s.weight is %s; experts in BF16, F16, F32 and MXFP4 are supported",
                   first_matrix.c_str(), dtype_name(plain->dtype));
  }
}

Status KimiModel::load_experts() {
  std::vector<size_t> moe_layers;
  for (size_t index = 0; index < config_.layer_count(); ++index) {
    if (config_.layer_is_moe[index]) moe_layers.push_back(index);
  }
  const auto matrix_name = [&](ExpertId id, size_t matrix) {
    const char* const names[] = {".w1", ".w3", ".w2"};  // Gate, up, down: the order that MoeLayer uses.
    return config_.tensor_prefix + layer_name(moe_layers[id.layer]) + ".block_sparse_moe.experts." +
           std::to_string(id.expert) + names[matrix];
  };
  const Format format = TRY(expert_format(*checkpoint_, matrix_name({0, 0}, 0)));
  const size_t input = config_.moe.expert_input();
  const size_t width = config_.moe.width;
  if (format == Format::kMxfp4 && (input % Mxfp4::kBlockColumns != 0 || width % Mxfp4::kBlockColumns != 0)) {
    return error(Code::kFormat, "experts of %zu x %zu cannot be MXFP4: both must be multiples of %zu", width, input,
                 Mxfp4::kBlockColumns);
  }
  ExpertCatalog::Layout layout{
      moe_layers.size(), config_.moe.experts, {{format, width, input}, {format, width, input}, {format, input, width}}};
  catalog_ = TRY(ExpertCatalog::build(*checkpoint_, resources_.budget, std::move(layout),
                                      [&](ExpertId id, size_t matrix) -> ExpertCatalog::TensorNames {
                                        const std::string name = matrix_name(id, matrix);
                                        if (format != Format::kMxfp4) return {name + ".weight", ""};
                                        return {name + ".weight_packed", name + ".weight_scale"};
                                      }));
  return {};
}

Status KimiModel::check_all_claimed() {
  // The vision tower of Kimi K3 is not part of the text model.
  if (config_.is_nested) {
    TRY(checkpoint_->claim_prefixes({"vision_tower.", "mm_projector."}));
  }
  const size_t unclaimed = checkpoint_->unclaimed_count();
  if (unclaimed == 0) return {};
  constexpr size_t kShownMax = 5;
  std::string names;
  for (const std::string& name : TRY(checkpoint_->unclaimed_names(kShownMax))) names += "\n  " + name;
  return error(Code::kFormat, "%s holds %zu tensors that its config.json does not account for, among them:%s",
               checkpoint_->folder().c_str(), unclaimed, names.c_str());
}

void KimiModel::describe(const TensorLoader& loader) {
  const MoeShape& moe = config_.moe;
  info_.family = "kimi";
  info_.name = config_.is_nested ? "Kimi K3" : "Kimi-Linear";
  info_.vocabulary_size = config_.vocabulary_size;
  info_.hidden_size = config_.hidden;
  info_.layer_count = config_.layer_count();
  info_.expert_count = info_.moe_layer_count > 0 ? moe.experts : 0;
  info_.experts_per_token = info_.moe_layer_count > 0 ? moe.router.top_k : 0;
  info_.context_tokens_max = config_.context_tokens_max;
  info_.stop_ids = config_.stop_ids;
  info_.has_vision = config_.has_vision;
  const uint64_t expert_elements = 3 * static_cast<uint64_t>(moe.width) * moe.expert_input();
  info_.parameter_count = loader.element_count() + info_.moe_layer_count * moe.experts * expert_elements;
  info_.active_parameter_count = loader.element_count() - (config_.vocabulary_size - 1) * config_.hidden +
                                 info_.moe_layer_count * moe.router.top_k * expert_elements;
  const auto head = checkpoint_->find(config_.tensor_prefix + "lm_head.weight");
  info_.trunk_format = head ? dtype_name(head->dtype) : "";
  info_.expert_format = catalog_ ? format_name(catalog_->layout().matrices[0].format) : "";
  info_.checkpoint_bytes = checkpoint_->data_bytes();
  info_.trunk_bytes = loader.stored_bytes();
  info_.expert_bytes = catalog_ ? catalog_->record_bytes() : 0;
  info_.tensor_count = checkpoint_->tensor_count();
  info_.synthetic_shared_layers = checkpoint_->synthetic();
  for (size_t index = 0; index < config_.layer_count(); ++index) {
    info_.layer_kinds.push_back(std::string(config_.layer_is_kda[index] ? "kda" : "mla") +
                                (config_.layer_is_moe[index] ? "+moe" : "+dense"));
  }
}

Result<KimiScratch> KimiModel::make_scratch(Budget& budget, size_t tokens) const {
  const size_t threads = resources_.pool.thread_count();
  KimiScratch scratch;
  for (Matrix<float>* matrix : {&scratch.sum, &scratch.mixed, &scratch.normalized, &scratch.delta}) {
    *matrix = TRY(Matrix<float>::allocate(budget, tokens, config_.hidden, "activations"));
  }
  const size_t block = config_.residual_block;
  const size_t blocks = block > 0 ? (config_.layer_count() + block - 1) / block : 0;
  scratch.block_views.reserve(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    scratch.blocks.push_back(TRY(Matrix<float>::allocate(budget, tokens, config_.hidden, "attention residuals")));
  }
  const auto& kinds = config_.layer_is_kda;
  if (std::ranges::find(kinds, true) != kinds.end()) {
    scratch.kda = TRY(KdaLayer::Scratch::allocate(budget, config_.kda, tokens, threads));
  }
  if (std::ranges::find(kinds, false) != kinds.end()) {
    scratch.mla = TRY(MlaLayer::Scratch::allocate(budget, config_.mla, tokens, threads));
  }
  if (catalog_) {
    scratch.moe = TRY(MoeLayer::Scratch::allocate(budget, config_.moe, tokens, config_.moe.shared_width));
  }
  scratch.mlp = TRY(GatedMlp::Scratch::allocate(budget, tokens, config_.dense_width));
  return scratch;
}

/// Measured by taking it from a budget of its own: memory that nobody touches costs nothing.
Result<size_t> KimiModel::scratch_bytes(size_t chunk_tokens) const {
  Budget budget(SIZE_MAX);
  const KimiScratch scratch = TRY(make_scratch(budget, chunk_tokens));
  return budget.used_bytes();
}

ModelNeeds KimiModel::needs() const {
  ModelNeeds needs;
  needs.pin_order = trunk_.groups_in_pin_order();
  needs.ring_bytes = trunk_.ring_memory_bytes();
  needs.row_read_bytes = trunk_.row_read_bytes(embedding_);
  if (!catalog_) return needs;
  needs.expert_cache_fixed_bytes = ExpertCache::fixed_memory_bytes(*catalog_, *policy_);
  needs.expert_slot_bytes = ExpertCache::slot_memory_bytes(*catalog_);
  needs.expert_slots_max = info_.moe_layer_count * config_.moe.experts;
  needs.expert_slots_min = std::min(ExpertCache::kSlotsMin, needs.expert_slots_max);
  needs.expert_read_bytes = catalog_->mean_read_bytes();
  return needs;
}

Status KimiModel::arrange(const ModelArrangement& wanted) {
  ENSURE(wanted.chunk_tokens > 0);
  arrangement_ = {};  // Until it is what is wanted: after a failure the next call tries again.
  scratch_.reset();
  if (experts_ && wanted.expert_slots < experts_->slot_count()) TRY(resize_expert_cache(wanted.expert_slots));
  TRY(trunk_.pin(wanted.pinned_groups));
  TRY(resize_expert_cache(wanted.expert_slots));
  scratch_.emplace(TRY(make_scratch(resources_.budget, wanted.chunk_tokens)));
  arrangement_ = wanted;
  return {};
}

Status KimiModel::resize_expert_cache(size_t slot_count) {
  if (!catalog_) return {};
  if (experts_) return experts_->resize(slot_count);
  const ExpertCacheOptions options{slot_count, policy_};
  experts_ = TRY(ExpertCache::create(*catalog_, resources_.queue, options, resources_.budget));
  return {};
}

size_t KimiModel::state_memory_bytes(size_t tokens) const {
  const size_t kda_bytes = KdaState::memory_bytes(config_.kda);
  const size_t mla_bytes = MlaState::memory_bytes(config_.mla, tokens);
  size_t bytes = 0;
  bool any_mla = false;
  for (const bool is_kda : config_.layer_is_kda) {
    bytes += is_kda ? kda_bytes : mla_bytes;
    any_mla = any_mla || !is_kda;
  }
  return any_mla ? bytes + MlaLayer::scores_memory_bytes(tokens, resources_.pool.thread_count()) : bytes;
}

Result<std::unique_ptr<SequenceState>> KimiModel::create_state(size_t capacity_tokens) {
  std::unique_ptr<KimiState> state(new KimiState(config_));
  const size_t used_before = resources_.budget.used_bytes();
  bool any_mla = false;
  for (const bool is_kda : config_.layer_is_kda) {
    if (is_kda) {
      state->layers_.emplace_back(TRY(KdaState::allocate(resources_.budget, config_.kda)));
    } else {
      state->layers_.emplace_back(TRY(MlaState::allocate(resources_.budget, config_.mla, capacity_tokens)));
      any_mla = true;
    }
  }
  if (any_mla) {
    state->scores_ = TRY(MlaLayer::allocate_scores(resources_.budget, capacity_tokens, resources_.pool.thread_count()));
  }
  state->capacity_tokens_ = capacity_tokens;
  state->memory_bytes_ = resources_.budget.used_bytes() - used_before;
  return std::unique_ptr<SequenceState>(std::move(state));
}

Status KimiModel::forward(SequenceState& sequence, std::span<const int32_t> ids, const ForwardOutput& output) {
  auto& state = static_cast<KimiState&>(sequence);
  if (ids.empty()) return {};
  ENSURE(scratch_ && ids.size() <= arrangement_.chunk_tokens && output.logits.rows() <= ids.size());
  if (ids.size() > state.capacity_tokens_ - state.position_) {
    return error(Code::kArgument, "%zu more tokens do not fit the context: %zu of %zu are used", ids.size(),
                 state.position_, state.capacity_tokens_);
  }
  if (output.routing) output.routing->assign(ids.size(), {});
  TRY(check_ids(ids));
  trunk_.begin_pass(output.logits.rows() > 0);
  TRY(embed(ids));
  block_count_ = 0;
  for (size_t index = 0; index < layers_.size(); ++index) TRY(run_layer(state, index, ids.size(), output));
  state.position_ += ids.size();
  if (output.logits.rows() > 0) TRY(compute_logits(ids.size(), output.logits));
  return {};
}

Status KimiModel::check_ids(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    if (id >= 0 && static_cast<size_t>(id) < config_.vocabulary_size) continue;
    return error(Code::kArgument, "token id %d is outside the vocabulary of %zu", id, config_.vocabulary_size);
  }
  return {};
}

Status KimiModel::embed(std::span<const int32_t> ids) {
  std::array<uint32_t, 64> rows_wanted{};
  for (size_t first = 0; first < ids.size(); first += rows_wanted.size()) {
    const size_t count = std::min(rows_wanted.size(), ids.size() - first);
    std::ranges::copy(ids.subspan(first, count), rows_wanted.begin());
    TRY(trunk_.read_rows(embedding_, std::span(rows_wanted).first(count),
                         scratch_->sum.view().row_range(first, count)));
  }
  return {};
}

std::span<const MatrixView<float>> KimiModel::block_views(size_t tokens) {
  scratch_->block_views.clear();
  for (size_t i = 0; i < block_count_; ++i) scratch_->block_views.push_back(rows(scratch_->blocks[i], tokens));
  return scratch_->block_views;
}

/// Input of a sub-layer: the residual stream itself, or its mix with the block vectors once there are any (spec 9).
MatrixView<float> KimiModel::mix(const std::optional<ResidualMixer>& mixer, size_t tokens) {
  if (!mixer || block_count_ == 0) return rows(scratch_->sum, tokens);
  const MatrixView<float> mixed = rows(scratch_->mixed, tokens);
  mixer->mix(compute(), block_views(tokens), rows(scratch_->sum, tokens), mixed);
  return mixed;
}

Status KimiModel::run_layer(KimiState& state, size_t index, size_t tokens, const ForwardOutput& output) {
  const KimiLayer& layer = layers_[index];
  const MatrixView<float> sum = rows(scratch_->sum, tokens);
  const MatrixView<float> normalized = rows(scratch_->normalized, tokens);
  const MatrixView<float> delta = rows(scratch_->delta, tokens);
  normalize_rows(compute(), mix(layer.attention_mixer, tokens), layer.input_norm, config_.epsilon, normalized);
  TRY(run_attention(state, index, normalized, delta));
  const bool starts_block = config_.residual_block > 0 && index % config_.residual_block == 0;
  if (starts_block) {  // The sum so far becomes a block vector, and the sum restarts from the attention's output.
    std::swap(scratch_->blocks[block_count_++], scratch_->sum);
    for (size_t t = 0; t < tokens; ++t) std::ranges::copy(delta.row(t), scratch_->sum.row(t).begin());
  } else {
    add_rows(compute(), delta, sum);
  }
  normalize_rows(compute(), mix(layer.ffn_mixer, tokens), layer.post_attention_norm, config_.epsilon, normalized);
  TRY(run_ffn(index, output, normalized, delta));
  add_rows(compute(), delta, rows(scratch_->sum, tokens));
  for (size_t t = 0; t < tokens; ++t) {
    if (resources_.kernels.all_finite(scratch_->sum.row(t))) continue;
    return error(Code::kFormat, "%s: layer %zu gave a number that is not finite at position %zu; the file is damaged",
                 checkpoint_->folder().c_str(), index, state.position_ + t);
  }
  return {};
}

Status KimiModel::run_attention(KimiState& state, size_t index, MatrixView<const float> x, MatrixView<float> out) {
  if (const auto* kda = std::get_if<KdaLayer>(&layers_[index].attention)) {
    return kda->run(compute(), *scratch_->kda, std::get<KdaState>(state.layers_[index]), x, out);
  }
  const MlaLayer::Sequence sequence{std::get<MlaState>(state.layers_[index]), state.scores_.view(), state.position_};
  return std::get<MlaLayer>(layers_[index].attention).run(compute(), *scratch_->mla, sequence, x, out);
}

Status KimiModel::run_ffn(size_t index, const ForwardOutput& output, MatrixView<const float> x, MatrixView<float> out) {
  if (const auto* dense = std::get_if<GatedMlp>(&layers_[index].ffn)) {
    return dense->run(compute(), config_.activation, scratch_->mlp, x, out);
  }
  const MoeLayer::Routing routing{output.routing, static_cast<uint32_t>(index)};
  return std::get<MoeLayer>(layers_[index].ffn)
      .run({compute(), config_.activation, *experts_, *scratch_->moe}, routing, x, out);
}

Status KimiModel::compute_logits(size_t tokens, MatrixView<float> logits) {
  const size_t count = logits.rows();
  const MatrixView<float> last = mix(output_mixer_, tokens).row_range(tokens - count, count);
  const MatrixView<float> normalized = rows(scratch_->normalized, count);
  normalize_rows(compute(), last, final_norm_, config_.epsilon, normalized);
  TRY(linear(compute(), head_, normalized, logits));
  for (size_t t = 0; t < count; ++t) {
    if (resources_.kernels.all_finite(logits.row(t))) continue;
    return error(Code::kFormat, "%s: the logits hold a number that is not finite; the file is damaged",
                 checkpoint_->folder().c_str());
  }
  return {};
}

ModelCounters KimiModel::counters() const {
  ModelCounters counters;
  counters.header_bytes = checkpoint_->header_bytes();
  counters.blocks_streamed = trunk_.blocks_streamed();
  counters.pinned_layers = trunk_.pinned_layer_count();
  counters.streamed_layers = trunk_.layer_count() - counters.pinned_layers;
  counters.direct_io = reads_directly();
  if (!experts_) return counters;
  const ExpertCacheCounters experts = experts_->counters();
  counters.expert_hits = experts.hits;
  counters.expert_misses = experts.misses;
  return counters;
}

}  // namespace

bool recognizes_kimi(const std::string& model_type) {
  return model_type == "kimi_linear" || model_type == "kimi_k3";
}

Result<std::unique_ptr<Model>> open_kimi(const ModelSource& source) {
  return KimiModel::open(source);
}

}  // namespace headrace
