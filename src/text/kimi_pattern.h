#pragma once

#include <string>

namespace headrace {

/// The pre-tokenisation of Kimi-Linear and Kimi K3 for RegexSplitter.
std::string kimi_pattern();

}  // namespace headrace
