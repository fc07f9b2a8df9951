// SiTU of one row (specification section 8): beta 4, linear beta 25.
#ifndef DEMO_MODEL_KERNELS_SITU_H_
#define DEMO_MODEL_KERNELS_SITU_H_

#include "common.h"

// "ivdep" here and elsewhere: the pointers never alias, but there are too many of them for the compiler to check that
// at run time.
static inline void situ_row(const float* gate, const float* up, float* y, int64_t width) {
#pragma GCC ivdep
  for (int64_t j = 0; j < width; j++) {
    y[j] = 4.0f * tanh_by_exp(gate[j] * 0.25f) * sigmoid(gate[j]) * 25.0f * tanh_by_exp(up[j] * 0.04f);
  }
}

static inline void situ_row_backward(const float* gate, const float* up, const float* d_y, float* d_gate, float* d_up,
                                     int64_t width) {
#pragma GCC ivdep
  for (int64_t j = 0; j < width; j++) {
    float bent_gate = tanh_by_exp(gate[j] * 0.25f), opened = sigmoid(gate[j]), bent_up = tanh_by_exp(up[j] * 0.04f);
    d_gate[j] = d_y[j] * 25.0f * bent_up *
                ((1 - bent_gate * bent_gate) * opened + 4.0f * bent_gate * opened * (1 - opened));
    d_up[j] = d_y[j] * 4.0f * bent_gate * opened * (1 - bent_up * bent_up);
  }
}

#endif  // DEMO_MODEL_KERNELS_SITU_H_
