#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "models/families/kimi_config.h"
#include "weights/checkpoint.h"

namespace headrace {

/// What the numbers of a tensor are for.
enum class TensorRole : uint8_t {
  kMatrix,         ///< [out, in...]: products with vectors of as many numbers as a row has.
  kRouterBias,     ///< Added to scores for the choice of experts.
  kNorm,           ///< Factors around 1.
  kEmbedding,      ///< Vectors that are looked up.
  kConvolution,    ///< [channels, 1, taps]
  kDecayRate,      ///< A_log: logarithms, one per head.
  kDecayBias,      ///< dt_bias: added to decay logits.
  kPackedNibbles,  ///< MXFP4 numbers, two a byte: [out, in / 2].
  kBlockScales,    ///< Their scales, E8M0: [out, in / 32].
};

/// A tensor that a published checkpoint has.
struct ListedTensor {
  std::string_view name;  ///< Valid during the call that hands it over.
  DType dtype = DType::kBf16;
  Shape shape;
  TensorRole role = TensorRole::kMatrix;
  /// Elements that mean something; the rest are stored as zeroes (spec 5.4, A_log).
  uint64_t used_count = 0;

  uint64_t byte_count() const { return shape.element_count() * dtype_bytes(dtype); }
};

/// An error ends the listing and is returned.
using ListedTensorSink = FunctionRef<Status(const ListedTensor&)>;

/// The tensors of a Kimi checkpoint as its publisher stores them (spec 3), from the configuration alone. They come in
/// groups: the embedding, each layer in turn, the head with what stands before it, then projector and tower of the
/// images. Nothing is kept of them: each call makes the names anew. Read-only, any thread.
class KimiTensors {
 public:
  /// The errors of `read_kimi_config`, and kFormat for a vision_config without a size that shapes depend on.
  static Result<KimiTensors> read(const ConfigObject& outer);
  /// The same from the text of a config.json, `path` for messages; kUnsupported when it is of another family.
  static Result<KimiTensors> parse(const std::string& config_text, const std::string& path);

  const KimiConfig& config() const { return config_; }

  size_t group_count() const { return config_.layer_count() + (vision_ ? 4 : 2); }
  static constexpr size_t kEmbeddingGroup = 0;
  static constexpr size_t layer_group(size_t layer) { return layer + 1; }
  size_t head_group() const { return config_.layer_count() + 1; }
  /// The layer of a group, or nothing.
  std::optional<size_t> layer_of_group(size_t group) const;

  /// Layer by layer, a layer's tensors in a fixed order, experts last.
  Status for_each_of_group(size_t group, ListedTensorSink sink) const;
  /// All groups in order.
  Status for_each(ListedTensorSink sink) const;

 private:
  friend class KimiTensorLister;
  /// Sizes of the image tower and its projector (spec 3.3, 10).
  struct Vision {
    size_t width = 0;
    size_t inner_width = 0;
    size_t qkv_width = 0;
    size_t blocks = 0;
    size_t patch = 0;
    size_t grid_height = 0;
    size_t grid_width = 0;
    size_t merged_width = 0;  ///< Of the patches that become one token, together.
  };
  static Result<Vision> read_vision(const ConfigObject& vision);

  KimiConfig config_;
  std::optional<Vision> vision_;
  bool experts_are_mxfp4_ = false;
};

}  // namespace headrace
