#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// Which layer's tensors stand for those of each layer in a made-up checkpoint that does not hold all of them: what its
/// `synth.json` says, {"version": 1, "shared_layers": N, "layers": [source of layer 0, source of layer 1, ..]}.
/// N layers of each kind are stored; 0: every layer has its own tensors. Read-only once opened, any thread.
class LayerSources {
 public:
  static constexpr const char* kFileName = "synth.json";
  static constexpr uint64_t kVersion = 1;
  static constexpr size_t kLayersMax = 4096;

  /// What stands in `folder`, or nothing where there is no such file: then every tensor is its own. Every source is
  /// in the list and its own source, so that no look-up runs in a circle; all else is kFormat.
  static Result<std::optional<LayerSources>> open(const std::string& folder, const FileOpener& opener,
                                                  std::span<std::byte> chunk, Budget& budget);

  /// For the writer of the file.
  static std::string text(size_t shared_layers, std::span<const size_t> sources);

  size_t shared_layers() const { return shared_layers_; }
  uint64_t bytes_read() const { return bytes_read_; }
  size_t memory_bytes() const { return memory_.bytes(); }

  /// The name under which the tensor `name` is stored; `buffer` may be used for it.
  std::string_view stored_name(std::string_view name, std::string& buffer) const;

  /// Takes note of a stored tensor: kFormat when it belongs to a layer that the list does not have, or takes from
  /// elsewhere.
  Status note_stored(std::string_view name);
  /// kFormat when a source has no tensors. After the last `note_stored`.
  Status check_sources_stored() const;

 private:
  LayerSources() = default;
  Status check(const std::string& path);

  std::string path_;
  size_t shared_layers_ = 0;
  std::vector<uint16_t> sources_;
  std::vector<bool> is_stored_;
  Reservation memory_;
  uint64_t bytes_read_ = 0;
};

}  // namespace headrace
