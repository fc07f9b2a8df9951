// Router (specification section 7): sigmoid scores, selection with the bias, weights without it.
#include "common.h"

enum { kExpertsMax = 256 };

// logits [row_count, expert_count]; indices, weights and scores [row_count, chosen_count] of the chosen experts.
// tokens_of_expert [expert_count] accumulates.
void router_forward(const float* logits, const float* bias, int32_t* indices, float* weights, float* scores,
                    int64_t* tokens_of_expert, int64_t row_count, int64_t expert_count, int64_t chosen_count) {
  for (int64_t i = 0; i < row_count; i++) {
    float score[kExpertsMax], biased[kExpertsMax], total = 0;
    for (int64_t e = 0; e < expert_count; e++) score[e] = sigmoid(logits[i * expert_count + e]);
    for (int64_t e = 0; e < expert_count; e++) biased[e] = score[e] + bias[e];
    for (int64_t j = 0; j < chosen_count; j++) {
      int64_t best = 0;
      for (int64_t e = 1; e < expert_count; e++) {
        if (biased[e] > biased[best]) best = e;
      }
      biased[best] = -1e30f;
      indices[i * chosen_count + j] = best;
      scores[i * chosen_count + j] = score[best];
      total += score[best];
      tokens_of_expert[best]++;
    }
    for (int64_t j = 0; j < chosen_count; j++) {
      weights[i * chosen_count + j] = scores[i * chosen_count + j] / (total + 1e-20f);
    }
  }
}

// The choice itself has no gradient: logits of experts that were not chosen get zero.
void router_backward(const int32_t* indices, const float* weights, const float* scores, const float* d_weights,
                     float* d_logits, int64_t row_count, int64_t expert_count, int64_t chosen_count) {
  memset(d_logits, 0, row_count * expert_count * sizeof(float));
  for (int64_t i = 0; i < row_count; i++) {
    const float *weight = weights + i * chosen_count, *score = scores + i * chosen_count;
    const float* d_weight = d_weights + i * chosen_count;
    float total = 0, mean = 0;
    for (int64_t j = 0; j < chosen_count; j++) {
      total += score[j];
      mean += d_weight[j] * weight[j];
    }
    for (int64_t j = 0; j < chosen_count; j++) {
      float d_score = (d_weight[j] - mean) / total;
      d_logits[i * expert_count + indices[i * chosen_count + j]] = d_score * score[j] * (1 - score[j]);
    }
  }
}
