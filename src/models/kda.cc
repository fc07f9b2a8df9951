#include "models/kda.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace {
namespace {

constexpr size_t kTapCount = 4;
constexpr float kNormalizeEpsilon = 1e-6f;  // Spec 5.6, inside the root.

/// [channels, 1, 4] as stored to [4, channels], so that a tap is a row.
Result<std::vector<float>> load_taps(TensorLoader& loader, const std::string& name, size_t width) {
  const std::vector<float> stored = TRY(loader.vector(name, width * kTapCount));
  std::vector<float> taps(stored.size());
  for (size_t channel = 0; channel < width; ++channel) {
    for (size_t tap = 0; tap < kTapCount; ++tap) taps[tap * width + channel] = stored[channel * kTapCount + tap];
  }
  return taps;
}

/// Columns of one head in the rows t-3 .. t, taken from the chunk or, before it, from the history.
std::array<const float*, kTapCount> conv_window(MatrixView<const float> inputs, MatrixView<const float> history,
                                                size_t token, size_t column) {
  std::array<const float*, kTapCount> window;
  for (size_t tap = 0; tap < kTapCount; ++tap) {
    const size_t row = token + tap;  // In history followed by inputs.
    window[tap] =
        (row < KdaState::kHistoryTokens ? history.row_data(row) : inputs.row_data(row - KdaState::kHistoryTokens)) +
        column;
  }
  return window;
}

/// Keeps the last three rows of history followed by inputs.
void move_history(MatrixView<const float> inputs, MatrixView<float> history) {
  for (size_t row = 0; row < KdaState::kHistoryTokens; ++row) {
    const size_t source = inputs.rows() + row;
    const auto from = source < KdaState::kHistoryTokens ? std::span<const float>(history.row(source))
                                                        : inputs.row(source - KdaState::kHistoryTokens);
    if (source != row) std::copy(from.begin(), from.end(), history.row(row).begin());
  }
}

}  // namespace

Result<KdaState> KdaState::allocate(Budget& budget, const KdaShape& shape) {
  KdaState state;
  state.memory = TRY(Matrix<float>::allocate(budget, shape.width(), shape.head_dim, "KDA state"));
  state.history = TRY(Matrix<float>::allocate(budget, 3 * kHistoryTokens, shape.width(), "KDA convolution state"));
  return state;
}

size_t KdaState::memory_bytes(const KdaShape& shape) {
  return Matrix<float>::memory_bytes(shape.width(), shape.head_dim) +
         Matrix<float>::memory_bytes(3 * kHistoryTokens, shape.width());
}

void KdaState::reset() {
  for (size_t row = 0; row < memory.rows(); ++row) std::ranges::fill(memory.row(row), 0.0f);
  for (size_t row = 0; row < history.rows(); ++row) std::ranges::fill(history.row(row), 0.0f);
}

uint64_t KdaState::stored_bytes(const KdaShape& shape) {
  return uint64_t{shape.width()} * (shape.head_dim + 3 * kHistoryTokens) * sizeof(float);
}

Status KdaState::visit(PieceVisitor visitor) {
  TRY(visit_rows(memory.view(), visitor));
  return visit_rows(history.view(), visitor);
}

void KdaState::copy_from(const KdaState& other) {
  copy_rows(other.memory.view(), memory.view());
  copy_rows(other.history.view(), history.view());
}

Result<KdaLayer::Scratch> KdaLayer::Scratch::allocate(Budget& budget, const KdaShape& shape, size_t tokens,
                                                      size_t threads) {
  Scratch scratch;
  for (Matrix<float>* matrix : {&scratch.q, &scratch.k, &scratch.v, &scratch.decay, &scratch.gate, &scratch.attended}) {
    *matrix = TRY(Matrix<float>::allocate(budget, tokens, shape.width(), "KDA scratch"));
  }
  scratch.low_rank = TRY(Matrix<float>::allocate(budget, tokens, shape.head_dim, "KDA scratch"));
  scratch.beta = TRY(Matrix<float>::allocate(budget, tokens, shape.heads, "KDA scratch"));
  scratch.head = TRY(Matrix<float>::allocate(budget, 4 * threads, shape.head_dim, "KDA scratch"));
  return scratch;
}

Result<KdaLayer> KdaLayer::load(TensorLoader& loader, const std::string& name, const KdaShape& shape,
                                const Kernels& kernels) {
  KdaLayer layer;
  layer.shape_ = shape;
  const size_t width = shape.width();
  layer.q_ = TRY(loader.matrix(name + ".q_proj.weight", width, shape.hidden));
  layer.k_ = TRY(loader.matrix(name + ".k_proj.weight", width, shape.hidden));
  layer.v_ = TRY(loader.matrix(name + ".v_proj.weight", width, shape.hidden));
  layer.decay_down_ = TRY(loader.matrix(name + ".f_a_proj.weight", shape.head_dim, shape.hidden));
  layer.decay_up_ = TRY(loader.matrix(name + ".f_b_proj.weight", width, shape.head_dim));
  layer.beta_ = TRY(loader.matrix(name + ".b_proj.weight", shape.heads, shape.hidden));
  if (shape.full_rank_gate) {
    layer.gate_ = TRY(loader.matrix(name + ".g_proj.weight", width, shape.hidden));
  } else {
    layer.gate_down_ = TRY(loader.matrix(name + ".g_a_proj.weight", shape.head_dim, shape.hidden));
    layer.gate_up_ = TRY(loader.matrix(name + ".g_b_proj.weight", width, shape.head_dim));
  }
  layer.out_ = TRY(loader.matrix(name + ".o_proj.weight", shape.hidden, width));
  layer.taps_[0] = TRY(load_taps(loader, name + ".q_conv1d.weight", width));
  layer.taps_[1] = TRY(load_taps(loader, name + ".k_conv1d.weight", width));
  layer.taps_[2] = TRY(load_taps(loader, name + ".v_conv1d.weight", width));
  layer.decay_rate_ = TRY(loader.vector_prefix(name + ".A_log", shape.heads));
  for (float& rate : layer.decay_rate_) rate = kernels.exp(rate);
  layer.decay_bias_ = TRY(loader.vector(name + ".dt_bias", width));
  layer.out_norm_ = TRY(loader.vector(name + ".o_norm.weight", shape.head_dim));
  return layer;
}

