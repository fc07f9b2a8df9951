#pragma once

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "weights/trunk.h"

namespace headrace {

/// What every part of a forward pass computes with. Borrowed from the model.
struct Compute {
  const Kernels& kernels;
  ThreadPool& pool;
  Trunk& trunk;
};

/// y = weights x for every row of x, rows of `weights` split over the threads. x is [tokens, cols], y [tokens, rows].
void multiply(const Compute& compute, const WeightView& weights, MatrixView<const float> x, MatrixView<float> y);

/// y = W x for every row of x, block by block as the trunk hands W out. Here the bytes of the trunk meet the maths.
/// Errors of the trunk; kFormat naming the tensor when a product is not finite.
Status linear(const Compute& compute, const TrunkMatrix& matrix, MatrixView<const float> x, MatrixView<float> y);

/// RMSNorm of every row (spec 8), tokens split over the threads.
void normalize_rows(const Compute& compute, MatrixView<const float> x, std::span<const float> weight, float epsilon,
                    MatrixView<float> out);

/// y = y + x, row by row.
void add_rows(const Compute& compute, MatrixView<const float> x, MatrixView<float> y);

}  // namespace headrace
