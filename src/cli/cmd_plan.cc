#include <fmt/format.h>

#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/open_model.h"
#include "cli/streams.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

using Json = nlohmann::ordered_json;

class Table {
 public:
  void row(std::string_view name, const std::string& value) { text_ += fmt::format("{:<16}{}\n", name, value); }
  void size_row(std::string_view name, const Json& bytes, const std::string& meaning) {
    row(name, fmt::format("{:>11}  {}", size_text(bytes.get<double>()), meaning));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string layers_text(const Json& plan) {
  return fmt::format("{} of {} layers", plan["pinned_layers"].get<size_t>(),
                     plan["pinned_layers"].get<size_t>() + plan["streamed_layers"].get<size_t>());
}

std::string slots_text(const Json& plan) {
  const auto slots = plan["slots"].get<size_t>();
  if (slots == 0) return "this model has no experts";
  return fmt::format("{} of {} experts, {} each; {:.0f} % of uses are expected to hit", slots,
                     plan["all_slots"].get<size_t>(), size_text(plan["slot_bytes"].get<double>()),
                     100 * plan["expected_hit_share"].get<double>());
}

std::string readable(const Json& plan) {
  Table table;
  table.row("model",
            fmt::format("{}, context of {} tokens", plan["name"].get<std::string>(), plan["ctx"].get<size_t>()));
  table.size_row("budget", plan["budget_bytes"],
                 plan["fits"].get<bool>() ? "" : "is below the floor; the plan is the floor's");
  table.size_row("floor", plan["floor_bytes"],
                 fmt::format("the least budget: {} bytes", plan["floor_bytes"].get<size_t>()));
  table.size_row(
      "fixed", plan["fixed_bytes"],
      fmt::format("of it {} state of a session, {} intermediate results, {} process and kernel",
                  size_text(plan["session_bytes"].get<double>()), size_text(plan["scratch_bytes"].get<double>()),
                  size_text(plan["process_bytes"].get<double>())));
  table.size_row("ring", plan["ring_bytes"], "through which the other layers are streamed");
  table.size_row("pinned", plan["pinned_bytes"], layers_text(plan));
  table.size_row("expert slots", plan["slots"].get<double>() * plan["slot_bytes"].get<double>(), slots_text(plan));
  table.size_row("unused", plan["spare_bytes"], "");
  table.size_row(
      "per token", plan["bytes_per_token"],
      fmt::format("from the drive, of it {} of streamed layers", size_text(plan["streamed_bytes"].get<double>())));
  table.size_row("prompt", plan["prefill_bytes"],
                 fmt::format("from the drive for {} tokens, in chunks of {}, with {} lent by layers and experts",
                             plan["prefill_tokens"].get<size_t>(), plan["prefill_chunk_tokens"].get<size_t>(),
                             size_text(plan["prefill_lent_bytes"].get<double>())));
  if (!plan["expected_tok_s"].is_null()) {
    table.row("speed",
              fmt::format("{:.3g} tokens/s, as far as the drive is the limit", plan["expected_tok_s"].get<double>()));
  }
  return table.text();
}

}  // namespace

ExitStatus plan(const Settings& settings) {
  const std::string folder = model_folder(settings.arguments.at(0));
  const std::string json = api::plan_json(folder, model_options(settings, 1), settings.drive_gb_s);
  const Json parsed = Json::parse(json);
  write_stdout(settings.json ? json + "\n" : readable(parsed));
  if (parsed["fits"].get<bool>()) return kDone;
  tell(fmt::format("error: the budget of {} is below the floor of {} ({} bytes)",
                   size_text(parsed["budget_bytes"].get<double>()), size_text(parsed["floor_bytes"].get<double>()),
                   parsed["floor_bytes"].get<size_t>()));
  return kBudgetBelowFloor;
}

}  // namespace headrace::cli::cmd
