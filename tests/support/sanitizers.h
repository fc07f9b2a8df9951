#pragma once

// Whether this program is built with AddressSanitizer or ThreadSanitizer, which take memory and allocate in its place.
// A macro as well, for definitions that must not be there then; clang and g++ say it in different ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADRACE_TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADRACE_TEST_IS_SANITIZED 1
#endif
#endif

#if !defined(HEADRACE_TEST_IS_SANITIZED)
#define HEADRACE_TEST_IS_SANITIZED 0
#endif

namespace headrace::test {

inline constexpr bool kIsSanitized = HEADRACE_TEST_IS_SANITIZED;

}  // namespace headrace::test
