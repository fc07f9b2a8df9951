#pragma once

#include "formats/formats.h"
#include "kernels/algorithms/activations.h"
#include "kernels/algorithms/decay.h"
#include "kernels/algorithms/decode.h"
#include "kernels/algorithms/delta_rule.h"
#include "kernels/algorithms/elementwise.h"
#include "kernels/algorithms/exponential.h"
#include "kernels/algorithms/matmul.h"
#include "kernels/algorithms/matmul_transposed.h"
#include "kernels/algorithms/norms.h"
#include "kernels/algorithms/short_conv.h"
#include "kernels/algorithms/softmax.h"
#include "kernels/isa/vector.h"
#include "kernels/kernels.h"

namespace headrace {

template <Vector V, class... F>
consteval Kernels make_kernels_of(const char* name, FormatList<F...>) {
  return {
      .name = name,
      .matmul = {&matmul<V, F>...},
      .matmul_transposed = {&matmul_transposed<V, F>...},
      .decode_row = {&decode_row<V, F>...},
      .rms_norm = &rms_norm<V>,
      .l2_normalize = &l2_normalize<V>,
      .swiglu = &swiglu<V>,
      .situ = &situ<V>,
      .sigmoid = &sigmoid_of_all<V>,
      .sigmoid_multiply = &sigmoid_multiply<V>,
      .softmax = &softmax<V>,
      .add = &add<V>,
      .add_scaled = &add_scaled<V>,
      .short_conv = &short_conv<V>,
      .decay_unbounded = &decay_unbounded<V>,
      .decay_bounded = &decay_bounded<V>,
      .delta_rule = &delta_rule<V>,
      .residual_score = &residual_score<V>,
      .exp = &exp_of_one<V>,
      .all_finite = &all_finite<V>,
  };
}

/// The table of the instruction set V: every algorithm, and where it reads weights, for every format.
template <Vector V>
consteval Kernels make_kernels(const char* name) {
  return make_kernels_of<V>(name, Formats{});
}

}  // namespace headrace
