// Ranks as processes of one host: the rendezvous, results, and failures when a process is killed,
// stopped, or no rank of the group.
#include <sys/stat.h>

#include <cstdlib>

#include "comm/collective/sweep.hpp"
#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "comm/transport/shm/sockets.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

velo_status sum(const rank_of_group& me, std::vector<float>& x) {
  return reduce_in_place(me.stream, me.group, x);
}

ending run_barrier(const rank_of_group& me) {
  return ending_of(velo_group_barrier(me.stream, me.group));
}

// All-reduces of a size until one fails; how long that one took, and the longest before.
ending sum_on(const rank_of_group& me, std::size_t size) {
  std::int64_t longest = 0;
  while (true) {
    const std::int64_t came = monotonic_ns();
    std::vector<float> x(size, 1.0f);
    const std::int64_t begin = monotonic_ns();
    const velo_status done = sum(me, x);
    if (done == VELO_OK) {
      longest = std::max(longest, monotonic_ns() - came);
      continue;
    }
    ending all = ending_of(done);
    all.value = all.at_ns - begin;
    all.calm_ns = longest;
    return all;
  }
}

}  // namespace

TEST_CASE("processes rendezvous by name and reduce small and large tensors") {
  for (const int size : {1, 2, 3, 4, 8}) {
    INFO(size << " ranks");
    processes ranks;
    ranks.start_all(size, group_desc(), [](const rank_of_group& me) {
      ending all;
      for (const std::size_t count : {1, 20, 1000, 40000, 700001}) {
        std::vector<float> x(count);
        for (std::size_t i = 0; i < count; ++i)
          x[i] = static_cast<float>(me.rank + 1) * static_cast<float>(i % 100);
        const velo_status done = sum(me, x);
        if (done != VELO_OK) return ending_of(done);
        const int ones = me.size * (me.size + 1) / 2;  // 1 + 2 + .. + size
        const auto factor = static_cast<float>(ones);
        for (std::size_t i = 0; i < count; ++i)
          all.value += x[i] != factor * static_cast<float>(i % 100);
      }
      velo_group_info info = VELO_GROUP_INFO_INIT;
      all.code = velo_group_get_info(me.group, &info);
      all.value +=
          info.transport != VELO_TRANSPORT_SHM || info.rank != me.rank || info.size != me.size;
      return all;
    });
    check_right(ranks.wait());
  }
}

TEST_CASE("every collective gives processes what it gives threads") {
  processes ranks;
  velo_group_desc desc = group_desc();
  desc.buffer = 16 << 10;
  ranks.start_all(3, desc, [](const rank_of_group& me) {
    sweep of(me);
    of.run(sweep::every_trial(), {i64, "int64"}, {15000});
    ending all = ending_of(VELO_OK, of.wrong());
    all.got = of.first();
    return all;
  });
  check_right(ranks.wait());
}

TEST_CASE("a killed process is named to all that wait, within 150 ms") {
  for (const std::size_t size : {1, 1000, 3000000})
    for (const int victim : {0, 2}) {
      INFO(size << " elements, rank " << victim);
      processes ranks;
      ranks.start_all(4, group_desc(),
                      [size](const rank_of_group& me) { return sum_on(me, size); });
      const lateness late_by;
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      const std::int64_t killed = monotonic_ns();
      REQUIRE(kill(ranks.pid(victim), SIGKILL) == 0);
      const std::vector<ending> all = ranks.wait();
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        const ending& one = all[at(rank)];
        CHECK_PEER(one, victim, "rank " + std::to_string(victim) + " whose process ended");
        // A rank that computes does not poll; a sanitizer makes that long.
        const double computes = static_cast<double>(one.calm_ns) / 1e6;
        CHECK(static_cast<double>(one.at_ns - killed) / 1e6 < 150 + computes + late_by.of_ms(4));
      }
    }
}

