#include "models/router.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/ensure.h"

namespace headrace {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Puts the indices of the `count` largest values first in `order`; ties: lowest index.
void select_largest(std::span<const float> values, size_t count, std::vector<uint32_t>& order) {
  std::iota(order.begin(), order.end(), 0u);
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [&](uint32_t a, uint32_t b) {
                      if (values[a] != values[b]) return values[a] > values[b];
                      return a < b;
                    });
}

float sum_of_two_largest(std::span<const float> values) {
  float first = kLowest;
  float second = kLowest;
  for (const float value : values) {
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) {
      second = value;
    }
  }
  return first + second;
}

}  // namespace

Router::Router(const RouterRules& rules, size_t expert_count)
    : rules_(rules),
      biased_(expert_count),
      order_(expert_count),
      group_scores_(rules.group_count),
      group_order_(rules.group_count) {
  ENSURE(rules.top_k >= 1 && rules.top_k <= expert_count);
  ENSURE(rules.group_count >= 1 && expert_count % rules.group_count == 0);
}

void Router::choose(std::span<const float> scores, std::span<const float> bias, std::span<uint32_t> experts,
                    std::span<float> weights) {
  ENSURE(scores.size() == biased_.size() && experts.size() == rules_.top_k && weights.size() == rules_.top_k);
  for (size_t e = 0; e < scores.size(); ++e) {
    const float biased = scores[e] + bias[e];
    // A score that is not a number sorts last, so that the order stays an order; the run is stopped elsewhere.
    biased_[e] = biased == biased ? biased : kLowest;
  }
  if (rules_.group_count > rules_.groups_kept) drop_groups();
  select_largest(biased_, rules_.top_k, order_);
  std::copy_n(order_.begin(), rules_.top_k, experts.begin());
  std::ranges::sort(experts);
  float sum = 0;
  for (size_t i = 0; i < experts.size(); ++i) sum += weights[i] = scores[experts[i]];
  const float divisor = rules_.renormalize && rules_.top_k > 1 ? sum + 1e-20f : 1.0f;
  for (float& weight : weights) weight = weight / divisor * rules_.scale;
}

void Router::drop_groups() {
  const size_t group_size = biased_.size() / rules_.group_count;
  for (size_t g = 0; g < rules_.group_count; ++g) {
    group_scores_[g] = sum_of_two_largest(std::span(biased_).subspan(g * group_size, group_size));
  }
  select_largest(group_scores_, rules_.groups_kept, group_order_);
  for (size_t i = rules_.groups_kept; i < rules_.group_count; ++i) {
    std::fill_n(biased_.begin() + static_cast<ptrdiff_t>(group_order_[i] * group_size), group_size, kLowest);
  }
}

}  // namespace headrace
