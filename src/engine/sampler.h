#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace headrace {

/// How the next token is chosen. Filters apply in the order top_k, top_p, min_p, to softmax(logits / temperature).
struct SamplingOptions {
  /// 0: the greatest logit, the lowest id of equals. Otherwise any positive number, also one so small that only the
  /// greatest logits keep a probability above zero.
  double temperature = 0;
  size_t top_k = 0;   ///< Most probable tokens kept, the lower id first of equals; 0 = all.
  double top_p = 1;   ///< Keeps the fewest most probable tokens that have this share of what top_k left; 0 = the best.
  double min_p = 0;   ///< Keeps tokens with at least this share of the best one's probability.
  uint64_t seed = 0;  ///< Key of the random numbers.
};

/// kArgument names the option that is out of range or not a number.
Status check_sampling(const SamplingOptions& options);

/// Room that `sample_token` works in: one entry per token of the vocabulary.
struct SampleCandidate {
  double weight = 0;
  float logit = 0;
  int32_t id = 0;
};

/// Chooses a token. The same on every machine: arithmetic is in double with our own exponential, sums run in a fixed
/// order, and the random number is a function of (seed, position) alone, so neither earlier draws nor other sessions
/// matter. `position` counts the tokens before the chosen one. One pass over the vocabulary, whatever the filters, but
/// for top_p without top_k, which may take a few. `scratch` has logits.size() entries. kFormat when a logit is NaN or
/// plus infinity, or all are minus infinity (which alone means: never this token). `options` were checked.
Result<int32_t> sample_token(std::span<const float> logits, const SamplingOptions& options, uint64_t position,
                             std::span<SampleCandidate> scratch);

/// Uniform in [0, 1) with 53 bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014) as a counter-based generator.
double uniform_at(uint64_t seed, uint64_t position);

/// exp(x) for x <= 0, by additions and multiplications alone; 0 below -700. Within 2 units in the last place.
double exp_nonpositive(double x);

}  // namespace headrace
