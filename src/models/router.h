#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// How experts are chosen from scores (spec 7).
struct RouterRules {
  size_t top_k = 1;
  size_t group_count = 1;
  size_t groups_kept = 1;
  bool renormalize = false;
  float scale = 1.0f;
};

/// Chooses experts for one token. Keeps scratch; one per thread.
class Router {
 public:
  Router(const RouterRules& rules, size_t expert_count);

  /// Chooses the top_k largest scores + bias (ties: lowest id; inside the kept groups only) and writes their ids,
  /// ascending, with the weights of their combination: from the unbiased scores, renormalised if so ruled, times the
  /// scale. `experts` and `weights` hold top_k entries.
  void choose(std::span<const float> scores, std::span<const float> bias, std::span<uint32_t> experts,
              std::span<float> weights);

 private:
  void drop_groups();

  RouterRules rules_;
  std::vector<float> biased_;
  std::vector<uint32_t> order_;
  std::vector<float> group_scores_;
  std::vector<uint32_t> group_order_;
};

}  // namespace headrace
