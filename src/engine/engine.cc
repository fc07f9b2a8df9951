#include "engine/engine.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/machine.h"
#include "engine/build_info.h"
#include "engine/model_folder.h"
#include "engine/session.h"
#include "engine/units.h"
#include "kernels/dispatch.h"
#include "models/shapes/released_shapes.h"
#include "models/shapes/virtual_checkpoint.h"
#include "text/chat/chat_format.h"

namespace headrace {
namespace {

// Chunks of a prompt that the plan chooses from. Smaller ones cost speed: the weights of a sweep serve fewer tokens.
constexpr size_t kChunkChoices[] = {16, 64, 256, 512, 1024, 2048, 4096, 8192};

/// Of the tokenizer that all Kimi models share (163,840 ids; tables of 1.1 MB of text, its places and hashes), from
/// above.
constexpr size_t kKimiTokenizerBytes = size_t{5} << 20;

/// Takes the use of an engine. A call waits for a change of the budget; everything else is refused while it is in use.
bool try_take(std::atomic<EngineUse>& use, EngineUse wanted) {
  for (;;) {
    EngineUse found = EngineUse::kIdle;
    // Pairs with the exchange in ~EngineTurn: the next user sees what the last one wrote.
    if (use.compare_exchange_strong(found, wanted, std::memory_order_acq_rel)) return true;
    if (wanted != EngineUse::kCall || found != EngineUse::kBudgetChange) return false;
    use.wait(EngineUse::kBudgetChange, std::memory_order_acquire);
  }
}

/// An explicit request for what this machine does not have is the caller's to correct.
Error as_argument(Error error) {
  error.code = Code::kArgument;
  return error;
}

}  // namespace

EngineSources EngineSources::folder(const std::string& folder, FileOpener opener) {
  EngineSources sources;
  sources.opener = std::move(opener);
  sources.make_model = [folder](const ModelResources& resources, const ModelOptions& options) {
    return open_model(folder, resources, options);
  };
  sources.make_tokenizer = [folder, opener = sources.opener]() -> Result<std::unique_ptr<Tokenizer>> {
    TRY(check_model_folder(folder));
    return open_tokenizer(folder, opener);
  };
  return sources;
}

Result<EngineSources> EngineSources::shape(std::string_view name) {
  const std::optional<std::string_view> config = released_shape(name);
  if (!config) {
    return error(Code::kArgument, "%s is no released shape; there are %s", std::string(name).c_str(),
                 kReleasedShapeNames);
  }
  EngineSources sources = folder(std::string(name), TRY(virtual_checkpoint_opener(*config)));
  sources.make_tokenizer = [] { return Result<std::unique_ptr<Tokenizer>>(nullptr); };
  sources.tokenizer_bytes = kKimiTokenizerBytes;
  return sources;
}

EngineTurn::EngineTurn(Engine& engine, EngineUse use) : engine_(try_take(engine.use_, use) ? &engine : nullptr) {}

EngineTurn::~EngineTurn() {
  if (!engine_) return;
  // Pairs with the exchange in try_take, also with one that failed: a budget that its thread had left shows here.
  engine_->use_.exchange(EngineUse::kIdle, std::memory_order_acq_rel);
  engine_->use_.notify_all();
  engine_->settle_budget();
}

Status EngineTurn::status() const {
  if (engine_) return {};
  return error(Code::kArgument, "another thread is using this model; one call at a time");
}

Engine::Engine(const EngineOptions& options, EngineSources sources, Log log)
    : options_(options), sources_(std::move(sources)), log_(std::move(log)) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options, EngineSources sources, Log log) {
  const FloatEnvironment float_environment;
  std::unique_ptr<Engine> engine(new Engine(options, std::move(sources), std::move(log)));
  TRY(engine->prepare());
  TRY(engine->open_model());
  engine->decide_plan();
  if (!engine->plan_.fits()) return engine->below_floor(engine->plan_.budget_bytes).take_error();
  TRY(engine->load());
  return engine;
}

