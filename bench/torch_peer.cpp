// Two pipes and a child. Its standard error is dropped: compilers and torch talk there about things
// that are no error.
#include "bench/torch_peer.hpp"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace velo::bench {
namespace {

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

}  // namespace

torch_peer::torch_peer(const std::string& python, const std::string& script) {
  const std::string found = find_python(python, script);
  if (found.empty()) return;
  start(found, script);
  if (json_t* hello = json_loads(read_line().c_str(), 0, nullptr)) {
    if (const char* text = json_string_value(json_object_get(hello, "torch"))) version_ = text;
    json_decref(hello);
  }
  if (version_.empty()) stop();
}

torch_peer::~torch_peer() {
  stop();
}

void torch_peer::start(const std::string& python, const std::string& script) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  signal(SIGPIPE, SIG_IGN);
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    execl(python.c_str(), python.c_str(), script.c_str(), "--serve", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  requests_ = fdopen(in[1], "w");
  answers_ = fdopen(out[0], "r");
}

void torch_peer::stop() {
  if (requests_) fclose(requests_);  // end of input ends the loop on the other side
  if (answers_) fclose(answers_);
  requests_ = answers_ = nullptr;
  if (process_ > 0) waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::string torch_peer::read_line() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = answers_ ? getline(&line, &capacity, answers_) : -1;
  std::string text =
      length > 0 ? std::string(line, static_cast<std::size_t>(length)) : std::string();
  std::free(line);
  return text;
}

std::vector<torch_timing> torch_peer::measure(const std::string& name, dtype type,
                                              const std::string& shape, int threads, int sets,
                                              double budget) {
  std::vector<torch_timing> timings;
  if (!available()) return timings;
  std::fprintf(
      requests_,
      "{\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": \"%s\", \"threads\": %d, \"sets\": %d, "
      "\"budget\": %g}\n",
      name.c_str(), name_of(type), shape.c_str(), threads, sets, budget);
  std::fflush(requests_);
  json_t* answer = json_loads(read_line().c_str(), 0, nullptr);
  if (!answer) {
    stop();  // it died; the rows that follow go on without it
    return timings;
  }
  std::size_t index;
  json_t* each;
  json_array_foreach(json_object_get(answer, "results"), index, each) {
    const char* peer = json_string_value(json_object_get(each, "peer"));
    if (peer)
      timings.push_back({peer, json_number_value(json_object_get(each, "min")),
                         json_number_value(json_object_get(each, "p25"))});
  }
  json_decref(answer);
  return timings;
}

}  // namespace velo::bench
