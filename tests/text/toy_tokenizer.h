#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace headrace::testing {

/// The 256 single bytes in the order of their ranks in Kimi's files.
std::vector<std::string> single_bytes();

/// The toy vocabulary whose ids are known: the single bytes, then 16 tokens of more bytes.
std::vector<std::string> toy_tokens();

/// A rank file of these tokens.
std::string rank_file(const std::vector<std::string>& tokens);

/// One line of a rank file.
std::string rank_line(std::string_view token, const std::string& rank);

/// A tokenizer_config.json that names control tokens first_id + offset as the toy tests use them: 0 [BOS], 1 [EOS],
/// 2 <|end_of_msg|>, 3 <|open|>, 4 <|close|>, 5 <|sep|>; the last three are not special.
std::string toy_config(size_t first_id);

/// The toy vocabulary with those control tokens.
std::unique_ptr<Tokenizer> toy_tokenizer();

/// `text`, `count` times.
std::string repeat(std::string_view text, size_t count);

/// Reads a file of the source tree or of test data. Fails the test when it cannot.
std::string read_text_file(const std::string& path);

}  // namespace headrace::testing