Result<PlannedModel> Engine::plan(const EngineOptions& options, EngineSources sources, Log log) {
  const FloatEnvironment float_environment;
  Engine engine(options, std::move(sources), std::move(log));
  TRY(engine.prepare());
  TRY(engine.open_model());
  engine.decide_plan();
  return engine.planned();
}

/// Everything that does not depend on the budget; cheap refusals first.
Status Engine::prepare() {
  if (options_.logits_rows == 0 || options_.logits_rows > kLogitsRowsMax) {
    return error(Code::kArgument, "logits_rows is %zu; 1 to %zu are allowed", options_.logits_rows, kLogitsRowsMax);
  }
  if (options_.thread_count > ThreadPool::kThreadsMax) {
    return error(Code::kArgument, "%zu threads; at most %zu are allowed", options_.thread_count,
                 ThreadPool::kThreadsMax);
  }
  auto kernels = select_kernels(options_.isa);
  if (!kernels) return as_argument(kernels.take_error());
  kernels_ = kernels.value();
  std::vector<int> cpus;
  if (!options_.cpus.empty()) cpus = TRY(parse_cpu_list(options_.cpus));
  tokenizer_ = TRY(sources_.make_tokenizer());
  const size_t threads_default = cpus.empty() ? usable_thread_count() : cpus.size();
  pool_ = TRY(ThreadPool::create(options_.thread_count > 0 ? options_.thread_count : threads_default, cpus));
  return {};
}

/// Reads configuration, directory and small tensors. The ceiling comes after it, when the needs are known.
Status Engine::open_model() {
  budget_ = std::make_unique<Budget>(std::numeric_limits<size_t>::max());
  const size_t tokenizer_bytes = tokenizer_ ? tokenizer_->memory_bytes() : sources_.tokenizer_bytes;
  tokenizer_memory_ = TRY(budget_->reserve(tokenizer_bytes, "tokenizer"));
  auto queue = ReadQueue::create(options_.reads, *budget_, log_);
  const bool was_asked_for = options_.reads.backend != ReadBackendKind::kAutomatic;
  if (!queue && was_asked_for && queue.error().code == Code::kUnsupported) return as_argument(queue.take_error());
  queue_ = TRY(std::move(queue));
  const ModelResources resources{*kernels_, *pool_, *budget_, *queue_, sources_.opener, log_};
  const ModelOptions options = {.data_mode = options_.direct_io ? ReadMode::kDirect : ReadMode::kBuffered,
                                .context_tokens = options_.context_tokens,
                                .cache_policy = options_.cache_policy};
  model_ = TRY(sources_.make_model(resources, options));
  return find_needs();
}

Status Engine::find_needs() {
  needs_.fixed_bytes = budget_->used_bytes();
  needs_.opening_peak_bytes = budget_->peak_bytes();
  needs_.context_tokens = TRY(context_tokens(info()));
  needs_.session_bytes = session_bytes();
  needs_.model = model_->needs();
  for (const size_t tokens : chunk_choices()) {
    const auto bytes = model_->scratch_bytes(tokens);
    // More than the system would ever map is no choice here.
    if (!bytes && bytes.error().code == Code::kBudget && !needs_.chunks.empty()) break;
    if (!bytes) return Error(bytes.error());
    needs_.chunks.push_back({tokens, bytes.value()});
  }
  needs_.pinned_layers_fixed = options_.pinned_layers;
  if (options_.pinned_layers > info().layer_count) {
    return error(Code::kArgument, "%zu layers cannot be pinned: the model has %zu", *options_.pinned_layers,
                 info().layer_count);
  }
  needs_.moe_layers = info().moe_layer_count;
  needs_.experts = info().expert_count;
  needs_.experts_per_token = info().experts_per_token;
  needs_.has_random_routing = info().synthetic_shared_layers.has_value();
  return {};
}

void Engine::decide_plan() {
  plan_ = plan_memory(needs_, budget_limit_bytes());
  floor_bytes_.store(plan_.floor_bytes, std::memory_order_relaxed);  // Nobody else knows the engine yet.
}

