#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "io/file.h"
#include "kernels/dispatch.h"
#include "models/model.h"
#include "support/tiny_checkpoint.h"

namespace headrace::test {

/// One way to run a model; none of it may change a bit of the result (P1).
struct RunSetup {
  std::string isa = {};  ///< Empty: the best.
  size_t threads = 1;
  size_t chunk_tokens = 64;
  size_t expert_slots = 0;          ///< 0: all.
  size_t row_block_bytes = 0;       ///< 0: what the trunk finds best.
  size_t pinned_groups = SIZE_MAX;  ///< Of the trunk's pin order, at most.
  ReadMode data_mode = ReadMode::kDirect;
  ReadBackendKind backend = ReadBackendKind::kThreads;
  std::string policy = "phase";
  /// Divides the memory in other ways after every this many passes, and back; 0: never.
  size_t rearrange_every = 0;

  std::string text() const;
};

/// What a forward pass over some tokens gave.
struct RunResult {
  std::vector<std::vector<float>> logits;           ///< Of every token.
  std::vector<std::vector<RoutedExperts>> routing;  ///< Of every token.
};

/// The checkpoint that a model vector of the oracle was computed from.
Files oracle_checkpoint(const nlohmann::json& vector, TinyOptions options = {});

/// A model opened for a test, with all that it borrows.
class OpenModel {
 public:
  static Result<std::unique_ptr<OpenModel>> open(const std::string& folder, const RunSetup& setup,
                                                 size_t context_tokens = 256, size_t budget_bytes = size_t{1} << 30,
                                                 FileOpener opener = open_file);

  /// From the empty state: logits and routing of every token, in chunks of setup.chunk_tokens.
  Result<RunResult> run(const std::vector<int32_t>& ids);
  /// Greedy continuation of the tokens taken in so far, one at a time, starting from `logits`.
  Result<std::vector<int32_t>> continue_greedily(std::vector<float> logits, size_t count);

  Model& model() { return *model_; }
  SequenceState& state() { return *state_; }
  ReadQueue& queue() { return *queue_; }
  Budget& budget() { return budget_; }

 private:
  OpenModel(const RunSetup& setup, size_t budget_bytes, FileOpener opener)
      : setup_(setup), opener_(std::move(opener)), budget_(budget_bytes) {}

  Status arrange(size_t pass);

  RunSetup setup_;
  FileOpener opener_;
  Log log_;
  Budget budget_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ReadQueue> queue_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SequenceState> state_;
};

}  // namespace headrace::test
