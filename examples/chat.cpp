// The same as chat.c, with the C++ wrapper: chat MODEL QUESTION QUESTION
#include <iostream>
#include <string>

#include "headrace/headrace.hpp"

namespace {

// A program would build requests with its JSON library; here the questions must not hold quotes or backslashes.
void ask(headrace::api::Session& session, std::string& messages, const std::string& question) {
  messages += (messages.empty() ? "" : ",") + (R"({"role":"user","content":")" + question + "\"}");
  headrace::api::GenerateOptions options;
  options.tokens_max = 60;
  const headrace::api::Reply reply = session.reply(
      R"({"thinking":false,"messages":[)" + messages + "]}", options, [](const headrace_piece& piece) {
        if (piece.kind == HEADRACE_PIECE_CONTENT) std::cout.write(piece.text, static_cast<std::streamsize>(piece.text_bytes));
        std::cout.flush();
        return true;
      });
  messages += "," + reply.message;
  std::cout << "\n(" << reply.prompt_tokens << " tokens of the conversation, " << reply.reused_tokens
            << " of them kept from before)\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: chat MODEL QUESTION QUESTION\n";
    return 2;
  }
  try {
    headrace::api::Model model(argv[1]);
    headrace::api::Session session = model.create_session();
    std::string messages;
    ask(session, messages, argv[2]);
    ask(session, messages, argv[3]);
  } catch (const headrace::api::Error& failure) {
    std::cerr << headrace_status_name(failure.status()) << ": " << failure.what() << "\n";
    return 1;
  }
  return 0;
}
