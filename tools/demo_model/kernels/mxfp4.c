// MXFP4 rounding (specification section 11): groups of 32 along the row, E8M0 scale.
#include "common.h"

enum { kGroup = 32, kExponentMin = -120, kExponentBias = 127, kSignBit = 8 };

static const float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

// Exponent of the smallest power of two that maps the largest magnitude to at most 6, so that nothing saturates.
static int scale_exponent(float magnitude_max) {
  int exponent = kExponentMin;
  if (magnitude_max > 1e-30f) {
    frexpf(magnitude_max / 6.0f, &exponent);
    if (ldexpf(1.0f, exponent - 1) * 6.0f >= magnitude_max) exponent--;
  }
  return exponent < kExponentMin ? kExponentMin : exponent;
}

// Index of the nearest magnitude; ties go to the even code.
static inline int nearest_code(float magnitude) {
  return (magnitude > 0.25f) + (magnitude >= 0.75f) + (magnitude > 1.25f) + (magnitude >= 1.75f) +
         (magnitude > 2.5f) + (magnitude >= 3.5f) + (magnitude > 5.0f);
}

// `rounded` gets the values after rounding. packed (two codes per byte, low nibble first) and scales (one byte per
// group) may both be null.
void round_to_mxfp4(const float* weights, float* rounded, uint8_t* packed, uint8_t* scales, int64_t count) {
#pragma omp parallel for schedule(static)
  for (int64_t group = 0; group < count / kGroup; group++) {
    const float* x = weights + group * kGroup;
    float magnitude_max = 0;
    for (int i = 0; i < kGroup; i++) {
      float magnitude = fabsf(x[i]);
      magnitude_max = magnitude > magnitude_max ? magnitude : magnitude_max;
    }
    int exponent = scale_exponent(magnitude_max);
    float scale = ldexpf(1.0f, exponent), inverse = 1.0f / scale;
    uint8_t codes[kGroup];
    for (int i = 0; i < kGroup; i++) {
      int code = nearest_code(fabsf(x[i]) * inverse);
      codes[i] = code | (x[i] < 0 ? kSignBit : 0);
      rounded[group * kGroup + i] = (x[i] < 0 ? -kMagnitudes[code] : kMagnitudes[code]) * scale;
    }
    if (!packed) continue;
    for (int i = 0; i < kGroup / 2; i++) packed[group * kGroup / 2 + i] = codes[2 * i] | codes[2 * i + 1] << 4;
    scales[group] = exponent + kExponentBias;
  }
}
