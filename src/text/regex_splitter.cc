#include "text/regex_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>

namespace headrace {
namespace {

struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using MatchData = std::unique_ptr<pcre2_match_data, MatchDataFree>;

std::string describe(int pcre2_error) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(pcre2_error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

struct Subject {
  std::string_view text;
  size_t offset;
};

/// The matcher's limits guard against patterns that explode. Ours are fixed and read each run of characters a fixed
/// number of times, while long runs are legitimate, so a limit could only refuse good text.
int match(const pcre2_code* code, Subject subject, pcre2_match_data* data, pcre2_match_context* context) {
  const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.text.data());
  const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  const int result = pcre2_match(code, text, subject.text.size(), subject.offset, options, data, context);
  if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
  return pcre2_match(code, text, subject.text.size(), subject.offset, options | PCRE2_NO_JIT, data, context);
}

}  // namespace

void RegexSplitter::CodeFree::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

void RegexSplitter::ContextFree::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}

Result<RegexSplitter> RegexSplitter::compile(const std::string& pattern, Engine engine) {
  int problem = 0;
  PCRE2_SIZE problem_offset = 0;
  const auto* text = reinterpret_cast<PCRE2_SPTR>(pattern.data());
  RegexSplitter splitter;
  splitter.code_.reset(pcre2_compile(text, pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &problem,
                                     &problem_offset, nullptr));
  if (!splitter.code_) {
    return error(Code::kUnsupported, "pattern of a tokenizer, byte %zu: %s", problem_offset, describe(problem).c_str());
  }
  splitter.context_.reset(pcre2_match_context_create(nullptr));
  if (!splitter.context_) return error(Code::kBudget, "pattern of a tokenizer: no memory for its matcher");
  pcre2_set_match_limit(splitter.context_.get(), UINT32_MAX);
  pcre2_set_depth_limit(splitter.context_.get(), UINT32_MAX);
  pcre2_set_heap_limit(splitter.context_.get(), UINT32_MAX);
  // Refused where memory may not become executable; pcre2_match then interprets.
  if (engine == Engine::kBest) (void)pcre2_jit_compile(splitter.code_.get(), PCRE2_JIT_COMPLETE);
  return splitter;
}

Status RegexSplitter::split(std::string_view text, FunctionRef<void(std::string_view)> take) const {
  const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  if (!data) return error(Code::kBudget, "pre-tokenisation: no memory for the matcher");
  size_t offset = 0;
  while (offset < text.size()) {
    const int result = match(code_.get(), {text, offset}, data.get(), context_.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return error(Code::kBudget, "pre-tokenisation of %zu bytes at %zu: %s", text.size(), offset,
                   describe(result).c_str());
    }
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
    if (span[0] > offset) take(text.substr(offset, span[0] - offset));
    take(text.substr(span[0], span[1] - span[0]));
    offset = span[1];
  }
  if (offset < text.size()) take(text.substr(offset));
  return {};
}

size_t RegexSplitter::memory_bytes() const {
  size_t code_bytes = 0;
  size_t jit_bytes = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &code_bytes);
  pcre2_pattern_info(code_.get(), PCRE2_INFO_JITSIZE, &jit_bytes);
  return code_bytes + jit_bytes;
}

}  // namespace headrace
