#include "weights/eviction/phase.h"

#include <cmath>
#include <utility>

#include "base/buffer.h"

namespace headrace {
namespace {

constexpr float kFastHalfLifeTokens = 1.0f;
constexpr float kSlowHalfLifeTokens = 200.0f;
constexpr float kFastWeight = 0.2f;
constexpr float kSlowWeight = 0.8f;

/// Shares of tokens that used a record, old ones fading: 8 bytes a record.
struct Averages {
  float fast = 0;
  float slow = 0;
};

class PhasePolicy final : public EvictionPolicy {
 public:
  PhasePolicy(Matrix<Averages> averages, Matrix<float> nearness)
      : averages_(std::move(averages)), nearness_(std::move(nearness)) {
    set_current(0);
  }

  void visit(const LayerPass& pass) override {
    const auto tokens = static_cast<float>(pass.token_count);
    const float fast_kept = std::exp2(-tokens / kFastHalfLifeTokens);
    const float slow_kept = std::exp2(-tokens / kSlowHalfLifeTokens);
    const std::span<Averages> row = averages_.row(pass.layer);
    for (Averages& averages : row) {
      averages.fast *= fast_kept;
      averages.slow *= slow_kept;
    }
    for (const ExpertUse& use : pass.uses) {
      const float share = static_cast<float>(use.token_count) / tokens;
      row[use.expert].fast += (1 - fast_kept) * share;
      row[use.expert].slow += (1 - slow_kept) * share;
    }
    set_current(pass.layer);
  }

  void rate(uint32_t layer, size_t begin, std::span<float> rates) const override {
    const std::span<const Averages> row = averages_.row(layer).subspan(begin, rates.size());
    for (size_t i = 0; i < rates.size(); ++i) rates[i] = kFastWeight * row[i].fast + kSlowWeight * row[i].slow;
  }
  float layer_weight(uint32_t layer) const override { return nearness_.row(0)[layer]; }

 private:
  /// 1 / sqrt(layers until each runs next), seen from `layer`, which has its turn now.
  void set_current(size_t layer) {
    const size_t count = averages_.rows();
    for (size_t distance = 1; distance <= count; ++distance) {
      nearness_.row(0)[(layer + distance) % count] = 1.0f / std::sqrt(static_cast<float>(distance));
    }
  }

  Matrix<Averages> averages_;  // Per layer and expert.
  Matrix<float> nearness_;     // One row: per layer.
};

}  // namespace

size_t phase_policy_memory_bytes(const RecordGrid& grid) {
  return Matrix<Averages>::memory_bytes(grid.layer_count, grid.expert_count) +
         Matrix<float>::memory_bytes(1, grid.layer_count);
}

Result<std::unique_ptr<EvictionPolicy>> create_phase_policy(const RecordGrid& grid, Budget& budget) {
  auto averages = TRY(Matrix<Averages>::allocate(budget, grid.layer_count, grid.expert_count, "cache policy"));
  auto nearness = TRY(Matrix<float>::allocate(budget, 1, grid.layer_count, "cache policy"));
  return std::unique_ptr<EvictionPolicy>(std::make_unique<PhasePolicy>(std::move(averages), std::move(nearness)));
}

}  // namespace headrace
