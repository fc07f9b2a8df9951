#pragma once

#include <cstdarg>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/ensure.h"

namespace headrace {

/// What the caller can do about a failure; one code per reaction. The message holds the rest.
enum class Code {
  kIo,           ///< A read or write failed: check the drive.
  kFormat,       ///< A file is damaged: fetch it again.
  kBudget,       ///< The memory limit is too small: raise it to the number in the message.
  kArgument,     ///< The caller asked for something impossible: correct the call.
  kUnsupported,  ///< A valid request or file that this build cannot serve.
  kCancelled,    ///< The caller cancelled.
};

/// A failure: its code, and a message that says what failed, on which object, and why.
struct Error {
  Code code;
  std::string message;
};

/// Builds an Error from a printf-style message.
[[nodiscard]] Error error(Code code, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// The same message with knowledge of the caller in front: "<context>: <message>".
[[nodiscard]] Error with_context(Error error, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return error(...)` in functions that return a Status.
  Status(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const {
    ENSURE(error_.has_value());
    return *error_;
  }
  Error take_error() {
    ENSURE(error_.has_value());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

/// A value, or the Error that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTBEGIN(google-explicit-constructor): `return value` and `return error(...)`.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  T& value() {
    ENSURE(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    ENSURE(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }
  const Error& error() const {
    ENSURE(state_.index() == 1);
    return *std::get_if<1>(&state_);
  }
  T take_value() { return std::move(value()); }
  Error take_error() {
    ENSURE(state_.index() == 1);
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

namespace detail {
inline void take_try_value(Status&) {}
template <class T>
T take_try_value(Result<T>& result) {
  return result.take_value();
}
}  // namespace detail

}  // namespace headrace

/// The value of a Result (nothing for a Status), or an early return of its Error.
///
/// Not after another element inside braces, as in `Pair{TRY(first()), TRY(second())}`: both compilers forget to destroy
/// the elements that stand already when the later one returns. Name the values first. Function arguments are fine.
#define TRY(expression) HEADRACE_TRY_WITH_NAME(HEADRACE_TRY_JOIN(try_result_, __COUNTER__), expression)
#define HEADRACE_TRY_JOIN_EXPANDED(left, right) left##right
#define HEADRACE_TRY_JOIN(left, right) HEADRACE_TRY_JOIN_EXPANDED(left, right)
// NOLINTBEGIN(bugprone-macro-parentheses): `name` is a name.
// A name of its own for each TRY, so that one may stand inside another without shadowing it.
#define HEADRACE_TRY_WITH_NAME(name, expression) \
  ({                                             \
    auto name = (expression);                    \
    if (!name) [[unlikely]]                      \
      return name.take_error();                  \
    ::headrace::detail::take_try_value(name);    \
  })
// NOLINTEND(bugprone-macro-parentheses)
