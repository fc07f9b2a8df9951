// KDA, forward: short convolution, SiLU, L2 norm, bounded decay, delta rule, gated RMS norm, all fused per head.
#include "kda.h"

float* kda_allocate_trace(Trace* trace, int64_t token_count) {
  int64_t size = token_count * kDim;
  float* memory = allocate_floats(11 * size + (token_count + 1) * kDim * kDim + 4 * token_count + 64);
  float* next = memory;
  float** matrices[] = {&trace->activated[0], &trace->activated[1], &trace->activated[2], &trace->convolved[0],
                        &trace->convolved[1], &trace->convolved[2], &trace->query,        &trace->key,
                        &trace->decay,        &trace->output,       &trace->write};
  for (int i = 0; i < 11; i++) {
    *matrices[i] = next;
    next += size;
  }
  trace->states = next;
  next += (token_count + 1) * kDim * kDim;
  float** columns[] = {&trace->beta, &trace->query_norm, &trace->key_norm, &trace->output_norm};
  for (int i = 0; i < 4; i++) {
    *columns[i] = next;
    next += token_count;
  }
  return memory;
}

// Tap 3 multiplies the current token, tap 0 the one three tokens back.
static void convolve(Trace* trace, const HeadInput* in, int stream) {
  const float* weight = in->conv_weight + stream_offset(in, stream) * kTaps;
  const int64_t width = projected_width(in);
  float tap0[kDim], tap1[kDim], tap2[kDim], tap3[kDim];
#pragma GCC ivdep
  for (int d = 0; d < kDim; d++) {
    tap0[d] = weight[d * 4];
    tap1[d] = weight[d * 4 + 1];
    tap2[d] = weight[d * 4 + 2];
    tap3[d] = weight[d * 4 + 3];
  }
  for (int64_t t = 0; t < in->token_count; t++) {
    const float* x = in->projected + t * width + stream_offset(in, stream);
    float* sum = trace->convolved[stream] + t * kDim;
    for (int d = 0; d < kDim; d++) sum[d] = tap3[d] * x[d];
    if (t > 0) {
      for (int d = 0; d < kDim; d++) sum[d] += tap2[d] * x[d - width];
    }
    if (t > 1) {
      for (int d = 0; d < kDim; d++) sum[d] += tap1[d] * x[d - 2 * width];
    }
    if (t > 2) {
      for (int d = 0; d < kDim; d++) sum[d] += tap0[d] * x[d - 3 * width];
    }
#pragma GCC ivdep
    for (int d = 0; d < kDim; d++) trace->activated[stream][t * kDim + d] = sum[d] * sigmoid(sum[d]);
  }
}

// Steps 4 to 6: decay factors, beta, normalised query and key.
static inline void prepare_token(Trace* trace, const HeadInput* in, int64_t t) {
  const float *q = trace->activated[0] + t * kDim, *k = trace->activated[1] + t * kDim;
  float *query = trace->query + t * kDim, *key = trace->key + t * kDim, *decay = trace->decay + t * kDim;
  const float* decay_logits = in->decay_logits + t * channel_count(in) + in->head * kDim;
  const float query_scale = 1.0f / sqrtf(kDim), decay_rate = in->decay_rate;
  float query_square = 0, key_square = 0;
#pragma GCC ivdep
  for (int d = 0; d < kDim; d++) {
    query_square += q[d] * q[d];
    key_square += k[d] * k[d];
  }
  float query_norm = trace->query_norm[t] = 1.0f / sqrtf(query_square + 1e-6f);
  float key_norm = trace->key_norm[t] = 1.0f / sqrtf(key_square + 1e-6f);
  trace->beta[t] = sigmoid(in->projected[t * projected_width(in) + 4 * channel_count(in) + in->head]);
#pragma GCC ivdep
  for (int d = 0; d < kDim; d++) {
    query[d] = q[d] * query_norm * query_scale;
    key[d] = k[d] * key_norm;
    decay[d] = expf(kDecayBound * sigmoid(decay_rate * decay_logits[d]));
  }
}

