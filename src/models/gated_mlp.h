#pragma once

#include <string>

#include "base/buffer.h"
#include "models/activation.h"
#include "models/compute.h"
#include "models/tensor_loader.h"

namespace headrace {

/// A dense gated MLP: down(act(gate x, up x)) (spec 7.9, 8).
class GatedMlp {
 public:
  struct Scratch {
    Matrix<float> gate, up;  // [tokens, width]
    static Result<Scratch> allocate(Budget& budget, size_t tokens, size_t width_max);
  };

  /// Claims `<name>.gate_proj.weight` and its siblings.
  static Result<GatedMlp> load(TensorLoader& loader, const std::string& name, size_t hidden, size_t width);

  size_t width() const { return width_; }
  /// out = MLP(x); both [tokens, hidden].
  Status run(const Compute& compute, const Activation& activation, Scratch& scratch, MatrixView<const float> x,
             MatrixView<float> out) const;

 private:
  TrunkMatrix gate_, up_, down_;
  size_t width_ = 0;
};

}  // namespace headrace
