// The disk tier with a healthy disk: what its files are, what it does where the system refuses it
// something, and what it stores.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "tests/child_process.hpp"
#include "tests/memory/swap/disk_system.hpp"
#include "tests/memory/swap/swaps.hpp"

using namespace velo::testing;

namespace {

struct healthy_again {
  ~healthy_again() { disk() = disk_calls{}; }
};

bool has(const char* text, const char* part) {
  return std::strstr(text, part) != nullptr;
}

// Goes out, is wiped, comes back; whether it is the same.
bool survives(const swap_world& w, std::uint64_t bytes, velo_swap_use use = VELO_SWAP_WARM) {
  std::vector<unsigned char> memory = pattern(bytes, 5);
  const std::vector<unsigned char> before = memory;
  const std::uint64_t id = w.add(memory.data(), bytes, use);
  w.out(id);
  std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(0));
  w.in(id);
  REQUIRE(velo_swap_drop(w.swap, id, nullptr) == VELO_OK);
  return memory == before;
}

// Lets the kernel refuse rings to this process, as containers do.
bool forbid_rings() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {4, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("a swap's file has no name, is its owner's alone, and goes to no other program") {
  for (const bool nameless : {true, false}) {
    const healthy_again after;
    disk().no_nameless = !nameless;
    const swap_folder folder;
    const swap_world w(disk_desc(folder.path()));
    CHECK(survives(w, 200000));
    CHECK(folder.files() == 0);
    const std::vector<int> files = files_in(folder.path());
    REQUIRE(files.size() == 1);
    struct stat found = {};
    REQUIRE(fstat(files[0], &found) == 0);
    CHECK((found.st_mode & 07777) == 0600);
    CHECK(found.st_nlink == 0);
    CHECK((fcntl(files[0], F_GETFD) & FD_CLOEXEC) != 0);
    const std::string link = folder.path() + "/link",
                      self = "/proc/self/fd/" + std::to_string(files[0]);
    CHECK((!nameless ||
           linkat(AT_FDCWD, self.c_str(), AT_FDCWD, link.c_str(), AT_SYMLINK_FOLLOW) != 0));
  }
}

TEST_CASE("nothing is left in the folder when the process is killed") {
  for (const bool nameless : {true, false}) {
    const healthy_again after;
    disk().no_nameless = !nameless;
    const swap_folder folder;
    const int answer = in_child([&]() -> int {
      velo_context context = nullptr;
      velo_stream stream = nullptr;
      velo_swap swap = nullptr;
      static char memory[100000];
      std::uint64_t id = 0;
      const velo_swap_desc desc = disk_desc(folder.path());
      if (velo_context_create(nullptr, &context) != VELO_OK) return 1;
      if (velo_context_stream(context, &stream) != VELO_OK) return 1;
      if (velo_swap_create(context, &desc, &swap) != VELO_OK) return 2;
      if (velo_swap_add(swap, memory, sizeof memory, VELO_SWAP_WARM, &id) != VELO_OK) return 3;
      if (velo_swap_out(swap, id, stream, nullptr) != VELO_OK) return 4;
      if (velo_swap_wait(swap, id, stream) != VELO_OK) return 5;
      return raise(SIGKILL);
    });
    CHECK(answer == -1);
    CHECK(folder.files() == 0);
  }
}

TEST_CASE("a folder that is a link, no folder, or not there is refused by name") {
  const live_context context;
  const swap_folder folder;
  const std::string link = folder.path() + "/link", file = folder.path() + "/file";
  REQUIRE(symlink("/tmp", link.c_str()) == 0);
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  for (const std::string& bad : {link, file, folder.path() + "/none"}) {
    for (const std::string& list : {bad, folder.path() + ":" + bad}) {
      const velo_swap_desc desc = disk_desc(list);
      velo_swap none = nullptr;
      CHECK_REFUSED(velo_swap_create(context, &desc, &none), VELO_ERR_IO, "desc.directories");
      CHECK(last_record().got == bad);
      CHECK(last_record().cause[0] != 0);
      CHECK(none == nullptr);
      CHECK(files_in(folder.path()).empty());
    }
  }
  unlink(link.c_str());
  unlink(file.c_str());
}

TEST_CASE("a folder that goes while the swap lives takes nothing with it") {
  auto folder = std::make_unique<swap_folder>();
  const swap_world w(disk_desc(folder->path()));
  CHECK(survives(w, 300000));
  folder.reset();  // nothing is in it
  CHECK(survives(w, 900000));
}

TEST_CASE("where the kernel refuses rings, threads read and write, and it says so") {
  const swap_folder folder;
  const auto with_engine = [&](velo_swap_engine engine) {
    return in_child([&]() -> int {
      if (!forbid_rings()) return 1;
      velo_context context = nullptr;
      velo_stream stream = nullptr;
      velo_swap swap = nullptr;
      velo_swap_desc desc = disk_desc(folder.path(), engine);
      if (velo_context_create(nullptr, &context) != VELO_OK) return 2;
      if (velo_context_stream(context, &stream) != VELO_OK) return 2;
      const velo_status made = velo_swap_create(context, &desc, &swap);
      if (engine == VELO_SWAP_ENGINE_URING) {
        const call_record why = last_record();
        return made == VELO_ERR_UNSUPPORTED && has(why.argument.c_str(), "desc.engine") &&
                       has(why.cause.c_str(), "Operation not permitted")
                   ? 42
                   : 3;
      }
      if (made != VELO_OK) return 4;
      velo_swap_stats stats = VELO_SWAP_STATS_INIT;
      if (velo_swap_get_stats(swap, &stats) != VELO_OK) return 5;
      if (stats.engine != VELO_SWAP_ENGINE_THREADS) return 6;
      if (!has(stats.how, "threads (io_uring_queue_init: Operation not permitted)")) return 7;
      static char memory[70000];
      std::memset(memory, 3, sizeof memory);
      std::uint64_t id = 0;
      if (velo_swap_add(swap, memory, sizeof memory, VELO_SWAP_WARM, &id) != VELO_OK) return 8;
      velo_swap_out(swap, id, stream, nullptr);
      if (velo_swap_wait(swap, id, stream) != VELO_OK) return 9;
      std::memset(memory, 0, sizeof memory);
      velo_swap_in(swap, id, nullptr, stream, nullptr);
      if (velo_swap_wait(swap, id, stream) != VELO_OK) return 10;
      velo_context_destroy(context);
      return memory[69999] == 3 ? 42 : 11;
    });
  };
  CHECK(with_engine(VELO_SWAP_ENGINE_AUTO) == 42);
  CHECK(with_engine(VELO_SWAP_ENGINE_URING) == 42);
}

TEST_CASE("a file system without O_DIRECT is written through the page cache, and it says so") {
  const healthy_again after;
  disk().no_direct = true;
  const swap_folder folder;
  {
    const swap_world w(disk_desc(folder.path()));
    CHECK(has(w.stats().how, "through the page cache: a file system refuses O_DIRECT"));
    CHECK(survives(w, 123456));
  }
  velo_swap_desc desc = disk_desc(folder.path());
  desc.direct = 0;
  const swap_world asked(desc);
  CHECK(has(asked.stats().how, "through the page cache as asked for"));
}

TEST_CASE("the counters say which engine it is") {
  const swap_folder folder;
  const swap_world threads(disk_desc(folder.path(), VELO_SWAP_ENGINE_THREADS));
  CHECK(threads.stats().engine == VELO_SWAP_ENGINE_THREADS);
  CHECK(has(threads.stats().how, "threads (asked for)"));
  const swap_world host(host_desc());
  CHECK(host.stats().engine == VELO_SWAP_ENGINE_COPY);
}

TEST_CASE("files share an object's blocks, and space that was given back is used again") {
  const swap_folder folders[2];
  const swap_world w(disk_desc(folders[0].path() + ":" + folders[1].path()));
  for (int round = 0; round < 6; ++round) CHECK(survives(w, 24 << 20));
  for (const swap_folder& folder : folders) {
    const std::vector<int> files = files_in(folder.path());
    REQUIRE(files.size() == 1);
    struct stat found = {};
    REQUIRE(fstat(files[0], &found) == 0);
    CHECK(found.st_size == 64 << 20);  // the first step, for 6 rounds of 12 MiB
  }
}

TEST_CASE("objects of all sizes come and go in one file without overlap") {
  const swap_folder folder;
  const swap_world w(disk_desc(folder.path()));
  struct one {
    std::uint64_t id;
    std::vector<unsigned char> memory;
    std::uint32_t seed;
    bool out;
  };
  std::vector<one> all;
  random_source random(12345);
  for (std::uint32_t step = 0; step < 300; ++step) {
    if (all.size() < 20) {
      const std::uint64_t bytes = 1 + random.below(400000);
      all.push_back({0, pattern(bytes, step), step, false});
      one& made = all.back();
      made.id = w.add(made.memory.data(), bytes, step % 3 == 0 ? VELO_SWAP_COLD : VELO_SWAP_WARM);
      continue;
    }
    const std::size_t at = random.below(20);
    one& o = all[at];
    if (!o.out) {
      w.out(o.id);
      std::fill(o.memory.begin(), o.memory.end(), static_cast<unsigned char>(0));
      o.out = true;
      continue;
    }
    w.in(o.id);
    o.out = false;
    REQUIRE(o.memory == pattern(o.memory.size(), o.seed));
    if (random.one_in(2)) continue;
    REQUIRE(velo_swap_drop(w.swap, o.id, nullptr) == VELO_OK);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

TEST_CASE("cold objects are packed where that pays, and come back the same") {
  const swap_folder folder;
  const swap_world w(disk_desc(folder.path()));
  const std::uint64_t bytes = (2 << 20) + 100;
  std::vector<float> numbers(bytes / 4);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i % 2 == 0 ? 0.0f : 1.0f + 1e-6f * static_cast<float>(i);
  const std::vector<float> before = numbers;
  const auto stored = [&](void* memory, velo_swap_use use) {
    const std::uint64_t id = w.add(memory, bytes / 4 * 4, use);
    w.out(id);
    const std::uint64_t taken = w.object(id).bytes_stored;
    std::memset(memory, 0, bytes / 4 * 4);
    w.in(id);
    CHECK(w.object(id).bytes_stored == 0);
    return taken;
  };
  CHECK(stored(numbers.data(), VELO_SWAP_COLD) < bytes * 2 / 3);
  CHECK(numbers == before);
  CHECK(stored(numbers.data(), VELO_SWAP_WARM) >= bytes / 4 * 4);
  CHECK(numbers == before);
  std::vector<unsigned char> noise = pattern(bytes, 11);
  CHECK(stored(noise.data(), VELO_SWAP_COLD) >= bytes / 4 * 4);
  CHECK(w.stats().bytes_stored == 0);
}

namespace {

// Memory in objects of a size, all on their way out once the queue opens.
std::vector<std::uint64_t> out_together(const swap_world& w, velo_stream queue,
                                        std::vector<unsigned char>& memory, std::size_t bytes) {
  std::vector<std::uint64_t> ids;
  for (std::size_t at = 0; at < memory.size(); at += bytes) {
    ids.push_back(w.add(memory.data() + at, bytes));
    REQUIRE(velo_swap_out(w.swap, ids.back(), queue, nullptr) == VELO_OK);
  }
  return ids;
}

}  // namespace

TEST_CASE("small objects are under way together, as the pages of a large one are") {
  const healthy_again after;
  const swap_folder folder;
  velo_swap_desc desc = disk_desc(folder.path(), VELO_SWAP_ENGINE_THREADS);
  desc.depth = 4;
  const swap_world w(desc);
  held_queue queue(w.context);
  std::vector<unsigned char> memory = pattern(12 * 5000, 2);
  const std::vector<unsigned char> before = memory;
  const std::vector<std::uint64_t> ids = out_together(w, queue, memory, 5000);
  disk().slow = true;
  queue.open();
  for (const std::uint64_t id : ids) REQUIRE(velo_swap_wait(w.swap, id, w.stream) == VELO_OK);
  CHECK(disk().together > 1);
  CHECK(disk().together <= 4);
  std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(0));
  for (const std::uint64_t id : ids) w.in(id);
  CHECK(memory == before);
}

TEST_CASE("of objects that are under way together, only the one whose page fails stays") {
  const healthy_again after;
  const swap_folder folder;
  for (const velo_swap_engine engine : {VELO_SWAP_ENGINE_URING, VELO_SWAP_ENGINE_THREADS}) {
    const swap_world w(disk_desc(folder.path(), engine));
    held_queue queue(w.context);
    std::vector<unsigned char> memory = pattern(9 * 200000, 2);
    const std::vector<unsigned char> before = memory;
    const std::vector<std::uint64_t> ids = out_together(w, queue, memory, 200000);
    disk() = {disk_calls::fault::error, true, 17};
    disk().number = EIO;
    queue.open();
    int failed = 0;
    for (const std::uint64_t id : ids) {
      if (velo_swap_wait(w.swap, id, w.stream) == VELO_OK) continue;
      ++failed;
      CHECK(w.state(id) == VELO_SWAP_RESIDENT);
    }
    CHECK(failed == 1);
    CHECK(w.stats().failures == 1);
    CHECK(w.stats().objects_out == 8);
    CHECK(w.stats().bytes_held == 8 * 200000);
    for (const std::uint64_t id : ids)
      if (w.state(id) == VELO_SWAP_RESIDENT) w.out(id);
    std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(0));
    for (const std::uint64_t id : ids) w.in(id);
    CHECK(memory == before);
    CHECK(w.stats().bytes_stored == 0);
  }
}
