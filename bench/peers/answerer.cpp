// Two pipes and a child.
#include "bench/peers/answerer.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace velo::bench {

answerer::answerer(const std::vector<std::string>& command) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  signal(SIGPIPE, SIG_IGN);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    execv(words[0], words.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  requests_ = fdopen(in[1], "w");
  answers_ = fdopen(out[0], "r");
}

void answerer::stop() {
  if (requests_) fclose(requests_);
  if (answers_) fclose(answers_);
  requests_ = answers_ = nullptr;
  if (process_ > 0) waitpid(process_, nullptr, 0);
  process_ = -1;
}

void answerer::say(const std::string& line) {
  if (!requests_) return;
  std::fprintf(requests_, "%s\n", line.c_str());
  std::fflush(requests_);
}

std::string answerer::hear() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = answers_ ? getline(&line, &capacity, answers_) : -1;
  std::string text =
      length > 0 ? std::string(line, static_cast<std::size_t>(length)) : std::string();
  std::free(line);
  return text;
}

std::string find_python(const std::string& asked, const std::string& script) {
  if (!asked.empty()) return asked;
  std::vector<std::string> places;
  if (const char* active = std::getenv("VIRTUAL_ENV")) places.push_back(active);
  const std::string folder = script.substr(0, script.rfind('/'));
  places.push_back(folder + "/../.venv");
  places.push_back(folder + "/.venv");
  for (const std::string& place : places)
    if (access((place + "/bin/python").c_str(), X_OK) == 0) return place + "/bin/python";
  return {};
}

}  // namespace velo::bench
