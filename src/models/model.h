#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "base/views.h"
#include "io/file.h"
#include "kernels/kernels.h"
#include "weights/expert_cache.h"

namespace headrace {

/// What a model is, as far as its users care.
struct ModelInfo {
  std::string family;  ///< "kimi"
  std::string name;    ///< "Kimi K3", "Kimi-Linear": the released model whose architecture this is.
  size_t vocabulary_size = 0;
  size_t hidden_size = 0;
  size_t layer_count = 0;
  size_t moe_layer_count = 0;
  size_t expert_count = 0;       ///< Routed experts per MoE layer.
  size_t experts_per_token = 0;  ///< Top-k.
  size_t context_tokens_max = 0;
  std::vector<int32_t> stop_ids;        ///< Token ids that end a generation, by the model's configuration.
  bool has_vision = false;              ///< The checkpoint has a vision tower (not run by this build).
  uint64_t parameter_count = 0;         ///< Of the text model.
  uint64_t active_parameter_count = 0;  ///< Used for one token; of the embedding, one row.
  std::string trunk_format;             ///< "BF16"
  std::string expert_format;            ///< "MXFP4"
  uint64_t checkpoint_bytes = 0;        ///< All tensors as stored.
  uint64_t trunk_bytes = 0;             ///< Tensors of the text model but the routed experts, as stored.
  uint64_t expert_bytes = 0;            ///< One routed expert, as stored.
  size_t tensor_count = 0;
  /// Of a made-up checkpoint: layers of each kind that its files hold for all of them; 0: they hold every layer.
  std::optional<size_t> synthetic_shared_layers;
  /// One word per layer: "kda+dense", "mla+moe", ...
  std::vector<std::string> layer_kinds;
};

/// Attention state of one sequence. Owned by a session; used by one thread at a time.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  /// Tokens taken in so far.
  virtual size_t position() const = 0;
  virtual size_t capacity_tokens() const = 0;
  virtual size_t memory_bytes() const = 0;
  /// Back to the empty sequence.
  virtual void reset() = 0;
};

/// The experts of one token in one layer, ascending by id, with their weights in the combination.
struct RoutedExperts {
  uint32_t layer = 0;  ///< 0-based layer of the model (dense layers counted).
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};

/// Where a forward pass puts its results. Anything absent is not computed.
struct ForwardOutput {
  /// [n, vocabulary]: logits of the last n tokens of the chunk (n = 0: none).
  MatrixView<float> logits;
  /// When not null, receives for each token of the chunk the experts of each MoE layer, in layer order.
  std::vector<std::vector<RoutedExperts>>* routing = nullptr;
};

/// Bytes that a model reads and waits for, since it was loaded.
struct ModelCounters {
  uint64_t bytes_read_trunk = 0;
  uint64_t bytes_read_experts = 0;
  uint64_t bytes_read_head = 0;  ///< Embedding rows (and the head, when it is streamed).
  uint64_t expert_hits = 0;
  uint64_t expert_misses = 0;
  double io_wait_s = 0;
  bool direct_io = false;  ///< Every file of weights is read past the page cache.
};

/// What a model is built with; everything outlives the model.
struct ModelResources {
  const Kernels& kernels;
  ThreadPool& pool;
  Budget& budget;
  const FileOpener& opener;
  const Log& log;
};

struct ModelOptions {
  ReadMode data_mode = ReadMode::kDirect;
  /// Tokens that a state is going to hold; more than the model allows is kArgument. 0: no more than it allows.
  size_t context_tokens = 0;
  size_t chunk_tokens_max = 1;     ///< Most tokens of one forward pass; scratch is allocated for it.
  size_t row_block_bytes_max = 0;  ///< Largest block of trunk rows; 0 = whole matrices.
};

/// A loaded model: a function from (state, token ids) to logits. One thread at a time calls its members.
///
/// Loading has three steps, so that the memory plan stands between them: `open_model` reads config and directory and
/// checks every tensor; `load_trunk` reads the resident weights; `create_expert_cache` takes what memory is left.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  /// Bytes that `load_trunk` will reserve.
  virtual size_t trunk_memory_bytes() const = 0;
  /// Bytes that a state for `tokens` tokens reserves.
  virtual size_t state_memory_bytes(size_t tokens) const = 0;
  /// Bytes that the expert cache takes at most: these, whatever its size, and ...
  virtual size_t expert_cache_fixed_bytes() const = 0;
  /// ... these for each slot (both 0 for a model without experts).
  virtual size_t expert_slot_bytes() const = 0;
  /// Least and most slots that make sense.
  virtual size_t expert_slots_min() const = 0;
  virtual size_t expert_slots_max() const = 0;

  virtual Status load_trunk() = 0;
  virtual Status create_expert_cache(size_t slot_count) = 0;
  virtual Result<std::unique_ptr<SequenceState>> create_state(size_t capacity_tokens) = 0;

  /// Takes `ids` (at most chunk_tokens_max, and at most what the state still holds) into `state`. Results depend on the
  /// checkpoint, the ids before and these ids only: not on how they were cut into chunks (P1). After an error the state
  /// is undefined until reset. kFormat when a result is not a finite number.
  virtual Status forward(SequenceState& state, std::span<const int32_t> ids, const ForwardOutput& output) = 0;

  virtual ModelCounters counters() const = 0;
};

/// Opens the model in `folder`, whatever its family. kUnsupported names the configuration value that this build cannot
/// run; kFormat names the damaged file and tensor.
Result<std::unique_ptr<Model>> open_model(const std::string& folder, const ModelResources& resources,
                                          const ModelOptions& options);

}  // namespace headrace
