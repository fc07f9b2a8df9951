#include "models/families/kimi_tensors.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/ensure.h"
#include "formats/mxfp4.h"
#include "models/families.h"

namespace headrace {
namespace {

constexpr size_t kTapCount = 4;
constexpr size_t kImageChannels = 3;
constexpr ConfigObject::Range kWidth{1, 1 << 20};
constexpr ConfigObject::Range kSmall{1, 1 << 12};

}  // namespace

/// Writes the tensors of one group down. The first refusal of the sink stands; what follows it is skipped.
class KimiTensorLister {
 public:
  KimiTensorLister(const KimiTensors& tensors, ListedTensorSink sink)
      : tensors_(tensors), config_(tensors.config_), sink_(sink), prefix_(config_.tensor_prefix) {}

  Status embedding();
  Status layer(size_t index);
  Status head();
  Status projector();
  Status tower();

 private:
  using Dims = std::initializer_list<uint64_t>;
  void add(std::string_view name, DType dtype, Dims dims, TensorRole role, uint64_t used_count = UINT64_MAX);
  void matrix(std::string_view name, uint64_t out, uint64_t in) {
    add(name, DType::kBf16, {out, in}, TensorRole::kMatrix);
  }
  void norm(std::string_view name, uint64_t size, DType dtype = DType::kBf16) {
    add(name, dtype, {size}, TensorRole::kNorm);
  }
  void mixer(std::string_view name);
  void kda();
  void mla();
  void mlp(std::string_view name, uint64_t width);
  void moe();
  void expert_matrix(const std::string& name, uint64_t out, uint64_t in);

