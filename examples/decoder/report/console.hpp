// What a person sees of a run: lines that stay, and on a terminal one line below them that is
// written over.
//
// In a pipe or a file there are only the lines that stay, so that nothing but text arrives there.
#pragma once

#include <string>

namespace decoder {

class console {
 public:
  explicit console(bool speaks = true);
  console(const console&) = delete;
  console& operator=(const console&) = delete;
  ~console();  // what comes next, a failure's sentence, begins on a line of its own

  // A line that stays, without its end; `format` is printf's.
  __attribute__((format(printf, 2, 3))) void say(const char* format, ...);

  // A line in place of the one shown before, cut where the terminal ends. Nothing in a pipe.
  void show(const std::string& line);

  bool terminal() const { return terminal_; }

 private:
  void clear();

  bool speaks_, terminal_ = false, shown_ = false;
};

}  // namespace decoder
