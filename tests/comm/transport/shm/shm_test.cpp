// Ranks as processes of one host: the rendezvous, results, and failures when a process is killed,
// stopped, or no rank of the group.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>

#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

std::string folder() {
  return velo::comm::rendezvous_folder();
}

velo_status sum(const member& me, std::vector<float>& x) {
  const auto size = static_cast<std::int64_t>(x.size());
  const velo_tensor view = view_of(x.data(), f32, size);
  return velo_group_all_reduce(me.stream, me.group, nullptr, &view, &view);
}

ending run_barrier(const member& me) {
  return ending_of(velo_group_barrier(me.stream, me.group));
}

velo_group_desc rank_0_of_2(const std::string& name) {
  velo_group_desc desc = group_desc();
  desc.transport = VELO_TRANSPORT_SHM;
  desc.name = name.c_str();
  desc.size = 2;
  desc.rank = 0;
  return desc;
}

// All-reduces of a size until one fails; how long that one took, and the longest before.
ending sum_on(const member& me, std::size_t size) {
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

int open_descriptors() {
  int count = 0;
  DIR* all = opendir("/proc/self/fd");
  while (readdir(all) != nullptr) ++count;
  closedir(all);
  return count;
}

int mapped_areas() {
  int count = 0;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char row[512];
  while (std::fgets(row, sizeof row, maps) != nullptr)
    count += std::strstr(row, "memfd:velo") != nullptr;
  std::fclose(maps);
  return count;
}

// To rank 0's socket, once it listens.
int line_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder() + "/" + name + ".socket";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int line = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  int tries = 0;
  while (connect(line, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         ++tries < 2000)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(tries < 2000);
  return line;
}

}  // namespace

TEST_CASE("processes rendezvous by name and reduce small and large tensors") {
  for (const int size : {1, 2, 3, 4, 8}) {
    INFO(size << " ranks");
    processes ranks;
    ranks.start_all(size, group_desc(), [](const member& me) {
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
    for (const ending& one : ranks.wait()) {
      INFO(one.expected << ", " << one.got);
      CHECK(one.code == VELO_OK);
      CHECK(one.value == 0);
    }
  }
}

TEST_CASE("every collective gives processes what it gives threads") {
  processes ranks;
  velo_group_desc desc = group_desc();
  desc.buffer = 16 << 10;
  ranks.start_all(3, desc, [](const member& me) {
    constexpr std::int64_t part = 5000, whole = 3 * part;
    std::vector<std::int64_t> in(whole), out(whole);
    for (std::int64_t i = 0; i < whole; ++i) in[static_cast<std::size_t>(i)] = me.rank * 100000 + i;
    const velo_tensor all_in = view_of(in.data(), i64, whole);
    const velo_tensor all_out = view_of(out.data(), i64, whole);
    const velo_tensor in_part = view_of(in.data(), i64, part);
    const velo_tensor out_part = view_of(out.data(), i64, part);
    ending all;
    const auto at = [&](std::int64_t i) { return out[static_cast<std::size_t>(i)]; };
    velo_status done = velo_group_all_gather(me.stream, me.group, &in_part, &all_out);
    for (std::int64_t i = 0; i < whole; ++i) all.value += at(i) != i / part * 100000 + i % part;
    if (done == VELO_OK) done = velo_group_all_to_all(me.stream, me.group, &all_in, &all_out);
    for (std::int64_t i = 0; i < whole; ++i)
      all.value += at(i) != i / part * 100000 + me.rank * part + i % part;
    if (done == VELO_OK)
      done = velo_group_reduce_scatter(me.stream, me.group, nullptr, &all_in, &out_part);
    for (std::int64_t i = 0; i < part; ++i) all.value += at(i) != 300000 + 3 * (me.rank * part + i);
    if (done == VELO_OK) done = velo_group_broadcast(me.stream, me.group, 2, &all_in);
    for (std::int64_t i = 0; i < whole; ++i)
      all.value += in[static_cast<std::size_t>(i)] != 200000 + i;
    if (done == VELO_OK) done = velo_group_gather(me.stream, me.group, 1, &in_part, &all_out);
    if (done == VELO_OK) done = velo_group_scatter(me.stream, me.group, 1, &all_out, &in_part);
    if (done == VELO_OK)
      done = velo_group_reduce(me.stream, me.group, 0, nullptr, &in_part, &out_part);
    for (std::int64_t i = 0; me.rank == 0 && i < part; ++i) all.value += at(i) != 3 * (200000 + i);
    all.code = done;
    return all;
  });
  for (const ending& one : ranks.wait()) {
    CHECK(one.code == VELO_OK);
    CHECK(one.value == 0);
  }
}

TEST_CASE("a killed process is named to all that wait, within 150 ms") {
  for (const std::size_t size : {1, 1000, 3000000})
    for (const int victim : {0, 2}) {
      INFO(size << " elements, rank " << victim);
      processes ranks;
      ranks.start_all(4, group_desc(), [size](const member& me) { return sum_on(me, size); });
      const lateness late_by;
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      const std::int64_t killed = monotonic_ns();
      REQUIRE(kill(ranks.pid(victim), SIGKILL) == 0);
      const std::vector<ending> all = ranks.wait();
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        const ending& one = all[static_cast<std::size_t>(rank)];
        CHECK(one.code == VELO_ERR_PEER);
        CHECK(one.rank == victim);
        CHECK(std::string(one.got) == "rank " + std::to_string(victim) + " whose process ended");
        // A rank that computes does not poll; a sanitizer makes that long.
        const double computes = static_cast<double>(one.calm_ns) / 1e6;
        CHECK(static_cast<double>(one.at_ns - killed) / 1e6 < 150 + computes + late_by.of_ms(4));
      }
    }
}

TEST_CASE("a stopped process is named at the deadline, and fails when it continues") {
  processes ranks;
  ranks.start_all(3, group_desc(400), [](const member& me) { return sum_on(me, 1000); });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const lateness late_by;
  REQUIRE(kill(ranks.pid(1), SIGSTOP) == 0);
  const std::int64_t stopped = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const std::int64_t goes_on = monotonic_ns();
  REQUIRE(kill(ranks.pid(1), SIGCONT) == 0);
  const std::vector<ending> all = ranks.wait();
  for (const ending& one : all) {
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 1);
    CHECK(std::string(one.got) == "rank 1 not there");
  }
  for (const int rank : {0, 2}) {
    const ending& one = all[static_cast<std::size_t>(rank)];
    CHECK(one.at_ns < goes_on);
    CHECK(static_cast<double>(one.at_ns - stopped) / 1e6 < 420 + late_by.of_ms(2));
  }
  CHECK(std::max(all[0].value, all[2].value) >= 400000000);  // of who waited first
}

