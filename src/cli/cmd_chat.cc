#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cli/answer_printer.h"
#include "cli/chat_request.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/open_model.h"
#include "cli/reply.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "cli/terminal_text.h"
#include "cli/values.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

/// Of the state, where memory allows: should an answer read back to other tokens than were generated, or the user
/// change what was said before, not everything is read again.
constexpr size_t kStateCopies = 2;

/// Everything that a conversation is made of.
struct Chat {
  const Settings& settings;
  const ChatFormatInfo format;
  api::Model model;
  api::Session session;
  ChatRequest request;
  Terminal notes{STDERR_FILENO};
  bool is_interactive = true;
  bool is_over = false;
  bool is_cancelled = false;  // The program, not only an answer.

  /// A line for the person, beside the conversation.
  void note(std::string_view text) const { write_stderr(notes.dim(shown(text)) + "\n"); }
  void complain(std::string_view text) const { write_stderr(notes.red(shown(text)) + "\n"); }
  /// What is typed into a pipe, and names of files, must not drive the terminal.
  std::string shown(std::string_view text) const {
    return notes.is_terminal() ? terminal_text(text) : std::string(text);
  }
};

/// What begins with a slash: done at once, and not said to the model.
struct SlashCommand {
  std::string_view name;
  std::string_view argument;  ///< Empty: takes none. In brackets: may be left out.
  std::string_view help;
  void (*run)(Chat& chat, std::string_view argument);
};

void show_help(Chat& chat, std::string_view argument);

void reset(Chat& chat, std::string_view) {
  chat.session.reset();
  chat.request.clear();
  chat.note("a new conversation");
}

void show_statistics(Chat& chat, std::string_view) {
  chat.note(statistics_line(chat.session.stats_json()));
}

void save(Chat& chat, std::string_view file) {
  chat.session.save(std::string(file), chat.request.saved());
  chat.note(fmt::format("saved to {}", file));
}

void load(Chat& chat, std::string_view file) {
  // Whatever the session then holds, the next answer continues the messages: they say what is wanted.
  if (!chat.request.restore(chat.session.load(std::string(file)))) {
    throw UsageError(fmt::format("{} is a session, but not of a chat", file));
  }
  chat.note(fmt::format("the conversation of {} goes on: {} messages, {}, thinking {}", file,
                        chat.request.message_count(),
                        chat.request.system().empty() ? "no instructions" : "instructions",
                        chat.request.thinking().empty() ? "as the model was made for" : chat.request.thinking()));
}

void refuse_image(Chat&, std::string_view) {
  throw UsageError("images are not available in this version");
}

void set_system(Chat& chat, std::string_view text) {
  if (text.empty()) {
    return chat.note(chat.request.system().empty() ? "no instructions" : "instructions: " + chat.request.system());
  }
  chat.request.set_system(text == "off" ? "" : text);
  chat.note(text == "off" ? "no instructions" : "these instructions stand from now on before the conversation");
}

void set_thinking(Chat& chat, std::string_view how) {
  const std::string thinking = one_of(how, kThinkingWords);
  check_thinking(thinking, chat.format);
  chat.request.set_thinking(thinking);
  chat.note(fmt::format("thinking: {}", thinking));
}

void set_budget(Chat& chat, std::string_view size) {
  chat.model.set_budget(size == "floor" ? HEADRACE_BUDGET_FLOOR : size_bytes(size));
  const auto plan = nlohmann::json::parse(chat.model.plan_json());
  chat.note(fmt::format("budget {}: {} of {} layers pinned, {} expert slots", size_text(plan["budget_bytes"]),
                        plan["pinned_layers"].get<size_t>(),
                        plan["pinned_layers"].get<size_t>() + plan["streamed_layers"].get<size_t>(),
                        plan["slots"].get<size_t>()));
}

void quit(Chat& chat, std::string_view) {
  chat.is_over = true;
}

constexpr SlashCommand kSlashCommands[] = {
    {"help", "", "this list", show_help},
    {"reset", "", "a new conversation", reset},
    {"stats", "", "counters since the start: tokens, speed, what was read", show_statistics},
    {"save", "FILE", "keep the conversation, with the model's memory of it", save},
    {"load", "FILE", "go on with a conversation that was kept", load},
    {"image", "FILE", "an image (not in this version)", refuse_image},
    {"system", "[TEXT]", "instructions before the conversation; off: none", set_system},
    {"think", kThinkingWords, "reasoning before the answer", set_thinking},
    {"budget", "SIZE", "another ceiling on memory: 4G, floor", set_budget},
    {"exit", "", "end (also /quit, Ctrl-D)", quit},
    {"quit", "", "end (or Ctrl-D)", quit},
};

