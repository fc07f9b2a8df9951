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
#include "engine/snapshot_store.h"
#include "engine/statistics.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/read_queue.h"
#include "models/model.h"
#include "text/tokenizer.h"

namespace headrace {

class Session;

/// How a model is opened. Defaults are right.
struct EngineOptions {
  enum class BudgetKind : uint8_t { kAutomatic, kFloor, kBytes };
  BudgetKind budget_kind = BudgetKind::kAutomatic;
  size_t budget_bytes = 0;          ///< With kBytes.
  size_t ram_bytes = 0;             ///< With kAutomatic: of another machine; 0: of this one.
  size_t context_tokens = 0;        ///< 0: kContextTokensDefault, or what the model allows when that is less.
  size_t thread_count = 0;          ///< 0: what the machine allows.
  std::string cpus;                 ///< "0-3,6"; empty: anywhere.
  std::string isa;                  ///< Empty: the best.
  size_t prefill_chunk_tokens = 0;  ///< 0: what the plan finds best for each prompt.
  size_t logits_rows = 1;           ///< Rows of logits computed together when all are wanted.
  bool direct_io = true;
  ReadQueueOptions reads;
  std::string cache_policy = "phase";
  std::optional<size_t> pinned_layers;  ///< None: what the plan finds best.
};

/// Where an engine gets its parts from; tests put their own in.
struct EngineSources {
  using ModelMaker = std::function<Result<std::unique_ptr<Model>>(const ModelResources&, const ModelOptions&)>;
  using TokenizerMaker = std::function<Result<std::unique_ptr<Tokenizer>>()>;

  ModelMaker make_model;
  TokenizerMaker make_tokenizer;  ///< May give null: a model of ids only.
  FileOpener opener;
  const WriteCalls* write_calls = &kWriteCalls;  ///< For snapshots; nothing else is ever written.

  /// The model in `folder`.
  static EngineSources folder(const std::string& folder, FileOpener opener = open_file);
  /// A released model by the name of its shape, without files: for a plan, since all its weights are zero.
  static Result<EngineSources> shape(std::string_view name);

  size_t tokenizer_bytes = 0;  ///< Of a tokenizer that is not there but will be.
};

/// What a plan says of a model that need not be loaded.
struct PlannedModel {
  MemoryNeeds needs;
  MemoryPlan plan;
  ModelInfo info;
  size_t thread_count = 0;
  std::string isa;
};

/// Memory of one sequence.
struct SessionMemory {
  std::unique_ptr<SequenceState> state;
  Matrix<float> logits;                ///< [logits_rows, vocabulary]
  Matrix<SampleCandidate> candidates;  ///< [1, vocabulary]
  Matrix<TokenId> ids;                 ///< [1, context + 1]: the last id may not have run yet.
};

class Engine;

/// What an engine is doing.
enum class EngineUse : uint8_t {
  kIdle,
  kCall,          ///< A call of its one user.
  kBudgetChange,  ///< Memory is divided anew, for somebody else; calls wait for that.
};

/// The right to compute with an engine, if nobody else has it, and the floating-point environment for it. On the stack
/// of one thread. A budget that was set meanwhile is carried out when it ends.
class EngineTurn {
 public:
  explicit EngineTurn(Engine& engine, EngineUse use = EngineUse::kCall);
  EngineTurn(const EngineTurn&) = delete;
  EngineTurn& operator=(const EngineTurn&) = delete;
  ~EngineTurn();

  /// kArgument when another thread has the turn.
  Status status() const;

 private:
  Engine* const engine_;  // Null when another thread has the turn.
  const FloatEnvironment float_environment_;
};

/// An open model with everything that runs it. Outlives its sessions. One thread at a time: work takes a turn, and a
/// second caller is refused. The constant members may be called from any thread.
class Engine {
 public:
  static constexpr size_t kContextTokensDefault = 4096;
  static constexpr size_t kLogitsRowsMax = 65536;
  /// Share of usable memory that an automatic budget takes.
  static constexpr double kAutomaticShare = 0.8;