Status KdaLayer::project(const Compute& compute, Scratch& scratch, MatrixView<const float> x) const {
  const size_t tokens = x.rows();
  const auto rows = [tokens](Matrix<float>& matrix) { return matrix.view().row_range(0, tokens); };
  TRY(linear(compute, q_, x, rows(scratch.q)));
  TRY(linear(compute, k_, x, rows(scratch.k)));
  TRY(linear(compute, v_, x, rows(scratch.v)));
  TRY(linear(compute, decay_down_, x, rows(scratch.low_rank)));
  TRY(linear(compute, decay_up_, rows(scratch.low_rank), rows(scratch.decay)));
  TRY(linear(compute, beta_, x, rows(scratch.beta)));
  if (shape_.full_rank_gate) return linear(compute, gate_, x, rows(scratch.gate));
  TRY(linear(compute, gate_down_, x, rows(scratch.low_rank)));
  return linear(compute, gate_up_, rows(scratch.low_rank), rows(scratch.gate));
}

Status KdaLayer::run(const Compute& compute, Scratch& scratch, KdaState& state, MatrixView<const float> x,
                     MatrixView<float> out) const {
  TRY(project(compute, scratch, x));
  const size_t tokens = x.rows();
  for (size_t t = 0; t < tokens; ++t) compute.kernels.sigmoid(scratch.beta.row(t), scratch.beta.row(t));
  const size_t part_count = compute.pool.thread_count();
  compute.pool.run(part_count, 1, [&](IndexRange parts) {
    for (size_t part = parts.begin; part < parts.end; ++part) {
      const IndexRange heads = split_range(shape_.heads, 1, part, part_count);
      for (size_t head = heads.begin; head < heads.end; ++head) {
        run_head(compute.kernels, scratch, state, head, part, tokens);
      }
    }
  });
  const MatrixView<float> history = state.history.view();
  const Matrix<float>* inputs[] = {&scratch.q, &scratch.k, &scratch.v};
  for (size_t i = 0; i < 3; ++i) {
    move_history(inputs[i]->view().row_range(0, tokens),
                 history.row_range(i * KdaState::kHistoryTokens, KdaState::kHistoryTokens));
  }
  return linear(compute, out_, scratch.attended.view().row_range(0, tokens), out);
}

// Reads only columns of its head, and writes only `attended` and the head's memory: heads run side by side.
void KdaLayer::run_head(const Kernels& kernels, Scratch& scratch, KdaState& state, size_t head, size_t part,
                        size_t tokens) const {
  const size_t dim = shape_.head_dim;
  const size_t column = head * dim;
  const auto columns = [&](const Matrix<float>& matrix, size_t t) { return matrix.row(t).subspan(column, dim); };
  const auto bias = std::span(decay_bias_).subspan(column, dim);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const MatrixView<float> memory = state.memory.view().row_range(column, dim);
  const Matrix<float>* inputs[] = {&scratch.q, &scratch.k, &scratch.v};
  const std::span<float> qkv[] = {scratch.head.row(4 * part), scratch.head.row(4 * part + 1),
                                  scratch.head.row(4 * part + 2)};
  const std::span<float> decay = scratch.head.row(4 * part + 3);
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < 3; ++i) {
      const auto history = state.history.view().row_range(i * KdaState::kHistoryTokens, KdaState::kHistoryTokens);
      const auto window = conv_window(inputs[i]->view(), history, t, column);
      const MatrixView<const float> taps(taps_[i].data(), kTapCount, shape_.width());
      kernels.short_conv(window, taps.col_range(column, dim), qkv[i]);
    }
    kernels.l2_normalize(qkv[0], kNormalizeEpsilon, query_scale, qkv[0]);
    kernels.l2_normalize(qkv[1], kNormalizeEpsilon, 1.0f, qkv[1]);
    if (shape_.gate_lower_bound) {
      kernels.decay_bounded(columns(scratch.decay, t), bias, decay_rate_[head], *shape_.gate_lower_bound, decay);
    } else {
      kernels.decay_unbounded(columns(scratch.decay, t), bias, decay_rate_[head], decay);
    }
    const std::span<float> attended = columns(scratch.attended, t);
    kernels.delta_rule({qkv[0], qkv[1], qkv[2], decay, scratch.beta.row(t)[head]}, memory, attended);
    kernels.rms_norm(attended, out_norm_, shape_.epsilon, attended);
    kernels.sigmoid_multiply(attended, columns(scratch.gate, t), attended);
  }
}

}  // namespace headrace
