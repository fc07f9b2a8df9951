#pragma once

#include <string>
#include <vector>

#include "base/buffer.h"
#include "models/compute.h"
#include "models/tensor_loader.h"

namespace headrace {

/// One mixer of attention residuals (spec 9): a softmax over the block vectors and the running sum of each token.
class ResidualMixer {
 public:
  /// Claims `<name>_res_norm.weight` and `<name>_res_proj.weight`.
  static Result<ResidualMixer> load(TensorLoader& loader, const std::string& name, size_t hidden, float epsilon);

  /// out[t] = sum_i p_i v_i[t] over `blocks` in order, then `sum`. All matrices [tokens, hidden]; `out` is none of
  /// them.
  void mix(const Compute& compute, std::span<const MatrixView<float>> blocks, MatrixView<const float> sum,
           MatrixView<float> out) const;

 private:
  void mix_token(const Kernels& kernels, std::span<const std::span<const float>> sources, std::span<float> out) const;

  std::vector<float> weight_;  // norm * proj, [hidden]
  float epsilon_ = 0;
};

}  // namespace headrace
