#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "models/compute.h"
#include "models/state_pieces.h"
#include "models/tensor_loader.h"

namespace headrace {

/// Sizes and variants of Kimi Delta Attention, the same for all its layers.
struct KdaShape {
  size_t hidden = 0;
  size_t heads = 0;
  size_t head_dim = 0;
  bool full_rank_gate = false;              ///< Output gate from one matrix, or from two of rank head_dim.
  std::optional<float> gate_lower_bound{};  ///< Bounded decay; without it the unbounded form.
  float epsilon = 0;

  size_t width() const { return heads * head_dim; }
};

/// Recurrent state of one KDA layer for one sequence.
struct KdaState {
  /// Inputs that the convolution of width 4 looks back on.
  static constexpr size_t kHistoryTokens = 3;

  Matrix<float> memory;   ///< [heads * head_dim, head_dim]: S of each head, rows = key channels.
  Matrix<float> history;  ///< [9, width]: the last three q, then k, then v, before the convolution; oldest first.

  static Result<KdaState> allocate(Budget& budget, const KdaShape& shape);
  /// What `allocate` takes of the budget.
  static size_t memory_bytes(const KdaShape& shape);
  void reset();

  static uint64_t stored_bytes(const KdaShape& shape);
  /// Memory, then history.
  Status visit(PieceVisitor visitor);
  void copy_from(const KdaState& other);
};

/// Kimi Delta Attention (spec 5). Each head runs its exact recurrence over the chunk, so that chunking changes nothing.
class KdaLayer {
 public:
  struct Scratch {
    Matrix<float> q, k, v, decay, gate, attended;  // [tokens, width]
    Matrix<float> low_rank;                        // [tokens, head_dim]
    Matrix<float> beta;                            // [tokens, heads]
    Matrix<float> head;                            // [4 * threads, head_dim]: q, k, v, decay of the head at work
    static Result<Scratch> allocate(Budget& budget, const KdaShape& shape, size_t tokens, size_t threads);
  };

  /// Claims the tensors of `<name>.`: q_proj, k_proj, ... (spec 3.2, 3.3).
  static Result<KdaLayer> load(TensorLoader& loader, const std::string& name, const KdaShape& shape,
                               const Kernels& kernels);

  /// out = KDA(x), and moves `state` on by x.rows() tokens. x is the normalised input [tokens, hidden].
  Status run(const Compute& compute, Scratch& scratch, KdaState& state, MatrixView<const float> x,
             MatrixView<float> out) const;

 private:
  Status project(const Compute& compute, Scratch& scratch, MatrixView<const float> x) const;
  void run_head(const Kernels& kernels, Scratch& scratch, KdaState& state, size_t head, size_t part,
                size_t tokens) const;

  KdaShape shape_;
  TrunkMatrix q_, k_, v_, decay_down_, decay_up_, beta_, gate_, gate_down_, gate_up_, out_;
  std::vector<float> taps_[3];     // q, k, v: [4, width]
  std::vector<float> decay_rate_;  // exp(A_log), per head
  std::vector<float> decay_bias_;  // [width]
  std::vector<float> out_norm_;    // [head_dim]
};

}  // namespace headrace
