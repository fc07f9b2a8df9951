#pragma once

#include <string>
#include <vector>

#include "base/buffer.h"
#include "models/compute.h"
#include "models/state_pieces.h"
#include "models/tensor_loader.h"

namespace headrace {

/// Sizes and variants of multi-head latent attention without rotary embedding, the same for all its layers.
struct MlaShape {
  size_t hidden = 0;
  size_t heads = 0;
  size_t query_rank = 0;  ///< q LoRA rank; 0: the query comes from one matrix.
  size_t latent = 0;      ///< kv_lora_rank
  size_t nope = 0;        ///< Per-head query and key channels that come from the latent.
  size_t rope = 0;        ///< Key channels shared by all heads; not rotated here, but part of score and scale.
  size_t value = 0;
  bool output_gate = false;
  float epsilon = 0;
  float projection_epsilon = 0;  ///< Of q_a_layernorm and kv_a_layernorm (spec 6).

  size_t query_dim() const { return nope + rope; }
  size_t cache_dim() const { return latent + rope; }
};

/// Latent cache of one MLA layer for one sequence: per token the normalised latent, then the shared key part.
struct MlaState {
  Matrix<float> cache;  // [capacity, latent + rope]

  static Result<MlaState> allocate(Budget& budget, const MlaShape& shape, size_t capacity_tokens);
  /// What `allocate` takes of the budget.
  static size_t memory_bytes(const MlaShape& shape, size_t capacity_tokens);

  static uint64_t stored_bytes(const MlaShape& shape, size_t tokens);
  /// Rows of the first `tokens` tokens.
  Status visit(size_t tokens, PieceVisitor visitor);
  void copy_from(const MlaState& other, size_t tokens);
};

/// MLA in its absorbed form (spec 6), the only path: prefill, decode and restored sessions give the same bits.
class MlaLayer {
 public:
  /// Tokens whose scores one thread computes together.
  static constexpr size_t kTokensTogether = 8;

  struct Scratch {
    Matrix<float> query_low;       // [tokens, query_rank]
    Matrix<float> query;           // [tokens, heads * (nope + rope)]
    Matrix<float> attended, gate;  // [tokens, heads * value]
    Matrix<float> absorbed;        // [threads * kTokensTogether, latent + rope]
    Matrix<float> context;         // [threads, latent]
    static Result<Scratch> allocate(Budget& budget, const MlaShape& shape, size_t tokens, size_t threads);
  };

  /// Room for the scores of a sequence of `capacity_tokens`, for all threads and layers.
  static Result<Matrix<float>> allocate_scores(Budget& budget, size_t capacity_tokens, size_t threads);
  static size_t scores_memory_bytes(size_t capacity_tokens, size_t threads);

  /// Claims the tensors of `<name>.` (spec 3.2, 3.3).
  static Result<MlaLayer> load(TensorLoader& loader, const std::string& name, const MlaShape& shape);

  /// out = MLA(x) for the tokens at positions [position, position + x.rows()), whose rows are added to the cache.
  /// `scores` comes from allocate_scores. x is the normalised input [tokens, hidden].
  struct Sequence {
    MlaState& state;
    MatrixView<float> scores;
    size_t position;
  };
  Status run(const Compute& compute, Scratch& scratch, const Sequence& sequence, MatrixView<const float> x,
             MatrixView<float> out) const;

 private:
  Status project(const Compute& compute, Scratch& scratch, const Sequence& sequence, MatrixView<const float> x) const;
  struct HeadWeights {
    WeightView kv_up;  // [nope + value, latent] of this head
    size_t head;
  };
  void run_head(const Kernels& kernels, Scratch& scratch, const Sequence& sequence, const HeadWeights& weights,
                size_t part, size_t tokens) const;

  MlaShape shape_;
  TrunkMatrix query_, query_down_, query_up_, kv_down_, kv_up_, gate_, out_;
  std::vector<float> query_norm_;   // [query_rank]
  std::vector<float> latent_norm_;  // [latent]
};

}  // namespace headrace
