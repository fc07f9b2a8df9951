#include "engine/build_info.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "io/read_queue.h"
#include "kernels/dispatch.h"

namespace headrace {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

/// What a queue of that kind calls itself; empty when there can be none.
std::string backend_name(ReadBackendKind kind) {
  Budget budget(std::numeric_limits<size_t>::max());
  const auto queue = ReadQueue::create({.backend = kind, .depth = 1}, budget, Log());
  return queue ? queue.value()->backend_name() : "";
}

}  // namespace

std::string build_info_json(const char* version) {
  nlohmann::ordered_json isas = nlohmann::ordered_json::array();
  for (const Kernels* kernels : usable_kernels()) isas.push_back(kernels->name);
  nlohmann::ordered_json backends = nlohmann::ordered_json::array();
  for (const ReadBackendKind kind : {ReadBackendKind::kUring, ReadBackendKind::kThreads}) {
    if (const std::string name = backend_name(kind); !name.empty()) backends.push_back(name);
  }
  const nlohmann::ordered_json json = {
      {"version", version},  {"compiler", kCompiler},   {"isas", isas},
      {"isa", isas.front()}, {"io_backends", backends}, {"io_backend", backend_name(ReadBackendKind::kAutomatic)},
  };
  return json.dump();
}

}  // namespace headrace
