# What every target of the project is compiled with.
add_library(headrace_flags INTERFACE)
target_compile_options(headrace_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
  -ffp-contract=off # A fused multiply-add stands where the source says so, and nowhere else.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-pedantic> # TRY is a statement expression; gcc offers no narrower switch.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # g++ 12 sees overlaps in "literal" + string (its bug 105329).
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wno-gnu-statement-expression -Wno-gnu-zero-variadic-macro-arguments>)
# Errors only with the compilers that the project is checked with: what a newer one finds must not stop a user's build.
if(HEADRACE_WERROR AND (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 OR
                        CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  target_compile_options(headrace_flags INTERFACE -Werror)
endif()
if(HEADRACE_SANITIZE)
  target_compile_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()
if(HEADRACE_FUZZ)
  target_compile_options(headrace_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