void show_help(Chat& chat, std::string_view) {
  std::string help;
  for (const SlashCommand& command : kSlashCommands) {
    help += fmt::format("/{:<28}{}\n", fmt::format("{} {}", command.name, command.argument), command.help);
  }
  help += "Ctrl-C stops an answer. A line that ends with \\ goes on in the next.\n";
  help += "A message that begins with a slash: type a space before it.";
  chat.note(help);
}

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

void run_slash_command(Chat& chat, std::string_view line) {
  const std::string_view word = line.substr(1, line.find_first_of(kBlanks) - 1);
  const std::string_view argument = trimmed(line.substr(1 + word.size()));
  for (const SlashCommand& command : kSlashCommands) {
    if (command.name != word) continue;
    if (command.argument.empty() && !argument.empty()) throw UsageError(fmt::format("/{} takes nothing", word));
    const bool needs_argument = !command.argument.empty() && !command.argument.starts_with('[');
    if (needs_argument && argument.empty()) {
      throw UsageError(fmt::format("usage: /{} {}", word, command.argument));
    }
    return command.run(chat, argument);
  }
  throw UsageError(fmt::format("unknown command /{}; /help lists them", word));
}

void tell_end(const Chat& chat, const api::Reply& reply) {
  const std::string reason = end_reason(reply.finish, reply.ids.size(), chat.settings.tokens_max.value_or(0));
  if (reason.empty()) return;
  chat.note(fmt::format("[{}{}]", reason, reply.ids.empty() ? ": your message is forgotten" : ""));
}

void answer(Chat& chat, const std::string& text) {
  chat.request.add_user(text);
  AnswerPrinter printer{Terminal(STDOUT_FILENO)};
  try {
    const api::Reply reply =
        print_reply(chat.session, chat.request.json(), generate_options(chat.settings, &chat.format), &printer);
    if (reply.ids.empty()) {
      chat.request.drop_last();
    } else {
      chat.request.add_reply(reply.message);
    }
    if (!stdout_is_terminal()) write_stdout("\n");
    tell_end(chat, reply);
  } catch (const api::Error& failure) {
    // Of a wrong request nothing has happened. After other failures the model's state is lost.
    if (failure.status() != HEADRACE_ARGUMENT) throw;
    chat.request.drop_last();
    throw UsageError(fmt::format("{} (your message is forgotten; /reset begins anew)", failure.what()));
  }
}

/// A command that fails has changed nothing, or, rarely, left a session of which the next answer says that it needs
/// /reset or another /load.
void obey(Chat& chat, std::string_view line) {
  try {
    run_slash_command(chat, line);
  } catch (const api::Error& failure) {
    throw UsageError(failure.what());
  }
}

/// One message or command; what is wrong with it does not end the conversation.
void take_line(Chat& chat, const std::string& line) {
  if (trimmed(line).empty()) return;
  const InterruptHold hold;
  try {
    line.starts_with('/') ? obey(chat, trimmed(line)) : answer(chat, line);
  } catch (const UsageError& failure) {
    chat.complain(failure.what());
  }
  // Ctrl-C stops an answer; a script that gets it, and whoever gets SIGTERM, shall end.
  chat.is_cancelled = hold.was_interrupted() && (!chat.is_interactive || was_terminated());
}

/// A convenience: without them it only takes longer.
void keep_copies(Chat& chat) {
  try {
    chat.session.keep_copies(kStateCopies);
  } catch (const api::Error& failure) {
    chat.note(failure.what());
  }
}

ChatFormatInfo checked_format(const Settings& settings) {
  ChatFormatInfo format = chat_format_info(settings);
  if (format.name.empty()) {
    throw UsageError("this model has no chat format that this version knows; headrace run --raw continues a text");
  }
  check_thinking(settings.think, format);
  return format;
}

}  // namespace

ExitStatus chat(const Settings& settings) {
  const ChatFormatInfo format = checked_format(settings);
  check_stats_file(settings);
  api::Model model = open_model(settings, 1);
  api::Session session = model.create_session();
  Chat chat{settings, format, std::move(model), std::move(session), {}};
  keep_copies(chat);
  chat.request.set_system(settings.system);
  chat.request.set_thinking(settings.think);
  LineEditor editor;
  chat.is_interactive = editor.is_interactive();
  if (chat.is_interactive) chat.note("/help lists commands, Ctrl-D ends.");
  while (!chat.is_over && !chat.is_cancelled) {
    const std::optional<std::string> line = editor.read(">");
    if (!line) break;
    take_line(chat, *line);
  }
  write_stats_file(settings, chat.session.stats_json());
  return chat.is_cancelled ? kCancelled : kDone;
}

}  // namespace headrace::cli::cmd
