#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::cli {

/// A possible next token.
struct NextToken {
  int32_t id = 0;
  double logprob = 0;  ///< Natural logarithm of its probability.
};

/// The `count` most probable tokens, best first, the lower id first of equals.
std::vector<NextToken> most_probable(std::span<const float> logits, size_t count);

/// Natural logarithm of the probability of `id`.
double log_probability(std::span<const float> logits, int32_t id);

}  // namespace headrace::cli
