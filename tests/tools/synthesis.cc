#include "tools/synthesis.h"

#include <algorithm>

#include "kernels/dispatch.h"

namespace headrace::test {

SynthOptions Synthesis::options(const std::string& name) const {
  SynthOptions options;
  options.shape = folder_.file("shape.json");
  options.folder = folder_.file(name);
  options.shard_bytes_max = 300'000;
  return options;
}

Result<SynthSummary> synthesize_all(const SynthOptions& options) {
  return synthesize(options, [](uint64_t, uint64_t) { return true; });
}

Result<MadeRun> run_made(const std::string& folder, size_t token_count) {
  const auto pool = TRY(ThreadPool::create(1, {}));
  Budget budget(size_t{1} << 30);
  const Log log;
  const FileOpener opener = open_file;
  const auto queue = TRY(ReadQueue::create({}, budget, log));
  const Kernels* kernels = TRY(select_kernels(""));
  const ModelResources resources{*kernels, *pool, budget, *queue, opener, log};
  ModelOptions options;
  options.context_tokens = token_count;
  const auto model = TRY(open_model(folder, resources, options));
  const ModelNeeds needs = model->needs();
  TRY(model->arrange({needs.pin_order.size(), needs.expert_slots_max, token_count}));
  const auto state = TRY(model->create_state(token_count));
  MadeRun run{model->info(), {}, {}};
  const size_t vocabulary = run.info.vocabulary_size;
  run.logits.resize(token_count * vocabulary);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < token_count; ++i) ids.push_back(static_cast<int32_t>((i * i * 31 + i * 97 + 5) % vocabulary));
  TRY(model->forward(*state, ids, {MatrixView<float>(run.logits.data(), token_count, vocabulary), &run.routing}));
  return run;
}

}  // namespace headrace::test
