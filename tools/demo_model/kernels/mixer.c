// Mixer of the attention residuals (specification section 9): softmax over one score per source, weighted sum.
#include "common.h"

enum { kSourcesMax = 16 };

// sources: source_count matrices [row_count, width]; score_weight [width] is norm.weight times proj.weight.
// probabilities and inverse_rms [row_count, source_count] are kept for the backward pass.
void mixer_forward(const float** sources, const float* score_weight, float* out, float* probabilities,
                   float* inverse_rms, int64_t row_count, int64_t width, int64_t source_count, float epsilon) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < row_count; i++) {
    float scores[kSourcesMax], score_max = -1e30f, total = 0;
    for (int64_t k = 0; k < source_count; k++) {
      const float* row = sources[k] + i * width;
      float square = 0, dot = 0;
      for (int64_t j = 0; j < width; j++) {
        square += row[j] * row[j];
        dot += row[j] * score_weight[j];
      }
      float scale = 1.0f / sqrtf(square / width + epsilon);
      inverse_rms[i * source_count + k] = scale;
      scores[k] = dot * scale;
      if (scores[k] > score_max) score_max = scores[k];
    }
    for (int64_t k = 0; k < source_count; k++) total += scores[k] = expf(scores[k] - score_max);
    for (int64_t j = 0; j < width; j++) out[i * width + j] = 0;
    for (int64_t k = 0; k < source_count; k++) {
      float probability = probabilities[i * source_count + k] = scores[k] / total;
      const float* row = sources[k] + i * width;
      for (int64_t j = 0; j < width; j++) out[i * width + j] += probability * row[j];
    }
  }
}

// d_score_weight accumulates.
void mixer_backward(const float** sources, const float* score_weight, const float* probabilities,
                    const float* inverse_rms, const float* d_out, float** d_sources, float* d_score_weight,
                    int64_t row_count, int64_t width, int64_t source_count) {
#pragma omp parallel
  {
    float* d_weight_part = allocate_zeros(width);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < row_count; i++) {
      const float* d_row = d_out + i * width;
      float d_probability[kSourcesMax], raw_score[kSourcesMax], mean = 0;
      for (int64_t k = 0; k < source_count; k++) {
        const float* row = sources[k] + i * width;
        float with_gradient = 0, with_weight = 0;
        for (int64_t j = 0; j < width; j++) {
          with_gradient += row[j] * d_row[j];
          with_weight += row[j] * score_weight[j];
        }
        d_probability[k] = with_gradient;
        raw_score[k] = with_weight;
        mean += probabilities[i * source_count + k] * with_gradient;
      }
      for (int64_t k = 0; k < source_count; k++) {
        const float* row = sources[k] + i * width;
        float* d_source = d_sources[k] + i * width;
        float probability = probabilities[i * source_count + k], scale = inverse_rms[i * source_count + k];
        float d_score = probability * (d_probability[k] - mean), d_dot = d_score * scale;
        float d_norm = d_score * scale * scale * scale * raw_score[k] / width;
        for (int64_t j = 0; j < width; j++) {
          d_source[j] = probability * d_row[j] + d_dot * score_weight[j] - d_norm * row[j];
          d_weight_part[j] += d_dot * row[j];
        }
      }
    }
#pragma omp critical
    add_to(d_score_weight, d_weight_part, width);
    free(d_weight_part);
  }
}
