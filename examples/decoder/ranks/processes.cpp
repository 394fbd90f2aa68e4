// fork, exec, and a loop that waits for signals.
#include "examples/decoder/ranks/processes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/ranks/first_line.hpp"
#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds grace{10};  // after the first rank that ended with a code but 0

class rank_processes {
 public:
  rank_processes(std::int64_t ranks, const std::vector<std::string>& words) {
    std::signal(SIGCHLD, SIG_DFL);
    ::sigemptyset(&passed_on_);
    ::sigemptyset(&own_);
    const sigset_t heard = signals();
    ::sigprocmask(SIG_BLOCK, &heard, &mask_);
    try {
      for (std::int64_t rank = 0; rank < ranks; ++rank) start(rank, ranks, words);
    } catch (...) {
      end_all(SIGKILL, own_);
      throw;
    }
  }

  int wait() {
    if (interrupted()) end_all(interrupt(), passed_on_);  // before the signals were blocked
    while (left() > 0) {
      const int signal = next_signal();
      if (signal == SIGCHLD) {
        collect();
      } else if (signal > 0) {
        end_all(signal, passed_on_);
      } else if (errno == EAGAIN) {
        end_all(SIGKILL, own_);
        killed_ = true;
      }
    }
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    return code_;
  }

 private:
  static sigset_t signals() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int each : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&all, each);
    return all;
  }

  // Returns -1 with EAGAIN when the grace period is over.
  int next_signal() const {
    const sigset_t heard = signals();
    if (!ending_ || killed_) return ::sigwaitinfo(&heard, nullptr);
    const auto rest = std::max(clock::duration::zero(), *ending_ + grace - clock::now());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(rest);
    const timespec left{static_cast<time_t>(whole.count()),
                        static_cast<long>(std::chrono::nanoseconds(rest - whole).count())};
    return ::sigtimedwait(&heard, nullptr, &left);
  }

  std::ptrdiff_t left() const {
    return std::count_if(processes_.begin(), processes_.end(), [](pid_t one) { return one != 0; });
  }

  void start(std::int64_t rank, std::int64_t ranks, const std::vector<std::string>& words) {
    const pid_t parent = ::getpid();
    const std::string own = std::to_string(rank), all = std::to_string(ranks),
                      job = program_name + ("-" + std::to_string(parent));
    std::vector<char*> pointers = {const_cast<char*>(program_name)};
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) fail("cannot start rank %s: %s", own.c_str(), std::strerror(errno));
    if (child > 0) {
      processes_.push_back(child);
      return;
    }
    line_.pass_on();
    ::setpgid(0, 0);  // a terminal's Ctrl-C comes through this process, once
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    for (const auto& [name, value] : {std::pair("RANK", own),
                                      {"WORLD_SIZE", all},
                                      {"LOCAL_WORLD_SIZE", all},
                                      {"TORCHELASTIC_RUN_ID", job}})
      ::setenv(name, value.c_str(), 1);
    // A pending signal ends this process: exec would forget one that a handler took.
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction inherited {};
      ::sigaction(each, nullptr, &inherited);
      if (inherited.sa_handler != SIG_IGN) ::signal(each, SIG_DFL);
    }
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    ::execv("/proc/self/exe", pointers.data());
    std::fprintf(stderr, "%s: rank %s: cannot start: %s\n", program_name, own.c_str(),
                 std::strerror(errno));
    ::_exit(1);
  }

  void end_all(int signal, sigset_t& sent) {
    ::sigaddset(&sent, signal);
    for (const pid_t each : processes_) {
      if (each == 0) continue;
      if (&sent == &own_) {
        end_rank(each, signal);
      } else {
        ::kill(each, signal);
      }
    }
  }

  void collect() {
    int status;
    while (const pid_t ended = ::waitpid(-1, &status, WNOHANG)) {
      if (ended < 0) return;
      const auto found = std::find(processes_.begin(), processes_.end(), ended);
      if (found == processes_.end()) continue;
      *found = 0;
      note(static_cast<int>(found - processes_.begin()), status);
    }
  }

  // The other ranks may not notice that a rank has ended: without a group yet they wait for it.
  void note(int rank, int status) {
    const bool by_signal = WIFSIGNALED(status);
    const int code = by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) return;
    if (!ending_) ending_ = clock::now();
    const auto is_by = [&](const sigset_t& sent) {
      return code > 128 && ::sigismember(&sent, code - 128) == 1;
    };
    if (is_by(own_)) return;
    if (by_signal && !is_by(passed_on_)) {
      line_.take();
      std::fprintf(stderr, "%s: rank %d was ended by signal %d (%s)\n", program_name, rank,
                   code - 128, ::strsignal(code - 128));
    }
    // A rank that a signal ended is the cause of the failures of ranks that missed it.
    if (code_ == 0 || (code_ < 128 && code > 128)) code_ = code;
    // Sent once: a second signal would keep a rank from saying why it ends.
    const bool notified =
        ::sigismember(&passed_on_, SIGTERM) == 1 || ::sigismember(&own_, SIGTERM) == 1;
    if (!notified && !is_by(passed_on_)) end_all(SIGTERM, own_);
  }

  const first_line line_;
  std::vector<pid_t> processes_;  // 0: the process has ended
  sigset_t mask_{};
  sigset_t passed_on_{}, own_{};  // signals sent to the ranks: from outside; after a rank's end
  std::optional<clock::time_point> ending_;  // since the first rank ended with another code than 0
  bool killed_ = false;
  int code_ = 0;
};

}  // namespace

int start_processes(std::int64_t ranks, const std::vector<std::string>& words) {
  std::fflush(stdout);
  return rank_processes(ranks, words).wait();
}

}  // namespace decoder
