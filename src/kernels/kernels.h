#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/views.h"
#include "formats/format.h"

namespace headrace {

/// The arithmetic of one instruction set. Every table gives the same bits for the same inputs: a sum over k keeps 16
/// partial sums (lane = k mod 16), each extended by fused multiply-adds in ascending k, joined at the end by one fixed
/// tree (lane l with l+8, then +4, +2, +1). Lanes past the end of a row count as zeros.
///
/// All functions are pure, run on the calling thread, allocate nothing, and trust their shapes: callers check once.
/// `out` may be the same memory as an input where a function is elementwise (same index in, same index out).
struct Kernels {
  const char* name;

  /// y[t][r] = sum_k w[r][k] * x[t][k]. x is [tokens, cols], y is [tokens, rows].
  using Matmul = void(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y);
  std::array<Matmul*, kFormatCount> matmul;

  /// y[t][c] = sum_r x[t][r] * w[r][c], one fused multiply-add per row in ascending r, starting from zero.
  /// x is [tokens, rows], y is [tokens, cols].
  using MatmulTransposed = void(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y);
  std::array<MatmulTransposed*, kFormatCount> matmul_transposed;

  /// Row `row` as float32, exactly.
  using DecodeRow = void(const WeightView& weights, size_t row, std::span<float> out);
  std::array<DecodeRow*, kFormatCount> decode_row;

  /// out = x / sqrt(mean(x^2) + epsilon) * weight (spec 8).
  void (*rms_norm)(std::span<const float> x, std::span<const float> weight, float epsilon, std::span<float> out);

  /// out = x / sqrt(sum(x^2) + epsilon) * scale (spec 5.6).
  void (*l2_normalize)(std::span<const float> x, float epsilon, float scale, std::span<float> out);

  /// out = gate * sigmoid(gate) * up (spec 8).
  void (*swiglu)(std::span<const float> gate, std::span<const float> up, std::span<float> out);

  /// out = beta * tanh(gate / beta) * sigmoid(gate) * L(up), L(up) = linear_beta * tanh(up / linear_beta), or up itself
  /// when linear_beta is 0 (spec 8).
  void (*situ)(std::span<const float> gate, std::span<const float> up, float beta, float linear_beta,
               std::span<float> out);

  /// out = sigmoid(x).
  void (*sigmoid)(std::span<const float> x, std::span<float> out);

  /// out = x * sigmoid(gate).
  void (*sigmoid_multiply)(std::span<const float> x, std::span<const float> gate, std::span<float> out);

  /// out = softmax(scale * x): exact maximum first, then exponentials, their sum in 16 lanes by absolute index.
  void (*softmax)(std::span<const float> x, float scale, std::span<float> out);

  /// y = y + x, elementwise.
  void (*add)(std::span<const float> x, std::span<float> y);

  /// y = fma(factor, x, y), elementwise.
  void (*add_scaled)(float factor, std::span<const float> x, std::span<float> y);

  /// Depthwise convolution over time with SiLU (spec 5.2): out[c] = SiLU(sum_j taps[j][c] * window[j][c]), j ascending:
  /// one product, then fused multiply-adds. `window` holds a pointer to the row of each tap: t-3, t-2, t-1, t for four.
  void (*short_conv)(std::span<const float* const> window, MatrixView<const float> taps, std::span<float> out);

  /// decay = exp(g) for one head, g = -a * softplus(z) with z = logit + bias, softplus(z) = z for z > 20 (spec 5.4,
  /// unbounded). `a` = exp(A_log) of the head.
  void (*decay_unbounded)(std::span<const float> logit, std::span<const float> bias, float a, std::span<float> decay);

  /// decay = exp(g), g = lower_bound * sigmoid(a * z) (spec 5.4, bounded).
  void (*decay_bounded)(std::span<const float> logit, std::span<const float> bias, float a, float lower_bound,
                        std::span<float> decay);

  /// One token of the delta rule for one head (spec 5.7): state [D_k, D_v] in place, out [D_v].
  /// S = diag(decay) S; u = S^T k; S = S + (beta k) (v - u)^T; out = S^T q. Sums over rows of S ascend, by fused
  /// multiply-adds from zero.
  struct DeltaInputs {
    std::span<const float> q, k, v, decay;
    float beta;
  };
  void (*delta_rule)(const DeltaInputs& inputs, MatrixView<float> state, std::span<float> out);

  /// Score of one source of an attention residual (spec 9): sum_d (v[d] / sqrt(mean(v^2) + epsilon)) * weight[d], with
  /// weight = norm * proj.
  float (*residual_score)(std::span<const float> v, std::span<const float> weight, float epsilon);

  /// exp(x) of one number, the same polynomial as everywhere.
  float (*exp)(float x);

  /// True when all numbers are finite.
  bool (*all_finite)(std::span<const float> x);
};

}  // namespace headrace