Status Engine::below_floor(size_t budget_bytes) const {
  return error(Code::kBudget, "the budget of %s is below the floor of %s (%zu bytes)", bytes_text(budget_bytes).c_str(),
               bytes_text(floor_bytes(), Rounding::kUp).c_str(), floor_bytes());
}

size_t Engine::budget_limit_bytes() const {
  switch (options_.budget_kind) {
    case EngineOptions::BudgetKind::kBytes:
      return options_.budget_bytes;
    case EngineOptions::BudgetKind::kFloor:
      return plan_memory(needs_, 0).floor_bytes;
    case EngineOptions::BudgetKind::kAutomatic:
      break;
  }
  return automatic_budget_bytes();
}

size_t Engine::automatic_budget_bytes() const {
  const size_t usable_bytes = options_.ram_bytes > 0 ? options_.ram_bytes : usable_memory_bytes();
  return static_cast<size_t>(static_cast<double>(usable_bytes) * kAutomaticShare);
}

/// What the caller fixed is the only choice.
std::vector<size_t> Engine::chunk_choices() const {
  if (options_.prefill_chunk_tokens > 0) return {std::min(options_.prefill_chunk_tokens, needs_.context_tokens)};
  std::vector<size_t> choices;
  for (const size_t choice : kChunkChoices) {
    const size_t chunk = std::min(choice, needs_.context_tokens);
    if (choices.empty() || choices.back() != chunk) choices.push_back(chunk);
  }
  return choices;
}

Result<size_t> Engine::context_tokens(const ModelInfo& info) const {
  if (options_.context_tokens > info.context_tokens_max) {
    return error(Code::kArgument, "a context of %zu tokens is more than the %zu of this model", options_.context_tokens,
                 info.context_tokens_max);
  }
  if (options_.context_tokens > 0) return options_.context_tokens;
  return std::min(kContextTokensDefault, info.context_tokens_max);
}

size_t Engine::session_bytes() const {
  const size_t vocabulary = info().vocabulary_size;
  const size_t tokens = needs_.context_tokens;
  return model_->state_memory_bytes(tokens) + Matrix<float>::memory_bytes(options_.logits_rows, vocabulary) +
         Matrix<SampleCandidate>::memory_bytes(1, vocabulary) + Matrix<TokenId>::memory_bytes(1, tokens + 1);
}

Status Engine::load() {
  log_.line(
      LogLevel::kInfo,
      "budget %s: fixed %s, ring %s, pinned %s, %zu expert slots of %s; floor %s; prompts in chunks of %zu tokens "
      "or more",
      bytes_text(plan_.budget_bytes).c_str(), bytes_text(plan_.fixed_bytes).c_str(),
      bytes_text(plan_.ring_bytes).c_str(), bytes_text(plan_.pinned_bytes).c_str(), plan_.arrangement.expert_slots,
      bytes_text(plan_.slot_bytes).c_str(), bytes_text(plan_.floor_bytes).c_str(), plan_.arrangement.chunk_tokens);
  TRY(check_vocabularies());
  find_stop_ids();
  TRY(budget_->set_limit(plan_.budget_bytes));
  TRY(carry_out(plan_));
  spare_memory_ = TRY(allocate_session_memory());
  session_count_ = 1;
  snapshot_slot_bytes_ = SnapshotStore::slot_bytes(*spare_memory_->state, info().vocabulary_size);
  reads_at_load_ = queue_->counters();
  return {};
}

/// Makes the division of memory that of `plan`. If that fails, the old one is restored, as far as it can be.
Status Engine::carry_out(const MemoryPlan& plan) {
  Status status = divide(plan);
  if (status) {
    plan_ = plan;
  } else {
    // Less than there was before is not refused; reads that fail again are tried by the next call.
    (void)divide(plan_);
  }
  return status;
}

