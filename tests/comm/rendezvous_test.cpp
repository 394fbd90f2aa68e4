// The rendezvous by itself, its ranks being threads: who gives up, who comes again, and whose word
// counts.
#include "comm/transport/shm/rendezvous.hpp"

#include <unistd.h>

#include "comm/ranks.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"

using namespace velo::testing;
namespace comm = velo::comm;
namespace core = velo::core;

namespace {

constexpr int size = 3;

std::string new_name() {
  static int count = 0;
  return "alone-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

struct outcome {
  std::size_t seated = 0;  // with so many
  std::string missing, got;
};

outcome come(const std::string& name, int rank, int timeout_ms,
             const std::function<void()>& glance = {}) {
  outcome all;
  try {
    all.seated = comm::rendezvous({name, rank, size, std::int64_t{timeout_ms} * 1000000,
                                   comm::shared_area::least_slot(size), glance})
                     .processes.size();
  } catch (const comm::not_there& one) {
    all.missing = one.places.text();
  } catch (const core::failure& one) {
    all.got = one.got;
  }
  return all;
}

// Rank 0, which listens.
struct host {
  explicit host(int timeout_ms) : thread([this, timeout_ms] { said = come(name, 0, timeout_ms); }) {
    const std::string socket = comm::rendezvous_folder() + "/" + name + ".socket";
    while (access(socket.c_str(), F_OK) != 0) std::this_thread::yield();
  }
  ~host() {
    if (thread.joinable()) thread.join();
  }
  host(const host&) = delete;

  const std::string name = new_name();
  outcome said;
  std::thread thread;
};

}  // namespace

TEST_CASE("a rank that gave up before all had come may come again") {
  host zero(20000);
  CHECK(come(zero.name, 1, 50).missing == "rank 0");
  outcome two;
  std::thread other([&] { two = come(zero.name, 2, 20000); });
  const outcome again = come(zero.name, 1, 20000);
  other.join();
  zero.thread.join();
  CHECK(again.got.empty());
  for (const outcome& one : {zero.said, again, two}) CHECK(one.seated == size);
}

TEST_CASE("a rank that gave up is missed by those that came after it") {
  host zero(400);
  CHECK(come(zero.name, 1, 50).missing == "rank 0");
  const outcome two = come(zero.name, 2, 600);
  zero.thread.join();
  CHECK(two.seated == 0);
  CHECK(zero.said.seated == 0);
  CHECK(zero.said.missing.find("rank") == 0);
  CHECK(zero.said.missing.find('1') != std::string::npos);
}

// As for a part of a group: a rank that has been seated destroys the group at once, while rank 0
// has yet to tell the next one.
TEST_CASE("who has reached rank 0 waits for its word, though others are seen to leave meanwhile") {
  host zero(20000);
  outcome two;
  std::thread other([&] {
    two = come(zero.name, 2, 20000,
               [] { core::fail(VELO_ERR_PEER, "group", "all", "one that left"); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // three glances
  const outcome one = come(zero.name, 1, 20000);
  other.join();
  zero.thread.join();
  CHECK(two.got.empty());
  for (const outcome& rank : {zero.said, one, two}) CHECK(rank.seated == size);
}

TEST_CASE("a rank that waits for others is told after five seconds who is missing") {
  const std::string name = new_name(), nobody = new_name();
  const auto wait = [](const std::string& at, int rank, std::vector<std::string>& told) {
    // Rank 0 waits longest: when it gives up, those that it told call again, and are told, too.
    const std::int64_t timeout_ns = rank == 0 ? 7000000000 : 6000000000;
    comm::meeting_place place{at, rank, size, timeout_ns, comm::shared_area::least_slot(size)};
    place.remind = [&told](const comm::rank_set& missing, std::int64_t waited_ns) {
      told.push_back(missing.text() + (waited_ns < 5000000000 ? ", too soon" : ""));
    };
    try {
      comm::rendezvous(place);
    } catch (const comm::not_there&) {
    }
  };
  std::vector<std::string> first, second, alone;
  std::thread one([&] { wait(name, 0, first); }), other([&] { wait(name, 1, second); }),
      lost([&] { wait(nobody, 1, alone); });
  one.join(), other.join(), lost.join();
  CHECK(first == std::vector<std::string>{"rank 2"});
  CHECK(second.empty());  // rank 0 knows
  CHECK(alone == std::vector<std::string>{"rank 0"});
}
