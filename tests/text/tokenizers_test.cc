#include "text/tokenizers.h"

#include <gtest/gtest.h>

#include <map>

#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using Folder = std::map<std::string, std::string>;
using Contents = std::optional<std::string>;

Result<std::unique_ptr<Tokenizer>> load(const Folder& folder) {
  return load_tokenizer([&folder](const ModelFile& file) -> Result<Contents> {
    const auto entry = folder.find(file.name);
    if (entry == folder.end()) return Contents();
    if (entry->second.size() > file.bytes_max) return error(Code::kFormat, "%s: too long", file.name);
    return Contents(entry->second);
  });
}

Folder toy_folder() {
  return {{"tiktoken.model", testing::rank_file(testing::toy_tokens())},
          {"tokenizer_config.json", testing::toy_config(272)}};
}

void expect_refused(const Folder& folder, const std::string& reason) {
  const auto tokenizer = load(folder);
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, Code::kFormat);
  EXPECT_NE(tokenizer.error().message.find(reason), std::string::npos) << tokenizer.error().message;
}

TEST(Tokenizers, LoadsAFolderByTheFilesItHas) {
  const auto tokenizer = load(toy_folder());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer.value()->vocabulary_size(), 528u);
}

TEST(Tokenizers, RefusesAFolderWithoutTokenizer) {
  expect_refused({}, "no tiktoken.model");
}

TEST(Tokenizers, RefusesRanksWithoutTheNamesOfControlTokens) {
  Folder folder = toy_folder();
  folder.erase("tokenizer_config.json");
  expect_refused(folder, "tokenizer_config.json is missing");
}

TEST(Tokenizers, NamesTheDamagedFile) {
  Folder folder = toy_folder();
  folder["tokenizer_config.json"] = "{";
  expect_refused(folder, "tokenizer_config.json: not a JSON object");
  folder["tiktoken.model"] = "x";
  expect_refused(folder, "tiktoken.model, line 1");
}

TEST(Tokenizers, PassesReadErrorsOn) {
  for (int fail_at = 0; fail_at < 2; ++fail_at) {
    const Folder folder = toy_folder();
    int read_count = 0;
    const auto tokenizer = load_tokenizer([&](const ModelFile& file) -> Result<Contents> {
      if (read_count++ == fail_at) return error(Code::kIo, "read %s: no luck", file.name);
      return Contents(folder.at(file.name));
    });
    ASSERT_FALSE(tokenizer);
    EXPECT_EQ(tokenizer.error().code, Code::kIo);
  }
}

}  // namespace
}  // namespace headrace