TEST_CASE("a process that ends its group in good order is no dead one") {
  processes ranks;
  ranks.start_all(3, group_desc(), [](const member& me) {
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
    CHECK(all[static_cast<std::size_t>(rank)].code == VELO_ERR_PEER);
    CHECK(std::string(all[static_cast<std::size_t>(rank)].got) == "rank 1 that left the group");
  }
}

TEST_CASE("ranks that do not come to a rendezvous are named, on both sides") {
  velo_group_desc desc = group_desc(300);
  desc.transport = VELO_TRANSPORT_SHM;
  desc.size = 4;
  const std::string name = processes::name();
  desc.name = name.c_str();
  const auto never = [](const member&) { return ending(); };
  SECTION("some of the others") {
    processes ranks;
    for (const int rank : {0, 2}) {
      desc.rank = rank;
      ranks.start_rank(desc, never);
      desc.timeout_ns *= 3;  // rank 2 hears of it, however late rank 0 begins
    }
    for (const ending& one : ranks.wait()) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 1);
      CHECK(std::string(one.got) == "ranks 1, 3 not there");
    }
  }
  SECTION("rank 0") {
    processes ranks;
    desc.rank = 3;
    ranks.start_rank(desc, never);
    const ending one = ranks.wait()[0];
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 0);
    CHECK(std::string(one.got) == "rank 0 not there");
  }
  SECTION("ranks of another size") {
    processes ranks;
    desc.timeout_ns = 20000000000;
    desc.size = 2;
    desc.rank = 0;
    ranks.start_rank(desc, never);
    desc.size = 3;
    desc.rank = 1;
    ranks.start_rank(desc, never);
    for (const ending& one : ranks.wait()) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 1);
      CHECK(std::string(one.expected) == "ranks 1 to 1 of 2");
      CHECK(std::string(one.got) == "rank 1 of 3");
    }
  }
  SECTION("a rank twice: the second is sent away, the others go on") {
    processes ranks;
    desc.timeout_ns = 20000000000;
    desc.size = 3;
    for (const int rank : {0, 1, 1}) {
      desc.rank = rank;
      ranks.start_rank(desc, run_barrier);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    desc.rank = 2;
    ranks.start_rank(desc, run_barrier);
    const std::vector<ending> all = ranks.wait();
    CHECK(all[0].code == VELO_OK);
    CHECK(all[1].code == VELO_OK);
    CHECK(all[2].code == VELO_ERR_PEER);
    CHECK(std::string(all[2].got) == "rank 1 again");
    CHECK(all[3].code == VELO_OK);
  }
}

