#pragma once

#include "kernels/kernels.h"

namespace headrace {

// One table per instruction set; a build has those of its processor family.
extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kNeonKernels;

}  // namespace headrace