  /// kBudget names the floor; kArgument names the option that is impossible.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options, EngineSources sources, Log log = {});
  /// The plan alone: opens the directory, loads nothing. A budget below the floor is no error here.
  static Result<PlannedModel> plan(const EngineOptions& options, EngineSources sources, Log log = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelInfo& info() const { return model_->info(); }
  /// Null when the folder has none.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// Not while another thread sets a budget.
  const MemoryPlan& plan() const { return plan_; }
  const Kernels& kernels() const { return *kernels_; }
  size_t thread_count() const { return pool_->thread_count(); }
  /// Token ids that end a generation: the configuration's, and the tokenizer's own end of text.
  const std::vector<TokenId>& stop_ids() const { return stop_ids_; }
  const Budget& budget() const { return *budget_; }

  /// kBudget when memory for one more is not there; the first always fits. Slots and pinned layers make room for more.
  Result<std::unique_ptr<Session>> create_session();

  /// Another ceiling, from any thread: memory is given back, or taken, at once, or before the next token or chunk of
  /// the call that runs. Changes no result. kBudget names the floor. When the new division fails, the old one is
  /// restored; of a call that runs, the log is told.
  Status set_budget(size_t budget_bytes);
  /// Least budget, from any thread.
  size_t floor_bytes() const { return floor_bytes_.load(std::memory_order_relaxed); }  // Carries no other data.
  /// What an automatic budget would be now, from any thread.
  size_t automatic_budget_bytes() const;
  /// The plan in force, and what it was made from.
  PlannedModel planned();

 private:
  friend class Session;
  friend class EngineTurn;

  Engine(const EngineOptions& options, EngineSources sources, Log log);

  Status prepare();
  Status open_model();
  Status find_needs();
  void decide_plan();
  Status load();
  size_t budget_limit_bytes() const;
  std::vector<size_t> chunk_choices() const;
  Status check_vocabularies() const;
  void find_stop_ids();
  Result<size_t> context_tokens(const ModelInfo& info) const;
  size_t session_bytes() const;
  Status below_floor(size_t budget_bytes) const;

  Result<std::unique_ptr<Session>> make_session();
  Result<SessionMemory> take_session_memory();
  Result<SessionMemory> allocate_session_memory();
  /// Of a session that ends.
  void give_back(SessionMemory memory, SnapshotStore& snapshots);
  /// Makes room for up to `count` snapshots of a session; how many it got.
  Result<size_t> provide_snapshots(SnapshotStore& snapshots, size_t count);
  Status add_snapshots(SnapshotStore& snapshots, size_t count, const MemoryNeeds& needs);
  size_t snapshot_slot_count() const;
  void trim_snapshots(MemoryNeeds& needs, size_t budget_bytes);
  Status carry_out(const MemoryPlan& plan);
  Status divide(const MemoryPlan& plan);
  Status apply_pending_budget();
  Status adopt_pending_budget();
  bool has_pending_budget() const { return pending_budget_bytes_.load(std::memory_order_relaxed) > 0; }
  void settle_budget();
  /// Lends memory to a prompt of `tokens` tokens, and takes it back for the answer.
  Status arrange_for_prompt(size_t tokens);
  Status arrange_for_answer();
  Status arrange(const ModelArrangement& arrangement);
  size_t chunk_tokens() const { return model_->arrangement().chunk_tokens; }
  Model& model() { return *model_; }
  const ReadQueue& queue() const { return *queue_; }
  /// Adds what the engine knows to the counters of a session.
  void fill(Statistics& statistics);

  const EngineOptions options_;
  EngineSources sources_;
  const Log log_;
  const Kernels* kernels_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Budget> budget_;  // What holds a share of it comes after it.
  Reservation process_memory_;
  Reservation tokenizer_memory_;
  std::unique_ptr<ReadQueue> queue_;
  std::unique_ptr<Model> model_;
  MemoryNeeds needs_;
  MemoryPlan plan_;
  size_t session_count_ = 0;
  std::vector<SnapshotStore*> snapshot_stores_;  // Of the sessions that there are.
  size_t snapshot_slot_bytes_ = 0;
  std::optional<SessionMemory> spare_memory_;  // Of the one session that the plan counts, while nobody uses it.
  ReadQueueCounters reads_at_load_;
  std::vector<TokenId> stop_ids_;
  bool told_of_locking_ = false;
  std::atomic<EngineUse> use_{EngineUse::kIdle};
  std::atomic<size_t> floor_bytes_{0};
  std::atomic<size_t> pending_budget_bytes_{0};  // 0: none.
};

}  // namespace headrace
