#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/test_files.h"

namespace headrace::test {

/// A tensor to be written: its bytes are as many as type and shape ask for, unless the test wants damage.
struct WrittenTensor {
  std::string name;
  std::string type;  ///< As safetensors spells it.
  std::vector<uint64_t> shape;
  std::string bytes;
};

/// A header that is given as text, and data, as a safetensors file.
std::string safetensors_bytes(const std::string& header, const std::string& data);

/// Tensors one after the other. `header_padding` spaces after the header move the data.
std::string safetensors_bytes(const std::vector<WrittenTensor>& tensors, size_t header_padding = 0);

/// The JSON entry `"name":{...}` of a tensor whose data begins at `begin`.
std::string header_entry(const WrittenTensor& tensor, uint64_t begin);

/// The entries of a header in braces.
std::string header_text(const std::vector<WrittenTensor>& tensors);

/// The index of shards: which tensors each file holds.
std::string index_text(const std::map<std::string, std::vector<WrittenTensor>>& shards);

}  // namespace headrace::test
