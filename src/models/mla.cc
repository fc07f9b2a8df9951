#include "models/mla.h"

#include <algorithm>
#include <cmath>

namespace headrace {

Result<MlaState> MlaState::allocate(Budget& budget, const MlaShape& shape, size_t capacity_tokens) {
  MlaState state;
  state.cache = TRY(Matrix<float>::allocate(budget, capacity_tokens, shape.cache_dim(), "MLA cache"));
  return state;
}

size_t MlaState::memory_bytes(const MlaShape& shape, size_t capacity_tokens) {
  return Matrix<float>::memory_bytes(capacity_tokens, shape.cache_dim());
}

uint64_t MlaState::stored_bytes(const MlaShape& shape, size_t tokens) {
  return uint64_t{tokens} * shape.cache_dim() * sizeof(float);
}

Status MlaState::visit(size_t tokens, PieceVisitor visitor) {
  return visit_rows(cache.view().row_range(0, tokens), visitor);
}

void MlaState::copy_from(const MlaState& other, size_t tokens) {
  copy_rows(other.cache.view().row_range(0, tokens), cache.view().row_range(0, tokens));
}

Result<MlaLayer::Scratch> MlaLayer::Scratch::allocate(Budget& budget, const MlaShape& shape, size_t tokens,
                                                      size_t threads) {
  const auto matrix = [&](size_t rows, size_t cols) {
    return Matrix<float>::allocate(budget, rows, cols, "MLA scratch");
  };
  Scratch scratch;
  scratch.query_low = TRY(matrix(tokens, shape.query_rank));
  scratch.query = TRY(matrix(tokens, shape.heads * shape.query_dim()));
  scratch.attended = TRY(matrix(tokens, shape.heads * shape.value));
  if (shape.output_gate) scratch.gate = TRY(matrix(tokens, shape.heads * shape.value));
  scratch.absorbed = TRY(matrix(threads * kTokensTogether, shape.cache_dim()));
  scratch.context = TRY(matrix(threads, shape.latent));
  return scratch;
}

Result<Matrix<float>> MlaLayer::allocate_scores(Budget& budget, size_t capacity_tokens, size_t threads) {
  return Matrix<float>::allocate(budget, threads * kTokensTogether, capacity_tokens, "attention scores");
}

size_t MlaLayer::scores_memory_bytes(size_t capacity_tokens, size_t threads) {
  return Matrix<float>::memory_bytes(threads * kTokensTogether, capacity_tokens);
}

Result<MlaLayer> MlaLayer::load(TensorLoader& loader, const std::string& name, const MlaShape& shape) {
  MlaLayer layer;
  layer.shape_ = shape;
  const size_t query_rows = shape.heads * shape.query_dim();
  if (shape.query_rank > 0) {
    layer.query_down_ = TRY(loader.matrix(name + ".q_a_proj.weight", shape.query_rank, shape.hidden));
    layer.query_norm_ = TRY(loader.vector(name + ".q_a_layernorm.weight", shape.query_rank));
    layer.query_up_ = TRY(loader.matrix(name + ".q_b_proj.weight", query_rows, shape.query_rank));
  } else {
    layer.query_ = TRY(loader.matrix(name + ".q_proj.weight", query_rows, shape.hidden));
  }
  layer.kv_down_ = TRY(loader.matrix(name + ".kv_a_proj_with_mqa.weight", shape.cache_dim(), shape.hidden));
  layer.latent_norm_ = TRY(loader.vector(name + ".kv_a_layernorm.weight", shape.latent));
  const size_t kv_rows = shape.heads * (shape.nope + shape.value);
  layer.kv_up_ = TRY(loader.whole_matrix(name + ".kv_b_proj.weight", kv_rows, shape.latent));
  if (shape.output_gate) {
    layer.gate_ = TRY(loader.matrix(name + ".g_proj.weight", shape.heads * shape.value, shape.hidden));
  }
  layer.out_ = TRY(loader.matrix(name + ".o_proj.weight", shape.hidden, shape.heads * shape.value));
  return layer;
}

Status MlaLayer::project(const Compute& compute, Scratch& scratch, const Sequence& sequence,
                         MatrixView<const float> x) const {
  const size_t tokens = x.rows();
  const MatrixView<float> query = scratch.query.view().row_range(0, tokens);
  if (shape_.query_rank > 0) {
    const MatrixView<float> low = scratch.query_low.view().row_range(0, tokens);
    TRY(linear(compute, query_down_, x, low));
    normalize_rows(compute, low, query_norm_, shape_.projection_epsilon, low);
    TRY(linear(compute, query_up_, low, query));
  } else {
    TRY(linear(compute, query_, x, query));
  }
  const MatrixView<float> added = sequence.state.cache.view().row_range(sequence.position, tokens);
  TRY(linear(compute, kv_down_, x, added));
  const MatrixView<float> latent = added.col_range(0, shape_.latent);
  normalize_rows(compute, latent, latent_norm_, shape_.projection_epsilon, latent);
  return {};
}

Status MlaLayer::run(const Compute& compute, Scratch& scratch, const Sequence& sequence, MatrixView<const float> x,
                     MatrixView<float> out) const {
  const size_t tokens = x.rows();
  TRY(project(compute, scratch, sequence, x));
  {
    const RowBlock kv_up = TRY(compute.trunk.acquire_whole(kv_up_));
    const size_t part_count = compute.pool.thread_count();
    const size_t head_rows = shape_.nope + shape_.value;
    compute.pool.run(part_count, 1, [&](IndexRange parts) {
      for (size_t part = parts.begin; part < parts.end; ++part) {
        const IndexRange heads = split_range(shape_.heads, 1, part, part_count);
        for (size_t head = heads.begin; head < heads.end; ++head) {
          run_head(compute.kernels, scratch, sequence, {kv_up.weights().row_range(head * head_rows, head_rows), head},
                   part, tokens);
        }
      }
    });
  }
  const MatrixView<float> attended = scratch.attended.view().row_range(0, tokens);
  if (shape_.output_gate) {
    const MatrixView<float> gate = scratch.gate.view().row_range(0, tokens);
    TRY(linear(compute, gate_, x, gate));
    for (size_t t = 0; t < tokens; ++t) compute.kernels.sigmoid_multiply(attended.row(t), gate.row(t), attended.row(t));
  }
  return linear(compute, out_, attended, out);
}

// Scores of up to kTokensTogether tokens in one product over the cache; then, token by token, the softmax and the sum
// over exactly the positions that the token sees. Threads split heads, never positions (P1).
void MlaLayer::run_head(const Kernels& kernels, Scratch& scratch, const Sequence& sequence, const HeadWeights& weights,
                        size_t part, size_t tokens) const {
  const size_t format = static_cast<size_t>(weights.kv_up.format);
  const WeightView key_up = weights.kv_up.row_range(0, shape_.nope);
  const WeightView value_up = weights.kv_up.row_range(shape_.nope, shape_.value);
  const MatrixView<float> cache = sequence.state.cache.view();
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape_.query_dim()));
  const auto multiply_cache = kernels.matmul[static_cast<size_t>(Format::kF32)];
  const auto sum_cache = kernels.matmul_transposed[static_cast<size_t>(Format::kF32)];
  const MatrixView<float> context(scratch.context.row(part));
  const MatrixView<float> head_query =
      scratch.query.view().col_range(weights.head * shape_.query_dim(), shape_.query_dim());
  for (size_t first = 0; first < tokens; first += kTokensTogether) {
    const size_t count = std::min(kTokensTogether, tokens - first);
    const MatrixView<float> query = head_query.row_range(first, count);
    const MatrixView<float> absorbed = scratch.absorbed.view().row_range(part * kTokensTogether, count);
    kernels.matmul_transposed[format](key_up, query.col_range(0, shape_.nope), absorbed.col_range(0, shape_.latent));
    for (size_t t = 0; t < count; ++t) {
      std::ranges::copy(query.row(t).subspan(shape_.nope), absorbed.row(t).subspan(shape_.latent).begin());
    }
    const size_t visible_max = sequence.position + first + count;
    const MatrixView<float> scores = sequence.scores.row_range(part * kTokensTogether, count).col_range(0, visible_max);
    multiply_cache(float_weights(cache.data(), visible_max, shape_.cache_dim(), cache.stride()), absorbed, scores);
    for (size_t t = 0; t < count; ++t) {
      const size_t visible = sequence.position + first + t + 1;
      const std::span<float> weight = scores.row(t).first(visible);
      kernels.softmax(weight, scale, weight);
      sum_cache(float_weights(cache.data(), visible, shape_.latent, cache.stride()),
                MatrixView<const float>(std::span<const float>(weight)), context);
      const MatrixView<float> attended =
          scratch.attended.view().row_range(first + t, 1).col_range(weights.head * shape_.value, shape_.value);
      kernels.matmul[format](value_up, context, attended);
    }
  }
}

}  // namespace headrace
