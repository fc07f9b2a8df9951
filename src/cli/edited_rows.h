#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace headrace::cli {

/// Rows that are edited on a terminal, with libedit; LineEditor makes messages of them. One thread at a time.
class EditedRows {
 public:
  /// Both descriptors are terminals with a cursor.
  EditedRows(int input, int output);
  ~EditedRows();
  EditedRows(const EditedRows&) = delete;
  EditedRows& operator=(const EditedRows&) = delete;

  enum class End {
    kLine,         // Enter.
    kEnd,          // Ctrl-D on an empty row.
    kInterrupted,  // Ctrl-C.
    kHungUp,       // The terminal is gone, or a signal that should have ended the program did not.
  };
  struct Row {
    End end = End::kHungUp;
    std::string text;
  };
  /// The next row. A paste that would make it longer than `bytes_max` is left out, and so is what is typed then. The
  /// terminal is as before when this returns or throws, and before a signal ends the program.
  Row read(const std::string& prompt, size_t bytes_max);
  /// For the arrow keys.
  void remember(const std::string& message);

 private:
  class Editor;
  std::unique_ptr<Editor> editor_;
};

}  // namespace headrace::cli
