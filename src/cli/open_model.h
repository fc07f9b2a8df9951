#pragma once

#include <cstddef>
#include <string>

#include "cli/settings.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {

/// The settings that concern a model. `logits_rows` as in headrace_model_options.
api::ModelOptions model_options(const Settings& settings, size_t logits_rows);

/// Opens MODEL, the first argument, as the settings say; tells the budget on standard error when it was not given as a
/// number. `logits_rows` as in headrace_model_options.
api::Model open_model(const Settings& settings, size_t logits_rows);

/// Shows on standard error, when that is a terminal, how far the reading of a prompt is.
class PromptProgress {
 public:
  PromptProgress();
  /// For GenerateOptions and EvaluateOptions.
  api::Progress callback();

 private:
  void show(size_t done_tokens, size_t total_tokens);

  double start_s_ = 0;
};

/// One line for a person out of the counters of headrace_session_stats_json.
std::string statistics_line(const std::string& stats_json);

/// "1.5 GiB"
std::string size_text(double bytes);

/// Writes `json` and a newline to the file of --stats, if that was given.
void write_stats_file(const Settings& settings, const std::string& json);

}  // namespace headrace::cli
