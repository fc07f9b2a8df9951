#include "models/moe.h"

#include <algorithm>

namespace headrace {
namespace {
// Order of an expert's matrices in the catalog.
constexpr size_t kGate = 0;
constexpr size_t kUp = 1;
constexpr size_t kDown = 2;
constexpr size_t kRowGrain = 16;

MatrixView<float> first_rows(const Matrix<float>& matrix, size_t rows) {
  return matrix.view().row_range(0, rows);
}
}  // namespace

Result<MoeLayer::Scratch> MoeLayer::Scratch::allocate(Budget& budget, const MoeShape& shape, size_t tokens,
                                                      size_t mlp_width_max) {
  const auto matrix = [&](size_t cols) { return Matrix<float>::allocate(budget, tokens, cols, "MoE scratch"); };
  Scratch scratch{.router = Router(shape.router, shape.experts)};
  scratch.scores = TRY(matrix(shape.experts));
  for (Matrix<float>* rows : {&scratch.input, &scratch.routed, &scratch.gathered, &scratch.result}) {
    *rows = TRY(matrix(shape.expert_input()));
  }
  scratch.gate = TRY(matrix(shape.width));
  scratch.up = TRY(matrix(shape.width));
  scratch.shared = TRY(matrix(shape.hidden));
  scratch.mlp = TRY(GatedMlp::Scratch::allocate(budget, tokens, mlp_width_max));
  scratch.experts = TRY(Matrix<uint32_t>::allocate(budget, tokens, shape.router.top_k, "MoE scratch"));
  scratch.weights = TRY(Matrix<float>::allocate(budget, tokens, shape.router.top_k, "MoE scratch"));
  const size_t list_bytes = shape.experts * sizeof(ExpertId) + tokens * sizeof(ExpertUse);
  scratch.lists_memory = TRY(budget.reserve(list_bytes, "MoE scratch"));
  scratch.wanted.reserve(shape.experts);
  scratch.uses.reserve(tokens);
  return scratch;
}

Result<MoeLayer> MoeLayer::load(TensorLoader& loader, const std::string& name, const MoeShape& shape,
                                uint32_t moe_index) {
  MoeLayer layer;
  layer.shape_ = shape;
  layer.moe_index_ = moe_index;
  layer.gate_ = TRY(loader.matrix(name + ".gate.weight", shape.experts, shape.hidden));
  layer.bias_ = TRY(loader.vector(name + ".gate.e_score_correction_bias", shape.experts));
  if (shape.latent > 0) {
    layer.latent_down_ = TRY(loader.matrix(name + ".routed_expert_down_proj.weight", shape.latent, shape.hidden));
    if (shape.latent_norm) {
      layer.latent_norm_ = TRY(loader.vector(name + ".routed_expert_norm.weight", shape.latent));
    }
    layer.latent_up_ = TRY(loader.matrix(name + ".routed_expert_up_proj.weight", shape.hidden, shape.latent));
  }
  if (shape.shared_width > 0) {
    layer.shared_ = TRY(GatedMlp::load(loader, name + ".shared_experts", shape.hidden, shape.shared_width));
  }
  return layer;
}

Status MoeLayer::run(const Compute& compute, const Activation& activation, ExpertCache& cache, Scratch& scratch,
                     const Routing& routing, MatrixView<const float> x, MatrixView<float> out) const {
  const size_t tokens = x.rows();
  TRY(route(compute, scratch, routing, x));
  if (shape_.latent == 0) {
    TRY(sweep(compute, activation, cache, scratch, x, out));
  } else {
    const MatrixView<float> input = first_rows(scratch.input, tokens);
    const MatrixView<float> routed = first_rows(scratch.routed, tokens);
    TRY(linear(compute, latent_down_, x, input));
    TRY(sweep(compute, activation, cache, scratch, input, routed));
    if (shape_.latent_norm) normalize_rows(compute, routed, latent_norm_, shape_.epsilon, routed);
    TRY(linear(compute, latent_up_, routed, out));
  }
  if (!shared_) return {};
  const MatrixView<float> shared = first_rows(scratch.shared, tokens);
  TRY(shared_->run(compute, activation, scratch.mlp, x, shared));
  add_rows(compute, shared, out);
  return {};
}

Status MoeLayer::route(const Compute& compute, Scratch& scratch, const Routing& routing,
                       MatrixView<const float> x) const {
  const MatrixView<float> scores = first_rows(scratch.scores, x.rows());
  TRY(linear(compute, gate_, x, scores));
  for (size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = scores.row(t);
    if (!compute.kernels.all_finite(row)) {  // A sigmoid would hide an infinity, and a sort a NaN.
      return error(Code::kFormat, "expert layer %u: a router score is not a finite number; the file is damaged",
                   moe_index_);
    }
    if (shape_.softmax_scores) {
      compute.kernels.softmax(row, 1.0f, row);
    } else {
      compute.kernels.sigmoid(row, row);
    }
    const std::span<uint32_t> experts = scratch.experts.row(t);
    const std::span<float> weights = scratch.weights.row(t);
    scratch.router.choose(row, bias_, experts, weights);
    if (!routing.tokens) continue;
    (*routing.tokens)[t].push_back({routing.layer, {experts.begin(), experts.end()}, {weights.begin(), weights.end()}});
  }
  return {};
}

/// Fills `wanted` with the distinct experts of the chunk, ascending.
void MoeLayer::want_chosen(Scratch& scratch, size_t tokens) const {
  std::vector<ExpertId>& wanted = scratch.wanted;
  wanted.clear();
  for (size_t t = 0; t < tokens; ++t) {
    for (const uint32_t expert : scratch.experts.row(t)) {
      const auto place = std::ranges::lower_bound(wanted, expert, {}, &ExpertId::expert);
      if (place == wanted.end() || place->expert != expert) wanted.insert(place, {moe_index_, expert});
    }
  }
}

Status MoeLayer::sweep(const Compute& compute, const Activation& activation, ExpertCache& cache, Scratch& scratch,
                       MatrixView<const float> input, MatrixView<float> out) const {
  want_chosen(scratch, input.rows());
  cache.announce(scratch.wanted);
  for (size_t t = 0; t < out.rows(); ++t) std::ranges::fill(out.row(t), 0.0f);
  for (const ExpertId id : scratch.wanted) {
    scratch.uses.clear();
    for (size_t t = 0; t < input.rows(); ++t) {
      const auto found = std::ranges::find(scratch.experts.row(t), id.expert);
      if (found == scratch.experts.row(t).end()) continue;
      scratch.uses.push_back({t, scratch.weights.row(t)[static_cast<size_t>(found - scratch.experts.row(t).begin())]});
    }
    const ExpertLease expert = TRY(cache.acquire(id));
    apply_expert(compute, activation, expert, scratch, input, out);
  }
  return {};
}

// Here the bytes of experts meet the maths: out[t] += weight * down(act(gate x, up x)) for the tokens in scratch.uses.
void MoeLayer::apply_expert(const Compute& compute, const Activation& activation, const ExpertLease& expert,
                            Scratch& scratch, MatrixView<const float> input, MatrixView<float> out) const {
  const size_t count = scratch.uses.size();
  const MatrixView<float> gathered = first_rows(scratch.gathered, count);
  for (size_t i = 0; i < count; ++i) std::ranges::copy(input.row(scratch.uses[i].token), gathered.row(i).begin());
  const WeightView gate_weights = expert.matrix(kGate);
  const WeightView up_weights = expert.matrix(kUp);
  const WeightView down_weights = expert.matrix(kDown);
  const auto matmul = compute.kernels.matmul[static_cast<size_t>(gate_weights.format)];
  const MatrixView<float> gate = first_rows(scratch.gate, count);
  const MatrixView<float> up = first_rows(scratch.up, count);
  compute.pool.run(shape_.width, kRowGrain, [&](IndexRange rows) {
    const MatrixView<float> gate_part = gate.col_range(rows.begin, rows.size());
    const MatrixView<float> up_part = up.col_range(rows.begin, rows.size());
    matmul(gate_weights.row_range(rows.begin, rows.size()), gathered, gate_part);
    matmul(up_weights.row_range(rows.begin, rows.size()), gathered, up_part);
    for (size_t i = 0; i < count; ++i) {
      activation.apply(compute.kernels, gate_part.row(i), up_part.row(i), gate_part.row(i));
    }
  });
  const MatrixView<float> result = first_rows(scratch.result, count);
  compute.pool.run(shape_.expert_input(), kRowGrain, [&](IndexRange rows) {
    const MatrixView<float> part = result.col_range(rows.begin, rows.size());
    matmul(down_weights.row_range(rows.begin, rows.size()), gate, part);
    for (size_t i = 0; i < count; ++i) {
      const auto [token, weight] = scratch.uses[i];
      compute.kernels.add_scaled(weight, part.row(i), out.row(token).subspan(rows.begin, rows.size()));
    }
  });
}

}  // namespace headrace