TEST_CASE("a stopped process is named at the deadline, and fails when it continues") {
  processes ranks;
  ranks.start_all(3, group_desc(400), [](const rank_of_group& me) { return sum_on(me, 1000); });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const lateness late_by;
  REQUIRE(kill(ranks.pid(1), SIGSTOP) == 0);
  const std::int64_t stopped = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const std::int64_t goes_on = monotonic_ns();
  REQUIRE(kill(ranks.pid(1), SIGCONT) == 0);
  const std::vector<ending> all = ranks.wait();
  for (const ending& one : all) {
    CHECK_PEER(one, 1, "rank 1 not there");
  }
  for (const int rank : {0, 2}) {
    const ending& one = all[at(rank)];
    CHECK(one.at_ns < goes_on);
    CHECK(static_cast<double>(one.at_ns - stopped) / 1e6 < 420 + late_by.of_ms(2));
  }
  CHECK(std::max(all[0].value, all[2].value) >= 400000000);  // of who waited first
}

TEST_CASE("a process that ends its group in good order is no dead one") {
  processes ranks;
  ranks.start_all(3, group_desc(), [](const rank_of_group& me) {
    std::vector<float> x(200000, 1.0f);
    velo_status done = sum(me, x);
    if (done == VELO_OK && me.rank == 1) return ending_of(done);  // and its process ends
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    done = sum(me, x);
    return ending_of(done);
  });
  const std::vector<ending> all = ranks.wait();
  CHECK(all[1].code == VELO_OK);
  for (const int rank : {0, 2}) {
    CHECK(all[at(rank)].code == VELO_ERR_PEER);
    CHECK(all[at(rank)].got == "rank 1 that left the group");
  }
}

