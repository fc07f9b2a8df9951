#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// One routed expert: `layer` counts the layers with experts from 0, `expert` its experts.
struct ExpertId {
  uint32_t layer = 0;
  uint32_t expert = 0;
  bool operator==(const ExpertId&) const = default;
};

/// How many tokens of a pass over a layer chose this expert: 1 to the tokens of the pass.
struct ExpertUse {
  uint32_t expert = 0;
  uint32_t token_count = 1;
};

/// A pass of some tokens over one layer: the distinct experts that they chose, ascending.
struct LayerPass {
  uint32_t layer = 0;
  uint32_t token_count = 1;
  std::span<const ExpertUse> uses;
};

}  // namespace headrace
