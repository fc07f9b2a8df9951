#include "engine/statistics.h"

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "engine/sensors.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json per_second(uint64_t count, double seconds) {
  return count > 0 && seconds > 0 ? Json(static_cast<double>(count) / seconds) : Json(nullptr);
}

Json major_faults() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return nullptr;
  return static_cast<int64_t>(usage.ru_majflt);
}

Json peak_rss() {
  const size_t bytes = peak_resident_bytes();
  return bytes > 0 ? Json(bytes) : Json(nullptr);
}

}  // namespace

std::string statistics_json(const Statistics& s) {
  const Temperatures temperatures = read_temperatures();
  const Json json = {
      {"prompt_tokens", s.prompt_tokens},
      {"tokens", s.tokens},
      {"prefill_s", s.prefill_s},
      {"decode_s", s.decode_s},
      {"prefill_tok_s", per_second(s.prompt_tokens, s.prefill_s)},
      {"decode_tok_s", per_second(s.decode_passes, s.decode_s)},
      {"ttft_s", or_null(s.ttft_s)},
      {"bytes_read", s.bytes_read_trunk + s.bytes_read_experts + s.bytes_read_head},
      {"bytes_read_trunk", s.bytes_read_trunk},
      {"bytes_read_experts", s.bytes_read_experts},
      {"bytes_read_head", s.bytes_read_head},
      {"bytes_read_headers", s.bytes_read_headers},
      {"bytes_read_speculative", s.bytes_read_speculative},
      {"bytes_speculative_wasted", s.bytes_speculative_wasted},
      {"expert_hits", s.expert_hits},
      {"expert_misses", s.expert_misses},
      {"io_wait_s", s.io_wait_s},
      {"compute_s", s.compute_s},
      {"drive_gb_s", or_null(s.drive_gb_s)},
      {"prefill_chunks", s.prefill_chunks},
      {"major_faults", major_faults()},
      {"page_cache_peak_bytes", nullptr},  // Not measured.
      {"peak_rss_bytes", peak_rss()},
      {"synthetic", s.synthetic_shared_layers ? Json("shared " + std::to_string(*s.synthetic_shared_layers)) : Json()},
      {"budget_bytes", s.budget_bytes},
      {"budget_used_bytes", s.budget_used_bytes},
      {"pinned_layers", s.pinned_layers},
      {"streamed_layers", s.streamed_layers},
      {"blocks_streamed", s.blocks_streamed},
      {"expert_slots", s.expert_slots},
      {"working_set_bytes", s.working_set_bytes},
      {"direct_io", s.direct_io},
      {"io_backend", s.io_backend},
      {"isa", s.isa},
      {"threads", s.threads},
      {"cpu_temperature_c", or_null(temperatures.cpu_c)},
      {"drive_temperature_c", or_null(temperatures.drive_c)},
  };
  return json.dump();
}

}  // namespace headrace
