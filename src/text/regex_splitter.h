#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;

namespace headrace {

/// Cuts text into pieces with a regular expression (PCRE2, Unicode properties on): pre-tokenisation. Immutable: any
/// thread may call it.
///
/// Categories and scripts are those of the PCRE2 that is linked; Debian 12's (10.42) knows Unicode 14, so code points
/// assigned later count as unassigned. `\s`, `\d` and `\w` of PCRE2 are not the Unicode properties that other engines
/// mean (`\s` includes U+180E): patterns should name their sets.
class RegexSplitter {
 public:
  enum class Engine : uint8_t {
    kBest,         ///< Compiled to machine code where this machine allows it.
    kInterpreter,  ///< Never compiled to machine code; the same pieces, slower.
  };

  /// kUnsupported when the pattern cannot be compiled, with the place in it.
  static Result<RegexSplitter> compile(const std::string& pattern, Engine engine = Engine::kBest);

  /// Calls `take` with every piece of `text` in order: matches, and what lies between them. Together they are the text.
  /// `text` must be valid UTF-8. kBudget when the matcher gets no memory.
  Status split(std::string_view text, FunctionRef<void(std::string_view)> take) const;

  /// Memory of the compiled pattern.
  size_t memory_bytes() const;

 private:
  struct CodeFree {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct ContextFree {
    void operator()(pcre2_real_match_context_8* context) const;
  };

  std::unique_ptr<pcre2_real_code_8, CodeFree> code_;
  std::unique_ptr<pcre2_real_match_context_8, ContextFree> context_;
};

}  // namespace headrace
