#include "engine/logit_adjustment.h"

#include <algorithm>
#include <limits>

namespace headrace {
namespace {

using Candidates = std::span<SampleCandidate>;

SampleCandidate& candidate(Candidates tokens, int32_t id) {
  return tokens[static_cast<size_t>(id)];
}

/// Calls `adjust` once for each distinct token of `ids`, with how often it is there.
template <class Adjust>
void adjust_each(std::span<const int32_t> ids, Candidates tokens, Adjust&& adjust) {
  for (const int32_t id : ids) ++candidate(tokens, id).count;
  for (const int32_t id : ids) {
    SampleCandidate& token = candidate(tokens, id);
    if (token.count > 0) adjust(token.value, token.count);
    token.count = 0;
  }
}

bool penalizes_generated(const SamplingOptions& options) {
  return options.frequency_penalty != 0 || options.presence_penalty != 0;
}

}  // namespace

bool adjusts_logits(const SamplingOptions& options) {
  return options.repetition_penalty != 1 || penalizes_generated(options) || !options.logit_bias.empty();
}

void adjust_logits(const SamplingOptions& options, const SamplingPlace& place, Candidates tokens) {
  if (options.repetition_penalty != 1) {
    const auto window = place.sequence.last(std::min(options.penalty_window, place.sequence.size()));
    adjust_each(window, tokens, [&](double& logit, uint32_t) {
      logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
    });
  }
  if (penalizes_generated(options)) {
    adjust_each(place.generated, tokens, [&](double& logit, uint32_t count) {
      logit -= options.frequency_penalty * count + options.presence_penalty;
    });
  }
  for (const LogitBias& bias : options.logit_bias) {
    double& logit = candidate(tokens, bias.id).value;
    logit = bias.bias <= LogitBias::kBan ? -std::numeric_limits<double>::infinity() : logit + bias.bias;
  }
}

}  // namespace headrace
