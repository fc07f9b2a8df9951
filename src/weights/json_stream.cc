#include "weights/json_stream.h"

#include <utility>

#include "weights/safetensors.h"

namespace headrace {

bool JsonEvents::parse_error(std::size_t, const std::string& last_token, const nlohmann::json::exception&) {
  return fail(error(Code::kFormat, "%s: not JSON, at \"%s\"", place().c_str(), printable(last_token).c_str()));
}

bool JsonEvents::refuse(const char* what) {
  return fail(error(Code::kFormat, "%s: %s is not expected there", place().c_str(), what));
}

bool JsonEvents::fail(Error error) {
  // The first reason is the one: the parser reports its own end after ours.
  if (status_) status_ = std::move(error);
  return false;
}

Result<uint64_t> read_json(ReadableFile& file, ByteRange range, std::span<std::byte> chunk, JsonEvents& events) {
  ByteStream stream(file, range, chunk);
  const bool parsed = nlohmann::json::sax_parse(ByteStreamIterator(stream), ByteStreamIterator(), &events);
  // A stream that broke off looks like bad JSON to the parser: its reason comes first.
  if (!stream.status()) return stream.status().error();
  if (!parsed) {
    const Error reason = events.status() ? error(Code::kFormat, "not JSON") : events.status().error();
    return with_context(reason, "%s, near byte %llu", file.path().c_str(),
                        static_cast<unsigned long long>(stream.offset()));
  }
  return stream.bytes_read();
}

}  // namespace headrace