TEST_CASE("ranks that do not come to a rendezvous are named, on both sides") {
  const std::string name = processes::name();
  velo_group_desc desc = shm_desc(name, 0, 4, 300);
  const auto never = [](const rank_of_group&) { return ending(); };
  SECTION("some of the others") {
    processes ranks;
    for (const int rank : {0, 2}) {
      desc.rank = rank;
      ranks.start_rank(desc, never);
      desc.timeout_ns *= 3;  // rank 2 hears of it, however late rank 0 begins
    }
    for (const ending& one : ranks.wait()) {
      CHECK_PEER(one, 1, "ranks 1, 3 not there");
    }
  }
  SECTION("rank 0") {
    processes ranks;
    desc.rank = 3;
    ranks.start_rank(desc, never);
    const ending one = ranks.wait()[0];
    CHECK_PEER(one, 0, "rank 0 not there");
  }
  SECTION("ranks of another size") {
    processes ranks;
    ranks.start_rank(shm_desc(name, 0, 2), never);
    ranks.start_rank(shm_desc(name, 1, 3), never);
    for (const ending& one : ranks.wait()) {
      CHECK_PEER(one, 1, "rank 1 of 3");
      CHECK(one.expected == "ranks 1 to 1 of 2");
    }
  }
  SECTION("a rank twice: the second is sent away, the others go on") {
    processes ranks;
    for (const int rank : {0, 1, 1}) {
      ranks.start_rank(shm_desc(name, rank, 3), run_barrier);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    ranks.start_rank(shm_desc(name, 2, 3), run_barrier);
    const std::vector<ending> all = ranks.wait();
    for (const std::size_t rank : {0, 1, 3}) CHECK_OK(all[rank]);
    CHECK(all[2].code == VELO_ERR_PEER);
    CHECK(all[2].got == "rank 1 again");
  }
}

TEST_CASE(
    "the files of a killed rank 0 hinder no later group, and a living rank 0 is not disturbed") {
  const std::string name = processes::name();
  const velo_group_desc zero = shm_desc(name, 0, 2);
  processes first;
  first.start_rank(zero, run_barrier);
  const std::string socket = socket_path(name);
  for (int i = 0; i < 1000 && access(socket.c_str(), F_OK) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(access(socket.c_str(), F_OK) == 0);
  processes second;
  second.start_rank(zero, run_barrier);
  CHECK(second.wait()[0].code == VELO_ERR_STATE);
  REQUIRE(kill(first.pid(0), SIGKILL) == 0);
  first.wait();
  CHECK(access(socket.c_str(), F_OK) == 0);  // left behind
  processes ranks;
  ranks.start_rank(shm_desc(name, 1, 2), run_barrier);  // connects to it
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ranks.start_rank(zero, run_barrier);
  for (const ending& one : ranks.wait()) CHECK(one.code == VELO_OK);
  CHECK(access(socket.c_str(), F_OK) != 0);
  CHECK(access((velo::comm::rendezvous_folder() + "/" + name + ".lock").c_str(), F_OK) != 0);
}

TEST_CASE("the folder of sockets is the user's alone, and each socket too") {
  processes ranks;
  ranks.start_all(2, group_desc(), run_barrier);
  ranks.wait();
  struct stat is {};
  REQUIRE(lstat(velo::comm::rendezvous_folder().c_str(), &is) == 0);
  CHECK(S_ISDIR(is.st_mode));
  CHECK((is.st_mode & 0777) == 0700);
  CHECK(is.st_uid == geteuid());
}

TEST_CASE("a stranger at the socket is sent away, whatever he says") {
  const std::string name = processes::name();
  processes ranks;
  ranks.start_rank(shm_desc(name, 0, 2), run_barrier);
  for (const char* text : {"", "hello", "velo shm but no more"}) {
    const int line = connect_to(socket_path(name));
    CHECK(send(line, text, std::strlen(text), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(std::strlen(text)));
    close(line);
  }
  ranks.start_rank(shm_desc(name, 1, 2), run_barrier);
  for (const ending& one : ranks.wait()) CHECK_OK(one);
}

// A later release may say more of itself than an earlier one, and the other way round.
TEST_CASE("ranks of another release are named, whatever it says besides") {
  const std::string name = processes::name();
  processes ranks;
  ranks.start_rank(shm_desc(name, 0, 2), [](const rank_of_group&) { return ending(); });
  struct {
    char magic[8] = {'v', 'e', 'l', 'o', ' ', 's', 'h', 'm'};
    char release[24] = "0.9.7";
    std::int32_t rank = 1, size = 2;
  } says;
  const int line = connect_to(socket_path(name));
  REQUIRE(send(line, &says, sizeof says, MSG_NOSIGNAL) == sizeof says);
  const ending one = ranks.wait()[0];
  close(line);
  CHECK_PEER(one, 1, "rank 1 with velo 0.9.7");
}

TEST_CASE("a rank that another release sends away says why, whatever that says besides") {
  const std::string name = processes::name(), path = socket_path(name);
  REQUIRE((mkdir(velo::comm::rendezvous_folder().c_str(), 0700) == 0 || errno == EEXIST));
  const int listening = listen_at(path);
  processes ranks;
  ranks.start_rank(shm_desc(name, 1, 2), run_barrier);
  const int line = accept(listening, nullptr, nullptr);
  struct {
    std::int32_t refused = 1, rank = 1;
    std::uint64_t slot_bytes = 0, identity = 0;
    char expected[96] = "ranks of velo 0.9.7", got[96] = "rank 1 with\n\x1b[2J another";
  } says;
  REQUIRE(send(line, &says, sizeof says, MSG_NOSIGNAL) == sizeof says);
  const ending one = ranks.wait()[0];
  close(line);
  close(listening);
  unlink(path.c_str());
  CHECK(one.code == VELO_ERR_PEER);
  CHECK(one.expected == "ranks of velo 0.9.7");
  CHECK(one.got == "rank 1 with??[2J another");
}

TEST_CASE("launchers say which rank a process is") {
  struct job {
    const char* what;
    const char* rank;
    const char* size;
    const char* here;
    const char* id;
    const char* got_elsewhere;  // with ranks on other hosts: a plugin, which is not beside a test
  };
  const job jobs[] = {{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                       "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "none in "},
                      {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT",
                       "4, of which 2 are here"}};
  for (const job& one : jobs) {
    INFO(one.what);
    const std::string id = processes::name();
    const auto launch = [&](processes& ranks, const char* rank, const char* size,
                            const char* here) {
      ranks.start([&, rank, size, here] {
        setenv(one.rank, rank, 1);
        setenv(one.size, size, 1);
        setenv(one.here, here, 1);
        setenv(one.id, id.c_str(), 1);
        rank_of_group me;
        velo_group_info info = VELO_GROUP_INFO_INIT;
        const velo_group_desc desc = group_desc();
        velo_status done = open_context(me);
        for (int round = 0; round < 3 && done == VELO_OK; ++round) {  // one after the other
          done = velo_group_create(me.context, &desc, &me.group);
          if (done == VELO_OK) done = run_barrier(me).code;
        }
        if (done == VELO_OK) done = velo_group_get_info(me.group, &info);
        ending all = ending_of(done, info.rank * 10 + info.size);
        velo_context_destroy(me.context);
        return all;
      });
    };
    processes ranks;
    launch(ranks, "0", "2", "2");
    launch(ranks, "1", "2", "2");
    const std::vector<ending> all = ranks.wait();
    for (int rank = 0; rank < 2; ++rank) {
      INFO(all[at(rank)].got);
      CHECK(all[at(rank)].code == VELO_OK);
      CHECK(all[at(rank)].value == rank * 10 + 2);
    }
    processes odd;
    launch(odd, "2", "2", "2");
    launch(odd, "x", "2", "2");
    launch(odd, "0", "4", "2");
    const std::vector<ending> wrong = odd.wait();
    CHECK(wrong[0].code == VELO_ERR_ARGUMENT);
    CHECK(wrong[1].code == VELO_ERR_ARGUMENT);
    CHECK(wrong[2].code == VELO_ERR_UNSUPPORTED);
    CHECK(wrong[2].got.find(one.got_elsewhere) == 0);
  }
}

TEST_CASE("groups come and go without a descriptor, a mapping or a file left") {
  processes ranks;
  ranks.start([] {
    ending all;
    rank_of_group both[2];
    for (rank_of_group& one : both) open_context(one);
    std::size_t before = 0;
    for (int round = 0; round < 40; ++round) {
      if (round == 5) before = holdings().descriptors;
      const std::string name = "cycle-" + std::to_string(getpid());
      std::atomic<int> failed{0};
      // threads of one process may use it, too
      on_threads(2, [&](int rank) {
        const velo_group_desc desc = shm_desc(name, rank, 2);
        velo_group group = nullptr;
        failed += velo_group_create(both[rank].context, &desc, &group) != VELO_OK;
        failed += velo_group_barrier(both[rank].stream, group) != VELO_OK;
        if (round % 3 == rank) velo_group_abort(group);
        velo_group_destroy(group);
      });
      all.value += failed;
    }
    const holdings now;
    all.value += now.descriptors != before || now.areas != 0 ? 100 : 0;
    all.code = VELO_OK;
    return all;
  });
  check_right(ranks.wait());
}

TEST_CASE("names, ranks and sizes that make no sense are refused") {
  const struct {
    const char* name;
    int rank, size;
    velo_transport transport;
    velo_status code;
  } rows[] = {{nullptr, 0, 2, VELO_TRANSPORT_SHM, VELO_ERR_NULL},
              {"a/b", 0, 2, VELO_TRANSPORT_SHM, VELO_ERR_ARGUMENT},
              {"", 0, 2, VELO_TRANSPORT_SHM, VELO_ERR_NULL},
              {"..", 0, 2, VELO_TRANSPORT_SHM, VELO_ERR_ARGUMENT},
              {"x", 2, 2, VELO_TRANSPORT_SHM, VELO_ERR_ARGUMENT},
              {"x", 0, 0, VELO_TRANSPORT_SHM, VELO_ERR_ARGUMENT},
              {"x", 0, 1025, VELO_TRANSPORT_SHM, VELO_ERR_ARGUMENT},
              {"x", -1, 2, VELO_TRANSPORT_AUTO, VELO_ERR_ARGUMENT},
              {"x", 0, 2, VELO_TRANSPORT_SELF, VELO_ERR_UNSUPPORTED},
              {"x", 0, 2, VELO_TRANSPORT_LOCAL, VELO_ERR_UNSUPPORTED}};
  processes ranks;
  for (const auto& row : rows) {
    velo_group_desc desc = shm_desc("", row.rank, row.size, 100);
    desc.name = row.name;
    desc.transport = row.transport;
    ranks.start_rank(desc, [](const rank_of_group&) { return ending(); });
  }
  const std::vector<ending> all = ranks.wait();
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO("row " << i << ": " << all[i]);
    CHECK(all[i].code == rows[i].code);
  }
}
