#include "api/handles.h"
#include "engine/model_folder.h"
#include "engine/plan_json.h"

namespace headrace {
namespace {

/// How files are read, and what stays in memory.
Status set_reading(const headrace_model_options& options, EngineOptions& result) {
  const std::string_view backend = options.io_backend ? options.io_backend : "";
  if (backend == "uring") {
    result.reads.backend = ReadBackendKind::kUring;
  } else if (backend == "threads") {
    result.reads.backend = ReadBackendKind::kThreads;
  } else if (options.io_backend) {
    return error(Code::kArgument, "io_backend is '%s', not 'uring' or 'threads'", options.io_backend);
  }
  result.reads.depth = options.io_depth;
  if (options.cache_policy) result.cache_policy = options.cache_policy;
  if (options.pinned_layers < -1) {
    return error(Code::kArgument, "pinned_layers is %lld; -1 is the least",
                 static_cast<long long>(options.pinned_layers));
  }
  if (options.pinned_layers == -1) result.pinned_layers = 0;
  if (options.pinned_layers > 0) result.pinned_layers = static_cast<size_t>(options.pinned_layers);
  return {};
}

Result<EngineOptions> engine_options(const headrace_model_options& options) {
  if (options.buffered_io != 0 && options.buffered_io != 1) {
    return error(Code::kArgument, "buffered_io is %d, not 0 or 1", options.buffered_io);
  }
  EngineOptions result;
  if (options.budget_bytes == HEADRACE_BUDGET_FLOOR) {
    result.budget_kind = EngineOptions::BudgetKind::kFloor;
  } else if (options.budget_bytes > 0) {
    result.budget_kind = EngineOptions::BudgetKind::kBytes;
    result.budget_bytes = options.budget_bytes;
  }
  result.context_tokens = options.context_tokens;
  result.thread_count = options.thread_count;
  if (options.cpus) result.cpus = options.cpus;
  if (options.isa) result.isa = options.isa;
  result.direct_io = options.buffered_io == 0;
  result.prefill_chunk_tokens = options.prefill_chunk_tokens;
  TRY(set_reading(options, result));
  result.ram_bytes = options.ram_bytes;
  if (options.logits_rows > 0) result.logits_rows = options.logits_rows;
  return result;
}

Result<Log> make_log(const headrace_model_options& options) {
  if (options.log_level < HEADRACE_LOG_ERROR || options.log_level > HEADRACE_LOG_DEBUG) {
    return error(Code::kArgument, "log_level is %d, not %d to %d", options.log_level, HEADRACE_LOG_ERROR,
                 HEADRACE_LOG_DEBUG);
  }
  if (!options.log) return Log();
  const auto sink = [log = options.log, user = options.log_user](LogLevel level, std::string_view line) {
    log(user, static_cast<headrace_log_level>(level), line.data(), line.size());
  };
  return Log(static_cast<LogLevel>(options.log_level), sink);
}

Status open(const char* folder, const headrace_model_options* raw_options, headrace_model** out) {
  if (!folder || !out) return error(Code::kArgument, "headrace_model_open: folder and model must not be null");
  *out = nullptr;
  const headrace_model_options options = TRY(copy_options(raw_options, "headrace_model_options"));
  if (options.ram_bytes > 0) return error(Code::kArgument, "ram_bytes is for plans, not for a model that is opened");
  const EngineOptions engine = TRY(engine_options(options));
  Log log = TRY(make_log(options));
  auto model = std::make_unique<headrace_model>();
  model->engine = TRY(Engine::open(engine, EngineSources::folder(folder), std::move(log)));
  model->tokenizer.tokenizer = model->engine->tokenizer();
  *out = model.release();
  return {};
}

Result<std::string> plan(const char* folder, const headrace_model_options* raw_options, double drive_gb_s) {
  if (!(drive_gb_s >= 0) || drive_gb_s > 1e6) return error(Code::kArgument, "drive_gb_s is %g", drive_gb_s);
  const headrace_model_options options = TRY(copy_options(raw_options, "headrace_model_options"));
  const EngineOptions engine = TRY(engine_options(options));
  Log log = TRY(make_log(options));
  EngineSources sources = TRY(plan_sources(folder));
  return plan_json(TRY(Engine::plan(engine, std::move(sources), std::move(log))), drive_gb_s);
}

}  // namespace
}  // namespace headrace

using headrace::Status;

headrace_status headrace_model_open(const char* folder, const headrace_model_options* options, headrace_model** model,
                                    headrace_error* error) {
  return headrace::guarded(error, [&] { return headrace::open(folder, options, model); });
}

void headrace_model_close(headrace_model* model) {
  delete model;
}

headrace_status headrace_model_info_json(const headrace_model* model, char** json, size_t* json_bytes,
                                         headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(model, "model"));
    const headrace::Engine& engine = *model->engine;
    return headrace::hand_over(headrace::model_info_json(engine.info(), engine.tokenizer()), json, json_bytes);
  });
}

headrace_status headrace_describe(const char* folder, char** json, size_t* json_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(folder, "folder"));
    return headrace::hand_over(TRY(headrace::describe_model(folder)), json, json_bytes);
  });
}

headrace_status headrace_model_plan_json(const headrace_model* model, char** json, size_t* json_bytes,
                                         headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(model, "model"));
    return headrace::hand_over(headrace::plan_json(*model->engine), json, json_bytes);
  });
}

headrace_status headrace_plan_json(const char* folder, const headrace_model_options* options, double drive_gb_s,
                                   char** json, size_t* json_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(folder, "folder"));
    return headrace::hand_over(TRY(headrace::plan(folder, options, drive_gb_s)), json, json_bytes);
  });
}

headrace_status headrace_model_set_budget(headrace_model* model, uint64_t budget_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(model, "model"));
    headrace::Engine& engine = *model->engine;
    if (budget_bytes == HEADRACE_BUDGET_FLOOR) return engine.set_budget(engine.floor_bytes());
    return engine.set_budget(budget_bytes > 0 ? budget_bytes : engine.automatic_budget_bytes());
  });
}

const headrace_tokenizer* headrace_model_tokenizer(const headrace_model* model) {
  return model && model->tokenizer.tokenizer ? &model->tokenizer : nullptr;
}

size_t headrace_model_vocabulary_size(const headrace_model* model) {
  return model ? model->engine->info().vocabulary_size : 0;
}
