// KDA, backward: the head is run again with all states kept, then walked from the last token to the first.
#include "kda.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

static inline float sum_vector(Vector x) {
#ifdef __AVX512F__
  return _mm512_reduce_add_ps((__m512)x);
#else
  float sum = 0;
  for (int i = 0; i < kVector; i++) sum += x[i];
  return sum;
#endif
}

// Gradients. The first two have the layout of the inputs; the weights' accumulate over heads and rows of the batch.
typedef struct {
  float *projected, *decay_logits;
  float *conv_weight, *decay_log, *norm_weight;
  float* convolved[kStreams];  // scratch [token_count, kDim]: first of SiLU's output, then of the convolution's
} Gradients;

// Gradients of one token's values, filled step by step.
typedef struct {
  _Alignas(64) float output[kDim], write[kDim], prediction[kDim];
  float query[kDim], key[kDim], value[kDim], decay[kDim], beta;
} TokenGradients;

// Step 8 backwards: gate and RMS norm.
static inline void output_backward(const Trace* trace, const HeadInput* in, const float* d_out, Gradients* gradients,
                                   TokenGradients* d, int64_t t) {
  const int64_t gate_at = t * projected_width(in) + stream_offset(in, 3);
  const float *gate_logit = in->projected + gate_at, *output = trace->output + t * kDim;
  const float* norm_weight = in->norm_weight;
  const float* d_gated = d_out + t * channel_count(in) + in->head * kDim;
  float *d_gate = gradients->projected + gate_at, *d_norm_weight = gradients->norm_weight;
  float norm = trace->output_norm[t], d_normed[kDim], dot = 0;
#pragma GCC ivdep
  for (int i = 0; i < kDim; i++) {
    float gate = sigmoid(gate_logit[i]), normed = output[i] * norm;
    d_gate[i] = d_gated[i] * normed * norm_weight[i] * gate * (1 - gate);
    d_norm_weight[i] += d_gated[i] * gate * normed;
    d_normed[i] = d_gated[i] * gate * norm_weight[i];
    dot += d_normed[i] * output[i];
  }
  dot *= norm * norm * norm / kDim;
  for (int i = 0; i < kDim; i++) d->output[i] = norm * d_normed[i] - output[i] * dot;
}

// Step 7 backwards. d_state [kDim, kDim] enters as the gradient of the state after the token and leaves as that of the
// state before it.
static inline void state_backward(const Trace* trace, float* d_state, TokenGradients* d, int64_t t) {
  const float *before = trace->states + t * kDim * kDim, *after = before + kDim * kDim;
  const float *query = trace->query + t * kDim, *key = trace->key + t * kDim, *decay = trace->decay + t * kDim;
  const float *write = trace->write + t * kDim, beta = trace->beta[t];
  const Vector *after_rows = (const Vector*)after, *before_rows = (const Vector*)before;
  const Vector* write_halves = (const Vector*)write;
  Vector *d_rows = (Vector*)d_state, *d_output = (Vector*)d->output, *d_prediction = (Vector*)d->prediction;
  Vector sums[2][2] = {{{0}}};
  for (int i = 0; i < kDim; i++) {
    Vector with_output = after_rows[2 * i] * d_output[0] + after_rows[2 * i + 1] * d_output[1];
    Vector low = d_rows[2 * i] += query[i] * d_output[0], high = d_rows[2 * i + 1] += query[i] * d_output[1];
    sums[i & 1][0] += low * key[i];
    sums[i & 1][1] += high * key[i];
    d->query[i] = sum_vector(with_output);
    d->key[i] = sum_vector(low * write_halves[0] + high * write_halves[1]);
  }
  ((Vector*)d->write)[0] = sums[0][0] + sums[1][0];
  ((Vector*)d->write)[1] = sums[0][1] + sums[1][1];
  float d_beta = 0;
  for (int j = 0; j < kDim; j++) {
    d_beta += d->write[j] * write[j];
    d->value[j] = beta * d->write[j];
    d->prediction[j] = -d->value[j];
  }
  d->beta = d_beta / beta;  // write = beta * (v - prediction)
  for (int i = 0; i < kDim; i++) {
    Vector before_low = before_rows[2 * i], before_high = before_rows[2 * i + 1];
    Vector low = d_rows[2 * i] + key[i] * d_prediction[0], high = d_rows[2 * i + 1] + key[i] * d_prediction[1];
    d->key[i] += decay[i] * sum_vector(before_low * d_prediction[0] + before_high * d_prediction[1]);
    d->decay[i] = decay[i] * sum_vector(low * before_low + high * before_high);
    d_rows[2 * i] = decay[i] * low;
    d_rows[2 * i + 1] = decay[i] * high;
  }
}

