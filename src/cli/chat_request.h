#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headrace::cli {

/// What thinking may be, besides nothing: for one_of.
inline constexpr char kThinkingWords[] = "on|off|low|high|max";

/// A conversation as the public header takes it: what the user said, what the model answered, and how it shall think.
class ChatRequest {
 public:
  /// "" as the format has it, or one of kThinkingWords.
  void set_thinking(std::string_view thinking) { thinking_ = thinking; }
  const std::string& thinking() const { return thinking_; }
  /// The message before all others; empty: none.
  void set_system(std::string_view text) { system_ = text; }
  const std::string& system() const { return system_; }

  size_t message_count() const { return messages_.size(); }
  void add_user(std::string_view text);
  /// The message of a reply.
  void add_reply(std::string_view message_json);
  /// Takes the latest message back.
  void drop_last() { messages_.erase(messages_.size() - 1); }
  /// Forgets all messages, but not the system's.
  void clear() { messages_ = nlohmann::ordered_json::array(); }

  /// For headrace_session_reply.
  std::string json() const;
  /// All of it, to be kept in a file; `restore` gives false, and changes nothing, when a text cannot be of `saved`.
  /// What they say is looked at when they are sent.
  std::string saved() const;
  bool restore(std::string_view saved);

 private:
  std::string system_;
  std::string thinking_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

}  // namespace headrace::cli
