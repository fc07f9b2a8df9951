#include "weights/eviction/lru.h"

#include <algorithm>
#include <utility>

#include "base/buffer.h"

namespace headrace {
namespace {

class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(Matrix<float> last_pass) : last_pass_(std::move(last_pass)) {}

  void visit(const LayerPass& pass) override {
    pass_count_ += 1;
    const std::span<float> row = last_pass_.row(pass.layer);
    for (const ExpertUse& use : pass.uses) row[use.expert] = static_cast<float>(pass_count_);
  }
  void rate(uint32_t layer, size_t begin, std::span<float> rates) const override {
    std::ranges::copy(last_pass_.row(layer).subspan(begin, rates.size()), rates.begin());
  }
  float layer_weight(uint32_t) const override { return 1.0f; }

 private:
  /// Per layer and expert: the pass that used it last, 0 for none. After 16 million passes some share a number.
  Matrix<float> last_pass_;
  double pass_count_ = 0;
};

}  // namespace

size_t lru_policy_memory_bytes(const RecordGrid& grid) {
  return Matrix<float>::memory_bytes(grid.layer_count, grid.expert_count);
}

Result<std::unique_ptr<EvictionPolicy>> create_lru_policy(const RecordGrid& grid, Budget& budget) {
  auto last_pass = TRY(Matrix<float>::allocate(budget, grid.layer_count, grid.expert_count, "cache policy"));
  return std::unique_ptr<EvictionPolicy>(std::make_unique<LruPolicy>(std::move(last_pass)));
}

}  // namespace headrace
