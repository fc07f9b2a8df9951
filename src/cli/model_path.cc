#include "cli/model_path.h"

#include <filesystem>
#include <system_error>

#include "cli/exit_status.h"

namespace headrace::cli {

std::string model_folder(const std::string& model) {
  if (model != "demo") return model;
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) {
    const auto installed = program.parent_path().parent_path() / "share" / "headrace" / "models" / "demo";
    if (std::filesystem::is_directory(installed, failure)) return installed.string();
  }
#if defined(HEADRACE_DEMO_FOLDER)
  if (std::filesystem::is_directory(HEADRACE_DEMO_FOLDER, failure)) return HEADRACE_DEMO_FOLDER;
#endif
  throw UsageError("the demo model is not installed beside this program; name a model folder instead");
}

}  // namespace headrace::cli
