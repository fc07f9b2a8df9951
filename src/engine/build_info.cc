#include "engine/build_info.h"

#include <nlohmann/json.hpp>

#include "kernels/dispatch.h"

namespace headrace {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

std::string build_info_json(const char* version) {
  nlohmann::ordered_json isas = nlohmann::ordered_json::array();
  for (const Kernels* kernels : usable_kernels()) isas.push_back(kernels->name);
  const nlohmann::ordered_json json = {
      {"version", version},  {"compiler", kCompiler},       {"isas", isas},
      {"isa", isas.front()}, {"io_backends", {kIoBackend}}, {"io_backend", kIoBackend},
  };
  return json.dump();
}

}  // namespace headrace
