#include "models/model_harness.h"

#include <algorithm>

namespace headrace::test {

std::string RunSetup::text() const {
  const auto or_all = [](size_t count, size_t all) { return count == all ? "all" : std::to_string(count); };
  return (isa.empty() ? "best" : isa) + ", " + std::to_string(threads) + " threads, chunks of " +
         std::to_string(chunk_tokens) + ", " + or_all(expert_slots, 0) + " slots, row blocks of " +
         std::to_string(row_block_bytes) + " bytes, " + or_all(pinned_groups, SIZE_MAX) + " groups pinned, " + policy +
         (data_mode == ReadMode::kDirect ? ", direct" : ", buffered") +
         (backend == ReadBackendKind::kUring ? ", uring" : ", threads") + ", rearranged every " +
         std::to_string(rearrange_every) + " passes";
}

Files oracle_checkpoint(const nlohmann::json& vector, TinyOptions options) {
  options.expert_format = vector["expert_format"];
  return tiny_checkpoint(vector["config"], options);
}

Result<std::unique_ptr<OpenModel>> OpenModel::open(const std::string& folder, const RunSetup& setup,
                                                   size_t context_tokens, size_t budget_bytes, FileOpener opener) {
  std::unique_ptr<OpenModel> open(new OpenModel(setup, budget_bytes, std::move(opener)));
  open->pool_ = TRY(ThreadPool::create(setup.threads, {}));
  const Kernels* kernels = TRY(select_kernels(setup.isa));
  open->queue_ = TRY(ReadQueue::create({.backend = setup.backend}, open->budget_, open->log_));
  const ModelResources resources{*kernels, *open->pool_, open->budget_, *open->queue_, open->opener_, open->log_};
  const ModelOptions options = {.data_mode = setup.data_mode,
                                .context_tokens = context_tokens,
                                .row_block_bytes_max = setup.row_block_bytes,
                                .cache_policy = setup.policy};
  open->model_ = TRY(open_model(folder, resources, options));
  open->state_ = TRY(open->model_->create_state(context_tokens));
  TRY(open->arrange(0));
  return open;
}

/// What the setup asks for before pass 0, and something else before every `rearrange_every`-th.
Status OpenModel::arrange(size_t pass) {
  const bool is_due = pass == 0 || (setup_.rearrange_every > 0 && pass % setup_.rearrange_every == 0);
  if (!is_due) return {};
  const ModelNeeds needs = model_->needs();
  const size_t round = pass == 0 ? 0 : pass / setup_.rearrange_every;
  const size_t groups = std::min(setup_.pinned_groups, needs.pin_order.size());
  const size_t all = needs.expert_slots_max;
  const size_t slots = setup_.expert_slots == 0 ? all : setup_.expert_slots;
  ModelArrangement arrangement = {groups, std::clamp(slots, needs.expert_slots_min, all), setup_.chunk_tokens};
  if (round % 3 == 1)
    arrangement = {needs.pin_order.size() / 2, (needs.expert_slots_min + all) / 2, setup_.chunk_tokens};
  if (round % 3 == 2) arrangement = {round % needs.pin_order.size(), needs.expert_slots_min, setup_.chunk_tokens};
  return model_->arrange(arrangement);
}

Result<RunResult> OpenModel::run(const std::vector<int32_t>& ids) {
  state_->reset();
  RunResult result;
  const size_t vocabulary = model_->info().vocabulary_size;
  for (size_t begin = 0; begin < ids.size(); begin += setup_.chunk_tokens) {
    const size_t count = std::min(setup_.chunk_tokens, ids.size() - begin);
    std::vector<float> logits(count * vocabulary);
    std::vector<std::vector<RoutedExperts>> routing;
    if (begin > 0) TRY(arrange(begin / setup_.chunk_tokens));
    TRY(model_->forward(*state_, std::span(ids).subspan(begin, count),
                        {MatrixView<float>(logits.data(), count, vocabulary), &routing}));
    for (size_t t = 0; t < count; ++t) {
      const auto row = logits.begin() + static_cast<ptrdiff_t>(t * vocabulary);
      result.logits.emplace_back(row, row + static_cast<ptrdiff_t>(vocabulary));
      result.routing.push_back(std::move(routing[t]));
    }
  }
  return result;
}

Result<std::vector<int32_t>> OpenModel::continue_greedily(std::vector<float> logits, size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    TRY(model_->forward(*state_, std::span(ids).last(1), {MatrixView<float>(std::span(logits)), nullptr}));
  }
  return ids;
}

}  // namespace headrace::test
