// Core of MLA (specification section 6): causal softmax attention; a part of the key is shared by all heads.
#include "common.h"

// Sizes in values. A query head has key_width + shared_width values, a kv head [key | value].
typedef struct {
  int64_t batch, tokens, heads, key_width, shared_width, value_width;
} Sizes;

static int64_t query_width(const Sizes* sizes) { return sizes->key_width + sizes->shared_width; }
static int64_t kv_width(const Sizes* sizes) { return sizes->key_width + sizes->value_width; }

// What one head of one row of the batch reads; strides between tokens are heads * width.
typedef struct {
  const float *query, *kv, *shared_key;
} HeadInput;

static HeadInput head_input(const Sizes* sizes, const float* query, const float* kv, const float* shared_key,
                            int64_t batch_index, int64_t head) {
  int64_t first = batch_index * sizes->tokens;
  return (HeadInput){query + first * sizes->heads * query_width(sizes) + head * query_width(sizes),
                     kv + first * sizes->heads * kv_width(sizes) + head * kv_width(sizes),
                     shared_key + first * sizes->shared_width};
}

// Softmax of the first `count` scores of a row of `width`; the rest becomes zero.
static void softmax_prefix(float* scores, int64_t count, int64_t width) {
  float score_max = -1e30f, total = 0;
  for (int64_t s = 0; s < count; s++) score_max = scores[s] > score_max ? scores[s] : score_max;
  for (int64_t s = 0; s < count; s++) {
    scores[s] = expf(scores[s] - score_max);
    total += scores[s];
  }
  total = 1.0f / total;
  for (int64_t s = 0; s < count; s++) scores[s] *= total;
  for (int64_t s = count; s < width; s++) scores[s] = 0;
}

// keys [tokens, query_width] are assembled from own and shared part; probabilities [tokens, tokens].
static void attend(const Sizes* sizes, const HeadInput* in, float* keys, float* probabilities) {
  int64_t tokens = sizes->tokens, width = query_width(sizes);
  for (int64_t t = 0; t < tokens; t++) {
    memcpy(keys + t * width, in->kv + t * sizes->heads * kv_width(sizes), sizes->key_width * sizeof(float));
    memcpy(keys + t * width + sizes->key_width, in->shared_key + t * sizes->shared_width,
           sizes->shared_width * sizeof(float));
  }
  cblas_sgemm(kRowMajor, kPlain, kTransposed, tokens, tokens, width, 1.0f / sqrtf(width), in->query,
              sizes->heads * width, keys, width, 0, probabilities, tokens);
  for (int64_t t = 0; t < tokens; t++) softmax_prefix(probabilities + t * tokens, t + 1, tokens);
}

// query [rows, heads * query_width], kv [rows, heads * kv_width], shared_key [rows, shared_width],
// out [rows, heads * value_width]; rows = batch * tokens.
void mla_forward(const float* query, const float* kv, const float* shared_key, float* out, int64_t batch,
                 int64_t tokens, int64_t heads, int64_t key_width, int64_t shared_width, int64_t value_width) {
  const Sizes sizes = {batch, tokens, heads, key_width, shared_width, value_width};
#pragma omp parallel
  {
    float *keys = allocate_floats(tokens * query_width(&sizes)), *probabilities = allocate_floats(tokens * tokens);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      for (int64_t head = 0; head < heads; head++) {
        HeadInput in = head_input(&sizes, query, kv, shared_key, b, head);
        attend(&sizes, &in, keys, probabilities);
        cblas_sgemm(kRowMajor, kPlain, kPlain, tokens, value_width, tokens, 1, probabilities, tokens,
                    in.kv + key_width, heads * kv_width(&sizes), 0,
                    out + b * tokens * heads * value_width + head * value_width, heads * value_width);
      }
    }
    free(keys);
    free(probabilities);
  }
}

typedef struct {
  float *keys, *d_keys, *probabilities, *d_scores;
} Scratch;

// Gradient of the scores before the softmax, from that of the probabilities, in place.
static void softmax_backward(const float* probabilities, float* d_scores, int64_t tokens, float scale) {
  for (int64_t t = 0; t < tokens; t++) {
    const float* probability = probabilities + t * tokens;
    float *d_row = d_scores + t * tokens, mean = 0;
    for (int64_t s = 0; s <= t; s++) mean += probability[s] * d_row[s];
    for (int64_t s = 0; s < tokens; s++) d_row[s] = probability[s] * (d_row[s] - mean) * scale;
  }
}

// d_shared_key accumulates over the heads.
static void head_backward(const Sizes* sizes, const HeadInput* in, const float* d_out, float* d_query, float* d_kv,
                          float* d_shared_key, Scratch* scratch) {
  int64_t tokens = sizes->tokens, width = query_width(sizes), values = sizes->value_width;
  int64_t query_stride = sizes->heads * width, kv_stride = sizes->heads * kv_width(sizes);
  int64_t out_stride = sizes->heads * values;
  attend(sizes, in, scratch->keys, scratch->probabilities);
  cblas_sgemm(kRowMajor, kTransposed, kPlain, tokens, values, tokens, 1, scratch->probabilities, tokens, d_out,
              out_stride, 0, d_kv + sizes->key_width, kv_stride);
  cblas_sgemm(kRowMajor, kPlain, kTransposed, tokens, tokens, values, 1, d_out, out_stride, in->kv + sizes->key_width,
              kv_stride, 0, scratch->d_scores, tokens);
  softmax_backward(scratch->probabilities, scratch->d_scores, tokens, 1.0f / sqrtf(width));
  cblas_sgemm(kRowMajor, kPlain, kPlain, tokens, width, tokens, 1, scratch->d_scores, tokens, scratch->keys, width, 0,
              d_query, query_stride);
  cblas_sgemm(kRowMajor, kTransposed, kPlain, tokens, width, tokens, 1, scratch->d_scores, tokens, in->query,
              query_stride, 0, scratch->d_keys, width);
  for (int64_t t = 0; t < tokens; t++) {
    const float* d_key = scratch->d_keys + t * width;
    memcpy(d_kv + t * kv_stride, d_key, sizes->key_width * sizeof(float));
    add_to(d_shared_key + t * sizes->shared_width, d_key + sizes->key_width, sizes->shared_width);
  }
}

void mla_backward(const float* query, const float* kv, const float* shared_key, const float* d_out, float* d_query,
                  float* d_kv, float* d_shared_key, int64_t batch, int64_t tokens, int64_t heads, int64_t key_width,
                  int64_t shared_width, int64_t value_width) {
  const Sizes sizes = {batch, tokens, heads, key_width, shared_width, value_width};
  const int64_t query_size = tokens * query_width(&sizes);
#pragma omp parallel
  {
    Scratch scratch = {allocate_floats(query_size), allocate_floats(query_size), allocate_floats(tokens * tokens),
                       allocate_floats(tokens * tokens)};
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      memset(d_shared_key + b * tokens * shared_width, 0, tokens * shared_width * sizeof(float));
      for (int64_t head = 0; head < heads; head++) {
        HeadInput in = head_input(&sizes, query, kv, shared_key, b, head);
        head_backward(&sizes, &in, d_out + b * tokens * heads * value_width + head * value_width,
                      d_query + (in.query - query), d_kv + (in.kv - kv), d_shared_key + b * tokens * shared_width,
                      &scratch);
      }
    }
    free(scratch.keys);
    free(scratch.d_keys);
    free(scratch.probabilities);
    free(scratch.d_scores);
  }
}
