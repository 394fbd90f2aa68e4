// Processes of the same user, and of others, that disturb the rendezvous, or write anything into
// the memory that ranks share: whatever they do, ranks end with a status, and in time.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "comm/board.hpp"
#include "comm/collective/every_call.hpp"
#include "comm/processes.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/sockets.hpp"
#include "tests/random.hpp"

using namespace velo::testing;
namespace comm = velo::comm;

namespace {

ending run_barrier(const rank_of_group& me) {
  return ending_of(velo_group_barrier(me.stream, me.group));
}

// As a rank begins to greet (rendezvous.cpp).
struct greeting {
  char magic[8] = {'v', 'e', 'l', 'o', ' ', 's', 'h', 'm'};
  char release[24] = {};
  std::int32_t rank = 1, size = 2;
  std::uint64_t more[2] = {};
};

const std::string shared = std::string("/tmp") + "/";  // names in it carry this process's user

bool become(uid_t user) {
  return setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

// A rank of two as a user, where `prepare` has run; it joins the other.
void start_as(
    processes& ranks, uid_t user, const velo_group_desc& desc,
    const std::function<void()>& prepare = [] {}) {
  ranks.start([&] {
    if (!become(user)) return ending();
    prepare();
    rank_of_group me;
    ending all = ending_of(join_group(me, desc));
    velo_context_destroy(me.context);
    return all;
  });
}

// Two ranks of a user, where `prepare` has run; how they ended.
std::vector<ending> met_as(
    uid_t user, const std::function<void()>& prepare = [] {}, int timeout_ms = 5000) {
  const std::string name = processes::name();
  processes ranks;
  for (int rank = 0; rank < 2; ++rank)
    start_as(ranks, user, shm_desc(name, rank, 2, timeout_ms), prepare);
  return ranks.wait();
}

// Another user takes the name of a user's folder.
void take_folder(const std::string& folder) {
  processes other;
  other.start([&] {
    return ending_of(become(65534) && mkdir(folder.c_str(), 0700) == 0 ? VELO_OK : VELO_ERR_IO);
  });
  REQUIRE(other.wait()[0].code == VELO_OK);
}

// The area of this process's only group, whose mappings follow each other.
mapping mapped_area() {
  const std::vector<mapping> all = mapped_areas();
  return {all.front().begin,
          static_cast<std::size_t>(all.back().begin + all.back().bytes - all.front().begin)};
}

// Writes words that no rank writes, most of them where ranks keep what they say of themselves.
class scribbler {
 public:
  scribbler(unsigned seed, int ranks)
      : random_(seed),
        area_(mapped_area()),
        control_(comm::shared_area::needed_for(ranks, comm::shared_area::slot_for(0, ranks)) / 8) {}

  void write() {
    const std::size_t words = random_.below(4) != 0 ? control_ : area_.bytes / 8;
    const std::size_t at =
        random_.below(2) != 0 ? random_() % (control_ / 8) : random_.below(words);
    const std::uint64_t values[] = {0,
                                    ~std::uint64_t{0},
                                    random_.below(16),
                                    std::uint64_t{1} << random_.below(64),
                                    std::uint64_t{random_()} << 32 | random_(),
                                    random_.below(100000),
                                    INT64_MAX,
                                    0x0101010101010101u * random_.below(256)};
    const std::uint64_t value = values[random_() % std::size(values)];
    std::memcpy(area_.begin + at * 8 + (random_.one_in(4) ? random_.below(8) : 0), &value,
                at * 8 + 16 <= area_.bytes ? 8 : 1);
  }

 private:
  thread_random32 random_;
  const mapping area_;
  const std::size_t control_;
};

// A user whom nobody is; 0, which it says, where only root could become another user.
uid_t another_user() {
  if (geteuid() == 0) return 65000 + static_cast<uid_t>(getpid() % 500);
  WARN("not tested: only root can become another user");
  return 0;
}

}  // namespace

TEST_CASE("processes that connect and say nothing, half, or nonsense hold no ranks") {
  const std::string name = processes::name(), path = socket_path(name);
  processes ranks;
  ranks.start_rank(shm_desc(name, 0, 2), run_barrier);
  std::vector<int> lines;
  for (int i = 0; i < 40; ++i) lines.push_back(connect_to(path));
  const auto say = [&](int line, const void* bytes, std::size_t size) {
    send(line, bytes, size, MSG_NOSIGNAL);
  };
  greeting good, other;
  say(lines[1], &good, 20);  // half of a greeting
  say(lines[2], "GET / HTTP/1.1\r\n\r\n", 18);
  const std::int32_t odd[][2] = {{-5, 2}, {1 << 30, INT32_MAX},  {2, 2}, {0, 0},
                                 {1, -1}, {INT32_MIN, INT32_MIN}};
  for (std::size_t i = 0; i < std::size(odd); ++i) {
    other.rank = odd[i][0], other.size = odd[i][1];
    say(lines[3 + i], &other, sizeof other);
  }
  const std::int64_t begin = monotonic_ns();
  ranks.start_rank(shm_desc(name, 1, 2), run_barrier);
  const std::vector<ending> all = ranks.wait();
  for (const ending& one : all) {
    CHECK_OK(one);
    CHECK(one.at_ns - begin < 5000000000);  // not the deadline, nor a second for each
  }
  for (const int line : lines) close(line);
}

TEST_CASE("a silent process makes a rank that does not come no later to be named") {
  const std::string name = processes::name(), path = socket_path(name);
  processes ranks;
  ranks.start_rank(shm_desc(name, 0, 2, 1500), run_barrier);
  const int line = connect_to(path);
  const ending one = ranks.wait()[0];
  CHECK(one.code == VELO_ERR_PEER);
  CHECK(one.rank == 1);
  char closed;
  CHECK(recv(line, &closed, 1, MSG_DONTWAIT) == 0);  // sent away
  close(line);
}

TEST_CASE("a process that listens in rank 0's place holds no ranks once rank 0 listens") {
  const auto silent = [](int) {};
  const auto junk = [](int line) { send(line, "abc", 3, MSG_NOSIGNAL); };
  const auto zeros = [](int line) {
    const char all[2000] = {};
    send(line, all, sizeof all, MSG_NOSIGNAL);
  };
  struct {
    const char* what;
    bool accepts;
    std::function<void(int)> say;
  } const cases[] = {{"does not accept", false, silent},
                     {"says nothing", true, silent},
                     {"says half of a word", true, junk},
                     {"says zeros", true, zeros}};
  for (const auto& one : cases) {
    INFO("it " << one.what);
    const std::string name = processes::name();
    const std::string path = socket_path(name);
    const int listening = listen_at(path);
    processes ranks;
    ranks.start_rank(shm_desc(name, 1, 2), run_barrier);
    std::atomic<bool> over{false};
    std::vector<int> lines;
    std::thread liar([&] {
      pollfd door{listening, POLLIN, 0};
      while (one.accepts && !over) {
        if (poll(&door, 1, 10) <= 0) continue;
        lines.push_back(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
        one.say(lines.back());
      }
    });
    pause_ms(100);
    const std::int64_t begin = monotonic_ns();
    ranks.start_rank(shm_desc(name, 0, 2), run_barrier);
    for (const ending& rank : ranks.wait()) {
      CHECK_OK(rank);
      CHECK(rank.at_ns - begin < 5000000000);  // not the deadline
    }
    over = true;
    liar.join();
    for (const int line : lines) close(line);
    close(listening);
  }
}

TEST_CASE("a made-up release reaches the record without control characters") {
  const std::string name = processes::name(), path = socket_path(name);
  processes ranks;
  ranks.start_rank(shm_desc(name, 0, 2), run_barrier);
  greeting odd;
  constexpr char made_up[] = "1\n\x1b[31m\x7f\xc2\x9b%s\xff";
  std::memcpy(odd.release, made_up, sizeof made_up);
  const int line = connect_to(path);
  CHECK(send(line, &odd, sizeof odd, MSG_NOSIGNAL) == sizeof odd);
  const ending one = ranks.wait()[0];
  close(line);
  CHECK(one.code == VELO_ERR_PEER);
  CHECK(one.got == "rank 1 with velo 1??[31m???%s?");
}

TEST_CASE("a rank 0 without descriptors leaves no file at the rendezvous") {
  const std::string name = processes::name();
  for (int free = 0; free < 8; ++free) {
    processes ranks;
    ranks.start([&] {
      velo_context context = nullptr;
      velo_group group = nullptr;
      const velo_group_desc desc = shm_desc(name, 0, 2, 50);
      if (velo_context_create(nullptr, &context) != VELO_OK) return ending();
      int lowest = dup(0);
      close(lowest);
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      const rlimit few{static_cast<rlim_t>(lowest + free), limit.rlim_max};
      setrlimit(RLIMIT_NOFILE, &few);
      ending all = ending_of(velo_group_create(context, &desc, &group));
      setrlimit(RLIMIT_NOFILE, &limit);
      velo_context_destroy(context);
      return all;
    });
    const ending one = ranks.wait()[0];
    INFO(free << " descriptors: " << one);
    CHECK((one.code == VELO_ERR_IO || one.code == VELO_ERR_PEER));
    CHECK(entries_of(comm::rendezvous_folder(), name).empty());
  }
}

TEST_CASE("another user who takes the name of the folder disturbs no rendezvous") {
  const uid_t user = another_user();
  if (user == 0) return;
  const std::string usual = "velo-" + std::to_string(user), folder = shared + usual;
  take_folder(folder);
  for (int again = 0; again < 2; ++again)
    for (const ending& one : met_as(user)) CHECK_OK(one);
  CHECK(rmdir(folder.c_str()) == 0);
  const std::vector<std::string> own = entries_of("/tmp", usual);
  CHECK(own.size() == 1);  // made once
  for (const std::string& one : own) {
    struct stat is {};
    REQUIRE(lstat((shared + one).c_str(), &is) == 0);
    CHECK(is.st_uid == user);
    CHECK((is.st_mode & 07777) == 0700);
    CHECK(rmdir((shared + one).c_str()) == 0);  // empty
  }
}

TEST_CASE("another user who gives the name of the folder back keeps ranks apart no more") {
  const uid_t user = another_user();
  if (user == 0) return;
  const std::string usual = "velo-" + std::to_string(user), folder = shared + usual;
  take_folder(folder);
  const std::string name = processes::name();
  processes ranks;
  start_as(ranks, user, shm_desc(name, 0, 2, 5000));
  const auto listens = [&] {
    for (const std::string& one : entries_of("/tmp", usual + "-"))
      if (access((shared + one + "/" + name + ".socket").c_str(), F_OK) == 0) return true;
    return false;
  };
  for (int i = 0; i < 5000 && !listens(); ++i) pause_ms(1);
  CHECK(rmdir(folder.c_str()) == 0);
  start_as(ranks, user, shm_desc(name, 1, 2, 5000));
  for (const ending& one : ranks.wait()) CHECK_OK(one);
  for (const std::string& one : entries_of("/tmp", usual))
    CHECK(rmdir((shared + one).c_str()) == 0);
}

TEST_CASE("a folder of the user's that others can enter is refused, with what was found") {
  const uid_t user = another_user();
  if (user == 0) return;
  const std::string folder = "/tmp/velo-" + std::to_string(user);
  const auto open_to_all = [&] {
    mkdir(folder.c_str(), 0700);
    chmod(folder.c_str(), 0755);
  };
  const ending zero = met_as(user, open_to_all, 300)[0];
  CHECK(zero.code == VELO_ERR_IO);
  CHECK(zero.got == folder + ": mode 40755 of user " + std::to_string(user));
  CHECK(rmdir(folder.c_str()) == 0);
}

TEST_CASE(
    "ranks meet in the folder that the system made for the user, if nobody else can enter it") {
  char runtime[] = "/tmp/velo-run-XXXXXX";
  REQUIRE(mkdtemp(runtime) != nullptr);
  const std::string own = std::string(runtime) + "/velo";
  const auto folder_with = [&](mode_t mode) {
    REQUIRE(chmod(runtime, mode) == 0);
    std::string found = comm::rendezvous_folder();
    rmdir(own.c_str());
    return found;
  };
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = folder != nullptr ? folder : "";
  REQUIRE(setenv("XDG_RUNTIME_DIR", runtime, 1) == 0);
  CHECK(folder_with(0700) == own);
  CHECK(folder_with(0755) != own);
  // A rank without XDG_RUNTIME_DIR finds rank 0 in the shared folder, and the other way round.
  REQUIRE(chmod(runtime, 0700) == 0);
  const std::string name = processes::name();
  processes ranks;
  unsetenv("XDG_RUNTIME_DIR");
  ranks.start_rank(shm_desc(name, 0, 2), run_barrier);
  REQUIRE(setenv("XDG_RUNTIME_DIR", runtime, 1) == 0);
  ranks.start_rank(shm_desc(name, 1, 2), run_barrier);
  for (const ending& one : ranks.wait()) CHECK(one.code == VELO_OK);
  folder != nullptr ? setenv("XDG_RUNTIME_DIR", before.c_str(), 1) : unsetenv("XDG_RUNTIME_DIR");
  rmdir(own.c_str());
  CHECK(rmdir(runtime) == 0);
}

// Every collective and messages go on until one fails. A rank writes into the area meanwhile, from
// another thread of it or instead of taking part.
TEST_CASE("a rank that writes anything into shared memory crashes and holds no other") {
  const char* asked = std::getenv("VELO_SCRIBBLES");
  const unsigned rounds = asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : 24;
  const std::vector<named_call> calls = every_call();
  int failed = 0, named = 0;
  for (unsigned seed = 1; seed <= rounds; ++seed) {
    const int size = 3, culprit = static_cast<int>(seed % 3);
    const bool takes_part = seed % 2 == 0;
    processes ranks;
    ranks.start_all(size, group_desc(300), [&](const rank_of_group& me) {
      alarm(30);
      call_tensors v(seed % 4 == 0 ? 100000 : 1000, size);
      std::atomic<bool> over{false};
      std::thread writes;
      const auto scribble = [&] {
        scribbler one(seed, size);
        for (int i = 0; i < 3000 && !over; ++i) {
          one.write();
          if (i % 16 == 0) pause_ms(1);
        }
      };
      velo_status done = velo_group_barrier(me.stream, me.group);
      if (me.rank == culprit && !takes_part) {
        scribble();
        return ending_of(done);
      }
      if (me.rank == culprit) writes = std::thread(scribble);
      thread_random32 random(seed);  // the same calls on all ranks
      for (int i = 0; i < 2000 && done == VELO_OK; ++i)
        done = calls[random.below(calls.size())].call({me.stream, me.group, me.rank}, v);
      ending all = ending_of(done);
      over = true;
      if (writes.joinable()) writes.join();
      return all;
    });
    const std::vector<ending> all = ranks.wait();
    for (int rank = 0; rank < size; ++rank) {
      const ending& one = all[at(rank)];
      INFO("seed " << seed << ", rank " << rank << ": " << one);
      CHECK(one.code != -1);
      CHECK((one.code == VELO_OK || one.code == VELO_ERR_PEER));
      failed += one.code == VELO_ERR_PEER;
      named += one.code == VELO_ERR_PEER && one.rank >= 0 && one.rank < size;
    }
  }
  CHECK(named == failed);
  CHECK(failed > 0);
}
