#pragma once

#include <string>

#include "engine/engine.h"

namespace headrace {

/// A plan as the JSON object that headrace.h describes. `drive_gb_s`: 10^9 bytes per second that the drive delivers; 0
/// when that is not known.
std::string plan_json(const PlannedModel& planned, double drive_gb_s);

/// The plan of a loaded model.
std::string plan_json(Engine& engine);

}  // namespace headrace
