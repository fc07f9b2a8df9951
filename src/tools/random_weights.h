#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "models/families/kimi_tensors.h"
#include "models/shapes/counter_random.h"

namespace headrace {

/// How made-up weights are drawn, where the configuration decides it.
struct WeightRules {
  uint64_t seed = 0;
  /// Decays have a lower bound (spec 5.4): another formula, so other parameters keep its memory of sane length.
  bool decay_is_bounded = false;
};

/// The bytes of one made-up tensor, any part of them at any time: a function of seed, name and shape alone. Scales are
/// such that activations keep their size through all layers, and that no expert is chosen much more often than others.
class RandomWeights {
 public:
  /// Prepares tables; for many tensors of one kind after the other, `assign` keeps them.
  RandomWeights() = default;
  void assign(const ListedTensor& tensor, const WeightRules& rules);

  /// Bytes [offset, offset + out.size()) of the tensor.
  void fill(uint64_t offset, std::span<std::byte> out) const;

 private:
  /// Distinct values of a tensor; an index takes 12 random bits.
  static constexpr size_t kTableBits = 12;
  static constexpr size_t kTableSize = size_t{1} << kTableBits;
  using Quantiles = std::array<float, kTableSize>;

  enum class Kind : uint8_t { kBytes, kScales, kBf16, kF32 };
  /// A distribution: `spread` times a normal or a uniform number between -1 and 1, around `centre`.
  struct Distribution {
    bool is_normal = false;
    float centre = 0;
    float spread = 0;
    bool operator==(const Distribution&) const = default;
  };

  static const Quantiles& normal_quantiles();
  static Distribution distribution_of(const ListedTensor& tensor, const WeightRules& rules);
  void set_table(const Distribution& distribution);
  void set_scales(uint64_t cols);
  /// Bytes [8 index, 8 index + 8) of the tensor.
  uint64_t word(uint64_t index) const;
  void fill_words(uint64_t first, std::span<std::byte> out) const;

  Kind kind_ = Kind::kBytes;
  CounterRandom random_{0, {}};
  uint64_t used_bytes_ = 0;  // Zeroes follow.
  Distribution distribution_;
  bool has_table_ = false;
  std::array<uint16_t, kTableSize> bf16_{};
  std::array<uint32_t, kTableSize> f32_{};
  // Block scales: the lower exponent, and of 256 draws those that take it; the others take the next.
  uint8_t low_scale_ = 0;
  uint32_t low_share_ = 0;
};

}  // namespace headrace
