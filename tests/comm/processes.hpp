// Ranks as processes: children of the test that make a group by name and tell what they saw through
// a pipe. Nothing of velo is in the parent before they are made.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <functional>
#include <sstream>

#include "comm/ranks.hpp"

namespace velo::testing {

inline std::int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

// The report of a child process: the end of its work, and its time.
struct ending : call_record {
  std::int64_t at_ns = 0;               // CLOCK_MONOTONIC
  std::int64_t value = 0, calm_ns = 0;  // whatever the test asks for
  std::int64_t in_place = 0;            // collectives that read tensors where they lie

  ending() { code = -1; }  // no report

  // As one message of a pipe.
  bool send_to(int pipe) const {
    std::ostringstream all;
    all << code << ' ' << rank << ' ' << at_ns << ' ' << value << ' ' << calm_ns << ' ' << in_place;
    for (const std::string* text : {&function, &argument, &expected, &got, &cause})
      all << '\0' << *text;
    all << '\0';
    const std::string message = all.str();
    return message.size() <= PIPE_BUF && write(pipe, message.data(), message.size()) > 0;
  }
  static ending received_from(int pipe) {
    std::string message(PIPE_BUF, 0);
    const ssize_t size = read(pipe, message.data(), message.size());
    if (size <= 0) return ending();
    message.resize(static_cast<std::size_t>(size));
    std::istringstream all(message);
    ending report;
    std::string word;
    std::getline(all, word, '\0');
    std::istringstream(word) >> report.code >> report.rank >> report.at_ns >> report.value >>
        report.calm_ns >> report.in_place;
    for (std::string* text :
         {&report.function, &report.argument, &report.expected, &report.got, &report.cause})
      std::getline(all, *text, '\0');
    return report;
  }
};

inline ending ending_of(velo_status code, std::int64_t value = 0) {
  ending all;
  all.at_ns = monotonic_ns();
  static_cast<call_record&>(all) = record_of(code);
  all.value = value;
  return all;
}

// Checks that every process succeeded and counted nothing wrong.
inline void check_right(const std::vector<ending>& all) {
  for (const ending& one : all) {
    INFO(one);
    CHECK(one.code == VELO_OK);
    CHECK(one.value == 0);
  }
}

inline velo_group_desc shm_desc(const std::string& name, int rank, int size,
                                std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = group_desc(timeout_ms);
  desc.transport = VELO_TRANSPORT_SHM;
  desc.name = name.c_str();
  desc.rank = rank;
  desc.size = size;
  return desc;
}

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
      _exit(body().send_to(ends[1]) ? 0 : 1);
    }
    close(ends[1]);
    children_.push_back({child, ends[0]});
  }

  // A child that is a rank: it makes its group, then body.
  void start_rank(const velo_group_desc& desc,
                  const std::function<ending(const rank_of_group&)>& body) {
    start([&] {
      rank_of_group me;
      const velo_status joined = join_group(me, desc);
      if (joined != VELO_OK) return ending_of(joined);
      ending all = body(me);
      velo_context_destroy(me.context);
      return all;
    });
  }
  // All ranks of a group of so many.
  void start_all(int size, const velo_group_desc& base,
                 const std::function<ending(const rank_of_group&)>& body) {
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

  pid_t pid(int child) const { return children_[at(child)].pid; }

  // The reports of all children, in the order of their start.
  std::vector<ending> wait() {
    std::vector<ending> all;
    for (child& one : children_) {
      all.push_back(ending::received_from(one.pipe));
      close(one.pipe);
      waitpid(one.pid, nullptr, 0);
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
