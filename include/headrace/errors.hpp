// Errors of the C++ wrapper, and how it calls the C interface. Part of headrace.hpp.
#ifndef HEADRACE_ERRORS_HPP
#define HEADRACE_ERRORS_HPP

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "headrace/headrace.h"

namespace headrace::api {

/// A failed call: its status, and what failed, on which object, and why.
class Error : public std::runtime_error {
 public:
  Error(headrace_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  headrace_status status() const { return status_; }

 private:
  headrace_status status_;
};

namespace detail {

struct Free {
  void operator()(void* memory) const { headrace_free(memory); }
};

/// Calls `function(arguments..., &error)` and throws its error.
template <class Function, class... Arguments>
void call(Function* function, Arguments... arguments) {
  headrace_error error{};
  error.struct_size = sizeof error;
  const headrace_status status = function(arguments..., &error);
  if (status != HEADRACE_OK) throw Error(status, error.message);
}

/// The text that `function(arguments..., &text, &bytes, &error)` hands over.
template <class Function, class... Arguments>
std::string call_for_text(Function* function, Arguments... arguments) {
  char* text = nullptr;
  size_t bytes = 0;
  call(function, arguments..., &text, &bytes);
  const std::unique_ptr<char, Free> owner(text);
  return std::string(text, bytes);
}

/// Runs a callback that may throw between two functions of C, which may not.
class Guard {
 public:
  /// 0 to go on, or 1 when `body` returned false or threw.
  template <class Body>
  int run(Body&& body) noexcept {
    try {
      return body() ? 0 : 1;
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace detail

}  // namespace headrace::api

#endif  // HEADRACE_ERRORS_HPP
