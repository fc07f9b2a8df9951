#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace headrace {

/// What is added to the logit of one token.
struct LogitBias {
  /// From here down, minus infinity included: never this token.
  static constexpr double kBan = -100;
  static constexpr double kMost = 100;

  int32_t id = 0;
  double bias = 0;
};

/// How the next token is chosen. First logits are adjusted, in this order: repetition penalty; frequency and presence
/// penalty; bias, last, so that it is worth what it says and nothing lifts a ban. Then filters apply in the order
/// top_k, top_p, min_p, to softmax(logits / temperature). Temperature 0 takes the greatest of the adjusted logits.
struct SamplingOptions {
  static constexpr double kRepetitionLeast = 0.01;
  static constexpr double kRepetitionMost = 100;
  /// Bound of frequency and presence penalty, on both sides.
  static constexpr double kPenaltyMost = 2;
  static constexpr size_t kBiasesMax = 1024;

  /// 0: the greatest logit, the lowest id of equals. Otherwise any positive number, also one so small that only the
  /// greatest logits keep a probability above zero.
  double temperature = 0;
  size_t top_k = 0;   ///< Most probable tokens kept, the lower id first of equals; 0 = all.
  double top_p = 1;   ///< Keeps the fewest most probable tokens that have this share of what top_k left; 0 = the best.
  double min_p = 0;   ///< Keeps tokens with at least this share of the best one's probability.
  uint64_t seed = 0;  ///< Key of the random numbers.

  /// Logits above zero are divided by it and the others multiplied, once for every distinct token among the last
  /// `penalty_window` of the sequence, prompt included; 1 = off, less than 1 encourages repetition.
  double repetition_penalty = 1;
  size_t penalty_window = 256;  ///< In tokens; more than there are = all, 0 = none.
  /// A token that was generated n > 0 times in this answer (prompts do not count) loses n times the one and once the
  /// other. Negative ones encourage repetition.
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<LogitBias> logit_bias;  ///< At most kBiasesMax; each id once.
};

/// kArgument names the option that is out of range or not a number.
Status check_sampling(const SamplingOptions& options, size_t vocabulary_size);

/// Where a token is chosen. All ids are in the vocabulary.
struct SamplingPlace {
  uint64_t position = 0;               ///< Tokens before the chosen one.
  std::span<const int32_t> sequence;   ///< Those tokens, or the last `penalty_window` of them at least.
  std::span<const int32_t> generated;  ///< Of them, those of this answer.
};

/// Room that `sample_token` works in: one entry per token of the vocabulary.
struct SampleCandidate {
  double value = 0;  ///< The logit; later its weight, which is its probability relative to the best token's.
  int32_t id = 0;
  uint32_t count = 0;  ///< While logits are adjusted: how often the token was seen.
};

/// Chooses a token. The same on every machine: arithmetic is in double with our own exponential, sums run in a fixed
/// order, and the random number is a function of (seed, position) alone, so neither earlier draws nor other sessions
/// matter. A fixed number of passes over the vocabulary, whatever the filters, but for top_p without top_k, which may
/// take a few more.
/// Allocates nothing. `scratch` has logits.size() entries. kFormat when a logit is NaN or plus infinity, or all are
/// minus infinity (which alone means: never this token); kArgument when the biases ban all that is left. `options` were
/// checked.
Result<int32_t> sample_token(std::span<const float> logits, const SamplingOptions& options, const SamplingPlace& place,
                             std::span<SampleCandidate> scratch);

/// Uniform in [0, 1) with 53 bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014) as a counter-based generator.
double uniform_at(uint64_t seed, uint64_t position);

/// exp(x) for x <= 0, by additions and multiplications alone; 0 below -700. Within 2 units in the last place.
double exp_nonpositive(double x);

}  // namespace headrace
