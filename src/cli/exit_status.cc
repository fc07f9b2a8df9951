#include "cli/exit_status.h"

namespace headrace::cli {

ExitStatus exit_status_of(headrace_status status) {
  switch (status) {
    case HEADRACE_OK:
      return kDone;
    case HEADRACE_ARGUMENT:
      return kWrongUse;
    case HEADRACE_BUDGET:
      return kBudgetBelowFloor;
    case HEADRACE_FORMAT:
    case HEADRACE_UNSUPPORTED:
      return kBadFile;
    case HEADRACE_IO:
      return kReadOrWriteFailed;
    case HEADRACE_CANCELLED:
      return kCancelled;
    case HEADRACE_BUG:
      break;
  }
  return kBug;
}

}  // namespace headrace::cli
