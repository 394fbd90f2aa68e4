// The rendezvous without a group. Its ranks are threads that give up, call again, and hear from
// rank 0 which ranks are missing.
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
  std::size_t joined = 0;  // ranks of the group; 0: it did not form
  std::string missing, got;
};

outcome come(const std::string& name, int rank, int timeout_ms,
             const std::function<void()>& check = {}) {
  outcome all;
  try {
    all.joined = comm::rendezvous({name, rank, size, std::int64_t{timeout_ms} * 1000000,
                                   comm::shared_area::least_slot(size), check})
                     .processes.size();
  } catch (const comm::missing_ranks& one) {
    all.missing = one.ranks.text();
  } catch (const core::failure& one) {
    all.got = one.got;
  }
  return all;
}

// Rank 0, which listens.
struct rank_zero {
  explicit rank_zero(int timeout_ms)
      : thread([this, timeout_ms] { result = come(name, 0, timeout_ms); }) {
    const std::string socket = comm::rendezvous_folder() + "/" + name + ".socket";
    while (access(socket.c_str(), F_OK) != 0) std::this_thread::yield();
  }
  ~rank_zero() {
    if (thread.joinable()) thread.join();
  }
  rank_zero(const rank_zero&) = delete;

  const std::string name = new_name();
  outcome result;
  std::thread thread;
};

}  // namespace

TEST_CASE("a rank that gave up before all had joined may call again") {
  rank_zero zero(20000);
  CHECK(come(zero.name, 1, 50).missing == "rank 0");
  outcome two;
  std::thread other([&] { two = come(zero.name, 2, 20000); });
  const outcome again = come(zero.name, 1, 20000);
  other.join();
  zero.thread.join();
  CHECK(again.got.empty());
  for (const outcome& one : {zero.result, again, two}) CHECK(one.joined == size);
}

TEST_CASE("a rank that gave up is missing for the ranks that joined after it") {
  rank_zero zero(400);
  CHECK(come(zero.name, 1, 50).missing == "rank 0");
  const outcome two = come(zero.name, 2, 600);
  zero.thread.join();
  CHECK(two.joined == 0);
  CHECK(zero.result.joined == 0);
  CHECK(zero.result.missing.find("rank") == 0);
  CHECK(zero.result.missing.find('1') != std::string::npos);
}

// This happens in a subgroup: a rank that has joined may destroy the group at once, before rank 0
// has answered the next one.
TEST_CASE("a rank that has reached rank 0 waits for its answer even if others leave meanwhile") {
  rank_zero zero(20000);
  outcome two;
  std::thread other([&] {
    two = come(zero.name, 2, 20000,
               [] { core::fail(VELO_ERR_PEER, "group", "all", "one that left"); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // three poll intervals
  const outcome one = come(zero.name, 1, 20000);
  other.join();
  zero.thread.join();
  CHECK(two.got.empty());
  for (const outcome& rank : {zero.result, one, two}) CHECK(rank.joined == size);
}

TEST_CASE("a waiting rank is reminded of the missing ranks after five seconds") {
  const std::string name = new_name(), nobody = new_name();
  const auto wait = [](const std::string& at, int rank, std::vector<std::string>& reminders) {
    // Rank 0 waits longest: the other ranks call again after its answer, and are reminded, too.
    const std::int64_t timeout_ns = rank == 0 ? 7000000000 : 6000000000;
    comm::rendezvous_options options{at, rank, size, timeout_ns,
                                     comm::shared_area::least_slot(size)};
    options.remind = [&reminders](const comm::rank_set& missing, std::int64_t waited_ns) {
      reminders.push_back(missing.text() + (waited_ns < 5000000000 ? ", too soon" : ""));
    };
    try {
      comm::rendezvous(options);
    } catch (const comm::missing_ranks&) {
    }
  };
  std::vector<std::string> first, second, alone;
  std::thread one([&] { wait(name, 0, first); }), other([&] { wait(name, 1, second); }),
      lost([&] { wait(nobody, 1, alone); });
  one.join(), other.join(), lost.join();
  CHECK(first == std::vector<std::string>{"rank 2"});
  CHECK(second.empty());  // rank 0 is reminded instead
  CHECK(alone == std::vector<std::string>{"rank 0"});
}
