// The output for people, in a terminal of 80 columns and in a pipe.
#include <pty.h>

#include <catch2/catch.hpp>
#include <sstream>
#include <thread>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

// Everything the program sends to a terminal of that width.
std::string seen_on_terminal(const std::vector<std::string>& words, unsigned short columns,
                             const char* kind) {
  int screen = -1, program = -1;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  REQUIRE(::openpty(&screen, &program, nullptr, nullptr, &size) == 0);
  std::string seen;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t got; (got = ::read(screen, buffer, sizeof buffer)) > 0;)
      seen.append(buffer, static_cast<std::size_t>(got));
  });
  const outcome done = run_program(words, [&] {
    ::dup2(program, 1);
    ::dup2(program, 2);
    ::close(screen);
    ::close(program);
    ::setenv("TERM", kind, 1);
  });
  CHECK(done.text.empty());
  ::close(program);  // with the last writer gone, reading ends
  reader.join();
  ::close(screen);
  return seen;
}

}  // namespace

TEST_CASE("a terminal shows the steps between in one line that is written over") {
  workplace w;
  const std::vector<std::string> words =
      tiny(w.path,
           {"--steps", "25", "--log_every", "10", "--validate_every", "15", "--sample_bytes", "0"});
  const std::string seen = seen_on_terminal(words, 80, "xterm");
  INFO(seen);
  for (const char* step : {" 1/25  ", "10/25  ", "20/25  ", "25/25  "})
    CHECK_THAT(seen, !Contains(std::string("\r ") + step));
  for (const char* step : {"2/25  ", "11/25  ", "24/25  "})
    CHECK_THAT(seen, Contains(std::string(step[1] == '/' ? "\r  " : "\r ") + step));
  CHECK_THAT(seen, Contains("\rvalidating .."));

  // The screen after the run: each line from its last return to the beginning.
  std::istringstream lines(seen);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    REQUIRE((!line.empty() && line.back() == '\r'));  // the terminal's own
    line.pop_back();
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '\r');) {
      const std::size_t clear = part.find("\x1b[K");
      if (clear != std::string::npos) part.erase(clear, 3);
      if (part.compare(0, 5, "saved") != 0 && part.compare(0, 4, "drew") != 0)
        CHECK(part.size() <= 80);  // a folder's name is as long as it is
    }
    const std::size_t last = line.rfind('\r');
    rows += line.find("/25  ", last == std::string::npos ? 0 : last) != std::string::npos;
  }
  CHECK(rows == 4);
}

TEST_CASE("a narrow terminal never gets a line to write over that would wrap") {
  workplace w;
  const std::string seen = seen_on_terminal(tiny(w.path, {"--log_every", "100"}), 40, "xterm");
  std::istringstream parts(seen);
  for (std::string part; std::getline(parts, part, '\r');) {
    const std::size_t end = part.find("\x1b[K");
    if (end != std::string::npos && part.find('\n') == std::string::npos) CHECK(end <= 39);
  }
  CHECK_THAT(seen, Contains("\r   2/6"));
}

TEST_CASE("a pipe and a dumb terminal get plain lines alone, none wider than 80 columns") {
  workplace w;
  const std::vector<std::string> words = tiny(
      w.path, {"--steps", "12", "--log_every", "5", "--sample_bytes", "0", "--measure", "true"});
  const outcome piped = run_program(words);
  REQUIRE(piped.code == 0);
  const std::string dumb = seen_on_terminal(words, 80, "dumb");
  CHECK_THAT(dumb, !Contains("\x1b"));
  CHECK_THAT(piped.text, !Contains("\x1b") && !Contains("\r"));
  std::size_t rows = 0;
  std::istringstream lines(piped.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, 5, "saved") != 0 && line.compare(0, 4, "drew") != 0 &&
        line.compare(0, 4, "kept") != 0)
      CHECK(line.size() <= 80);
    rows += line.find("/12  ") != std::string::npos;
  }
  CHECK(rows == 4);  // 1, 5, 10, 12
  CHECK_THAT(piped.text,
             Contains("bits/byte") && Contains("of roofline") && Contains("of the peak"));
}
