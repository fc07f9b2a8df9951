#include "cli/key_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cli/exit_status.h"

namespace headrace::cli {

KeyInput::Event KeyInput::next(int wake_descriptor, char32_t& character) {
  for (;;) {
    pollfd polled[] = {{wake_descriptor, POLLIN, 0}, {descriptor_, POLLIN, 0}};
    const bool is_ready = !characters_.empty() || position_ < bytes_.size();
    const int count = poll(polled, 2, is_ready ? 0 : -1);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0 && polled[0].revents != 0) return Event::kWoken;
    while (characters_.empty() && position_ < bytes_.size()) {
      decoder_.push(static_cast<uint8_t>(bytes_[position_++]), characters_);
    }
    if (!characters_.empty()) {
      character = characters_.front();
      characters_.erase(0, 1);
      return Event::kCharacter;
    }
    if (!is_ready && !fill()) return Event::kEnd;
  }
}

bool KeyInput::has_more() const {
  pollfd polled{descriptor_, POLLIN, 0};
  return !characters_.empty() || position_ < bytes_.size() || poll(&polled, 1, 0) > 0;
}

std::optional<std::string> KeyInput::line(size_t bytes_max) {
  std::string line;
  for (;;) {
    const size_t end = bytes_.find('\n', position_);
    line.append(bytes_, position_, end == std::string::npos ? end : end - position_);
    if (line.size() > bytes_max) {
      throw UsageError(fmt::format("standard input: a line is longer than {} bytes", bytes_max));
    }
    position_ = end == std::string::npos ? bytes_.size() : end + 1;
    if (end != std::string::npos) return line;
    if (!fill()) return line.empty() ? std::nullopt : std::optional(line);
  }
}

bool KeyInput::fill() {
  constexpr size_t kReadBytes = 1 << 16;
  bytes_.resize(kReadBytes);
  position_ = 0;
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, bytes_.data(), bytes_.size());
  } while (count < 0 && errno == EINTR);
  const int error_number = errno;
  bytes_.resize(count > 0 ? static_cast<size_t>(count) : 0);
  // A terminal that hung up answers EIO: nothing more comes from there.
  if (count < 0 && error_number != EIO) {
    throw StreamError(fmt::format("standard input: {}", std::generic_category().message(error_number)));
  }
  return count > 0;
}

}  // namespace headrace::cli
