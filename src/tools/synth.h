#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "models/shapes/checkpoint_layout.h"

namespace headrace {

/// What a made-up model is to be.
struct SynthOptions {
  std::string shape;   ///< Name of a released model, or path of a config file.
  std::string folder;  ///< Made; may be there when it is empty.
  /// Layers of each kind that are written and stand for the others of that kind; 0: all are written.
  size_t shared_layers = 0;
  size_t layers = 0;        ///< 0: as many as the shape has.
  size_t expert_count = 0;  ///< Of a layer; 0: as many as the shape has.
  TensorOrder order = TensorOrder::kName;
  uint64_t seed = 0;
  uint64_t shard_bytes_max = LayoutOptions{}.shard_bytes_max;
};

/// What was written.
struct SynthSummary {
  uint64_t bytes = 0;
  size_t tensors = 0;
  size_t shards = 0;
  double seconds = 0;  ///< Until everything was on the drive.
};

/// Called after every few megabytes; false ends the work.
using SynthProgress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

/// Writes a model of random weights in the publisher's layout: config.json, index, shards, and synth.json, which marks
/// it as made up. The same options give the same bytes. It has no tokenizer. kArgument for options that cannot be; kIo
/// when the drive has too little room, before anything is written, or a write fails; kCancelled. After an error nothing
/// of it is left.
Result<SynthSummary> synthesize(const SynthOptions& options, const SynthProgress& progress);

}  // namespace headrace
