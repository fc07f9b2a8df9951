#pragma once

// The loops over the rows, tokens and vectors of a tile must vanish: their accumulators live in registers.
#if defined(__clang__)
#define HEADRACE_UNROLL _Pragma("unroll")
#else
#define HEADRACE_UNROLL _Pragma("GCC unroll 16")
#endif