/// What becomes smaller gives back before anything takes.
Status Engine::divide(const MemoryPlan& plan) {
  const bool shrinks = plan.budget_bytes < budget_->limit_bytes();
  if (!shrinks) TRY(budget_->set_limit(plan.budget_bytes));
  if (shrinks) TRY(arrange(plan.arrangement));
  process_memory_ = {};
  process_memory_ = TRY(budget_->reserve(plan.process_bytes, "process and kernel"));
  if (!shrinks) TRY(arrange(plan.arrangement));
  return budget_->set_limit(plan.budget_bytes);
}

Status Engine::arrange(const ModelArrangement& arrangement) {
  TRY(model_->arrange(arrangement));
  if (told_of_locking_ || model_->is_locked()) return {};
  told_of_locking_ = true;
  log_.line(
      LogLevel::kWarn,
      "the system does not let this process lock its memory (see ulimit -l): when memory is short, pinned weights "
      "may be swapped");
  return {};
}

Status Engine::set_budget(size_t budget_bytes) {
  if (budget_bytes < floor_bytes()) return below_floor(budget_bytes);
  pending_budget_bytes_.store(budget_bytes, std::memory_order_relaxed);  // Carries no other data.
  const EngineTurn turn(*this, EngineUse::kBudgetChange);
  if (!turn.status()) return {};  // Who uses it sees to it.
  return apply_pending_budget();
}

/// A budget that came too late for the call that ran.
void Engine::settle_budget() {
  if (!has_pending_budget()) return;
  const EngineTurn turn(*this, EngineUse::kBudgetChange);
  if (!turn.status()) return;    // Who has it now will.
  (void)adopt_pending_budget();  // If memory could not be divided as before either, the next call says so.
}

/// The same in the middle of work that is not to fail for it.
Status Engine::adopt_pending_budget() {
  const Status status = apply_pending_budget();
  if (!status) log_.line(LogLevel::kWarn, "the new budget is not in force: %s", status.error().message.c_str());
  return arrange_for_answer();
}

Status Engine::apply_pending_budget() {
  const size_t budget_bytes = pending_budget_bytes_.exchange(0, std::memory_order_relaxed);
  if (budget_bytes == 0) return {};
  if (budget_bytes < floor_bytes()) return below_floor(budget_bytes);  // Sessions were added meanwhile.
  trim_snapshots(needs_, budget_bytes);
  return carry_out(plan_memory(needs_, budget_bytes));
}

Status Engine::arrange_for_prompt(size_t tokens) {
  TRY(adopt_pending_budget());
  const PrefillPlan prefill = plan_prefill(needs_, plan_, tokens);
  if (prefill.arrangement == model_->arrangement()) return {};
  log_.line(LogLevel::kDebug, "prompt of %zu tokens: chunks of %zu, %s lent by slots and pinned layers", tokens,
            prefill.arrangement.chunk_tokens, bytes_text(prefill.lent_bytes).c_str());
  return arrange(prefill.arrangement);
}

Status Engine::arrange_for_answer() {
  if (plan_.arrangement == model_->arrangement()) return {};
  return arrange(plan_.arrangement);
}

/// A rank file that lost its last lines gives other texts for the same ids.
Status Engine::check_vocabularies() const {
  if (!tokenizer_ || tokenizer_->vocabulary_size() == info().vocabulary_size) return {};
  return error(Code::kFormat, "the tokenizer has %zu ids and the model %zu: their files are damaged, or of two models",
               tokenizer_->vocabulary_size(), info().vocabulary_size);
}

/// Kimi K3's tokenizer and its configuration name different ends: a story ends with the one, a message with the other.
void Engine::find_stop_ids() {
  stop_ids_ = info().stop_ids;
  if (!tokenizer_) return;
  const auto add = [this](std::string_view name) {
    const std::optional<TokenId> id = tokenizer_->control_id(name);
    if (id && std::ranges::find(stop_ids_, *id) == stop_ids_.end()) stop_ids_.push_back(*id);
  };
  add("[EOS]");
  const ChatFormat* format = find_chat_format(*tokenizer_);
  if (!format) return;
  for (const ControlLiteral stop : format->stops) add(stop.name());
}

