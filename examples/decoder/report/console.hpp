// The output of a run for people: lines that stay, and on a terminal one line below them that is
// overwritten.
//
// A pipe or a file gets only the lines that stay, without control sequences.
#pragma once

#include <string>

namespace decoder {

class console {
 public:
  explicit console(bool speaks = true);
  console(const console&) = delete;
  console& operator=(const console&) = delete;
  ~console();  // so that a failure's sentence begins on a line of its own

  // Prints a line that stays; `format` is printf's, without the line end.
  __attribute__((format(printf, 2, 3))) void say(const char* format, ...);

  // Shows a line in place of the one shown before, cut at the terminal's width. A pipe gets
  // nothing.
  void show(const std::string& line);

  bool terminal() const { return terminal_; }

 private:
  void clear();

  bool speaks_, terminal_ = false, shown_ = false;
};

}  // namespace decoder
