#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/float_environment.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/memory_plan.h"
#include "engine/sampler.h"
#include "engine/statistics.h"
#include "io/file.h"
#include "models/model.h"
#include "text/tokenizer.h"

namespace headrace {

class Session;

/// How a model is opened. Defaults are right.
struct EngineOptions {
  enum class BudgetKind : uint8_t { kAutomatic, kFloor, kBytes };
  BudgetKind budget_kind = BudgetKind::kAutomatic;
  size_t budget_bytes = 0;          ///< With kBytes.
  size_t context_tokens = 0;        ///< 0: kContextTokensDefault, or what the model allows when that is less.
  size_t thread_count = 0;          ///< 0: what the machine allows.
  std::string cpus;                 ///< "0-3,6"; empty: anywhere.
  std::string isa;                  ///< Empty: the best.
  size_t prefill_chunk_tokens = 0;  ///< 0: kChunkTokensDefault, less when the budget is small.
  size_t logits_rows = 1;           ///< Rows of logits computed together when all are wanted.
  bool direct_io = true;
};

/// Where an engine gets its parts from; tests put their own in.
struct EngineSources {
  using ModelMaker = std::function<Result<std::unique_ptr<Model>>(const ModelResources&, const ModelOptions&)>;
  using TokenizerMaker = std::function<Result<std::unique_ptr<Tokenizer>>()>;

  ModelMaker make_model;
  TokenizerMaker make_tokenizer;  ///< May give null: a model of ids only.
  FileOpener opener;

  /// The model in `folder`.
  static EngineSources folder(const std::string& folder, FileOpener opener = open_file);
};

/// Memory of one sequence.
struct SessionMemory {
  std::unique_ptr<SequenceState> state;
  Matrix<float> logits;                ///< [logits_rows, vocabulary]
  Matrix<SampleCandidate> candidates;  ///< [1, vocabulary]
  Matrix<TokenId> ids;                 ///< [1, context + 1]: the last id may not have run yet.
};

/// The right to compute with an engine, if nobody else has it, and the floating-point environment for it. On the stack
/// of one thread.
class EngineTurn {
 public:
  explicit EngineTurn(std::atomic<bool>& busy);
  EngineTurn(const EngineTurn&) = delete;
  EngineTurn& operator=(const EngineTurn&) = delete;
  ~EngineTurn();

  /// kArgument when another thread has the turn.
  Status status() const;

 private:
  std::atomic<bool>* const busy_;
  const FloatEnvironment float_environment_;
};

/// An open model with everything that runs it. Outlives its sessions. One thread at a time: work takes a turn, and a
/// second caller is refused. The constant members may be called from any thread.
class Engine {
 public:
  static constexpr size_t kContextTokensDefault = 4096;
  static constexpr size_t kChunkTokensDefault = 256;
  static constexpr size_t kLogitsRowsMax = 65536;
  /// Share of usable memory that an automatic budget takes.
  static constexpr double kAutomaticShare = 0.8;

  /// kBudget names the floor; kArgument names the option that is impossible.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options, EngineSources sources, Log log = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelInfo& info() const { return opened_->model->info(); }
  /// Null when the folder has none.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  const MemoryPlan& plan() const { return opened_->plan; }
  const Kernels& kernels() const { return *kernels_; }
  size_t thread_count() const { return pool_->thread_count(); }
  /// Token ids that end a generation: the configuration's, and the tokenizer's own end of text.
  const std::vector<TokenId>& stop_ids() const { return stop_ids_; }
  const Budget& budget() const { return *opened_->budget; }

  /// kBudget when memory for one more is not there; the first always fits.
  Result<std::unique_ptr<Session>> create_session();

 private:
  friend class Session;

  /// What depends on the size of the budget, in the order in which it is built.
  struct Opened {
    std::unique_ptr<Budget> budget;  // Behind a pointer: the others know its address.
    Reservation process_memory;
    Reservation tokenizer_memory;
    std::unique_ptr<Model> model;
    MemoryPlan plan;
  };

  Engine(const EngineOptions& options, EngineSources sources, Log log);

  Status prepare();
  Status open_in_budget();
  Status load();
  Result<size_t> budget_limit_bytes() const;
  Result<Opened> open_with_largest_chunk(size_t limit_bytes) const;
  Result<Opened> open_parts(size_t limit_bytes, size_t chunk_tokens) const;
  Result<size_t> measure_floor_bytes() const;
  std::vector<size_t> chunk_choices() const;
  Status check_vocabularies() const;
  void find_stop_ids();
  Result<size_t> context_tokens(const ModelInfo& info) const;
  size_t session_bytes(const Model& model, size_t context_tokens) const;

  Result<SessionMemory> take_session_memory();
  void give_back(SessionMemory memory);
  Model& model() { return *opened_->model; }
  /// Adds what the engine knows to the counters of a session.
  void fill(Statistics& statistics) const;

  const EngineOptions options_;
  EngineSources sources_;
  const Log log_;
  const Kernels* kernels_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<Opened> opened_;
  std::optional<SessionMemory> spare_memory_;  // Of the one session that the plan counts, while nobody uses it.
  ModelCounters counters_at_load_;
  std::vector<TokenId> stop_ids_;
  std::atomic<bool> busy_{false};
};

}  // namespace headrace