Result<std::unique_ptr<Session>> Engine::create_session() {
  const EngineTurn turn(*this);
  TRY(turn.status());
  return make_session();
}

Result<std::unique_ptr<Session>> Engine::make_session() {
  TRY(apply_pending_budget());  // While it is known to be above the floor.
  // What snapshots of a session that ended had, slots and layers have from now on.
  if (plan_.snapshot_bytes > needs_.snapshot_bytes) TRY(carry_out(plan_memory(needs_, plan_.budget_bytes)));
  SessionMemory memory = TRY(take_session_memory());
  std::unique_ptr<Session> session(new Session(*this, std::move(memory)));
  snapshot_stores_.push_back(&session->snapshots_);
  return session;
}

Result<SessionMemory> Engine::take_session_memory() {
  if (spare_memory_) {
    SessionMemory memory = std::move(*spare_memory_);
    spare_memory_.reset();
    return memory;
  }
  MemoryNeeds needs = needs_;
  needs.session_bytes = (session_count_ + 1) * session_bytes();
  needs.snapshot_bytes = 0;
  const size_t floor_bytes = plan_memory(needs, 0).floor_bytes;
  if (plan_.budget_bytes < floor_bytes) {
    return error(Code::kBudget, "a budget of %s does not hold %zu sessions: it would take %s",
                 bytes_text(plan_.budget_bytes).c_str(), session_count_ + 1, bytes_text(floor_bytes).c_str());
  }
  trim_snapshots(needs, plan_.budget_bytes);
  needs_.snapshot_bytes = needs.snapshot_bytes;
  const MemoryPlan plan = plan_memory(needs, plan_.budget_bytes);
  TRY(arrange(plan.arrangement));
  SessionMemory memory = TRY(allocate_session_memory());
  ++session_count_;
  needs_ = needs;
  plan_ = plan;
  floor_bytes_.store(plan.floor_bytes, std::memory_order_relaxed);  // Carries no other data.
  return memory;
}

Result<SessionMemory> Engine::allocate_session_memory() {
  const size_t vocabulary = info().vocabulary_size;
  SessionMemory memory;
  memory.state = TRY(model().create_state(needs_.context_tokens));
  memory.logits = TRY(Matrix<float>::allocate(*budget_, options_.logits_rows, vocabulary, "logits"));
  memory.candidates = TRY(Matrix<SampleCandidate>::allocate(*budget_, 1, vocabulary, "sampling"));
  memory.ids = TRY(Matrix<TokenId>::allocate(*budget_, 1, needs_.context_tokens + 1, "token ids"));
  return memory;
}

void Engine::give_back(SessionMemory memory, SnapshotStore& snapshots) {
  const EngineTurn turn(*this);  // Waits for a change of the budget.
  snapshots.shrink(0);
  std::erase(snapshot_stores_, &snapshots);
  needs_.snapshot_bytes = snapshot_slot_count() * snapshot_slot_bytes_;
  if (session_count_ == 1) {
    memory.state->reset();
    spare_memory_ = std::move(memory);
    return;
  }
  // There are others: freed here, for slots and layers when the budget is divided the next time.
  memory = {};  // Before the turn ends, which may divide the budget.
  --session_count_;
  needs_.session_bytes = session_count_ * session_bytes();
  MemoryNeeds least = needs_;
  least.snapshot_bytes = 0;
  floor_bytes_.store(plan_memory(least, 0).floor_bytes, std::memory_order_relaxed);  // Carries no other data.
}

size_t Engine::snapshot_slot_count() const {
  size_t count = 0;
  for (const SnapshotStore* store : snapshot_stores_) count += store->slot_count();
  return count;
}

/// Takes slots away, always from the session that has the most, until a budget allows what is left.
void Engine::trim_snapshots(MemoryNeeds& needs, size_t budget_bytes) {
  const size_t allowed = snapshot_allowance_bytes(needs, budget_bytes) / snapshot_slot_bytes_;
  size_t count = snapshot_slot_count();
  for (; count > allowed; --count) {
    SnapshotStore* const richest = *std::ranges::max_element(snapshot_stores_, {}, &SnapshotStore::slot_count);
    richest->shrink(richest->slot_count() - 1);
  }
  needs.snapshot_bytes = count * snapshot_slot_bytes_;
}