// Step 7: next = diag(decay) state + key write^T with write = beta (v - prediction), output = next^T query.
// `next` may be `state`. Four partial sums hide the latency of the additions.
static inline void update_state(Trace* trace, const float* state, float* next, int64_t t) {
  const float *query = trace->query + t * kDim, *key = trace->key + t * kDim, *decay = trace->decay + t * kDim;
  const Vector *before = (const Vector*)state, *value = (const Vector*)(trace->activated[2] + t * kDim);
  Vector *after = (Vector*)next, *write = (Vector*)(trace->write + t * kDim);
  Vector *output = (Vector*)(trace->output + t * kDim), sums[4][2] = {{{0}}};
  const float beta = trace->beta[t];
  for (int i = 0; i < kDim; i += 4) {
    for (int c = 0; c < 4; c++) {
      for (int j = 0; j < 2; j++) {
        Vector decayed = decay[i + c] * before[2 * (i + c) + j];
        after[2 * (i + c) + j] = decayed;
        sums[c][j] += decayed * key[i + c];
      }
    }
  }
  for (int j = 0; j < 2; j++) {
    write[j] = beta * (value[j] - ((sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j])));
    sums[0][j] = sums[1][j] = sums[2][j] = sums[3][j] = (Vector){0};
  }
  for (int i = 0; i < kDim; i += 4) {
    for (int c = 0; c < 4; c++) {
      for (int j = 0; j < 2; j++) {
        Vector updated = after[2 * (i + c) + j] + key[i + c] * write[j];
        after[2 * (i + c) + j] = updated;
        sums[c][j] += updated * query[i + c];
      }
    }
  }
  for (int j = 0; j < 2; j++) output[j] = (sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j]);
}

// Step 8. The factor of the norm is kept even if nobody wants the output.
static inline void gate_output(Trace* trace, const HeadInput* in, float* out, int64_t t) {
  const float* output = trace->output + t * kDim;
  float square = 0;
  for (int d = 0; d < kDim; d++) square += output[d] * output[d];
  float norm = trace->output_norm[t] = 1.0f / sqrtf(square / kDim + in->epsilon);
  if (!out) return;
  const float* gate = in->projected + t * projected_width(in) + stream_offset(in, 3);
  const float* norm_weight = in->norm_weight;
  float* gated = out + t * channel_count(in) + in->head * kDim;
#pragma GCC ivdep
  for (int d = 0; d < kDim; d++) gated[d] = output[d] * norm * norm_weight[d] * sigmoid(gate[d]);
}

void kda_run_head(Trace* trace, const HeadInput* in, float* out, int keep_states) {
  for (int stream = 0; stream < kStreams; stream++) convolve(trace, in, stream);
  float* state = trace->states;
  memset(state, 0, kDim * kDim * sizeof(float));
  for (int64_t t = 0; t < in->token_count; t++) {
    float* next = keep_states ? state + kDim * kDim : state;
    prepare_token(trace, in, t);
    update_state(trace, state, next, t);
    gate_output(trace, in, out, t);
    state = next;
  }
}

// projected [rows, 4 * N + heads], decay_logits and out [rows, N], decay_log (A_log) [heads]; rows = batch * tokens.
void kda_forward(const float* projected, const float* decay_logits, const float* conv_weight, const float* decay_log,
                 const float* norm_weight, float* out, int64_t batch, int64_t tokens, int64_t heads, float epsilon) {
  const int64_t channels = heads * kDim, width = 4 * channels + heads;
#pragma omp parallel
  {
    Trace trace;
    float* memory = kda_allocate_trace(&trace, tokens);
#pragma omp for collapse(2) schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      for (int64_t head = 0; head < heads; head++) {
        HeadInput in = {projected + b * tokens * width, decay_logits + b * tokens * channels, conv_weight, norm_weight,
                        expf(decay_log[head]), tokens, heads, head, epsilon};
        kda_run_head(&trace, &in, out + b * tokens * channels, 0);
      }
    }
    free(memory);
  }
}
