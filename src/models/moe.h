#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "models/activation.h"
#include "models/compute.h"
#include "models/gated_mlp.h"
#include "models/model.h"
#include "models/router.h"
#include "models/tensor_loader.h"
#include "weights/expert_cache.h"

namespace headrace {

/// Sizes and variants of a mixture of experts, the same for all its layers.
struct MoeShape {
  size_t hidden = 0;
  size_t experts = 0;
  size_t width = 0;   ///< Of one routed expert.
  size_t latent = 0;  ///< Input width of routed experts when it differs from hidden; 0: they see hidden.
  bool latent_norm = false;
  size_t shared_width = 0;      ///< Of the shared MLP; 0: none.
  bool softmax_scores = false;  ///< Router scores by softmax over the experts instead of sigmoid.
  RouterRules router;
  float epsilon = 0;

  size_t expert_input() const { return latent > 0 ? latent : hidden; }
};

/// A mixture-of-experts layer (spec 7). For a chunk of tokens it makes one sweep: the distinct experts in ascending id,
/// each taken from the cache once and applied to all its tokens; each token's sum so runs in ascending id as in decode.
class MoeLayer {
 public:
  /// A token of the chunk that the expert at work serves, and its weight in that token's sum.
  struct ExpertUse {
    size_t token = 0;
    float weight = 0;
  };

  struct Scratch {
    Matrix<float> scores;            // [tokens, experts]
    Matrix<float> input, routed;     // [tokens, expert input]
    Matrix<float> gathered, result;  // [tokens, expert input]: the tokens of the expert at work
    Matrix<float> gate, up;          // [tokens, expert width]
    Matrix<float> shared;            // [tokens, hidden]
    GatedMlp::Scratch mlp;
    Router router;
    Matrix<uint32_t> experts;      // [tokens, top_k], ascending for each token
    Matrix<float> weights;         // as `experts`
    std::vector<ExpertId> wanted;  // Room for all experts: distinct ones of the chunk, ascending.
    std::vector<ExpertUse> uses;   // Room for all tokens: a token uses an expert once.
    Reservation lists_memory;      // Of the two vectors.
    static Result<Scratch> allocate(Budget& budget, const MoeShape& shape, size_t tokens, size_t mlp_width_max);
  };

  /// Claims the router, latent and shared tensors of `<name>.`; `moe_index` counts the layers with experts.
  static Result<MoeLayer> load(TensorLoader& loader, const std::string& name, const MoeShape& shape,
                               uint32_t moe_index);

  /// out = MoE(x); both [tokens, hidden]. `routing`, when not null, holds one entry per token and gets this layer's
  /// choice under the model's layer number `layer`.
  struct Routing {
    std::vector<std::vector<RoutedExperts>>* tokens = nullptr;
    uint32_t layer = 0;
  };
  Status run(const Compute& compute, const Activation& activation, ExpertCache& cache, Scratch& scratch,
             const Routing& routing, MatrixView<const float> x, MatrixView<float> out) const;

 private:
  Status route(const Compute& compute, Scratch& scratch, const Routing& routing, MatrixView<const float> x) const;
  void want_chosen(Scratch& scratch, size_t tokens) const;
  Status sweep(const Compute& compute, const Activation& activation, ExpertCache& cache, Scratch& scratch,
               MatrixView<const float> input, MatrixView<float> out) const;
  void apply_expert(const Compute& compute, const Activation& activation, const ExpertLease& expert, Scratch& scratch,
                    MatrixView<const float> input, MatrixView<float> out) const;

  MoeShape shape_;
  uint32_t moe_index_ = 0;
  TrunkMatrix gate_, latent_down_, latent_up_;
  std::vector<float> bias_;         // [experts], for the choice only
  std::vector<float> latent_norm_;  // [latent]
  std::optional<GatedMlp> shared_;
};

}  // namespace headrace
