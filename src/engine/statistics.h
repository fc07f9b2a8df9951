#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace headrace {

/// Counters of a session and its model. Every number was measured; absent is what was not.
struct Statistics {
  // This session.
  uint64_t prompt_tokens = 0;
  uint64_t tokens = 0;  ///< Generated.
  uint64_t prefill_chunks = 0;
  uint64_t decode_passes = 0;  ///< Forward passes behind `decode_s`: the first token of an answer needs none.
  double prefill_s = 0;
  double decode_s = 0;
  std::optional<double> ttft_s;  ///< Call to first token, latest generation.
  double compute_s = 0;          ///< Prefill and decode without waiting for reads.

  // The model, since it was opened.
  uint64_t bytes_read_trunk = 0;
  uint64_t bytes_read_experts = 0;
  uint64_t bytes_read_head = 0;
  uint64_t bytes_read_headers = 0;  ///< Headers and index, when it was opened; not in the others.
  uint64_t bytes_read_speculative = 0;
  uint64_t bytes_speculative_wasted = 0;
  uint64_t expert_hits = 0;
  uint64_t expert_misses = 0;
  double io_wait_s = 0;
  std::optional<double> drive_gb_s;  ///< 10^9 bytes per second while any read was in flight, loading not counted.
  std::optional<size_t> synthetic_shared_layers;  ///< Of a synthetic model: layers of each kind that it holds.
  uint64_t budget_bytes = 0;
  uint64_t budget_used_bytes = 0;  ///< Largest use so far.
  uint64_t pinned_layers = 0;
  uint64_t streamed_layers = 0;
  uint64_t blocks_streamed = 0;  ///< Row blocks of streamed layers.
  uint64_t expert_slots = 0;
  uint64_t working_set_bytes = 0;  ///< Records that one token needs, as stored.
  bool direct_io = false;          ///< All files of weights are read past the page cache.
  std::string io_backend;
  std::string isa;
  uint64_t threads = 0;
};

/// The object of section "Statistics" of the command line's contract: every key, null where a number is not known. Adds
/// what it measures of the process itself: peak memory, page faults, temperatures.
std::string statistics_json(const Statistics& statistics);

}  // namespace headrace
