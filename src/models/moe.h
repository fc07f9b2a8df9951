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

/// A mixture-of-experts layer (spec 7). Reads of its experts start as soon as the router has spoken, and go on under
/// the latent projection, the shared MLP and the experts that are there.
///
/// A few tokens (decoding) take the experts as they land, each with results of its own, which are then added in
/// ascending id. A chunk makes one sweep, the experts in ascending id, each added as it comes. Each token's sum is the
/// same chain either way (P1).
class MoeLayer {
 public:
  /// A token that an expert serves, and the expert's weight in that token's sum.
  struct TokenUse {
    uint32_t token = 0;
    float weight = 0;
  };

  struct Scratch {
    Matrix<float> scores;                   // [tokens, experts]
    Matrix<float> input, routed, gathered;  // [tokens, expert input]; gathered: the tokens of the expert at work
    Matrix<float> results;                  // [max(tokens, top_k), expert input]
    Matrix<float> gate, up;                 // [tokens, expert width]
    Matrix<float> shared;                   // [tokens, hidden]
    GatedMlp::Scratch mlp;
    Router router;
    Matrix<uint32_t> experts;       // [tokens, top_k], ascending for each token
    Matrix<float> weights;          // as `experts`
    std::vector<ExpertUse> wanted;  // Room for all experts: distinct ones of the chunk, ascending.
    std::vector<TokenUse> uses;     // [tokens * top_k], by expert, then by token.
    std::vector<uint32_t> use_end;  // [experts]: where the uses of an expert end.
    Reservation lists_memory;       // Of the three vectors.
    static Result<Scratch> allocate(Budget& budget, const MoeShape& shape, size_t tokens, size_t mlp_width_max);
  };

  /// What a layer runs with. Borrowed from the model.
  struct Context {
    const Compute& compute;
    const Activation& activation;
    ExpertCache& cache;
    Scratch& scratch;
  };

  /// Claims the router, latent and shared tensors of `<name>.`; `moe_index` counts the layers with experts.
  static Result<MoeLayer> load(TensorLoader& loader, const std::string& name, const MoeShape& shape,
                               uint32_t moe_index);

  /// `routing`, when not null, holds one entry per token and gets this layer's choice under the model's layer number
  /// `layer`.
  struct Routing {
    std::vector<std::vector<RoutedExperts>>* tokens = nullptr;
    uint32_t layer = 0;
  };
  /// out = MoE(x); both [tokens, hidden].
  Status run(const Context& context, const Routing& routing, MatrixView<const float> x, MatrixView<float> out) const;

 private:
  Status route(const Context& context, const Routing& routing, MatrixView<const float> x) const;
  void list_uses(Scratch& scratch, size_t tokens) const;
  bool fits_results(const Scratch& scratch, size_t tokens) const;
  Status run_shared(const Context& context, MatrixView<const float> x) const;
  Status run_experts(const Context& context, MatrixView<const float> input, MatrixView<float> out) const;
  void apply_expert(const Context& context, const ExpertLease& expert, std::span<const TokenUse> uses,
                    MatrixView<const float> input, MatrixView<float> results) const;

  MoeShape shape_;
  uint32_t moe_index_ = 0;
  TrunkMatrix gate_, latent_down_, latent_up_;
  std::vector<float> bias_;         // [experts], for the choice only
  std::vector<float> latent_norm_;  // [latent]
  std::optional<GatedMlp> shared_;
};

}  // namespace headrace
