// Routed experts (specification section 7, steps 6 and 7), with tokens sorted by expert: one product per expert.
//
// Sizes: tokens [row_count, width], `inner` is the width of an expert. gate_up [experts, 2 * inner, width] holds w1's
// rows, then w3's; down [experts, width, inner] is w2.
#include "common.h"
#include "situ.h"

enum { kExpertsMax = 256 };

// Where each choice of each token stands among the rows sorted by expert: position [row_count, chosen_count], and the
// first row of every expert: first_row [expert_count + 1].
static void sort_by_expert(const int32_t* indices, int32_t* position, int64_t* first_row, int64_t choice_count,
                           int64_t expert_count) {
  memset(first_row, 0, (expert_count + 1) * sizeof(int64_t));
  for (int64_t i = 0; i < choice_count; i++) first_row[indices[i] + 1]++;
  for (int64_t e = 0; e < expert_count; e++) first_row[e + 1] += first_row[e];
  int64_t next[kExpertsMax];
  memcpy(next, first_row, expert_count * sizeof(int64_t));
  for (int64_t i = 0; i < choice_count; i++) position[i] = next[indices[i]]++;
}

// position, first_row and the sorted buffers (inputs, gate_up_values, activations, outputs) are kept for the backward
// pass; each sorted buffer has row_count * chosen_count rows.
void experts_forward(const float* x, const int32_t* indices, const float* weights, const float* gate_up,
                     const float* down, float* y, int32_t* position, int64_t* first_row, float* inputs,
                     float* gate_up_values, float* activations, float* outputs, int64_t row_count, int64_t width,
                     int64_t inner, int64_t expert_count, int64_t chosen_count) {
  sort_by_expert(indices, position, first_row, row_count * chosen_count, expert_count);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    for (int64_t j = 0; j < chosen_count; j++) {
      memcpy(inputs + position[i * chosen_count + j] * width, x + i * width, width * sizeof(float));
    }
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t e = 0; e < expert_count; e++) {
    int64_t first = first_row[e], rows = first_row[e + 1] - first;
    if (!rows) continue;
    cblas_sgemm(kRowMajor, kPlain, kTransposed, rows, 2 * inner, width, 1, inputs + first * width, width,
                gate_up + e * 2 * inner * width, width, 0, gate_up_values + first * 2 * inner, 2 * inner);
    for (int64_t i = first; i < first + rows; i++) {
      const float* gate = gate_up_values + i * 2 * inner;
      situ_row(gate, gate + inner, activations + i * inner, inner);
    }
    cblas_sgemm(kRowMajor, kPlain, kTransposed, rows, width, inner, 1, activations + first * inner, inner,
                down + e * width * inner, inner, 0, outputs + first * width, width);
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    float* sum = y + i * width;
    for (int64_t d = 0; d < width; d++) sum[d] = 0;
    for (int64_t j = 0; j < chosen_count; j++) {
      const float* output = outputs + position[i * chosen_count + j] * width;
      float weight = weights[i * chosen_count + j];
      for (int64_t d = 0; d < width; d++) sum[d] += weight * output[d];
    }
  }
}

// Replaces the sorted outputs by their gradients and writes the gradients of the weights.
static void weighted_sum_backward(const float* d_y, const float* weights, const int32_t* position, float* outputs,
                                  float* d_weights, int64_t row_count, int64_t width, int64_t chosen_count) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    for (int64_t j = 0; j < chosen_count; j++) {
      float *output = outputs + position[i * chosen_count + j] * width, dot = 0;
      float weight = weights[i * chosen_count + j];
      const float* d_row = d_y + i * width;
      for (int64_t d = 0; d < width; d++) {
        dot += output[d] * d_row[d];
        output[d] = weight * d_row[d];
      }
      d_weights[i * chosen_count + j] = dot;
    }
  }
}

// One expert on its `rows` sorted rows. d_gate_up is scratch of 2 * inner values.
static void expert_backward(const float* gate_up, const float* down, const float* inputs, float* gate_up_values,
                            float* activations, const float* d_outputs, float* d_inputs, float* d_gate_up_weight,
                            float* d_down_weight, float* d_gate_up, int64_t rows, int64_t width, int64_t inner) {
  cblas_sgemm(kRowMajor, kTransposed, kPlain, width, inner, rows, 1, d_outputs, width, activations, inner, 0,
              d_down_weight, inner);
  cblas_sgemm(kRowMajor, kPlain, kPlain, rows, inner, width, 1, d_outputs, width, down, inner, 0, activations, inner);
  for (int64_t i = 0; i < rows; i++) {
    float* gate = gate_up_values + i * 2 * inner;
    situ_row_backward(gate, gate + inner, activations + i * inner, d_gate_up, d_gate_up + inner, inner);
    memcpy(gate, d_gate_up, 2 * inner * sizeof(float));
  }
  cblas_sgemm(kRowMajor, kTransposed, kPlain, 2 * inner, width, rows, 1, gate_up_values, 2 * inner, inputs, width, 0,
              d_gate_up_weight, width);
  cblas_sgemm(kRowMajor, kPlain, kPlain, rows, width, 2 * inner, 1, gate_up_values, 2 * inner, gate_up, width, 0,
              d_inputs, width);
}

// outputs, activations and gate_up_values are overwritten with their gradients: nobody needs them afterwards.
void experts_backward(const float* d_y, const float* weights, const float* gate_up, const float* down,
                      const int32_t* position, const int64_t* first_row, const float* inputs, float* gate_up_values,
                      float* activations, float* outputs, float* d_x, float* d_weights, float* d_gate_up_weight,
                      float* d_down_weight, int64_t row_count, int64_t width, int64_t inner, int64_t expert_count,
                      int64_t chosen_count) {
  weighted_sum_backward(d_y, weights, position, outputs, d_weights, row_count, width, chosen_count);
  float* d_inputs = allocate_floats(first_row[expert_count] * width);
#pragma omp parallel
  {
    float* scratch = allocate_floats(2 * inner);
#pragma omp for schedule(dynamic, 1)
    for (int64_t e = 0; e < expert_count; e++) {
      int64_t first = first_row[e], rows = first_row[e + 1] - first, gate_up_size = 2 * inner * width;
      float* d_gate_up = d_gate_up_weight + e * gate_up_size;
      float* d_down = d_down_weight + e * width * inner;
      if (!rows) {
        memset(d_gate_up, 0, gate_up_size * sizeof(float));
        memset(d_down, 0, width * inner * sizeof(float));
        continue;
      }
      expert_backward(gate_up + e * gate_up_size, down + e * width * inner, inputs + first * width,
                      gate_up_values + first * 2 * inner, activations + first * inner, outputs + first * width,
                      d_inputs + first * width, d_gate_up, d_down, scratch, rows, width, inner);
    }
    free(scratch);
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    float* sum = d_x + i * width;
    for (int64_t d = 0; d < width; d++) sum[d] = 0;
    for (int64_t j = 0; j < chosen_count; j++) add_to(sum, d_inputs + position[i * chosen_count + j] * width, width);
  }
  free(d_inputs);
}
