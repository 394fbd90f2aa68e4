// Groups over MPI whose ranks are threads, by a plugin of the tests (plugins/threads.cpp): what
// arrives, and when, is the test's, and so is which ranks share a host. What is sent is counted.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/every_collective.hpp"
#include "comm/plugins/threads.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/link.hpp"
#include "tests/threads.hpp"

namespace velo::testing {

inline std::string threads_plugin() {
  return std::string(VELO_TEST_MPI_PLUGINS) + "/threads";
}

inline int tag_of(comm::flow kind) {  // in the first group of a job
  return comm::mpi_progress::tag(0, static_cast<int>(kind));
}

inline int new_job() {
  static int count = 0;
  return ++count;
}

// The script of a test while this object lives. There is one at a time.
class scripted final : public mpi_script {
 public:
  scripted() {
    file_ = dlopen((threads_plugin() + "/" + comm::mpi_plugin_file).c_str(), RTLD_NOW);
    REQUIRE(file_ != nullptr);
    set_ = reinterpret_cast<velo_test_script_fn>(dlsym(file_, "velo_test_script"));
    REQUIRE(set_ != nullptr);
    set_(this);
  }
  ~scripted() override {
    set_(nullptr);
    dlclose(file_);
  }
  void has_sent(int from, int to, int tag, int bytes) override {
    if (tag == tag_of(comm::flow::opening)) ++openings[from];
    if (sent) sent(from, to, tag, bytes);
  }
  bool passes(int from, int to, int tag) override { return !holds || !holds(from, to, tag); }
  void found_nothing(int to, int from, int tag) override {
    if (looked) looked(to, from, tag);
  }

  std::function<void(int from, int to, int tag, int bytes)> sent;
  std::function<bool(int from, int to, int tag)> holds;
  std::function<void(int to, int from, int tag)> looked;
  std::atomic<int> openings[8] = {};  // by who sent them; each rank has one for each other

 private:
  void* file_;
  velo_test_script_fn set_;
};

struct rank_over_mpi {
  rank_over_mpi()
      : context(("{\"plugin_path\": \"" + threads_plugin() + "\", \"threads\": 1}").c_str()) {}
  velo_status join(int job, int size, int rank, velo_group_desc desc) {
    desc.transport = VELO_TRANSPORT_MPI;
    desc.communicator = 10000 * job + 100 * size + rank;
    return velo_group_create(context, &desc, &group);
  }
  velo_status join(int job, int size, int rank, std::uint64_t buffer = 32 << 10) {
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;
    return join(job, size, rank, desc);
  }

  const live_context context;
  const velo_stream stream = context.inline_stream();
  velo_group group = nullptr;
};

// A thread of a rank that makes its first group, as if on the host of its letter: read before the
// rank's first message, for which this waits.
template <class Body>
std::thread start_on_host(const scripted& script, const std::string& hosts, int rank, Body&& body) {
  const auto at = static_cast<std::size_t>(rank);
  setenv("VELO_MPI_HOST", hosts.substr(at, 1).c_str(), 1);
  std::thread made(std::forward<Body>(body));
  while (script.openings[at] + 1 < static_cast<int>(hosts.size())) std::this_thread::yield();
  unsetenv("VELO_MPI_HOST");
  return made;
}

// A group of ranks on hosts, a letter for each rank: those of equal letters share one.
class ranks_on_hosts {
 public:
  explicit ranks_on_hosts(const std::string& hosts) : hosts_(hosts) {
    script_.sent = [this](int from, int to, int tag, int bytes) {
      if (hosts_[at(from)] == hosts_[at(to)]) return;
      left_ += bytes;
      if (tag == tag_of(comm::flow::data)) data_left_ += bytes;
    };
    const int job = new_job(), size = static_cast<int>(hosts.size());
    std::vector<velo_status> made(hosts.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<rank_over_mpi>());
      threads.push_back(start_on_host(script_, hosts, rank, [this, &made, job, size, rank] {
        made[at(rank)] = ranks_[at(rank)]->join(job, size, rank);
      }));
    }
    for (std::thread& one : threads) one.join();
    for (const velo_status one : made) REQUIRE(one == VELO_OK);
  }
  ~ranks_on_hosts() {
    for (const auto& one : ranks_) velo_group_destroy(one->group);
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  rank_of_group rank(int of) const {
    const rank_over_mpi& one = *ranks_[at(of)];
    return {one.context, one.stream, one.group, of, size(), of % 2 == 1};
  }
  const live_context& context(int of) const { return ranks_[at(of)]->context; }

  // body(rank_of_group) on a thread for each rank, all at the same time; returns their records.
  template <class Body>
  std::vector<call_record> run(Body&& body) const {
    std::vector<call_record> all(ranks_.size());
    on_threads(size(), [&](int of) { all[at(of)] = record_of(body(rank(of))); });
    return all;
  }
  template <class Body>
  void require(Body&& body) const {
    for (const call_record& one : run(body)) {
      INFO(one);
      REQUIRE(one.code == VELO_OK);
    }
  }

  // Bytes so far from host to host: of all messages, and of data beside openings.
  std::int64_t left() const { return left_; }
  std::int64_t data_left() const { return data_left_; }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  const std::string hosts_;
  std::atomic<std::int64_t> left_{0}, data_left_{0};
  scripted script_;
  std::vector<std::unique_ptr<rank_over_mpi>> ranks_;
};

}  // namespace velo::testing
