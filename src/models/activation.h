#pragma once

#include <span>

#include "kernels/kernels.h"

namespace headrace {

/// The activation of gated MLPs (spec 8): SwiGLU, or SiTU with its two scales.
struct Activation {
  enum class Kind : uint8_t { kSwiglu, kSitu };
  Kind kind = Kind::kSwiglu;
  float beta = 1.0f;
  float linear_beta = 0.0f;  ///< 0: the up branch is not squashed.

  /// out = act(gate, up), elementwise; `out` may be `gate` or `up`.
  void apply(const Kernels& kernels, std::span<const float> gate, std::span<const float> up,
             std::span<float> out) const {
    if (kind == Kind::kSwiglu) {
      kernels.swiglu(gate, up, out);
    } else {
      kernels.situ(gate, up, beta, linear_beta, out);
    }
  }
};

}  // namespace headrace
