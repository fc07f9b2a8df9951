#include "models/moe.h"

#include <algorithm>
#include <utility>

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
  for (Matrix<float>* rows : {&scratch.input, &scratch.routed, &scratch.gathered}) {
    *rows = TRY(matrix(shape.expert_input()));
  }
  const size_t top_k = shape.router.top_k;
  scratch.results = TRY(Matrix<float>::allocate(budget, std::max(tokens, top_k), shape.expert_input(), "MoE scratch"));
  scratch.gate = TRY(matrix(shape.width));
  scratch.up = TRY(matrix(shape.width));
  scratch.shared = TRY(matrix(shape.hidden));
  scratch.mlp = TRY(GatedMlp::Scratch::allocate(budget, tokens, mlp_width_max));
  scratch.experts = TRY(Matrix<uint32_t>::allocate(budget, tokens, top_k, "MoE scratch"));
  scratch.weights = TRY(Matrix<float>::allocate(budget, tokens, top_k, "MoE scratch"));
  const size_t list_bytes = shape.experts * (sizeof(ExpertUse) + sizeof(uint32_t)) + tokens * top_k * sizeof(TokenUse);
  scratch.lists_memory = TRY(budget.reserve(list_bytes, "MoE scratch"));
  scratch.wanted.reserve(shape.experts);
  scratch.uses.resize(tokens * top_k);
  scratch.use_end.resize(shape.experts);
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
  }
  // In the order in which `run` uses them, which is the order in which the trunk streams.
  if (shape.shared_width > 0) {
    layer.shared_ = TRY(GatedMlp::load(loader, name + ".shared_experts", shape.hidden, shape.shared_width));
  }
  if (shape.latent > 0) {
    layer.latent_up_ = TRY(loader.matrix(name + ".routed_expert_up_proj.weight", shape.hidden, shape.latent));
  }
  return layer;
}

Status MoeLayer::run(const Context& context, const Routing& routing, MatrixView<const float> x,
                     MatrixView<float> out) const {
  const Compute& compute = context.compute;
  Scratch& scratch = context.scratch;
  const size_t tokens = x.rows();
  TRY(route(context, routing, x));
  list_uses(scratch, tokens);
  context.cache.announce({moe_index_, static_cast<uint32_t>(tokens), scratch.wanted},
                         fits_results(scratch, tokens) ? ExpertOrder::kAsTheyLand : ExpertOrder::kAscending);
  if (shape_.latent == 0) {
    TRY(run_shared(context, x));
    TRY(run_experts(context, x, out));
  } else {
    const MatrixView<float> input = first_rows(scratch.input, tokens);
    const MatrixView<float> routed = first_rows(scratch.routed, tokens);
    TRY(linear(compute, latent_down_, x, input));
    TRY(run_shared(context, x));
    TRY(run_experts(context, input, routed));
    if (shape_.latent_norm) normalize_rows(compute, routed, latent_norm_, shape_.epsilon, routed);
    TRY(linear(compute, latent_up_, routed, out));
  }
  if (shared_) add_rows(compute, first_rows(scratch.shared, tokens), out);
  return {};
}

