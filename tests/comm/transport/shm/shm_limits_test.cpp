// Ranks as processes where the system does not play along: a killed rank in every collective, no
// descriptors, no memory, a full /dev/shm, another user, a fork, an abort; and what waiting costs.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>

#include "comm/board.hpp"
#include "comm/collective/every_call.hpp"
#include "comm/processes.hpp"
#include "comm/transport/shm/sockets.hpp"

using namespace velo::testing;

namespace {

rlimit limit_of(int what) {
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource>(what), &now);
  return now;
}

void limit(int what, rlim_t to) {
  rlimit now = limit_of(what);
  now.rlim_cur = to;
  setrlimit(static_cast<__rlimit_resource>(what), &now);
}

// The lowest number from which on all are free.
int first_free_descriptor() {
  int highest = 0;
  for (int one = 0; one < 1024; ++one)
    if (fcntl(one, F_GETFD) >= 0) highest = one;
  int lowest = 0;
  while (lowest <= highest) lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);  // fills the holes
  close(lowest);
  return lowest;
}

// A rank of two that meets under a limit, and a barrier; how it ended, and whether it works
// without.
ending meet_under(int what, rlim_t most, const velo_group_desc& desc) {
  rank_of_group me;
  velo_status done = open_context(me);
  if (done != VELO_OK) return ending_of(done);
  const rlim_t before = limit_of(what).rlim_cur;
  if (most != RLIM_INFINITY) limit(what, most);
  done = velo_group_create(me.context, &desc, &me.group);
  if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
  ending all = ending_of(done);
  limit(what, before);
  velo_context_destroy(me.context);
  return all;
}

}  // namespace

TEST_CASE("a rank killed inside any collective is named to all others") {
  for (const named_call& is : every_call()) {
    INFO(is.name);
    const board rounds;
    processes ranks;
    ranks.start_all(3, group_desc(), [&](const rank_of_group& me) {
      call_tensors v(70000, 3);
      while (true) {
        const velo_status done = is.call({me.stream, me.group, me.rank}, v);
        if (done != VELO_OK) return ending_of(done);
        ++rounds.at[me.rank];
      }
    });
    for (int rank = 0; rank < 3; ++rank) rounds.await(rank, 3);
    REQUIRE(kill(ranks.pid(1), SIGKILL) == 0);
    const std::vector<ending> all = ranks.wait();
    for (const std::size_t rank : {0, 2}) {
      CHECK_PEER(all[rank], 1, "rank 1 whose process ended");
    }
  }
}

TEST_CASE("an abort from another thread of one process ends the waits of the others") {
  processes ranks;
  ranks.start_all(3, group_desc(), [](const rank_of_group& me) {
    std::thread other;
    if (me.rank == 1)
      other = std::thread([&] {
        pause_ms(20);
        velo_group_abort(me.group);
      });
    velo_status done = VELO_OK;
    if (me.rank != 2) done = velo_group_barrier(me.stream, me.group);  // rank 2 comes too late
    if (me.rank == 2) {
      velo_group_info info = VELO_GROUP_INFO_INIT;
      while (velo_group_get_info(me.group, &info) == VELO_OK && info.failed == 0) pause_ms(1);
      done = velo_group_barrier(me.stream, me.group);
    }
    ending all = ending_of(done);
    if (other.joinable()) other.join();
    return all;
  });
  for (const ending& one : ranks.wait()) {
    CHECK_PEER(one, 1, "an abort by rank 1");
  }
}

TEST_CASE("a rank without descriptors says so, and the others name it") {
  for (const int limited : {0, 1})
    for (const int more : {0, 1, 2, 3, 4}) {
      if (more > 1 && (more == 4) != (limited == 0)) continue;  // it fails elsewhere, or has enough
      INFO("rank " << limited << ", " << more << " descriptors");
      // A rank that fails before the rendezvous is missing; later its peer learns of it at once.
      const std::int64_t timeout_ms = more < 2 ? 100 : 20000;
      const std::string name = processes::name();
      processes ranks;
      for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
          const int descriptors = first_free_descriptor() + more;
          const auto most = static_cast<rlim_t>(descriptors);
          return meet_under(RLIMIT_NOFILE, rank == limited ? most : RLIM_INFINITY,
                            shm_desc(name, rank, 2, timeout_ms));
        });
      const std::vector<ending> all = ranks.wait();
      const ending &poor = all[at(limited)], &other = all[at(1 - limited)];
      INFO(poor);
      INFO(other);
      CHECK(poor.code == VELO_ERR_IO);
      CHECK(poor.cause == "Too many open files");
      CHECK(other.code == VELO_ERR_PEER);
      CHECK(other.rank == limited);
    }
}

TEST_CASE("a rank 0 without memory to share says so, and the others learn it at once") {
  const std::string name = processes::name();
  processes ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.start([&, rank] {
      signal(SIGXFSZ, SIG_IGN);
      return meet_under(RLIMIT_FSIZE, rank == 0 ? 65536 : RLIM_INFINITY, shm_desc(name, rank, 2));
    });
  const std::int64_t begin = monotonic_ns();
  const std::vector<ending> all = ranks.wait();
  CHECK(all[0].code == VELO_ERR_MEMORY);
  CHECK(all[0].cause == "File too large");
  CHECK_PEER(all[1], 0, "rank 0 with: File too large");
  CHECK(all[1].expected.find("bytes of shared memory") != std::string::npos);
  CHECK(all[1].at_ns - begin < 15000000000);  // not the deadline
}

