#pragma once

#include <stdexcept>
#include <string>

#include "headrace/headrace.h"

namespace headrace::cli {

/// Exit status of the process (CLI contract, section 3).
enum ExitStatus : int {
  kDone = 0,
  kWrongUse = 2,
  kBudgetBelowFloor = 3,
  kBadFile = 4,
  kReadOrWriteFailed = 5,
  kCancelled = 6,
  kBug = 70,
};

/// Wrong use of the command line; the message names the option and the allowed values.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A failed read or write of the program's own files and streams.
class StreamError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Nobody reads our output any more: the program ends without a word.
class ReaderGone : public std::exception {};

ExitStatus exit_status_of(headrace_status status);

}  // namespace headrace::cli
