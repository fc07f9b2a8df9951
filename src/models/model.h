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
#include "io/read_queue.h"
#include "kernels/kernels.h"
#include "models/fingerprint.h"
#include "models/state_pieces.h"
#include "weights/trunk.h"

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

/// The two kinds of bytes that a state consists of.
enum class StatePart : uint8_t {
  kRecurrent,   ///< Changed by every token, and of one size: to go back, a copy must have been kept.
  kPositional,  ///< Rows of each token, never changed later: to go back, the last rows are forgotten.
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

  /// Bytes of a part after `tokens` tokens.
  virtual uint64_t part_bytes(StatePart part, size_t tokens) const = 0;
  /// Hands out the bytes of a part after `tokens` tokens (at most the capacity), piece by piece, in place: float32,
  /// little-endian, in an order that depends on the model and `tokens` only, not on capacity, threads or instruction
  /// set. How it is cut into pieces may differ; each holds whole numbers.
  virtual Status visit(StatePart part, size_t tokens, PieceVisitor visitor) = 0;
  /// Says that the state is that after `tokens` tokens (at most the capacity), because both parts are.
  virtual void set_position(size_t tokens) = 0;
  /// Becomes a copy of another state of the same model, whose tokens fit this one.
  virtual void copy_from(const SequenceState& other) = 0;
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

/// What a model did since it was opened. (Bytes read are counted by the queue that reads them.)
struct ModelCounters {
  uint64_t expert_hits = 0;
  uint64_t expert_misses = 0;
  uint64_t pinned_layers = 0;    ///< Layers whose trunk stays in memory ...
  uint64_t streamed_layers = 0;  ///< ... and whose trunk passes through the ring.
  uint64_t blocks_streamed = 0;  ///< Row blocks that passed through the ring.
  uint64_t header_bytes = 0;     ///< Of headers and index, read outside the queue.
  bool direct_io = false;        ///< Every file of weights is read past the page cache.
};

/// What the memory of a model consists of, for the plan. Pure numbers, known once the model is open; in bytes unless
/// the name says otherwise.
struct ModelNeeds {
  std::vector<TrunkGroup> pin_order;    ///< Groups of trunk matrices, in the order in which they are pinned.
  size_t ring_bytes = 0;                ///< When any group is streamed.
  size_t expert_cache_fixed_bytes = 0;  ///< Whatever its size ...
  size_t expert_slot_bytes = 0;         ///< ... and for each slot; both 0 for a model without experts.
  size_t expert_slots_min = 0;
  size_t expert_slots_max = 0;     ///< All experts.
  uint64_t row_read_bytes = 0;     ///< One row of the embedding from the drive, widened to blocks; the mean.
  uint64_t expert_read_bytes = 0;  ///< One expert from the drive, widened to blocks; the mean.
};

/// How the memory of a model is divided.
struct ModelArrangement {
  size_t pinned_groups = 0;  ///< Of the pin order.
  size_t expert_slots = 0;
  size_t chunk_tokens = 0;  ///< Most tokens of one forward pass; 0: none is possible.
  bool operator==(const ModelArrangement&) const = default;
};

/// What a model is built with; everything outlives the model.
struct ModelResources {
  const Kernels& kernels;
  ThreadPool& pool;
  Budget& budget;
  ReadQueue& queue;
  const FileOpener& opener;
  const Log& log;
};

struct ModelOptions {
  ReadMode data_mode = ReadMode::kDirect;
  /// Tokens that a state is going to hold; more than the model allows is kArgument. 0: no more than it allows.
  size_t context_tokens = 0;
  size_t row_block_bytes_max = 0;      ///< Bound of a block of trunk rows (tests); 0: what the trunk finds best.
  std::string cache_policy = "phase";  ///< Which experts stay: a name of `eviction_policies`.
};

/// A loaded model: a function from (state, token ids) to logits. One thread at a time calls its members.
///
/// `open_model` reads config, directory and small tensors, and checks every tensor. Then the memory plan decides from
/// `needs`, and `arrange` takes the large memory; it can be called again between passes.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  /// Tells models apart whose states do not fit each other. Covers the configuration; names, types, shapes and order of
  /// the trunk's tensors; layout and count of the experts'; the numbers of the small tensors, which are read when a
  /// model is opened (norms, biases, convolutions, decays). Not the numbers of the large matrices: reading them all
  /// would take as long as the drive needs for the model. So two models that differ in those alone are not told apart.
  virtual Hash128 fingerprint() const = 0;

  virtual ModelNeeds needs() const = 0;
  /// Bytes that passes of up to `chunk_tokens` tokens take for their intermediate results.
  virtual Result<size_t> scratch_bytes(size_t chunk_tokens) const = 0;
  /// Bytes that a state for `tokens` tokens reserves.
  virtual size_t state_memory_bytes(size_t tokens) const = 0;

  /// Divides the memory anew: gives back before it takes, reads what is newly pinned, and keeps the experts that it
  /// can. Results do not depend on it (P1). After an error the model needs another `arrange` before it computes; less
  /// memory than before is never refused.
  virtual Status arrange(const ModelArrangement& arrangement) = 0;
  virtual ModelArrangement arrangement() const = 0;
  /// Whether the system keeps all that is pinned in memory (see Trunk::is_locked).
  virtual bool is_locked() const = 0;
  virtual Result<std::unique_ptr<SequenceState>> create_state(size_t capacity_tokens) = 0;

  /// Takes `ids` (at most the chunk of the arrangement, and at most what the state still holds) into `state`. Results
  /// depend on the checkpoint, the ids before and these ids only: not on how they were cut into chunks (P1). After an
  /// error the state is undefined until reset. kFormat when a result is not a finite number.
  virtual Status forward(SequenceState& state, std::span<const int32_t> ids, const ForwardOutput& output) = 0;

  virtual ModelCounters counters() const = 0;
};

/// Opens the model in `folder`, whatever its family. kUnsupported names the configuration value that this build cannot
/// run; kFormat names the damaged file and tensor.
Result<std::unique_ptr<Model>> open_model(const std::string& folder, const ModelResources& resources,
                                          const ModelOptions& options);

}  // namespace headrace
