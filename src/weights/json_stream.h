#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "io/file.h"
#include "weights/byte_stream.h"

namespace headrace {

/// Base of the readers of headers and indexes: takes the events of a JSON text and stops at the first thing that does
/// not belong there, with the reason in `status()`. Derived classes override the events that they expect; all others
/// are refused.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  const Status& status() const { return status_; }

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("a number that is not whole or has more than 64 bits");
  }
  bool string(string_t&) override { return refuse("a string"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return refuse("an object"); }
  bool key(string_t&) override { return refuse("a key"); }
  bool end_object() override { return refuse("the end of an object"); }
  bool start_array(std::size_t) override { return refuse("an array"); }
  bool end_array() override { return refuse("the end of an array"); }
  bool parse_error(std::size_t position, const std::string& last_token, const nlohmann::json::exception&) override;

 protected:
  /// Where the reader is, for messages: "tensor a.weight", "the top level".
  virtual std::string place() const = 0;
  /// Ends the reading: `what` has no business here. False, for `return refuse(...)`.
  bool refuse(const char* what);
  /// Ends the reading with `error`.
  bool fail(Error error);
  /// Goes on when `status` is a success.
  bool check(Status status) { return status ? true : fail(status.take_error()); }

 private:
  Status status_;
};

/// Sends the JSON text in `range` of `file` to `events`, through `chunk` (ByteStream). The error of the stream or of
/// the events has the path in front. Returns the bytes read from the drive.
Result<uint64_t> read_json(ReadableFile& file, ByteRange range, std::span<std::byte> chunk, JsonEvents& events);

}  // namespace headrace
