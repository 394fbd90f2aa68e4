// The pretrain program as a child process: what it printed, and how it ended.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

struct outcome {
  int code;          // exit code, or 128 + signal
  std::string text;  // stdout and stderr together
};

// A child that writes into a pipe; `prepare` runs in it before the program does.
class child {
 public:
  explicit child(
      std::vector<std::string> words, const std::function<void()>& prepare = [] {}) {
    words.insert(words.begin(), PRETRAIN_PROGRAM);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 1);
      ::dup2(ends[1], 2);
      prepare();
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() { ::close(pipe_); }

  // Reads until the program has printed `words`, or ended.
  void wait_for(const std::string& words) {
    while (text_.find(words) == std::string::npos && read_some()) {
    }
  }

  pid_t id() const { return pid_; }

  void send(int signal) const { ::kill(pid_, signal); }

  outcome finish() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_};
  }

 private:
  bool read_some() {
    char buffer[4096];
    const ssize_t got = ::read(pipe_, buffer, sizeof buffer);
    if (got > 0) text_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  pid_t pid_;
  int pipe_;
  std::string text_;
};

inline outcome run_program(
    const std::vector<std::string>& words, const std::function<void()>& prepare = [] {}) {
  return child(words, prepare).finish();
}

// For `prepare`: the folder is a disk of one page for this child alone; without `room` it is full.
// The child ends with 77 where the system lets nobody mount.
inline std::function<void()> small_disk(const std::string& folder, bool room) {
  return [=] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.c_str(), "tmpfs", 0, "size=4k") != 0)
      ::_exit(77);
    if (!room) std::ofstream(folder + "/all") << std::string(4096, 'x');
  };
}

// A model that trains in a blink, on a text of its own; what the machine can do is measured where a
// test asks for it.
inline std::vector<std::string> tiny(const std::string& directory,
                                     std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"--paths",        directory + "/text",
                                    "--out",          directory + "/out",
                                    "--hidden",       "32",
                                    "--layers",       "2",
                                    "--heads",        "4",
                                    "--kv_heads",     "2",
                                    "--inner",        "64",
                                    "--sequence",     "32",
                                    "--batch",        "4",
                                    "--warmup",       "2",
                                    "--steps",        "6",
                                    "--sample_bytes", "20",
                                    "--log_every",    "1",
                                    "--measure",      "false"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
