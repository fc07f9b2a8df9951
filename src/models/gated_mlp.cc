#include "models/gated_mlp.h"

namespace headrace {

Result<GatedMlp::Scratch> GatedMlp::Scratch::allocate(Budget& budget, size_t tokens, size_t width_max) {
  Scratch scratch;
  scratch.gate = TRY(Matrix<float>::allocate(budget, tokens, width_max, "MLP scratch"));
  scratch.up = TRY(Matrix<float>::allocate(budget, tokens, width_max, "MLP scratch"));
  return scratch;
}

Result<GatedMlp> GatedMlp::load(TensorLoader& loader, const std::string& name, size_t hidden, size_t width) {
  GatedMlp mlp;
  mlp.gate_ = TRY(loader.matrix(name + ".gate_proj.weight", width, hidden));
  mlp.up_ = TRY(loader.matrix(name + ".up_proj.weight", width, hidden));
  mlp.down_ = TRY(loader.matrix(name + ".down_proj.weight", hidden, width));
  mlp.width_ = width;
  return mlp;
}

Status GatedMlp::run(const Compute& compute, const Activation& activation, Scratch& scratch, MatrixView<const float> x,
                     MatrixView<float> out) const {
  const MatrixView<float> gate = scratch.gate.view().row_range(0, x.rows()).col_range(0, width_);
  const MatrixView<float> up = scratch.up.view().row_range(0, x.rows()).col_range(0, width_);
  TRY(linear(compute, gate_, x, gate));
  TRY(linear(compute, up_, x, up));
  for (size_t t = 0; t < x.rows(); ++t) activation.apply(compute.kernels, gate.row(t), up.row(t), gate.row(t));
  return linear(compute, down_, gate, out);
}

}  // namespace headrace
