#pragma once

#include <span>

#include "engine/sampler.h"

namespace headrace {

/// Whether `options` change any logit.
bool adjusts_logits(const SamplingOptions& options);

/// Applies penalties and biases, in double, to `tokens`, which are all tokens in ascending id with their logits, and
/// counts of 0. Takes time for the ids of the place and the biases, not for the vocabulary. A logit of minus infinity
/// stays.
void adjust_logits(const SamplingOptions& options, const SamplingPlace& place, std::span<SampleCandidate> tokens);

}  // namespace headrace
