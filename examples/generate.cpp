// Continues a text: generate MODEL TEXT. Build: c++ -std=c++20 generate.cpp -lheadrace
#include <exception>
#include <iostream>
#include <string_view>

#include "headrace/headrace.hpp"

int main(int argc, char** argv) {
  namespace api = headrace::api;
  if (argc != 3) {
    std::cerr << "usage: generate MODEL TEXT\n";
    return 2;
  }
  try {
    api::Model model(argv[1]);
    api::Session session = model.create_session();
    api::GenerateOptions options;
    options.tokens_max = 40;
    session.generate(model.tokenizer().tokenize(argv[2], api::TextKind::kPlain), options,
                     [](const headrace_piece& piece) {
                       std::cout << std::string_view(piece.text, piece.text_bytes) << std::flush;
                       return true;  // Go on.
                     });
    std::cout << "\n";
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 1;
  }
}
