// Output head and cross-entropy, in chunks of rows so that the logits of a batch never exist at once.
#include "common.h"

enum { kChunkRows = 128 };

// Turns one row of logits into its loss and, if `with_gradient`, into the gradient of the mean loss.
// target < 0: the row is ignored. scale: 1 / number of rows that are not ignored.
static inline float cross_entropy_row(float* logits, int64_t target, float scale, int64_t vocabulary,
                                      int with_gradient) {
  float logit_max = -1e30f, total = 0;
  for (int64_t j = 0; j < vocabulary; j++) logit_max = logits[j] > logit_max ? logits[j] : logit_max;
  float target_logit = target >= 0 ? logits[target] : 0;
  for (int64_t j = 0; j < vocabulary; j++) {
    logits[j] = expf(logits[j] - logit_max);
    total += logits[j];
  }
  if (with_gradient) {
    float factor = target >= 0 ? scale / total : 0;
    for (int64_t j = 0; j < vocabulary; j++) logits[j] *= factor;
    if (target >= 0) logits[target] -= scale;
  }
  return target >= 0 ? logf(total) + logit_max - target_logit : 0;
}

// hidden [row_count, width], head [vocabulary, width]; losses [row_count] are negative log likelihoods in nats.
// If d_hidden is not null, the gradients of the mean loss are made as well; d_head accumulates.
void head_loss(const float* hidden, const float* head, const int64_t* targets, float* losses, float* d_hidden,
               float* d_head, float scale, int64_t row_count, int64_t width, int64_t vocabulary) {
#pragma omp parallel
  {
    float* logits = allocate_floats(kChunkRows * vocabulary);
    float* d_head_part = d_hidden ? allocate_zeros(vocabulary * width) : 0;
#pragma omp for schedule(dynamic, 1)
    for (int64_t first = 0; first < row_count; first += kChunkRows) {
      int64_t rows = row_count - first < kChunkRows ? row_count - first : kChunkRows;
      const float* chunk = hidden + first * width;
      cblas_sgemm(kRowMajor, kPlain, kTransposed, rows, vocabulary, width, 1, chunk, width, head, width, 0, logits,
                  vocabulary);
      for (int64_t i = 0; i < rows; i++) {
        losses[first + i] =
            cross_entropy_row(logits + i * vocabulary, targets[first + i], scale, vocabulary, d_hidden != 0);
      }
      if (!d_hidden) continue;
      cblas_sgemm(kRowMajor, kPlain, kPlain, rows, width, vocabulary, 1, logits, vocabulary, head, width, 0,
                  d_hidden + first * width, width);
      cblas_sgemm(kRowMajor, kTransposed, kPlain, vocabulary, width, rows, 1, logits, vocabulary, chunk, width, 1,
                  d_head_part, width);
    }
    if (d_head_part) {
#pragma omp critical
      add_to(d_head, d_head_part, vocabulary * width);
    }
    free(d_head_part);
    free(logits);
  }
}