  const KimiTensors& tensors_;
  const KimiConfig& config_;
  const ListedTensorSink sink_;
  std::string prefix_;
  std::string name_;
  Status status_;
};

void KimiTensorLister::add(std::string_view name, DType dtype, Dims dims, TensorRole role, uint64_t used_count) {
  if (!status_) return;
  name_ = prefix_;
  name_ += name;
  ListedTensor tensor{.name = name_, .dtype = dtype, .role = role};
  tensor.shape.rank = dims.size();
  std::copy(dims.begin(), dims.end(), tensor.shape.dims.begin());
  tensor.used_count = std::min(used_count, tensor.shape.element_count());
  status_ = sink_(tensor);
}

Status KimiTensorLister::embedding() {
  add("model.embed_tokens.weight", DType::kBf16, {config_.vocabulary_size, config_.hidden}, TensorRole::kEmbedding);
  return std::move(status_);
}

Status KimiTensorLister::head() {
  if (config_.residual_block > 0) mixer("model.output_attn_res");
  norm("model.norm.weight", config_.hidden);
  matrix("lm_head.weight", config_.vocabulary_size, config_.hidden);
  return std::move(status_);
}

void KimiTensorLister::mixer(std::string_view name) {
  norm(std::string(name) + "_norm.weight", config_.hidden);
  matrix(std::string(name) + "_proj.weight", 1, config_.hidden);
}

Status KimiTensorLister::layer(size_t index) {
  prefix_ += "model.layers." + std::to_string(index) + ".";
  norm("input_layernorm.weight", config_.hidden);
  norm("post_attention_layernorm.weight", config_.hidden);
  if (config_.residual_block > 0) {
    mixer("self_attention_res");
    mixer("mlp_res");
  }
  config_.layer_is_kda[index] ? kda() : mla();
  if (config_.layer_is_moe[index]) {
    moe();
  } else {
    mlp("mlp.", config_.dense_width);
  }
  return std::move(status_);
}

void KimiTensorLister::kda() {
  const KdaShape& kda = config_.kda;
  const uint64_t width = kda.width();
  // The two releases differ in the types of the small tensors (spec 3.2, 3.3).
  const DType small_type = config_.is_nested ? DType::kF32 : DType::kBf16;
  matrix("self_attn.q_proj.weight", width, kda.hidden);
  matrix("self_attn.k_proj.weight", width, kda.hidden);
  matrix("self_attn.v_proj.weight", width, kda.hidden);
  for (const char* name : {"self_attn.q_conv1d.weight", "self_attn.k_conv1d.weight", "self_attn.v_conv1d.weight"}) {
    add(name, small_type, {width, 1, kTapCount}, TensorRole::kConvolution);
  }
  if (config_.is_nested) {
    add("self_attn.A_log", DType::kF32, {std::max(kda.heads, kda.head_dim)}, TensorRole::kDecayRate, kda.heads);
  } else {
    add("self_attn.A_log", DType::kF32, {1, 1, kda.heads, 1}, TensorRole::kDecayRate);
  }
  add("self_attn.dt_bias", DType::kF32, {width}, TensorRole::kDecayBias);
  matrix("self_attn.f_a_proj.weight", kda.head_dim, kda.hidden);
  matrix("self_attn.f_b_proj.weight", width, kda.head_dim);
  matrix("self_attn.b_proj.weight", kda.heads, kda.hidden);
  if (kda.full_rank_gate) {
    matrix("self_attn.g_proj.weight", width, kda.hidden);
  } else {
    matrix("self_attn.g_a_proj.weight", kda.head_dim, kda.hidden);
    matrix("self_attn.g_b_proj.weight", width, kda.head_dim);
  }
  norm("self_attn.o_norm.weight", kda.head_dim, small_type);
  matrix("self_attn.o_proj.weight", kda.hidden, width);
}

void KimiTensorLister::mla() {
  const MlaShape& mla = config_.mla;
  if (mla.query_rank > 0) {
    matrix("self_attn.q_a_proj.weight", mla.query_rank, mla.hidden);
    norm("self_attn.q_a_layernorm.weight", mla.query_rank);
    matrix("self_attn.q_b_proj.weight", mla.heads * mla.query_dim(), mla.query_rank);
  } else {
    matrix("self_attn.q_proj.weight", mla.heads * mla.query_dim(), mla.hidden);
  }
  matrix("self_attn.kv_a_proj_with_mqa.weight", mla.latent + mla.rope, mla.hidden);
  norm("self_attn.kv_a_layernorm.weight", mla.latent);
  matrix("self_attn.kv_b_proj.weight", mla.heads * (mla.nope + mla.value), mla.latent);
  if (mla.output_gate) matrix("self_attn.g_proj.weight", mla.heads * mla.value, mla.hidden);
  matrix("self_attn.o_proj.weight", mla.hidden, mla.heads * mla.value);
}

void KimiTensorLister::mlp(std::string_view name, uint64_t width) {
  const std::string start(name);
  matrix(start + "gate_proj.weight", width, config_.hidden);
  matrix(start + "up_proj.weight", width, config_.hidden);
  matrix(start + "down_proj.weight", config_.hidden, width);
}

void KimiTensorLister::moe() {
  const MoeShape& moe = config_.moe;
  const std::string start = "block_sparse_moe.";
  matrix(start + "gate.weight", moe.experts, moe.hidden);
  add(start + "gate.e_score_correction_bias", DType::kF32, {moe.experts}, TensorRole::kRouterBias);
  if (moe.latent > 0) {
    matrix(start + "routed_expert_down_proj.weight", moe.latent, moe.hidden);
    if (moe.latent_norm) norm(start + "routed_expert_norm.weight", moe.latent);
    matrix(start + "routed_expert_up_proj.weight", moe.hidden, moe.latent);
  }
  if (moe.shared_width > 0) mlp(start + "shared_experts.", moe.shared_width);
  for (size_t expert = 0; expert < moe.experts; ++expert) {
    const std::string one = start + "experts." + std::to_string(expert);
    expert_matrix(one + ".w1", moe.width, moe.expert_input());
    expert_matrix(one + ".w2", moe.expert_input(), moe.width);
    expert_matrix(one + ".w3", moe.width, moe.expert_input());
  }
}

void KimiTensorLister::expert_matrix(const std::string& name, uint64_t out, uint64_t in) {
  if (!tensors_.experts_are_mxfp4_) return matrix(name + ".weight", out, in);
  add(name + ".weight_packed", DType::kU8, {out, in / 2}, TensorRole::kPackedNibbles);
  add(name + ".weight_scale", DType::kU8, {out, in / Mxfp4::kBlockColumns}, TensorRole::kBlockScales);
}

Status KimiTensorLister::projector() {
  const KimiTensors::Vision& vision = *tensors_.vision_;
  prefix_ = "mm_projector.";
  matrix("proj.0.weight", vision.merged_width, vision.merged_width);
  matrix("proj.2.weight", config_.hidden, vision.merged_width);
  norm("post_norm.weight", config_.hidden);
  return std::move(status_);
}

Status KimiTensorLister::tower() {
  const KimiTensors::Vision& vision = *tensors_.vision_;
  prefix_ = "vision_tower.";
  add("patch_embed.proj.weight", DType::kBf16, {vision.width, kImageChannels, vision.patch, vision.patch},
      TensorRole::kMatrix);
  add("patch_embed.pos_emb.weight", DType::kBf16, {vision.grid_height, vision.grid_width, vision.width},
      TensorRole::kEmbedding);
  for (size_t block = 0; block < vision.blocks; ++block) {
    prefix_ = "vision_tower.encoder.blocks." + std::to_string(block) + ".";
    norm("norm0.weight", vision.width);
    norm("norm1.weight", vision.width);
    matrix("wqkv.weight", 3 * vision.qkv_width, vision.width);
    matrix("wo.weight", vision.width, vision.qkv_width);
    matrix("mlp.fc0.weight", vision.inner_width, vision.width);
    matrix("mlp.fc1.weight", vision.width, vision.inner_width);
  }
  prefix_ = "vision_tower.encoder.";
  norm("final_layernorm.weight", vision.width);
  return std::move(status_);
}

Result<KimiTensors::Vision> KimiTensors::read_vision(const ConfigObject& vision) {
  Vision sizes;
  sizes.width = TRY(vision.integer({"vt_hidden_size"}, kWidth));
  sizes.inner_width = TRY(vision.integer({"vt_intermediate_size"}, kWidth));
  sizes.qkv_width = TRY(vision.integer({"qkv_hidden_size"}, kWidth));
  sizes.blocks = TRY(vision.integer({"vt_num_hidden_layers"}, kSmall));
  sizes.patch = TRY(vision.integer({"patch_size"}, kSmall));
  sizes.grid_height = TRY(vision.integer({"init_pos_emb_height"}, kSmall));
  sizes.grid_width = TRY(vision.integer({"init_pos_emb_width"}, kSmall));
  sizes.merged_width = TRY(vision.integer({"mm_hidden_size"}, kWidth));
  for (const size_t side : TRY(vision.integers({"merge_kernel_size"}, {1, 16}, 2))) sizes.merged_width *= side;
  return sizes;
}

Result<KimiTensors> KimiTensors::read(const ConfigObject& outer) {
  KimiTensors tensors;
  tensors.config_ = TRY(read_kimi_config(outer));
  const bool inner_is_quantized =
      tensors.config_.is_nested && TRY(outer.object("text_config")).has({"quantization_config"});
  tensors.experts_are_mxfp4_ = inner_is_quantized || outer.has({"quantization_config"});
  const MoeShape& moe = tensors.config_.moe;
  if (tensors.experts_are_mxfp4_ &&
      (moe.width % Mxfp4::kBlockColumns != 0 || moe.expert_input() % Mxfp4::kBlockColumns != 0)) {
    return error(Code::kFormat, "%s: experts of %zu x %zu cannot be MXFP4: both must be multiples of %zu",
                 outer.path().c_str(), moe.width, moe.expert_input(), Mxfp4::kBlockColumns);
  }
  if (tensors.config_.has_vision) tensors.vision_ = TRY(read_vision(TRY(outer.object("vision_config"))));
  return tensors;
}

Result<KimiTensors> KimiTensors::parse(const std::string& config_text, const std::string& path) {
  const nlohmann::json json = TRY(parse_config(config_text, path));
  const ConfigObject outer = TRY(ConfigObject::wrap(json, path));
  const std::string model_type = TRY(outer.text({"model_type"}));
  if (recognizes_kimi(model_type)) return read(outer);
  return error(Code::kUnsupported, "%s: \"model_type\" is %s; this version makes kimi_linear and kimi_k3", path.c_str(),
               quoted(model_type).c_str());
}

std::optional<size_t> KimiTensors::layer_of_group(size_t group) const {
  if (group < layer_group(0) || group >= layer_group(config_.layer_count())) return std::nullopt;
  return group - layer_group(0);
}

Status KimiTensors::for_each_of_group(size_t group, ListedTensorSink sink) const {
  ENSURE(group < group_count());
  KimiTensorLister lister(*this, sink);
  if (group == kEmbeddingGroup) return lister.embedding();
  if (const auto layer = layer_of_group(group)) return lister.layer(*layer);
  if (group == head_group()) return lister.head();
  return group == head_group() + 1 ? lister.projector() : lister.tower();
}

Status KimiTensors::for_each(ListedTensorSink sink) const {
  for (size_t group = 0; group < group_count(); ++group) TRY(for_each_of_group(group, sink));
  return {};
}

}  // namespace headrace
