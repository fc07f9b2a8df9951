// SiTU on rows [gate | up] of 2 * width values.
#include "situ.h"

void situ_forward(const float* gate_up, float* y, int64_t row_count, int64_t width) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    const float* gate = gate_up + i * 2 * width;
    situ_row(gate, gate + width, y + i * width, width);
  }
}

void situ_backward(const float* gate_up, const float* d_y, float* d_gate_up, int64_t row_count, int64_t width) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    const float* gate = gate_up + i * 2 * width;
    float* d_gate = d_gate_up + i * 2 * width;
    situ_row_backward(gate, gate + width, d_y + i * width, d_gate, d_gate + width, width);
  }
}
