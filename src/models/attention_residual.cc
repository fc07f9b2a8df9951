#include "models/attention_residual.h"

#include <algorithm>
#include <array>

namespace headrace {
namespace {
// Enough for 1023 layers with blocks of one; the family checks it.
constexpr size_t kSourcesMax = 1024;
}  // namespace

Result<ResidualMixer> ResidualMixer::load(TensorLoader& loader, const std::string& name, size_t hidden, float epsilon) {
  ResidualMixer mixer;
  mixer.weight_ = TRY(loader.vector(name + "_res_norm.weight", hidden));
  const std::vector<float> projection = TRY(loader.vector(name + "_res_proj.weight", hidden));
  for (size_t i = 0; i < hidden; ++i) mixer.weight_[i] *= projection[i];
  mixer.epsilon_ = epsilon;
  return mixer;
}

void ResidualMixer::mix(const Compute& compute, std::span<const MatrixView<float>> blocks, MatrixView<const float> sum,
                        MatrixView<float> out) const {
  ENSURE(blocks.size() < kSourcesMax);
  compute.pool.run(out.rows(), 1, [&](IndexRange tokens) {
    std::array<std::span<const float>, kSourcesMax> sources;
    for (size_t t = tokens.begin; t < tokens.end; ++t) {
      for (size_t i = 0; i < blocks.size(); ++i) sources[i] = blocks[i].row(t);
      sources[blocks.size()] = sum.row(t);
      mix_token(compute.kernels, std::span(sources).first(blocks.size() + 1), out.row(t));
    }
  });
}

void ResidualMixer::mix_token(const Kernels& kernels, std::span<const std::span<const float>> sources,
                              std::span<float> out) const {
  std::array<float, kSourcesMax> scores;
  for (size_t i = 0; i < sources.size(); ++i) scores[i] = kernels.residual_score(sources[i], weight_, epsilon_);
  const std::span<float> shares = std::span(scores).first(sources.size());
  kernels.softmax(shares, 1.0f, shares);
  std::ranges::fill(out, 0.0f);
  for (size_t i = 0; i < sources.size(); ++i) kernels.add_scaled(shares[i], sources[i], out);
}

}  // namespace headrace
