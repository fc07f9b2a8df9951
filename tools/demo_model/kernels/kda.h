// One head of KDA (specification section 5): its inputs, and the values that the backward pass needs again.
#ifndef DEMO_MODEL_KERNELS_KDA_H_
#define DEMO_MODEL_KERNELS_KDA_H_

#include "common.h"

// The head dimension is a constant so that the loops unroll. 4 taps: width of the short convolution.
enum { kDim = 32, kTaps = 4, kVector = 16, kStreams = 3 };

static const float kDecayBound = -5.0f;

// Vectors of 16 floats, two per row of a state; GCC lowers them where the CPU has no such registers.
typedef float Vector __attribute__((vector_size(64)));

// One row of the batch, one head. Per token, `projected` holds [q0 | k0 | v0 | gate | beta logits], 4 * N + head_count
// values with N = head_count * kDim, and `decay_logits` N values with dt_bias added.
typedef struct {
  const float *projected, *decay_logits;
  const float* conv_weight;  // [3 * N, kTaps]
  const float* norm_weight;  // [kDim]
  float decay_rate;          // exp(A_log) of the head
  int64_t token_count, head_count, head;
  float epsilon;
} HeadInput;

static inline int64_t channel_count(const HeadInput* in) { return in->head_count * kDim; }
static inline int64_t projected_width(const HeadInput* in) { return 4 * channel_count(in) + in->head_count; }

// Where the head's part of q0, k0, v0 (streams 0, 1, 2) or the gate (3) begins in a projected row.
static inline int64_t stream_offset(const HeadInput* in, int64_t stream) {
  return stream * channel_count(in) + in->head * kDim;
}

// Intermediate values, [token_count, kDim] each unless noted.
typedef struct {
  float* activated[kStreams];  // q, k, v after convolution and SiLU
  float* convolved[kStreams];  // before SiLU
  float *query, *key;          // normalised, the query scaled
  float *decay, *output, *write;
  float* states;  // [token_count + 1, kDim, kDim], or only the current one
  float *beta, *query_norm, *key_norm, *output_norm;  // [token_count]; norms are the factors that were applied
} Trace;

// The returned memory is the whole trace; freed by the caller.
float* kda_allocate_trace(Trace* trace, int64_t token_count);

// Runs the head over all tokens. `out` (rows of N values) may be null. States of all tokens are kept only on request.
void kda_run_head(Trace* trace, const HeadInput* in, float* out, int keep_states);

#endif  // DEMO_MODEL_KERNELS_KDA_H_
