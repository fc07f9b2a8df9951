// RMSNorm (specification section 8).
#include "common.h"

// inverse_rms [row_count] is kept for the backward pass.
void rms_norm_forward(const float* x, const float* weight, float* y, float* inverse_rms, int64_t row_count,
                      int64_t width, float epsilon) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    const float* row = x + i * width;
    float sum = 0;
    for (int64_t j = 0; j < width; j++) sum += row[j] * row[j];
    float scale = 1.0f / sqrtf(sum / width + epsilon);
    inverse_rms[i] = scale;
    for (int64_t j = 0; j < width; j++) y[i * width + j] = row[j] * scale * weight[j];
  }
}

// d_weight accumulates.
void rms_norm_backward(const float* x, const float* weight, const float* inverse_rms, const float* d_y, float* d_x,
                       float* d_weight, int64_t row_count, int64_t width) {
#pragma omp parallel
  {
    float* d_weight_part = allocate_zeros(width);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < row_count; i++) {
      const float *row = x + i * width, *d_row = d_y + i * width;
      float scale = inverse_rms[i], dot = 0;
      for (int64_t j = 0; j < width; j++) {
        dot += row[j] * d_row[j] * weight[j];
        d_weight_part[j] += d_row[j] * row[j] * scale;
      }
      dot *= scale * scale * scale / width;
      for (int64_t j = 0; j < width; j++) d_x[i * width + j] = scale * weight[j] * d_row[j] - row[j] * dot;
    }
#pragma omp critical
    add_to(d_weight, d_weight_part, width);
    free(d_weight_part);
  }
}
