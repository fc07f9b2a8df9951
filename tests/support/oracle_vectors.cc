#include "support/oracle_vectors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/ensure.h"

namespace headrace::test {
namespace {
const std::filesystem::path kFolder = HEADRACE_SOURCE_DIR "/tests/oracle/vectors";
}

nlohmann::json load_oracle_vectors(const std::string& name) {
  std::ifstream file(kFolder / (name + ".json"));
  ENSURE(file.is_open());
  return nlohmann::json::parse(file);
}

std::vector<std::string> oracle_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "models")) {
    names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace headrace::test
