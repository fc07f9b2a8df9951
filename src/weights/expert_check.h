#pragma once

#include "weights/expert_catalog.h"

namespace headrace {

/// Refuses a record with a number that is none: a checkpoint has no checksums, so this is the damage in it that can be
/// seen (P4). `tensors` are the starts of its tensors, in the order of the catalog. kFormat names file and tensor.
Status check_expert(const ExpertCatalog& catalog, ExpertId id, std::span<const std::byte* const> tensors);

}  // namespace headrace