TEST_CASE(
    "the files of a killed rank 0 hinder no later group, and a living rank 0 is not disturbed") {
  const std::string name = processes::name();
  velo_group_desc desc = rank_0_of_2(name);
  processes first;
  first.start_rank(desc, run_barrier);
  const std::string socket = folder() + "/" + name + ".socket";
  for (int i = 0; i < 1000 && access(socket.c_str(), F_OK) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(access(socket.c_str(), F_OK) == 0);
  processes second;
  second.start_rank(desc, run_barrier);
  const ending refused = second.wait()[0];
  CHECK(refused.code == VELO_ERR_STATE);
  REQUIRE(kill(first.pid(0), SIGKILL) == 0);
  first.wait();
  CHECK(access(socket.c_str(), F_OK) == 0);  // left behind
  processes ranks;
  desc.rank = 1;
  ranks.start_rank(desc, run_barrier);  // connects to it
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  desc.rank = 0;
  ranks.start_rank(desc, run_barrier);
  for (const ending& one : ranks.wait()) CHECK(one.code == VELO_OK);
  CHECK(access(socket.c_str(), F_OK) != 0);
  CHECK(access((folder() + "/" + name + ".lock").c_str(), F_OK) != 0);
}

TEST_CASE("the folder of sockets is the user's alone, and each socket too") {
  processes ranks;
  ranks.start_all(2, group_desc(), run_barrier);
  ranks.wait();
  struct stat is {};
  REQUIRE(lstat(folder().c_str(), &is) == 0);
  CHECK(S_ISDIR(is.st_mode));
  CHECK((is.st_mode & 0777) == 0700);
  CHECK(is.st_uid == geteuid());
}

TEST_CASE("a stranger at the socket is sent away, whatever he says") {
  const std::string name = processes::name();
  velo_group_desc desc = rank_0_of_2(name);
  processes ranks;
  ranks.start_rank(desc, run_barrier);
  const char* says[] = {"", "hello", "velo shm but no more"};
  for (const char* text : says) {
    const int line = line_to(name);
    CHECK(send(line, text, std::strlen(text), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(std::strlen(text)));
    close(line);
  }
  desc.rank = 1;
  ranks.start_rank(desc, run_barrier);
  for (const ending& one : ranks.wait()) CHECK(one.code == VELO_OK);
}

// A later release may say more of itself than an earlier one, and the other way round.
TEST_CASE("ranks of another release are named, whatever it says besides") {
  const std::string name = processes::name();
  velo_group_desc desc = rank_0_of_2(name);
  processes ranks;
  ranks.start_rank(desc, [](const member&) { return ending(); });
  struct {
    char magic[8] = {'v', 'e', 'l', 'o', ' ', 's', 'h', 'm'};
    char release[24] = "0.9.7";
    std::int32_t rank = 1, size = 2;
  } says;
  const int line = line_to(name);
  REQUIRE(send(line, &says, sizeof says, MSG_NOSIGNAL) == sizeof says);
  const ending one = ranks.wait()[0];
  close(line);
  CHECK(one.code == VELO_ERR_PEER);
  CHECK(one.rank == 1);
  CHECK(std::string(one.got) == "rank 1 with velo 0.9.7");
}

TEST_CASE("a rank that another release sends away says why, whatever that says besides") {
  const std::string name = processes::name(), path = folder() + "/" + name + ".socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listening = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  REQUIRE((mkdir(folder().c_str(), 0700) == 0 || errno == EEXIST));
  REQUIRE(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listening, 1) == 0);
  velo_group_desc desc = rank_0_of_2(name);
  desc.rank = 1;
  processes ranks;
  ranks.start_rank(desc, run_barrier);
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
  CHECK(std::string(one.expected) == "ranks of velo 0.9.7");
  CHECK(std::string(one.got) == "rank 1 with??[2J another");
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
        velo_context context = nullptr;
        velo_group group = nullptr;
        velo_stream stream = nullptr;
        velo_group_info info = VELO_GROUP_INFO_INIT;
        velo_group_desc desc = group_desc();
        velo_status done = velo_context_create(nullptr, &context);
        if (done == VELO_OK) done = velo_context_stream(context, &stream);
        for (int round = 0; round < 3 && done == VELO_OK; ++round) {  // one after the other
          done = velo_group_create(context, &desc, &group);
          if (done == VELO_OK) done = velo_group_barrier(stream, group);
        }
        if (done == VELO_OK) done = velo_group_get_info(group, &info);
        ending all = ending_of(done);
        all.value = info.rank * 10 + info.size;
        velo_context_destroy(context);
        return all;
      });
    };
    processes ranks;
    launch(ranks, "0", "2", "2");
    launch(ranks, "1", "2", "2");
    const std::vector<ending> all = ranks.wait();
    for (int rank = 0; rank < 2; ++rank) {
      INFO(all[static_cast<std::size_t>(rank)].got);
      CHECK(all[static_cast<std::size_t>(rank)].code == VELO_OK);
      CHECK(all[static_cast<std::size_t>(rank)].value == rank * 10 + 2);
    }
    processes odd;
    launch(odd, "2", "2", "2");
    launch(odd, "x", "2", "2");
    launch(odd, "0", "4", "2");
    const std::vector<ending> wrong = odd.wait();
    CHECK(wrong[0].code == VELO_ERR_ARGUMENT);
    CHECK(wrong[1].code == VELO_ERR_ARGUMENT);
    CHECK(wrong[2].code == VELO_ERR_UNSUPPORTED);
    CHECK(std::string(wrong[2].got).find(one.got_elsewhere) == 0);
  }
}

