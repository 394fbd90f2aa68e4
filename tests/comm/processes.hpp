// Ranks as processes: children of the test that make a group by name and tell what they saw through
// a pipe. Nothing of velo is in the parent before they are made.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "comm/ranks.hpp"

namespace velo::testing {

// The report of a child process: the end of its work, and its time.
struct ending {
  velo_status code = -1;  // no report
  std::int32_t rank = -1;
  char expected[192] = "", got[192] = "", cause[256] = "";
  std::int64_t at_ns = 0;               // CLOCK_MONOTONIC
  std::int64_t value = 0, calm_ns = 0;  // whatever the test asks for
  std::int64_t in_place = 0;            // collectives that read tensors where they lie
};

inline std::int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

inline ending ending_of(velo_status code) {
  ending all;
  all.code = code;
  all.at_ns = monotonic_ns();
  velo_error_info info = VELO_ERROR_INFO_INIT;
  if (code == VELO_OK || velo_last_error(&info) != VELO_OK) return all;
  all.rank = info.rank;
  std::memcpy(all.expected, info.expected, sizeof all.expected);
  std::memcpy(all.got, info.got, sizeof all.got);
  std::memcpy(all.cause, info.cause, sizeof all.cause);
  return all;
}

// A rank in a process of its own, while it lives.
struct member {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group group = nullptr;
  int rank = 0, size = 0;
};

class processes {
 public:
  // A name that no other test uses.
  static std::string name() {
    static int count = 0;
    return "test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  }

  processes() = default;
  ~processes() { wait(); }
  processes(const processes&) = delete;

  // A child whose end is body's.
  void start(const std::function<ending()>& body) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(ends[0]);
      const ending all = body();
      const bool sent = write(ends[1], &all, sizeof all) == sizeof all;
      _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    children_.push_back({child, ends[0]});
  }

  // A child that is a rank: it makes its group, then body.
  void start_rank(const velo_group_desc& desc, const std::function<ending(const member&)>& body) {
    start([&] {
      member me;
      me.rank = desc.rank, me.size = desc.size;
      velo_context_desc one = VELO_CONTEXT_DESC_INIT;
      one.threads = 1;
      velo_status done = velo_context_create(&one, &me.context);
      if (done == VELO_OK) done = velo_context_stream(me.context, &me.stream);
      if (done == VELO_OK) done = velo_group_create(me.context, &desc, &me.group);
      if (done != VELO_OK) return ending_of(done);
      const ending all = body(me);
      velo_context_destroy(me.context);
      return all;
    });
  }
  // All ranks of a group of so many.
  void start_all(int size, const velo_group_desc& base,
                 const std::function<ending(const member&)>& body) {
    const std::string met_by = name();
    for (int rank = 0; rank < size; ++rank) {
      velo_group_desc desc = base;
      desc.name = met_by.c_str();
      desc.rank = rank;
      desc.size = size;
      desc.transport = VELO_TRANSPORT_SHM;
      start_rank(desc, body);
    }
  }

  pid_t pid(int child) const { return children_[static_cast<std::size_t>(child)].pid; }

  // The reports of all children, in the order of their start.
  std::vector<ending> wait() {
    std::vector<ending> all;
    for (child& one : children_) {
      ending report;
      if (read(one.pipe, &report, sizeof report) != sizeof report) report = ending();
      close(one.pipe);
      waitpid(one.pid, nullptr, 0);
      all.push_back(report);
    }
    children_.clear();
    return all;
  }

 private:
  struct child {
    pid_t pid;
    int pipe;
  };
  std::vector<child> children_;
};

}  // namespace velo::testing