TEST_CASE("groups need nothing of a /dev/shm that is full") {
  processes ranks;
  const std::string name = processes::name();
  for (int rank = 0; rank < 2; ++rank)
    ranks.start([&, rank] {
      ending none;
      none.value = -1;  // the system does not let us
      if (unshare(CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("full", "/dev/shm", "tmpfs", 0, "size=4096") != 0)
        return none;
      const std::string filler = "/dev/shm/filler-" + std::to_string(getpid());
      const int file = open(filler.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      char page[4096] = {};
      while (write(file, page, sizeof page) > 0) {
      }
      const bool is_full = errno == ENOSPC;
      close(file);
      ending all = meet_under(RLIMIT_NOFILE, RLIM_INFINITY, shm_desc(name, rank, 2));
      all.value = is_full ? 0 : 1;
      return all;
    });
  for (const ending& one : ranks.wait()) {
    if (one.value == -1) {
      WARN("not tested: no namespace of our own");
      continue;
    }
    CHECK(one.value == 0);
    CHECK(one.code == VELO_OK);
  }
}

TEST_CASE("another user can neither come to a group nor read of it") {
  if (geteuid() != 0) {
    WARN("not tested: only root can become another user");
    return;
  }
  const std::string name = processes::name();
  const board meets;
  processes ranks;
  const auto works = [&](const rank_of_group& me) {
    ++meets.at[0];
    meets.await(1, 1);
    return ending_of(velo_group_barrier(me.stream, me.group));
  };
  ranks.start_rank(shm_desc(name, 0, 2), works);
  const std::string folder = velo::comm::rendezvous_folder(), path = socket_path(name);
  while (access(path.c_str(), F_OK) != 0) pause_ms(1);
  const auto as_stranger = [&](pid_t rank, const std::function<std::int64_t(pid_t)>& tries) {
    processes stranger;
    stranger.start([&] {
      const bool other_user =
          setresgid(64001, 64001, 64001) == 0 && setresuid(64001, 64001, 64001) == 0;
      return ending_of(other_user ? VELO_OK : VELO_ERR_IO, tries(rank));
    });
    check_right(stranger.wait());
  };
  as_stranger(ranks.pid(0), [&](pid_t) {
    const sockaddr_un address = address_of(path);
    const int line = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const int reached = connect(line, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    std::int64_t open_to_him = reached == 0 || errno != EACCES;
    open_to_him += opendir(folder.c_str()) != nullptr;
    return open_to_him;
  });
  ranks.start_rank(shm_desc(name, 1, 2), works);
  meets.await(0, 2);  // the memory is there, and no socket any more
  as_stranger(ranks.pid(0), [](pid_t rank) {
    const std::string of = "/proc/" + std::to_string(rank);
    std::int64_t open_to_him = opendir((of + "/fd").c_str()) != nullptr;
    for (int file = 3; file < 64; ++file)
      open_to_him += open((of + "/fd/" + std::to_string(file)).c_str(), O_RDWR) >= 0;
    open_to_him += open((of + "/mem").c_str(), O_RDONLY) >= 0;
    char byte = 0;
    iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
    open_to_him += process_vm_readv(rank, &here, 1, &there, 1, 0) >= 0 || errno != EPERM;
    return open_to_him;
  });
  ++meets.at[1];
  for (const ending& one : ranks.wait()) CHECK(one.code == VELO_OK);
}

TEST_CASE("a child of a fork is refused, and its parent's group goes on") {
  processes ranks;
  ranks.start_all(2, group_desc(), [](const rank_of_group& me) {
    ending first = ending_of(velo_group_barrier(me.stream, me.group));
    if (first.code != VELO_OK) return first;
    const pid_t child = fork();
    if (child == 0) {
      velo_group_info info = VELO_GROUP_INFO_INIT;
      const bool refused = velo_group_barrier(me.stream, me.group) == VELO_ERR_STATE &&
                           velo_group_get_info(me.group, &info) == VELO_ERR_STATE &&
                           velo_group_abort(me.group) == VELO_ERR_STATE;
      velo_group_destroy(me.group);  // ignored
      velo_context_destroy(me.context);
      _exit(refused ? 0 : 1);
    }
    int how = -1;
    waitpid(child, &how, 0);
    return ending_of(velo_group_barrier(me.stream, me.group), how);
  });
  check_right(ranks.wait());
}

TEST_CASE("a rank that waits uses less than 2 % of a processor") {
  const board meets;
  processes ranks;
  ranks.start_all(2, group_desc(), [&](const rank_of_group& me) {
    velo_status done = velo_group_barrier(me.stream, me.group);
    if (me.rank == 1) pause_ms(700);
    const auto cpu_ns = [] {
      timespec now;
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
      return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
    };
    const std::int64_t before = cpu_ns();
    if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
    return ending_of(done, cpu_ns() - before);
  });
  const std::vector<ending> all = ranks.wait();
  CHECK(all[0].code == VELO_OK);
  CHECK(all[0].value < 14000000);  // of 700 ms
}
