#include "engine/engine.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/machine.h"
#include "engine/build_info.h"
#include "engine/model_folder.h"
#include "engine/session.h"
#include "engine/units.h"
#include "kernels/dispatch.h"

namespace headrace {
namespace {

// Chunks that are tried, from the largest, until the budget holds one. Smaller ones only cost speed: the weights of a
// sweep serve fewer tokens.
constexpr size_t kChunkChoices[] = {Engine::kChunkTokensDefault, 64, 16};

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

EngineTurn::EngineTurn(std::atomic<bool>& busy)
    // Pairs with the release in the destructor: the next user sees what the last one wrote.
    : busy_(busy.exchange(true, std::memory_order_acquire) ? nullptr : &busy) {}

EngineTurn::~EngineTurn() {
  if (busy_) busy_->store(false, std::memory_order_release);  // Pairs with the acquire in the constructor.
}

Status EngineTurn::status() const {
  if (busy_) return {};
  return error(Code::kArgument, "another thread is using this model; one call at a time");
}

Engine::Engine(const EngineOptions& options, EngineSources sources, Log log)
    : options_(options), sources_(std::move(sources)), log_(std::move(log)) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options, EngineSources sources, Log log) {
  const FloatEnvironment float_environment;
  std::unique_ptr<Engine> engine(new Engine(options, std::move(sources), std::move(log)));
  TRY(engine->prepare());
  TRY(engine->open_in_budget());
  TRY(engine->load());
  return engine;
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

Status Engine::open_in_budget() {
  const size_t limit_bytes = TRY(budget_limit_bytes());
  opened_.emplace(TRY(open_with_largest_chunk(limit_bytes)));
  return {};
}

Result<size_t> Engine::budget_limit_bytes() const {
  switch (options_.budget_kind) {
    case EngineOptions::BudgetKind::kBytes:
      return options_.budget_bytes;
    case EngineOptions::BudgetKind::kFloor:
      return measure_floor_bytes();
    case EngineOptions::BudgetKind::kAutomatic:
      break;
  }
  return static_cast<size_t>(static_cast<double>(usable_memory_bytes()) * kAutomaticShare);
}

/// Ascending cost in speed: the largest chunk first. What the caller fixed is the only choice.
std::vector<size_t> Engine::chunk_choices() const {
  const size_t context = options_.context_tokens > 0 ? options_.context_tokens : kContextTokensDefault;
  if (options_.prefill_chunk_tokens > 0) return {std::min(options_.prefill_chunk_tokens, context)};
  std::vector<size_t> choices;
  for (const size_t choice : kChunkChoices) {
    const size_t chunk = std::min(choice, context);
    if (choices.empty() || choices.back() != chunk) choices.push_back(chunk);
  }
  return choices;
}

Result<Engine::Opened> Engine::open_with_largest_chunk(size_t limit_bytes) const {
  std::optional<Error> refusal;
  for (const size_t chunk_tokens : chunk_choices()) {
    auto opened = open_parts(limit_bytes, chunk_tokens);
    if (opened || opened.error().code != Code::kBudget) return opened;
    log_.line(LogLevel::kDebug, "prefill chunk of %zu tokens: %s", chunk_tokens, opened.error().message.c_str());
    refusal = opened.take_error();
  }
  const size_t floor_bytes = TRY(measure_floor_bytes());
  if (limit_bytes >= floor_bytes && refusal) return *refusal;  // The system refused what the budget allows.
  return error(Code::kBudget, "the budget of %s is below the floor of %s (%zu bytes)", bytes_text(limit_bytes).c_str(),
               bytes_text(floor_bytes).c_str(), floor_bytes);
}

/// The floor with the smallest chunk: a dry pass that reads no weights to keep, in a budget without limit.
Result<size_t> Engine::measure_floor_bytes() const {
  const Opened opened = TRY(open_parts(std::numeric_limits<size_t>::max(), chunk_choices().back()));
  return opened.plan.floor_bytes;
}

Result<Engine::Opened> Engine::open_parts(size_t limit_bytes, size_t chunk_tokens) const {
  Opened opened;
  opened.budget = std::make_unique<Budget>(limit_bytes);
  opened.process_memory = TRY(opened.budget->reserve(kProcessBytes, "process and kernel"));
  if (tokenizer_) opened.tokenizer_memory = TRY(opened.budget->reserve(tokenizer_->memory_bytes(), "tokenizer"));
  const ModelResources resources{*kernels_, *pool_, *opened.budget, sources_.opener, log_};
  const ReadMode mode = options_.direct_io ? ReadMode::kDirect : ReadMode::kBuffered;
  const ModelOptions options = {
      .data_mode = mode, .context_tokens = options_.context_tokens, .chunk_tokens_max = chunk_tokens};
  opened.model = TRY(sources_.make_model(resources, options));
  const Model& model = *opened.model;
  const size_t context = TRY(context_tokens(model.info()));
  const MemoryNeeds needs = {
      .fixed_bytes = opened.budget->used_bytes(),
      .session_bytes = session_bytes(model, context),
      .trunk_bytes = model.trunk_memory_bytes(),
      .slots_fixed_bytes = model.expert_cache_fixed_bytes(),
      .slot_bytes = model.expert_slot_bytes(),
      .slots_min = model.expert_slots_min(),
      .slots_max = model.expert_slots_max(),
  };
  opened.plan = TRY(plan_memory(needs, limit_bytes));
  // Opening takes memory for a while that the plan then uses for other things; a small model needs more of the former.
  opened.plan.floor_bytes = std::max(opened.plan.floor_bytes, opened.budget->peak_bytes());
  opened.plan.chunk_tokens = chunk_tokens;
  opened.plan.context_tokens = context;
  return opened;
}

Result<size_t> Engine::context_tokens(const ModelInfo& info) const {
  if (options_.context_tokens > info.context_tokens_max) {
    return error(Code::kArgument, "a context of %zu tokens is more than the %zu of this model", options_.context_tokens,
                 info.context_tokens_max);
  }
  if (options_.context_tokens > 0) return options_.context_tokens;
  return std::min(kContextTokensDefault, info.context_tokens_max);
}

size_t Engine::session_bytes(const Model& model, size_t context_tokens) const {
  const size_t vocabulary = model.info().vocabulary_size;
  return model.state_memory_bytes(context_tokens) + Matrix<float>::memory_bytes(options_.logits_rows, vocabulary) +
         Matrix<SampleCandidate>::memory_bytes(1, vocabulary) + Matrix<TokenId>::memory_bytes(1, context_tokens + 1);
}

Status Engine::load() {
  const MemoryPlan& plan = opened_->plan;
  log_.line(LogLevel::kInfo, "budget %s: fixed %s, trunk %s, %zu expert slots of %s; prefill chunk %zu tokens",
            bytes_text(plan.budget_bytes).c_str(), bytes_text(plan.fixed_bytes).c_str(),
            bytes_text(plan.pinned_bytes).c_str(), plan.slots, bytes_text(plan.slot_bytes).c_str(), plan.chunk_tokens);
  TRY(model().load_trunk());
  spare_memory_ = TRY(take_session_memory());
  if (plan.slots > 0) TRY(model().create_expert_cache(plan.slots));
  TRY(check_vocabularies());
  find_stop_ids();
  counters_at_load_ = model().counters();
  return {};
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
  if (const std::optional<TokenId> id = tokenizer_->control_id("[EOS]")) stop_ids_.push_back(*id);
}

Result<std::unique_ptr<Session>> Engine::create_session() {
  const EngineTurn turn(busy_);
  TRY(turn.status());
  SessionMemory memory = TRY(take_session_memory());
  return std::unique_ptr<Session>(new Session(*this, std::move(memory)));
}

Result<SessionMemory> Engine::take_session_memory() {
  if (spare_memory_) {
    SessionMemory memory = std::move(*spare_memory_);
    spare_memory_.reset();
    return memory;
  }
  Budget& budget = *opened_->budget;
  const size_t vocabulary = info().vocabulary_size;
  SessionMemory memory;
  memory.state = TRY(model().create_state(plan().context_tokens));
  memory.logits = TRY(Matrix<float>::allocate(budget, options_.logits_rows, vocabulary, "logits"));
  memory.candidates = TRY(Matrix<SampleCandidate>::allocate(budget, 1, vocabulary, "sampling"));
  memory.ids = TRY(Matrix<TokenId>::allocate(budget, 1, plan().context_tokens + 1, "token ids"));
  return memory;
}

void Engine::give_back(SessionMemory memory) {
  if (spare_memory_) return;  // More than the plan counts: freed here.
  memory.state->reset();
  spare_memory_ = std::move(memory);
}

void Engine::fill(Statistics& statistics) const {
  const ModelCounters counters = opened_->model->counters();
  statistics.bytes_read_trunk = counters.bytes_read_trunk;
  statistics.bytes_read_experts = counters.bytes_read_experts;
  statistics.bytes_read_head = counters.bytes_read_head;
  statistics.expert_hits = counters.expert_hits;
  statistics.expert_misses = counters.expert_misses;
  statistics.io_wait_s = counters.io_wait_s;
  const auto total = [](const ModelCounters& c) {
    return c.bytes_read_trunk + c.bytes_read_experts + c.bytes_read_head;
  };
  const uint64_t run_bytes = total(counters) - total(counters_at_load_);
  const double run_wait_s = counters.io_wait_s - counters_at_load_.io_wait_s;
  if (run_bytes > 0 && run_wait_s > 0 && counters.direct_io) {  // Reads of the page cache are no drive speed.
    statistics.drive_gb_s = static_cast<double>(run_bytes) / run_wait_s / 1e9;
  }
  statistics.budget_bytes = budget().limit_bytes();
  statistics.budget_used_bytes = budget().peak_bytes();
  statistics.pinned_layers = info().layer_count;
  statistics.expert_slots = plan().slots;
  statistics.working_set_bytes = info().moe_layer_count * info().experts_per_token * info().expert_bytes;
  statistics.direct_io = counters.direct_io;
  statistics.io_backend = kIoBackend;
  statistics.isa = kernels_->name;
  statistics.threads = thread_count();
}

}  // namespace headrace
