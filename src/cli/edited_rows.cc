#include "cli/edited_rows.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/exit_status.h"
#include "cli/key_input.h"
#include "cli/line_history.h"
#include "cli/signal_watch.h"
#include "cli/terminal.h"
#include "cli/typed_text.h"
#include "cli/utf8.h"

namespace headrace::cli {
namespace {

constexpr wchar_t kInterruptKey = L'\x03';
constexpr wchar_t kSuspendKey = L'\x1A';
// No keyboard needs these; they stand for "draw the row again", in its place or where the cursor is.
constexpr wchar_t kRedrawKey = L'\x1E';
constexpr wchar_t kDrawAnewKey = L'\x1F';
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::string_view kClearBelow = "\r\x1b[J";
constexpr std::string_view kPasteMarksOn = "\x1b[?2004h";
constexpr std::string_view kPasteMarksOff = "\x1b[?2004l";

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

struct EndEditLine {
  void operator()(EditLine* line) const { el_end(line); }
};

FilePointer open_again(int descriptor, const char* mode) {
  const int copy = dup(descriptor);
  FilePointer file(copy < 0 ? nullptr : fdopen(copy, mode));
  if (!file) throw StreamError(fmt::format("terminal: {}", std::generic_category().message(errno)));
  return file;
}

/// libedit turns characters into bytes by the locale; all text here is UTF-8, also where the locale is none.
void use_utf8() {
  setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

// libedit calls it back through the functions at the end. Nothing is thrown through libedit: a failure is kept, ends
// the row, and is thrown then.
class EditedRows::Editor {
 public:
  Editor(int input, int output);

  Row read(const std::string& prompt, size_t bytes_max);
  void remember(const std::string& message) { history_.add(wide_of(message)); }

 private:
  using Action = unsigned char (Editor::*)();
  using Callback = unsigned char (*)(EditLine*, wint_t);

  static Editor& of(EditLine* line);
  static wchar_t* prompt_of(EditLine* line) { return of(line).prompt_.data(); }
  static int next_key_of(EditLine* line, wchar_t* key);
  template <Action kAction>
  static unsigned char call(EditLine* line, wint_t);

  void bind_keys();
  void add_function(const wchar_t* name, Callback function, std::initializer_list<const wchar_t*> keys);
  void begin_editing();
  int next_key(wchar_t& key);
  /// The key, or one that only draws again where its text would make the row too long.
  wchar_t bounded(wchar_t key);
  void fit_to_window();
  /// What a signal does to the row: a key in its place, or the end of the row (0).
  wchar_t key_for_signal(int number);
  bool is_full() const;

  unsigned char paste();
  unsigned char go_back();
  unsigned char go_forward();
  unsigned char interrupt();
  unsigned char suspend();
  unsigned char redraw() { return CC_REDISPLAY; }
  unsigned char draw_anew();

  unsigned char replace_row(const std::wstring* text);
  void put_cursor_at_end();
  std::wstring_view row() const;
  void tell_too_long();
  void write_mode(std::string_view sequence);

  const Terminal terminal_;
  FilePointer input_file_;
  FilePointer output_file_;
  std::unique_ptr<EditLine, EndEditLine> line_;
  KeyInput keys_;
  LineHistory history_;
  KeySequence sequence_;

  // Of the row that is being read.
  std::optional<SignalWatch> signals_;
  std::wstring prompt_;       // With styles.
  std::wstring prompt_text_;  // Without.
  size_t bytes_max_ = 0;
  End end_ = End::kLine;
  int ending_signal_ = 0;
  bool is_beginning_ = false;
  bool is_ending_ = false;
  bool is_pasting_ = false;
  bool has_told_too_long_ = false;
  std::exception_ptr failure_;
};

EditedRows::Editor::Editor(int input, int output)
    : terminal_(output), input_file_(open_again(input, "r")), output_file_(open_again(output, "w")), keys_(input) {
  use_utf8();
  line_.reset(el_init_fd("headrace", input_file_.get(), output_file_.get(), stderr, input, output, STDERR_FILENO));
  if (!line_) throw StreamError("terminal: libedit cannot use it");
  EditLine* line = line_.get();
  el_wset(line, EL_CLIENTDATA, this);
  el_wset(line, EL_EDITOR, L"emacs");
  el_wset(line, EL_PROMPT_ESC, &Editor::prompt_of, L'\1');
  el_wset(line, EL_GETCFN, &Editor::next_key_of);
  // Ctrl-C and Ctrl-Z are keys while a row is edited, so that the terminal is put right before they act. And a paste
  // keeps its returns, so that those with a newline behind them can be told.
  el_wset(line, EL_SETTY, L"-d", L"-isig", L"-icrnl", L"-inlcr", nullptr);
  bind_keys();
}

void EditedRows::Editor::bind_keys() {
  add_function(L"hr-paste", call<&Editor::paste>, {L"\\e[200~"});
  add_function(L"hr-back", call<&Editor::go_back>, {L"\\e[A", L"\\eOA", L"^P"});
  add_function(L"hr-forward", call<&Editor::go_forward>, {L"\\e[B", L"\\eOB", L"^N"});
  add_function(L"hr-interrupt", call<&Editor::interrupt>, {L"^C"});
  add_function(L"hr-suspend", call<&Editor::suspend>, {L"^Z"});
  add_function(L"hr-draw-anew", call<&Editor::draw_anew>, {L"\\037"});
  add_function(L"hr-redraw", call<&Editor::redraw>, {L"\\036", L"^R"});
  struct Binding {
    const wchar_t* key;
    const wchar_t* function;
  };
  constexpr Binding kBindings[] = {
      {L"^W", L"ed-delete-prev-word"},     {L"^U", L"vi-kill-line-prev"},  {L"^I", L"ed-insert"},
      {L"\\e[H", L"ed-move-to-beg"},       {L"\\eOH", L"ed-move-to-beg"},  {L"\\e[1~", L"ed-move-to-beg"},
      {L"\\e[F", L"ed-move-to-end"},       {L"\\eOF", L"ed-move-to-end"},  {L"\\e[4~", L"ed-move-to-end"},
      {L"\\ex", L"ed-unassigned"},  // The library's own commands: they start programs.
      {L"\\e[3~", L"ed-delete-next-char"}, {L"\\e[1;5D", L"ed-prev-word"}, {L"\\e[1;5C", L"em-next-word"},
  };
  for (const Binding& binding : kBindings) el_wset(line_.get(), EL_BIND, binding.key, binding.function, nullptr);
}

void EditedRows::Editor::add_function(const wchar_t* name, Callback function,
                                      std::initializer_list<const wchar_t*> keys) {
  el_wset(line_.get(), EL_ADDFN, name, L"", function);
  for (const wchar_t* key : keys) el_wset(line_.get(), EL_BIND, key, name, nullptr);
}

EditedRows::Row EditedRows::Editor::read(const std::string& prompt, size_t bytes_max) {
  // A style ends before the last space: libedit forgets a sequence with nothing behind it.
  const bool has_styles = terminal_.has_styles();
  prompt_text_ = wide_of(prompt) + L' ';
  prompt_ = (has_styles ? L"\1\x1b[1m\1" : L"") + wide_of(prompt) + (has_styles ? L"\1\x1b[22m\1 " : L" ");
  bytes_max_ = bytes_max;
  end_ = End::kLine;
  is_ending_ = false;
  ending_signal_ = 0;
  has_told_too_long_ = false;
  failure_ = nullptr;
  history_.rewind();
  signals_.emplace();
  begin_editing();
  int count = 0;
  const wchar_t* text = el_wgets(line_.get(), &count);
  Row result;
  if (text != nullptr) {
    result.text = utf8_of(std::wstring_view(text, static_cast<size_t>(count)));
    if (result.text.ends_with('\n')) result.text.pop_back();
  } else if (end_ == End::kLine) {
    end_ = End::kEnd;
  }
  if (end_ == End::kInterrupted) result.text = utf8_of(row());
  result.end = end_;
  write_mode(text == nullptr ? std::string(kPasteMarksOff) + "\n" : kPasteMarksOff);
  signals_.reset();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (ending_signal_ != 0) std::raise(ending_signal_);
  return result;
}

// libedit changes the mode of the terminal when it asks for a key. Asked for one before it shows the prompt, it does so
// first: what is typed at a prompt must not be echoed by the terminal as well.
void EditedRows::Editor::begin_editing() {
  is_beginning_ = true;
  wchar_t key = 0;
  el_wgetc(line_.get(), &key);
  is_beginning_ = false;
  write_mode(kPasteMarksOn);
}

int EditedRows::Editor::next_key(wchar_t& key) {
  if (is_beginning_ || is_ending_) return 0;
  for (;;) {
    char32_t character = 0;
    const KeyInput::Event event = keys_.next(signals_->descriptor(), character);
    if (event == KeyInput::Event::kEnd) {
      end_ = End::kHungUp;
      return 0;
    }
    if (event == KeyInput::Event::kCharacter) {
      key = bounded(static_cast<wchar_t>(character));
      return 1;
    }
    const int number = signals_->take();
    if (number == SIGWINCH) fit_to_window();
    if (number == 0 || number == SIGWINCH) continue;
    key = key_for_signal(number);
    return key == 0 ? -1 : 1;
  }
}

wchar_t EditedRows::Editor::bounded(wchar_t key) {
  constexpr wchar_t kDelete = L'\x7F';
  if (is_pasting_) return key;
  const bool is_text = !sequence_.take(key) && key >= L' ' && key != kDelete;
  if (!is_text || !is_full()) return key;
  tell_too_long();
  return kRedrawKey;
}

// A window that became narrower or wider has laid out the row anew, so that the library, which counts in the old
// layout, would draw below what stands there.
void EditedRows::Editor::fit_to_window() {
  const LineInfoW* info = el_wline(line_.get());
  const size_t rows_above =
      rows_above_end(prompt_text_ + std::wstring(info->buffer, info->cursor), terminal_.columns());
  write_mode((rows_above > 0 ? fmt::format("\x1b[{}A", rows_above) : std::string()) + std::string(kClearBelow));
  el_resize(line_.get());
  el_wset(line_.get(), EL_REFRESH);
}

wchar_t EditedRows::Editor::key_for_signal(int number) {
  switch (number) {
    case SIGINT:
      return kInterruptKey;
    case SIGTSTP:
      return kSuspendKey;
    case SIGCONT:
      // The shell may have changed the terminal's mode meanwhile; the next key sets it again.
      el_wset(line_.get(), EL_PREP_TERM, 0);
      return kDrawAnewKey;
    default:
      ending_signal_ = number;
      end_ = End::kHungUp;
      return 0;
  }
}

std::wstring_view EditedRows::Editor::row() const {
  const LineInfoW* info = el_wline(line_.get());
  return {info->buffer, static_cast<size_t>(info->lastchar - info->buffer)};
}

bool EditedRows::Editor::is_full() const {
  constexpr size_t kCharacterBytesMax = 4;
  const std::wstring_view text = row();
  return (text.size() + 1) * kCharacterBytesMax > bytes_max_ && utf8_bytes(text) + kCharacterBytesMax > bytes_max_;
}

void EditedRows::Editor::tell_too_long() {
  el_beep(line_.get());
  if (has_told_too_long_) return;
  has_told_too_long_ = true;
  const std::wstring note = wide_of(fmt::format("[at most {} bytes] ", bytes_max_));
  prompt_ = note + prompt_;
  prompt_text_ = note + prompt_text_;
}

unsigned char EditedRows::Editor::paste() {
  std::wstring pasted;
  bool is_too_long = false;
  is_pasting_ = true;
  wchar_t key = 0;
  while (!pasted.ends_with(kPasteEnd)) {
    const int count = el_wgetc(line_.get(), &key);
    // The mark of the end may never come; somebody who then presses Ctrl-C gets the keyboard back.
    if (count != 1 || (key == kInterruptKey && !keys_.has_more())) {
      is_pasting_ = false;
      if (count == 1) end_ = End::kInterrupted;
      return CC_EOF;
    }
    pasted += key;
    if (pasted.size() > bytes_max_ + kPasteEnd.size()) {
      is_too_long = true;
      pasted.erase(0, pasted.size() - kPasteEnd.size());
    }
  }
  is_pasting_ = false;
  pasted.resize(pasted.size() - kPasteEnd.size());
  const std::wstring text = cleaned_paste(pasted);
  if (is_too_long || utf8_bytes(text) + utf8_bytes(row()) > bytes_max_) {
    tell_too_long();
  } else {
    el_winsertstr(line_.get(), text.c_str());
  }
  return CC_REFRESH;
}

unsigned char EditedRows::Editor::go_back() {
  return replace_row(history_.older(row()));
}

unsigned char EditedRows::Editor::go_forward() {
  return replace_row(history_.newer());
}

unsigned char EditedRows::Editor::replace_row(const std::wstring* text) {
  if (text == nullptr) return CC_ERROR;
  put_cursor_at_end();
  el_wdeletestr(line_.get(), static_cast<int>(row().size()));
  el_winsertstr(line_.get(), text->c_str());
  return CC_REFRESH;
}

void EditedRows::Editor::put_cursor_at_end() {
  const LineInfoW* info = el_wline(line_.get());
  el_cursor(line_.get(), static_cast<int>(info->lastchar - info->cursor));
}

unsigned char EditedRows::Editor::interrupt() {
  // The cursor goes to the end first, so that what comes next stands below the row.
  put_cursor_at_end();
  end_ = End::kInterrupted;
  is_ending_ = true;
  return CC_REFRESH;
}

unsigned char EditedRows::Editor::suspend() {
  el_wset(line_.get(), EL_PREP_TERM, 0);
  write_mode(kPasteMarksOff);
  signals_.reset();
  std::raise(SIGTSTP);
  signals_.emplace();
  write_mode(kPasteMarksOn);
  return draw_anew();
}

// The shell has written meanwhile: the row is drawn where the cursor is now.
unsigned char EditedRows::Editor::draw_anew() {
  write_mode(kClearBelow);
  el_wset(line_.get(), EL_REFRESH);
  return CC_NORM;
}

void EditedRows::Editor::write_mode(std::string_view sequence) {
  std::fwrite(sequence.data(), 1, sequence.size(), output_file_.get());
  std::fflush(output_file_.get());
}

EditedRows::Editor& EditedRows::Editor::of(EditLine* line) {
  void* data = nullptr;
  el_wget(line, EL_CLIENTDATA, &data);
  return *static_cast<Editor*>(data);
}

int EditedRows::Editor::next_key_of(EditLine* line, wchar_t* key) {
  Editor& editor = of(line);
  try {
    return editor.next_key(*key);
  } catch (...) {
    editor.failure_ = std::current_exception();
    return -1;
  }
}

template <EditedRows::Editor::Action kAction>
unsigned char EditedRows::Editor::call(EditLine* line, wint_t) {
  Editor& editor = of(line);
  try {
    return (editor.*kAction)();
  } catch (...) {
    editor.failure_ = std::current_exception();
    return CC_EOF;
  }
}

EditedRows::EditedRows(int input, int output) : editor_(std::make_unique<Editor>(input, output)) {}

EditedRows::~EditedRows() = default;

EditedRows::Row EditedRows::read(const std::string& prompt, size_t bytes_max) {
  return editor_->read(prompt, bytes_max);
}

void EditedRows::remember(const std::string& message) {
  editor_->remember(message);
}

}  // namespace headrace::cli
