// A program that answers line by line: a child behind two pipes, asleep between requests. Its
// standard error is dropped: compilers and torch talk there about things that are no error. Also
// finds the interpreter that has torch. Not hot.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace velo::bench {

class answerer {
 public:
  explicit answerer(const std::vector<std::string>& command);
  ~answerer() { stop(); }
  answerer(const answerer&) = delete;
  answerer& operator=(const answerer&) = delete;

  void say(const std::string& line);
  std::string hear();  // empty: it has ended
  void stop();         // the end of its input is to end it

 private:
  pid_t process_ = -1;
  FILE* requests_ = nullptr;
  FILE* answers_ = nullptr;
};

// The interpreter that has torch: the one asked for, else that of $VIRTUAL_ENV or of the source
// tree's .venv, which is where the script is or one above; empty when there is none.
std::string find_python(const std::string& asked, const std::string& script);

}  // namespace velo::bench
