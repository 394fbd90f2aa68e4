// fork, exec, and a loop that waits for signals.
#include "processes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "failure.hpp"

namespace pretrain {
namespace {

constexpr timespec grace{10, 0};  // from the first failure

class company {
 public:
  company(std::int64_t ranks, const std::vector<std::string>& words) {
    std::signal(SIGCHLD, SIG_DFL);
    const sigset_t heard = signals();
    ::sigprocmask(SIG_BLOCK, &heard, &mask_);
    try {
      for (std::int64_t rank = 0; rank < ranks; ++rank) start(rank, ranks, words);
    } catch (...) {
      end_all(SIGKILL);
      throw;
    }
  }

  int wait() {
    const sigset_t heard = signals();
    while (left() > 0) {
      const int signal =
          failed_ ? ::sigtimedwait(&heard, nullptr, &grace) : ::sigwaitinfo(&heard, nullptr);
      if (signal == SIGCHLD) {
        collect();
      } else if (signal > 0) {
        end_all(signal);
      } else if (errno == EAGAIN) {
        end_all(SIGKILL);
      }
    }
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    return failed_ ? code_ : first_code_;
  }

 private:
  static sigset_t signals() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int each : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&all, each);
    return all;
  }

  std::ptrdiff_t left() const {
    return std::count_if(processes_.begin(), processes_.end(), [](pid_t one) { return one != 0; });
  }

  void start(std::int64_t rank, std::int64_t ranks, const std::vector<std::string>& words) {
    const pid_t parent = ::getpid();
    const std::string own = std::to_string(rank), all = std::to_string(ranks),
                      job = "pretrain-" + std::to_string(parent);
    std::vector<char*> pointers = {const_cast<char*>("pretrain")};
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) fail("cannot start rank %s: %s", own.c_str(), std::strerror(errno));
    if (child > 0) {
      processes_.push_back(child);
      return;
    }
    ::setpgid(0, 0);  // a terminal's Ctrl-C comes through this process, once
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    for (const auto& [name, value] : {std::pair("RANK", own),
                                      {"WORLD_SIZE", all},
                                      {"LOCAL_WORLD_SIZE", all},
                                      {"TORCHELASTIC_RUN_ID", job}})
      ::setenv(name, value.c_str(), 1);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    ::execv("/proc/self/exe", pointers.data());
    std::fprintf(stderr, "pretrain: rank %s: cannot start: %s\n", own.c_str(),
                 std::strerror(errno));
    ::_exit(1);
  }

  void end_all(int signal) const {
    for (const pid_t each : processes_)
      if (each != 0) ::kill(each, signal);
  }

  void collect() {
    int status;
    while (const pid_t ended = ::waitpid(-1, &status, WNOHANG)) {
      if (ended < 0) return;
      const auto found = std::find(processes_.begin(), processes_.end(), ended);
      if (found == processes_.end()) continue;
      const auto rank = static_cast<int>(found - processes_.begin());
      *found = 0;
      if (WIFSIGNALED(status))
        std::fprintf(stderr, "pretrain: rank %d was ended by signal %d (%s)\n", rank,
                     WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (rank == 0) first_code_ = code;
      const bool well = WIFEXITED(status) && (code == 0 || code > 128);  // done, or interrupted
      if (well) continue;
      failed_ = true;
      code_ = std::max(code_, code);
    }
  }

  std::vector<pid_t> processes_;  // 0: has ended
  sigset_t mask_{};
  bool failed_ = false;
  int code_ = 0, first_code_ = 0;
};

}  // namespace

int start_processes(std::int64_t ranks, const std::vector<std::string>& words) {
  std::fflush(stdout);
  return company(ranks, words).wait();
}

}  // namespace pretrain
