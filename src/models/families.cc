#include "models/families.h"

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

constexpr Family kFamilies[] = {
    {"kimi", recognizes_kimi, open_kimi},
};

constexpr size_t kConfigBytesMax = 4 << 20;

}  // namespace

Result<std::unique_ptr<Model>> open_model(const std::string& folder, const ModelResources& resources,
                                          const ModelOptions& options) {
  const std::string path = folder + "/config.json";
  const std::string text = TRY(read_text_file(resources.opener, path, kConfigBytesMax));
  const nlohmann::json json = TRY(parse_config(text, path));
  const ConfigObject config = TRY(ConfigObject::wrap(json, path));
  const std::string model_type = TRY(config.text({"model_type"}));
  for (const Family& family : kFamilies) {
    if (family.recognizes(model_type)) return family.open({folder, config, resources, options});
  }
  return error(Code::kUnsupported, "%s: \"model_type\" is %s; this version runs kimi_linear and kimi_k3", path.c_str(),
               quoted(model_type).c_str());
}

}  // namespace headrace
