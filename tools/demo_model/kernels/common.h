// What all kernels of the training graph share: allocation, activations, matrix product.
//
// The kernels are float32, called from Python through ctypes (../operations.py) and compared with PyTorch's autograd in
// ../test_kernels.py. Eager PyTorch spends most of its time here in passes over memory; these functions fuse them, and
// the backward passes are written by hand. Matrices are row-major; `row_count` is batch times tokens. Outputs are
// overwritten unless the comment says that they accumulate. Exported functions take many parameters because the
// interface is flat: ctypes passes pointers and numbers.
#ifndef DEMO_MODEL_KERNELS_COMMON_H_
#define DEMO_MODEL_KERNELS_COMMON_H_

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kRowMajor = 101, kPlain = 111, kTransposed = 112 };

// The BLAS call is declared here so that the build needs the library only, not its headers.
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                 int stride_a, const float* b, int stride_b, float beta, float* c, int stride_c);

static inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static inline float tanh_by_exp(float x) { return 1.0f - 2.0f / (1.0f + expf(2.0f * x)); }

// Aligned for vectors of 64 bytes; freed by the caller.
static inline float* allocate_floats(size_t count) {
  void* memory = 0;
  if (posix_memalign(&memory, 64, count * sizeof(float))) abort();
  return memory;
}

static inline float* allocate_zeros(size_t count) {
  float* memory = allocate_floats(count);
  memset(memory, 0, count * sizeof(float));
  return memory;
}

static inline void add_to(float* sum, const float* part, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += part[i];
}

#endif  // DEMO_MODEL_KERNELS_COMMON_H_