TEST_CASE("groups come and go without a descriptor, a mapping or a file left") {
  processes ranks;
  ranks.start([] {
    ending all;
    velo_context contexts[2] = {};
    velo_stream streams[2] = {};
    for (int r = 0; r < 2; ++r) {
      velo_context_create(nullptr, &contexts[r]);
      velo_context_stream(contexts[r], &streams[r]);
    }
    int before = 0;
    for (int round = 0; round < 40; ++round) {
      if (round == 5) before = open_descriptors();
      const std::string name = "cycle-" + std::to_string(getpid());
      std::vector<std::thread> threads;
      std::atomic<int> failed{0};
      for (int rank = 0; rank < 2; ++rank)  // threads of one process may use it, too
        threads.emplace_back([&, rank] {
          velo_group_desc desc = group_desc();
          desc.transport = VELO_TRANSPORT_SHM;
          desc.name = name.c_str();
          desc.rank = rank;
          desc.size = 2;
          velo_group group = nullptr;
          failed += velo_group_create(contexts[rank], &desc, &group) != VELO_OK;
          failed += velo_group_barrier(streams[rank], group) != VELO_OK;
          if (round % 3 == rank) velo_group_abort(group);
          velo_group_destroy(group);
        });
      for (std::thread& one : threads) one.join();
      all.value += failed;
    }
    all.value += 100 * (open_descriptors() - before) + 10000 * mapped_areas();
    all.code = VELO_OK;
    return all;
  });
  const ending one = ranks.wait()[0];
  CHECK(one.code == VELO_OK);
  CHECK(one.value == 0);
}

TEST_CASE("names, ranks and sizes that make no sense are refused") {
  processes ranks;
  const auto try_one = [&](const char* name, int rank, int size, velo_transport how) {
    velo_group_desc desc = group_desc(100);
    desc.transport = how;
    desc.name = name;
    desc.rank = rank;
    desc.size = size;
    ranks.start_rank(desc, [](const member&) { return ending(); });
  };
  try_one(nullptr, 0, 2, VELO_TRANSPORT_SHM);
  try_one("a/b", 0, 2, VELO_TRANSPORT_SHM);
  try_one("", 0, 2, VELO_TRANSPORT_SHM);
  try_one("..", 0, 2, VELO_TRANSPORT_SHM);
  try_one("x", 2, 2, VELO_TRANSPORT_SHM);
  try_one("x", 0, 0, VELO_TRANSPORT_SHM);
  try_one("x", 0, 1025, VELO_TRANSPORT_SHM);
  try_one("x", -1, 2, VELO_TRANSPORT_AUTO);
  try_one("x", 0, 2, VELO_TRANSPORT_SELF);
  try_one("x", 0, 2, VELO_TRANSPORT_LOCAL);
  const std::vector<ending> all = ranks.wait();
  CHECK(all[0].code == VELO_ERR_NULL);
  for (const std::size_t i : {1, 2, 3, 4, 5, 6, 7})
    CHECK(all[i].code == (i == 2 ? VELO_ERR_NULL : VELO_ERR_ARGUMENT));
  CHECK(all[8].code == VELO_ERR_UNSUPPORTED);
  CHECK(all[9].code == VELO_ERR_UNSUPPORTED);
}
