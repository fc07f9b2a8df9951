#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/read_queue.h"
#include "support/scripted_backend.h"
#include "weights/expert_cache.h"
#include "weights/expert_model.h"

namespace headrace::test {

struct CachedModelOptions {
  size_t slot_count = ExpertCache::kSlotsMin;
  const char* policy = "phase";
  /// The back end of the queue; none: a scripted one.
  std::optional<ReadBackendKind> backend = ReadBackendKind::kThreads;
  size_t depth = 4;
};

/// A model with its catalog, a queue, and a cache over both.
struct CachedModel {
  using Options = CachedModelOptions;

  explicit CachedModel(const ExpertModelOptions& model_options, const Options& options = {}) : model(model_options) {
    start(options);
  }
  CachedModel(const ExpertModelOptions& model_options, const TempFolder& folder, const Options& options = {})
      : model(model_options, folder) {
    start(options);
  }

  void start(const Options& options) {
    catalog.emplace(model.catalog().take_value());
    const ReadQueueOptions queue_options{.depth = options.depth};
    queue =
        options.backend
            ? ReadQueue::create({.backend = *options.backend, .depth = options.depth}, model.budget, Log()).take_value()
            : ReadQueue::create_over(make_scripted_backend(script, options.depth), queue_options, model.budget)
                  .take_value();
    used_without_cache = model.budget.used_bytes();
    peak_without_cache = model.budget.peak_bytes();
    const ExpertCacheOptions cache_options{options.slot_count, find_eviction_policy(options.policy).take_value()};
    cache = ExpertCache::create(*catalog, *queue, cache_options, model.budget).take_value();
    model.plan.reset_counts();
  }

  /// By the count of the queue, which nothing else reads through.
  uint64_t bytes_read() const { return queue->counters().bytes_read[static_cast<size_t>(ReadPurpose::kExperts)]; }

  /// Announces a pass of one token over some experts of a layer.
  void announce(uint32_t layer, const std::vector<uint32_t>& experts, ExpertOrder order = ExpertOrder::kAsTheyLand) {
    std::vector<ExpertUse> uses;
    for (const uint32_t expert : experts) uses.push_back({expert, 1});
    cache->announce({layer, 1, uses}, order);
  }
  /// A pass over one expert.
  Result<ExpertLease> fetch(ExpertId id) {
    announce(id.layer, {id.expert});
    return cache->next();
  }
  /// A whole pass, each lease returned before the next expert. The experts in the order they came.
  Result<std::vector<uint32_t>> run(uint32_t layer, const std::vector<uint32_t>& experts, ExpertOrder order) {
    announce(layer, experts, order);
    std::vector<uint32_t> came;
    while (cache->pending_count() > 0) {
      const ExpertLease lease = TRY(cache->next());
      expect_written(lease);
      came.push_back(lease.id().expert);
    }
    return came;
  }
  /// Fails the test unless the lease holds what was written.
  void expect_written(const ExpertLease& lease) const;

  size_t resident_count() const {
    size_t count = 0;
    for (const ExpertId id : model.ids()) count += cache->is_resident(id) ? 1 : 0;
    return count;
  }

  BackendScript script;  // Outlives the queue.
  ExpertModel model;
  std::optional<ExpertCatalog> catalog;
  std::unique_ptr<ReadQueue> queue;
  size_t used_without_cache = 0;
  size_t peak_without_cache = 0;
  std::unique_ptr<ExpertCache> cache;
};

/// Places of tensors, blocks and files that experts are found in.
std::vector<ExpertModelOptions> expert_arrangements();

/// The back ends that work here.
std::vector<ReadBackendKind> usable_backends();

/// 0, 1, ... count - 1.
std::vector<uint32_t> first_numbers(uint32_t count);

}  // namespace headrace::test
