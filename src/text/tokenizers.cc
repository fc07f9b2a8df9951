#include "text/tokenizers.h"

#include "text/rank_table.h"
#include "text/tiktoken.h"

namespace headrace {
namespace {

constexpr ModelFile kRankFile = {"tiktoken.model", RankTable::kFileBytesMax};
constexpr ModelFile kTokenizerConfig = {"tokenizer_config.json", kTokenizerConfigBytesMax};

Result<std::unique_ptr<Tokenizer>> load_tiktoken_files(std::string_view ranks, ReadModelFile read) {
  const std::optional<std::string> config = TRY(read(kTokenizerConfig));
  if (!config) {
    return error(Code::kFormat,
                 "%s is missing: it names the control tokens, and without it each would silently become "
                 "several ordinary tokens",
                 kTokenizerConfig.name);
  }
  return load_tiktoken({kRankFile.name, ranks}, {kTokenizerConfig.name, *config});
}

struct Loader {
  ModelFile file;  // A folder that has it is loaded with:
  Result<std::unique_ptr<Tokenizer>> (*load)(std::string_view contents, ReadModelFile read);
};

constexpr Loader kLoaders[] = {{kRankFile, load_tiktoken_files}};

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(ReadModelFile read) {
  std::string wanted;
  for (const Loader& loader : kLoaders) {
    const std::optional<std::string> contents = TRY(read(loader.file));
    if (contents) return loader.load(*contents, read);
    wanted += wanted.empty() ? loader.file.name : std::string(" or ") + loader.file.name;
  }
  return error(Code::kFormat, "no tokenizer: the model folder has no %s", wanted.c_str());
}

}  // namespace headrace
