#include "models/model_harness.h"

#include <algorithm>

namespace headrace::test {

std::string RunSetup::text() const {
  return (isa.empty() ? "best" : isa) + ", " + std::to_string(threads) + " threads, chunks of " +
         std::to_string(chunk_tokens) + ", " + (expert_slots == 0 ? "all" : std::to_string(expert_slots)) +
         " slots, row blocks of " + std::to_string(row_block_bytes) + " bytes";
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
  const ModelResources resources{*kernels, *open->pool_, open->budget_, open->opener_, open->log_};
  const ModelOptions options = {.data_mode = setup.data_mode,
                                .context_tokens = context_tokens,
                                .chunk_tokens_max = setup.chunk_tokens,
                                .row_block_bytes_max = setup.row_block_bytes};
  open->model_ = TRY(open_model(folder, resources, options));
  TRY(open->model_->load_trunk());
  open->state_ = TRY(open->model_->create_state(context_tokens));
  const size_t all = open->model_->expert_slots_max();
  const size_t wanted = setup.expert_slots == 0 ? all : setup.expert_slots;
  TRY(open->model_->create_expert_cache(std::clamp(wanted, open->model_->expert_slots_min(), all)));
  return open;
}

Result<RunResult> OpenModel::run(const std::vector<int32_t>& ids) {
  state_->reset();
  RunResult result;
  const size_t vocabulary = model_->info().vocabulary_size;
  for (size_t begin = 0; begin < ids.size(); begin += setup_.chunk_tokens) {
    const size_t count = std::min(setup_.chunk_tokens, ids.size() - begin);
    std::vector<float> logits(count * vocabulary);
    std::vector<std::vector<RoutedExperts>> routing;
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