Result<size_t> Engine::provide_snapshots(SnapshotStore& snapshots, size_t count) {
  TRY(apply_pending_budget());
  const size_t allowed = snapshot_allowance_bytes(needs_, plan_.budget_bytes) / snapshot_slot_bytes_;
  const size_t others = snapshot_slot_count() - snapshots.slot_count();
  const size_t granted = std::min({count, SnapshotStore::kSlotsMax, allowed - std::min(allowed, others)});
  snapshots.shrink(granted);
  MemoryNeeds needs = needs_;
  needs.snapshot_bytes = (others + granted) * snapshot_slot_bytes_;
  const Status status = add_snapshots(snapshots, granted, needs);
  needs_.snapshot_bytes = snapshot_slot_count() * snapshot_slot_bytes_;
  if (!status) return Error(status.error());
  return granted;
}

/// Slots and layers make room first.
Status Engine::add_snapshots(SnapshotStore& snapshots, size_t count, const MemoryNeeds& needs) {
  const MemoryPlan plan = plan_memory(needs, plan_.budget_bytes);
  TRY(arrange(plan.arrangement));
  TRY(snapshots.grow(*budget_, count, snapshot_slot_bytes_));
  plan_ = plan;
  return {};
}

PlannedModel Engine::planned() {
  const EngineTurn turn(*this);  // Waits for a change of the budget.
  return {needs_, plan_, info(), thread_count(), kernels_->name};
}

void Engine::fill(Statistics& statistics) {
  const EngineTurn turn(*this);  // Waits for a change of the budget.
  const ModelCounters counters = model_->counters();
  const ReadQueueCounters reads = queue_->counters();
  const auto bytes = [&reads](ReadPurpose purpose) { return reads.bytes_read[static_cast<size_t>(purpose)]; };
  statistics.bytes_read_trunk = bytes(ReadPurpose::kTrunk);
  statistics.bytes_read_experts = bytes(ReadPurpose::kExperts);
  statistics.bytes_read_head = bytes(ReadPurpose::kHead);
  statistics.bytes_read_headers = counters.header_bytes;
  statistics.bytes_read_speculative = reads.bytes_speculative;
  statistics.bytes_speculative_wasted = reads.bytes_speculative_wasted;
  statistics.expert_hits = counters.expert_hits;
  statistics.expert_misses = counters.expert_misses;
  statistics.io_wait_s = reads.wait_s - reads_at_load_.wait_s;
  const auto total = [](const ReadQueueCounters& c) {
    return std::accumulate(c.bytes_read.begin(), c.bytes_read.end(), uint64_t{0});
  };
  const uint64_t run_bytes = total(reads) - total(reads_at_load_);
  const double run_busy_s = reads.busy_s - reads_at_load_.busy_s;
  if (run_bytes > 0 && run_busy_s > 0 && counters.direct_io) {  // Reads of the page cache are no drive speed.
    statistics.drive_gb_s = static_cast<double>(run_bytes) / run_busy_s / 1e9;
  }
  statistics.synthetic_shared_layers = info().synthetic_shared_layers;
  statistics.budget_bytes = budget().limit_bytes();
  statistics.budget_used_bytes = budget().peak_bytes();
  statistics.pinned_layers = counters.pinned_layers;
  statistics.streamed_layers = counters.streamed_layers;
  statistics.blocks_streamed = counters.blocks_streamed;
  statistics.expert_slots = plan_.arrangement.expert_slots;
  statistics.working_set_bytes = info().moe_layer_count * info().experts_per_token * info().expert_bytes;
  statistics.direct_io = counters.direct_io;
  statistics.io_backend = queue_->backend_name();
  statistics.isa = kernels_->name;
  statistics.threads = thread_count();
}

}  // namespace headrace
