#include "kernels/dispatch.h"

#include <string>

#include "kernels/isa/tables.h"

namespace headrace {
namespace {

struct Candidate {
  const Kernels* kernels;
  bool (*runs_here)();
};

bool always() {
  return true;
}

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the operating system saves the wide registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
constexpr Candidate kCandidates[] = {
    {&kAvx512Kernels, has_avx512}, {&kAvx2Kernels, has_avx2}, {&kScalarKernels, always}};
#elif defined(__aarch64__)
constexpr Candidate kCandidates[] = {{&kNeonKernels, always}, {&kScalarKernels, always}};
#else
constexpr Candidate kCandidates[] = {{&kScalarKernels, always}};
#endif

constexpr std::string_view kNames[] = {"avx512", "avx2", "neon", "scalar"};

bool is_known(std::string_view name) {
  for (const std::string_view known : kNames) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace

std::vector<const Kernels*> usable_kernels() {
  std::vector<const Kernels*> usable;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.runs_here()) usable.push_back(candidate.kernels);
  }
  return usable;
}

Result<const Kernels*> select_kernels(std::string_view name) {
  const std::vector<const Kernels*> usable = usable_kernels();
  if (name.empty()) return usable.front();
  for (const Kernels* kernels : usable) {
    if (name == kernels->name) return kernels;
  }
  const std::string text(name);
  if (is_known(name))
    return error(Code::kUnsupported, "kernels \"%s\": this processor or build has none", text.c_str());
  return error(Code::kArgument, "kernels \"%s\": unknown; there are avx512, avx2, neon and scalar", text.c_str());
}

}  // namespace headrace