Status MoeLayer::route(const Context& context, const Routing& routing, MatrixView<const float> x) const {
  const Compute& compute = context.compute;
  Scratch& scratch = context.scratch;
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

/// Turns the choices of the tokens into the distinct experts, ascending, and the tokens of each.
void MoeLayer::list_uses(Scratch& scratch, size_t tokens) const {
  std::vector<uint32_t>& use_end = scratch.use_end;
  std::ranges::fill(use_end, 0u);
  for (size_t t = 0; t < tokens; ++t) {
    for (const uint32_t expert : scratch.experts.row(t)) ++use_end[expert];
  }
  scratch.wanted.clear();
  uint32_t begin = 0;
  for (uint32_t expert = 0; expert < use_end.size(); ++expert) {
    const uint32_t count = std::exchange(use_end[expert], begin);  // Counts up to the end of its uses below.
    if (count > 0) scratch.wanted.push_back({expert, count});
    begin += count;
  }
  for (uint32_t t = 0; t < tokens; ++t) {
    const std::span<const uint32_t> experts = scratch.experts.row(t);
    const std::span<const float> weights = scratch.weights.row(t);
    for (size_t i = 0; i < experts.size(); ++i) scratch.uses[use_end[experts[i]]++] = {t, weights[i]};
  }
}

/// Whether every use of an expert can have a row of `results`.
bool MoeLayer::fits_results(const Scratch& scratch, size_t tokens) const {
  return tokens * shape_.router.top_k <= scratch.results.rows();
}

/// The shared MLP, while the first experts are being read.
Status MoeLayer::run_shared(const Context& context, MatrixView<const float> x) const {
  if (!shared_) return {};
  context.cache.pump();
  TRY(shared_->run(context.compute, context.activation, context.scratch.mlp, x,
                   first_rows(context.scratch.shared, x.rows())));
  context.cache.pump();
  return {};
}

Status MoeLayer::run_experts(const Context& context, MatrixView<const float> input, MatrixView<float> out) const {
  Scratch& scratch = context.scratch;
  const auto& kernels = context.compute.kernels;
  const std::span<const TokenUse> uses(scratch.uses);
  // Columns of `out` += weight * result, for uses in ascending order of experts.
  const auto add = [&](IndexRange columns, size_t first_use, MatrixView<const float> results) {
    for (size_t i = 0; i < results.rows(); ++i) {
      const auto [token, weight] = uses[first_use + i];
      kernels.add_scaled(weight, results.row(i).subspan(columns.begin, columns.size()),
                         out.row(token).subspan(columns.begin, columns.size()));
    }
  };
  const bool adds_at_the_end = fits_results(scratch, input.rows());
  for (size_t t = 0; t < out.rows(); ++t) std::ranges::fill(out.row(t), 0.0f);
  while (context.cache.pending_count() > 0) {
    const ExpertLease expert = TRY(context.cache.next());
    const ExpertUse wanted = *std::ranges::lower_bound(scratch.wanted, expert.id().expert, {}, &ExpertUse::expert);
    const size_t first_use = scratch.use_end[wanted.expert] - wanted.token_count;
    const MatrixView<float> results =
        scratch.results.view().row_range(adds_at_the_end ? first_use : 0, wanted.token_count);
    apply_expert(context, expert, uses.subspan(first_use, wanted.token_count), input, results);
    if (adds_at_the_end) continue;
    context.compute.pool.run(out.cols(), kRowGrain, [&](IndexRange columns) { add(columns, first_use, results); });
  }
  if (!adds_at_the_end) return {};
  const MatrixView<float> results = first_rows(scratch.results, input.rows() * shape_.router.top_k);
  context.compute.pool.run(out.cols(), kRowGrain, [&](IndexRange columns) { add(columns, 0, results); });
  return {};
}

// Here the bytes of experts meet the maths: results = down(act(gate x, up x)) for the tokens of `uses`.
void MoeLayer::apply_expert(const Context& context, const ExpertLease& expert, std::span<const TokenUse> uses,
                            MatrixView<const float> input, MatrixView<float> results) const {
  const Compute& compute = context.compute;
  Scratch& scratch = context.scratch;
  const size_t count = uses.size();
  const MatrixView<float> gathered = first_rows(scratch.gathered, count);
  for (size_t i = 0; i < count; ++i) std::ranges::copy(input.row(uses[i].token), gathered.row(i).begin());
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
      context.activation.apply(compute.kernels, gate_part.row(i), up_part.row(i), gate_part.row(i));
    }
  });
  context.cache.pump();
  compute.pool.run(shape_.expert_input(), kRowGrain, [&](IndexRange rows) {
    matmul(down_weights.row_range(rows.begin, rows.size()), gate, results.col_range(rows.begin, rows.size()));
  });
}

}  // namespace headrace
