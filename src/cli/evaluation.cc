#include "cli/evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::cli {
namespace {

double log_sum_exp(std::span<const float> logits) {
  const double best = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - best);
  return best + std::log(sum);
}

}  // namespace

std::vector<NextToken> most_probable(std::span<const float> logits, size_t count) {
  count = std::min(count, logits.size());
  if (count == 0) return {};
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto is_better = [logits](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::ranges::partial_sort(ids, ids.begin() + static_cast<std::ptrdiff_t>(count), is_better);
  const double total = log_sum_exp(logits);
  std::vector<NextToken> best;
  for (size_t i = 0; i < count; ++i) best.push_back({ids[i], logits[static_cast<size_t>(ids[i])] - total});
  return best;
}

double log_probability(std::span<const float> logits, int32_t id) {
  return logits[static_cast<size_t>(id)] - log_sum_exp(logits);
}

}  // namespace headrace::cli
