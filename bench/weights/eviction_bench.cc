#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "weights/eviction/eviction_table.h"

namespace headrace::bench {
namespace {

// Kimi K3, with 440 GB of slots.
constexpr RecordGrid kGrid{.layer_count = 92, .expert_count = 896};
constexpr size_t kSlots = 25'000;
constexpr size_t kExpertsPerToken = 16;

/// What passes through the caches of the processor between two layers: the experts of one.
constexpr size_t kWeightsBytes = size_t{256} << 20;

/// Of the processor, for this thread: other work on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Records in slots, drawn without repetition.
std::vector<ExpertId> draw_records(std::mt19937& random) {
  std::vector<ExpertId> records;
  for (uint32_t layer = 0; layer < kGrid.layer_count; ++layer) {
    for (uint32_t expert = 0; expert < kGrid.expert_count; ++expert) records.push_back({layer, expert});
  }
  std::ranges::shuffle(records, random);
  records.resize(kSlots);
  return records;
}

std::vector<ExpertUse> draw_uses(std::mt19937& random) {
  std::vector<ExpertUse> uses;
  for (size_t i = 0; i < kExpertsPerToken; ++i) {
    uses.push_back({static_cast<uint32_t>(random() % kGrid.expert_count), 1});
  }
  return uses;
}

/// One layer of a token: statistics, and as many victims as it has experts.
void choose_victims(benchmark::State& state, const EvictionPolicyKind& kind, bool from_dram) {
  std::mt19937 random(1);
  Budget budget(SIZE_MAX);
  EvictionTable table = EvictionTable::create(kind, kGrid, budget).take_value();
  for (const ExpertId id : draw_records(random)) table.add(id);
  std::vector<char> weights(from_dram ? kWeightsBytes : 0);
  std::vector<Victim> room(kExpertsPerToken);
  uint32_t layer = 0;
  for (size_t pass = 0; pass < 20 * kGrid.layer_count; ++pass) {
    table.visit({static_cast<uint32_t>(pass % kGrid.layer_count), 1, draw_uses(random)});
  }
  for (auto _ : state) {
    std::ranges::fill(weights, static_cast<char>(layer));
    benchmark::ClobberMemory();
    const std::vector<ExpertUse> uses = draw_uses(random);
    const double start_s = thread_seconds();
    table.visit({layer, 1, uses});
    benchmark::DoNotOptimize(table.take(room).data());
    state.SetIterationTime(thread_seconds() - start_s);
    for (const Victim& victim : room) table.add(victim.id);
    layer = (layer + 1) % kGrid.layer_count;
  }
}

const bool kRegistered = [] {
  for (const EvictionPolicyKind& kind : eviction_policies()) {
    for (const bool from_dram : {false, true}) {
      const std::string name = std::string("victims/") + kind.name + (from_dram ? "/dram" : "/cache");
      benchmark::RegisterBenchmark(
          name.c_str(), [&kind, from_dram](benchmark::State& state) { choose_victims(state, kind, from_dram); })
          ->Unit(benchmark::kMicrosecond)
          ->UseManualTime();
    }
  }
  return true;
}();

}  // namespace
}  // namespace headrace::bench
