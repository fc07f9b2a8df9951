#pragma once

// A stretch of a source file that is compiled for more than the processor that the library starts on. Everything that
// the stretch instantiates must have internal linkage (templates over a vector type of an anonymous namespace):
// otherwise the linker may hand this file's copy of a shared function to callers on any processor. Headers of the
// system and of base come before it.
#define HEADRACE_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define HEADRACE_TARGET_REGION_BEGIN(features) \
  HEADRACE_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define HEADRACE_TARGET_REGION_END HEADRACE_PRAGMA(clang attribute pop)
#else
#define HEADRACE_TARGET_REGION_BEGIN(features) \
  HEADRACE_PRAGMA(GCC push_options)            \
  HEADRACE_PRAGMA(GCC target(features))
#define HEADRACE_TARGET_REGION_END HEADRACE_PRAGMA(GCC pop_options)
#endif
