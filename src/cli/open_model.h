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

/// One line for a person out of the counters of headrace_session_stats_json.
std::string statistics_line(const std::string& stats_json);

/// "1.5 GiB"
std::string size_text(double bytes);

/// StreamError when the file of --stats could not be written where it shall be: better known before the work.
void check_stats_file(const Settings& settings);

/// Writes `json` and a newline to the file of --stats, if that was given.
void write_stats_file(const Settings& settings, const std::string& json);

}  // namespace headrace::cli
