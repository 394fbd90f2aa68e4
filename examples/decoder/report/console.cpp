// Two control sequences every terminal knows: back to the line's beginning, and clear to its end.
#include "examples/decoder/report/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace decoder {

console::console(bool speaks) : speaks_(speaks) {
  if (!speaks) return;
  const char* kind = std::getenv("TERM");
  terminal_ = ::isatty(STDOUT_FILENO) == 1 && kind && *kind && std::strcmp(kind, "dumb") != 0;
}

console::~console() {
  if (shown_) std::puts("");
  if (speaks_) std::fflush(stdout);
}

void console::clear() {
  if (shown_) std::fputs("\r\x1b[K", stdout);
  shown_ = false;
}

void console::say(const char* format, ...) {
  if (!speaks_) return;
  clear();
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::puts("");
  std::fflush(stdout);
}

void console::show(const std::string& line) {
  if (!terminal_) return;
  winsize size{};
  // A line that fills the last column would wrap, and could not be written over.
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  std::printf("\r%.*s\x1b[K", known ? size.ws_col - 1 : 79, line.c_str());
  std::fflush(stdout);
  shown_ = true;
}

}  // namespace decoder