// Steps 4 to 6 backwards: norms of query and key, beta and decay.
static inline void token_backward(const Trace* trace, const HeadInput* in, Gradients* gradients, TokenGradients* d,
                                  int64_t t) {
  const float *q = trace->activated[0] + t * kDim, *k = trace->activated[1] + t * kDim;
  const float query_scale = 1.0f / sqrtf(kDim), decay_rate = in->decay_rate, beta = trace->beta[t];
  const int64_t decay_at = t * channel_count(in) + in->head * kDim, head = in->head;
  const float* decay_logits = in->decay_logits + decay_at;
  float *d_decay_logits = gradients->decay_logits + decay_at, *d_decay_log = gradients->decay_log;
  float *d_q = gradients->convolved[0] + t * kDim, *d_k = gradients->convolved[1] + t * kDim;
  float* d_v = gradients->convolved[2] + t * kDim;
  gradients->projected[t * projected_width(in) + 4 * channel_count(in) + head] = d->beta * beta * (1 - beta);
  float query_dot = 0, key_dot = 0;
#pragma GCC ivdep
  for (int i = 0; i < kDim; i++) {
    d->query[i] *= query_scale;
    query_dot += d->query[i] * q[i];
    key_dot += d->key[i] * k[i];
  }
  float query_norm = trace->query_norm[t], key_norm = trace->key_norm[t];
  query_dot *= query_norm * query_norm * query_norm;
  key_dot *= key_norm * key_norm * key_norm;
#pragma GCC ivdep
  for (int i = 0; i < kDim; i++) {
    float opened = sigmoid(decay_rate * decay_logits[i]);
    float d_inner = d->decay[i] * kDecayBound * opened * (1 - opened);
    d_decay_logits[i] = d_inner * decay_rate;
    d_decay_log[head] += d_inner * decay_logits[i] * decay_rate;
    d_q[i] = query_norm * d->query[i] - q[i] * query_dot;
    d_k[i] = key_norm * d->key[i] - k[i] * key_dot;
    d_v[i] = d->value[i];
  }
}

// SiLU and short convolution backwards.
static void convolution_backward(const Trace* trace, const HeadInput* in, Gradients* gradients, int stream) {
  const int64_t offset = stream_offset(in, stream), width = projected_width(in), tokens = in->token_count;
  const float *weight = in->conv_weight + offset * kTaps, *convolved = trace->convolved[stream];
  float *d_weight = gradients->conv_weight + offset * kTaps, *d_convolved = gradients->convolved[stream];
  float taps[kTaps][kDim], d_taps[kTaps][kDim];
  memset(d_taps, 0, sizeof d_taps);
  for (int d = 0; d < kDim; d++) {
    for (int j = 0; j < kTaps; j++) taps[j][d] = weight[d * kTaps + j];
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < tokens * kDim; i++) {
    float x = convolved[i], opened = sigmoid(x);
    d_convolved[i] *= opened * (1 + x * (1 - opened));
  }
  for (int64_t t = 0; t < tokens; t++) {
    const float* x = in->projected + t * width + offset;
    float *d_x = gradients->projected + t * width + offset, sum[kDim];
    for (int d = 0; d < kDim; d++) sum[d] = 0;
    for (int j = 0; j < kTaps; j++) {
      int64_t distance = kTaps - 1 - j;
      if (t + distance < tokens) {
        for (int d = 0; d < kDim; d++) sum[d] += taps[j][d] * d_convolved[(t + distance) * kDim + d];
      }
      if (t - distance >= 0) {
        for (int d = 0; d < kDim; d++) d_taps[j][d] += d_convolved[t * kDim + d] * x[d - distance * width];
      }
    }
    for (int d = 0; d < kDim; d++) d_x[d] = sum[d];
  }
  for (int d = 0; d < kDim; d++) {
    for (int j = 0; j < kTaps; j++) d_weight[d * kTaps + j] += d_taps[j][d];
  }
}

static void head_backward(Trace* trace, const HeadInput* in, const float* d_out, Gradients* gradients) {
  kda_run_head(trace, in, 0, 1);
  _Alignas(64) float d_state[kDim * kDim];
  memset(d_state, 0, sizeof d_state);
  for (int64_t t = in->token_count - 1; t >= 0; t--) {
    TokenGradients d;
    output_backward(trace, in, d_out, gradients, &d, t);
    state_backward(trace, d_state, &d, t);
    token_backward(trace, in, gradients, &d, t);
  }
  for (int stream = 0; stream < kStreams; stream++) convolution_backward(trace, in, gradients, stream);
}

// Sizes as in kda_forward. d_conv_weight, d_decay_log and d_norm_weight accumulate.
void kda_backward(const float* projected, const float* decay_logits, const float* conv_weight, const float* decay_log,
                  const float* norm_weight, const float* d_out, float* d_projected, float* d_decay_logits,
                  float* d_conv_weight, float* d_decay_log, float* d_norm_weight, int64_t batch, int64_t tokens,
                  int64_t heads, float epsilon) {
  const int64_t channels = heads * kDim, width = 4 * channels + heads, conv_size = kStreams * channels * kTaps;
#pragma omp parallel
  {
    Trace trace;
    float* memory = kda_allocate_trace(&trace, tokens);
    float* parts = allocate_zeros(conv_size + heads + kDim);
    float* scratch = allocate_floats(kStreams * tokens * kDim);
#pragma omp for collapse(2) schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      for (int64_t head = 0; head < heads; head++) {
        const int64_t first = b * tokens;
        HeadInput in = {projected + first * width, decay_logits + first * channels, conv_weight, norm_weight,
                        expf(decay_log[head]), tokens, heads, head, epsilon};
        Gradients gradients = {d_projected + first * width, d_decay_logits + first * channels, parts,
                               parts + conv_size, parts + conv_size + heads,
                               {scratch, scratch + tokens * kDim, scratch + 2 * tokens * kDim}};
        head_backward(&trace, &in, d_out + first * channels, &gradients);
      }
    }
#pragma omp critical
    {
      add_to(d_conv_weight, parts, conv_size);
      add_to(d_decay_log, parts + conv_size, heads);
      add_to(d_norm_weight, parts + conv_size + heads, kDim);
    }
    free(memory);
    free(parts);
    free(scratch);
  }
}
