#include "base/ensure.h"

#include <cstdio>
#include <cstdlib>

namespace headrace {
namespace {
constexpr int kBugExitStatus = 70;
}

void ensure_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "headrace: bug: %s:%d: %s does not hold. Please report this.\n", file, line, condition);
  std::fflush(stderr);
  // _Exit: destructors must not run on a state that is known to be wrong.
  std::_Exit(kBugExitStatus);
}

}  // namespace headrace
