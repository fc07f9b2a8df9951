#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace headrace {

/// One object of a model's config.json, read with checks at the door: every value has a range, every error names the
/// file, the key, what was found and what is allowed. A key may be spelled in several ways; the first that is present
/// and not null counts.
class ConfigObject {
 public:
  using Names = std::initializer_list<const char*>;

  /// `json` outlives this; kFormat when it is not an object. `path` stands in errors.
  static Result<ConfigObject> wrap(const nlohmann::json& json, std::string path);

  /// Absent and null are the same.
  bool has(Names names) const;
  /// The object under `name`, or kFormat.
  Result<ConfigObject> object(const char* name) const;
  bool has_object(const char* name) const;

  /// An integer in [least, most].
  struct Range {
    uint64_t least;
    uint64_t most;
  };
  Result<size_t> integer(Names names, Range range) const;
  /// The same, or `otherwise` when there is none or it is false: features are off by value (spec 2.3.4).
  Result<size_t> integer_or(Names names, size_t otherwise, Range range) const;
  /// A finite number.
  Result<float> number(Names names) const;
  Result<std::optional<float>> optional_number(Names names) const;
  Result<bool> boolean(Names names) const;
  /// False when absent; numbers 0 and 1 are not booleans.
  Result<bool> boolean_or_false(Names names) const;
  Result<std::string> text(Names names) const;
  Result<std::string> text_or(Names names, const char* otherwise) const;
  /// A list of integers in range; at most `count_max`.
  Result<std::vector<size_t>> integers(Names names, Range range, size_t count_max) const;
  /// Token ids: absent, one integer, or a list of them.
  Result<std::vector<int32_t>> token_ids(Names names) const;

  /// The whole object as JSON without spaces, keys sorted: the same for texts that mean the same.
  std::string canonical_text() const;

  const std::string& path() const { return path_; }

 private:
  ConfigObject(const nlohmann::json& json, std::string path) : json_(&json), path_(std::move(path)) {}
  const nlohmann::json* find(Names names, const char** found_name) const;

  const nlohmann::json* json_;
  std::string path_;
};

/// Text of a file as it may stand in a message: in quotes, control characters escaped, shortened.
std::string quoted(const std::string& text);

/// Parses the text of a config file. kFormat when it is not a JSON object, or nested too deeply.
Result<nlohmann::json> parse_config(const std::string& text, const std::string& path);

}  // namespace headrace
