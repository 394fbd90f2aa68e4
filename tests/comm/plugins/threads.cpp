// A plugin for MPI whose ranks are threads of one process: messages are there as soon as they are
// sent, in their order, unless the test holds them back. A communicator is 10000 times a job, 100
// times its size, and the rank. What is made here stays until the process ends.
#include "comm/plugins/threads.hpp"

#include <cstring>
#include <list>
#include <mutex>
#include <string>

#include "comm/transport/mpi/plugin.hpp"

namespace velo::comm {
namespace {

struct duplicate final : mpi_duplicate {
  int job = 0;
};

struct message {
  int job, from, to, tag;
  std::string bytes;
};

struct receiving {
  int job, to, from, tag;
  void* bytes;
};

struct world {
  std::mutex lock;  // guards what follows
  std::list<message> under_way;
  std::list<duplicate> duplicates;
  testing::mpi_script* script = nullptr;
};
world& all() {
  static world* const one = new world;
  return *one;
}

bool start(int* done, char*) {
  *done = 1;
  return true;
}

bool open(std::int64_t communicator, mpi_keeper keeper, mpi_duplicate** found, int* done, char*) {
  const std::lock_guard<std::mutex> lock(all().lock);
  *done = 1;
  all().duplicates.emplace_back();
  duplicate& one = all().duplicates.back();
  one.job = static_cast<int>(communicator / 10000);
  one.size = static_cast<int>(communicator / 100 % 100);
  one.rank = static_cast<int>(communicator % 100);
  one.most_tag = 1 << 20;
  *found = &one;
  return keeper.make(&one, keeper.with);
}

void close(mpi_duplicate*) {}

bool send(mpi_duplicate* by, const void* bytes, int count, int to, int tag, mpi_request* begun,
          char*) {
  begun->word = 0;
  const std::lock_guard<std::mutex> lock(all().lock);
  all().under_way.push_back({static_cast<duplicate*>(by)->job, by->rank, to, tag,
                             std::string(static_cast<const char*>(bytes), std::size_t(count))});
  if (all().script != nullptr) all().script->has_sent(by->rank, to, tag, count);
  return true;
}

bool receive(mpi_duplicate* by, void* bytes, int, int from, int tag, mpi_request* begun, char*) {
  begun->word = reinterpret_cast<std::uintptr_t>(
      new receiving{static_cast<duplicate*>(by)->job, by->rank, from, tag, bytes});
  return true;
}

bool has_come(const receiving& one) {
  const std::lock_guard<std::mutex> lock(all().lock);
  for (auto m = all().under_way.begin(); m != all().under_way.end(); ++m) {
    if (m->job != one.job || m->to != one.to || m->tag != one.tag ||
        (one.from >= 0 && m->from != one.from) ||
        (all().script != nullptr && !all().script->passes(m->from, m->to, m->tag)))
      continue;
    std::memcpy(one.bytes, m->bytes.data(), m->bytes.size());
    all().under_way.erase(m);
    return true;
  }
  return false;
}

bool test(mpi_request* of, int* done, char*) {
  *done = 1;
  if (of->word == 0) return true;
  auto* one = reinterpret_cast<receiving*>(of->word);
  *done = has_come(*one) ? 1 : 0;
  if (*done == 0) {
    if (all().script != nullptr) all().script->found_nothing(one->to, one->from, one->tag);
    return true;
  }
  delete one;
  of->word = 0;
  return true;
}

bool cancel(mpi_request* of) {
  delete reinterpret_cast<receiving*>(of->word);
  of->word = 0;
  return true;
}

void bound_finalize() {}

}  // namespace
}  // namespace velo::comm

extern "C" __attribute__((visibility("default"))) const velo::comm::mpi_plugin* velo_mpi_plugin() {
  using namespace velo::comm;
  static const mpi_plugin table{VELO_RELEASE, "threads", start, open,   close,
                                send,         receive,   test,  cancel, bound_finalize};
  return &table;
}

extern "C" __attribute__((visibility("default"))) void velo_test_script(
    velo::testing::mpi_script* one) {
  velo::comm::all().script = one;
}
