// Disks that fail: every fault is a status with a record, objects stay where they were, nothing of
// what is damaged is used, nothing leaks, and the same copy succeeds when the fault has gone.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "tests/memory/swap/disk_system.hpp"
#include "tests/memory/swap/swaps.hpp"
#include "tests/memory/system.hpp"

using namespace velo::testing;
using fault = disk_calls::fault;

namespace {

constexpr std::uint64_t object_bytes = 7 * (64 << 10) + 100;

struct healthy_again {
  ~healthy_again() { disk() = disk_calls{}; }
};

// The page access of a kind that follows `good` others fails.
void fail_pages(bool writes, int good) {
  disk() = {fault::error, writes, good};
  disk().number = EIO;
}

// A swap in a folder of its own with one object; its disk is healthy again at the end.
struct disk_folder {
  const healthy_again after{};
  const swap_folder folder{};
};
struct disk_world : disk_folder, swap_world {
  explicit disk_world(velo_swap_engine engine = VELO_SWAP_ENGINE_AUTO,
                      std::uint64_t block = 64 << 10)
      : swap_world(desc_of(folder.path(), engine, block)) {
    id = add(memory.data(), memory.size());
  }
  void wipe() { std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(0)); }
  bool intact() const { return memory == pattern(object_bytes, 3); }
  bool goes_and_comes() {
    out(id);
    wipe();
    in(id);
    return intact();
  }

  std::vector<unsigned char> memory = pattern(object_bytes, 3);
  std::uint64_t id;

 private:
  static velo_swap_desc desc_of(const std::string& path, velo_swap_engine engine,
                                std::uint64_t block) {
    velo_swap_desc desc = disk_desc(path, engine);
    desc.block = block;
    return desc;
  }
};

constexpr velo_swap_engine engines[] = {VELO_SWAP_ENGINE_URING, VELO_SWAP_ENGINE_THREADS};

}  // namespace

TEST_CASE("a write that fails leaves the object in memory, at every page of it") {
  for (const velo_swap_engine engine : engines) {
    for (int page = 0; page < 8; ++page) {
      INFO("engine " << engine << ", page " << page);
      disk_world w(engine);
      fail_pages(true, page);
      CHECK(w.try_out(w.id) == VELO_ERR_IO);
      CHECK(disk().struck == 1);
      CHECK(last_record().argument == "object 1");
      CHECK(last_record().expected.find("written") != std::string::npos);
      CHECK(last_record().cause == std::strerror(engine == VELO_SWAP_ENGINE_THREADS ? EIO : EBADF));
      CHECK(w.state(w.id) == VELO_SWAP_RESIDENT);
      CHECK(w.intact());
      CHECK(w.stats().bytes_stored == 0);
      CHECK(w.stats().bytes_held == 0);
      CHECK(w.stats().failures == 1);
      CHECK(velo_swap_wait(w.swap, w.id, w.stream) == VELO_ERR_IO);  // kept
      CHECK(w.goes_and_comes());                                     // and forgotten
    }
  }
}

TEST_CASE("a read that fails leaves the object in the tier, at every page of it") {
  for (const velo_swap_engine engine : engines) {
    for (int page = 0; page < 8; ++page) {
      INFO("engine " << engine << ", page " << page);
      disk_world w(engine);
      w.out(w.id);
      w.wipe();
      fail_pages(false, page);
      CHECK(w.try_in(w.id) == VELO_ERR_IO);
      CHECK(disk().struck == 1);
      CHECK(last_record().expected.find("read") != std::string::npos);
      CHECK(w.state(w.id) == VELO_SWAP_OUT);
      CHECK(w.stats().bytes_held == object_bytes);
      CHECK(velo_swap_out(w.swap, w.id, w.stream, nullptr) == VELO_ERR_IO);  // not in memory
      w.in(w.id);
      CHECK(w.intact());
    }
  }
}

TEST_CASE("short writes and reads are continued, once and at every call") {
  for (const velo_swap_engine engine : engines) {
    for (const bool writes : {true, false}) {
      for (const bool all : {true, false}) {
        INFO("engine " << engine << (writes ? ", writes" : ", reads"));
        disk_world w(engine);
        disk() = {fault::part, writes, 1, all};
        CHECK(w.goes_and_comes());
        CHECK(disk().struck >= 1);
      }
    }
  }
}

TEST_CASE("a read at whose end nothing comes is no success") {
  for (const velo_swap_engine engine : engines) {
    for (const bool writes : {true, false}) {
      disk_world w(engine);
      if (!writes) w.out(w.id);
      disk() = {fault::nothing, writes, 2, true};
      CHECK((writes ? w.try_out(w.id) : w.try_in(w.id)) == VELO_ERR_IO);
      CHECK(last_record().cause == "the end of the file");
      disk() = {};
      if (writes) w.out(w.id);
      w.wipe();
      w.in(w.id);
      CHECK(w.intact());
    }
  }
}

TEST_CASE("what a ring does not take is read and written without it") {
  for (const bool writes : {true, false}) {
    for (const bool all : {true, false}) {
      disk_world w(VELO_SWAP_ENGINE_URING);
      disk() = {fault::refused, writes, 1, all};
      CHECK(w.goes_and_comes());
      CHECK(disk().struck >= 1);
    }
  }
}

TEST_CASE("a full disk is found before anything is written, and room is used when it comes") {
  disk_world w;
  disk().no_space = ENOSPC;
  CHECK(w.try_out(w.id) == VELO_ERR_IO);
  CHECK(last_record().got == "no space");
  CHECK(last_record().cause == std::strerror(ENOSPC));
  CHECK(last_record().expected.find(w.folder.path()) != std::string::npos);
  CHECK(w.state(w.id) == VELO_SWAP_RESIDENT);
  CHECK(w.stats().bytes_stored == 0);
  disk().no_space = 0;
  CHECK(w.goes_and_comes());
}

TEST_CASE("a disk with little room left is used to its last page") {
  disk().no_space = ENOSPC;
  disk().no_space_large = true;  // no step of growth, but a page
  disk_world w(VELO_SWAP_ENGINE_AUTO, 4096);
  CHECK(w.goes_and_comes());
}

TEST_CASE("a file system that cannot have space ready gets a file with holes") {
  disk().no_space = EOPNOTSUPP;
  disk_world w;
  CHECK(w.goes_and_comes());
}

TEST_CASE("a page that was changed on disk is named, and the object never comes back so") {
  const swap_folder folder{};
  for (const velo_swap_use use : {VELO_SWAP_WARM, VELO_SWAP_COLD}) {
    INFO("use " << use);
    const swap_world w(disk_desc(folder.path()));
    std::vector<unsigned char> memory(object_bytes, 1);  // packs well, where it is cold
    const std::uint64_t id = w.add(memory.data(), memory.size(), use);
    w.out(id);
    const std::vector<int> files = files_in(folder.path());
    REQUIRE(files.size() == 1);
    // Page 2 lies third in a file that was empty; packed pages are one sector each, and begin with
    // what makes them packed.
    const off_t place = use == VELO_SWAP_WARM ? 2 * (64 << 10) + 1000 : 2 * 4096;
    alignas(4096) static char sector[4096];
    const off_t begin = place / 4096 * 4096;
    const auto damage = [&] {
      REQUIRE(pread(files[0], sector, sizeof sector, begin) == sizeof sector);
      sector[place - begin] = static_cast<char>(sector[place - begin] ^ 4);
      REQUIRE(pwrite(files[0], sector, sizeof sector, begin) == sizeof sector);
    };
    damage();
    CHECK(w.try_in(id) == VELO_ERR_IO);
    const call_record why = last_record();
    CHECK(why.argument == "object 1");
    CHECK(why.expected.find("page 2") == 0);
    CHECK(why.expected.find(folder.path()) != std::string::npos);
    CHECK(why.got == "a damaged page");
    CHECK(w.state(id) == VELO_SWAP_OUT);
    damage();  // repaired
    w.in(id);
    CHECK(memory == std::vector<unsigned char>(object_bytes, 1));
  }
}

TEST_CASE("without checksums nobody looks") {
  const swap_folder folder{};
  velo_swap_desc desc = disk_desc(folder.path());
  desc.checksums = 0;
  const swap_world w(desc);
  std::vector<unsigned char> memory(64 << 10, 1);
  const std::uint64_t id = w.add(memory.data(), memory.size());
  w.out(id);
  alignas(4096) static char sector[4096];
  REQUIRE(pwrite(files_in(folder.path()).at(0), sector, sizeof sector, 0) == sizeof sector);
  w.in(id);
  CHECK(memory[0] == 0);
  CHECK(w.stats().seconds_checksum_in == 0);
}

TEST_CASE(
    "a stream that waits for a copy that fails keeps the failure and runs nothing behind it") {
  disk_world w;
  held_queue queue(w.context);
  w.out(w.id);
  fail_pages(false, 0);
  bool ran = false;
  velo_event end = w.context.new_event();
  REQUIRE(velo_swap_in(w.swap, w.id, nullptr, queue, end) == VELO_OK);
  REQUIRE(velo_swap_wait(w.swap, w.id, queue) == VELO_OK);
  queue.then([&] { ran = true; });
  queue.open();
  REQUIRE(velo_event_synchronize(end, -1) == VELO_OK);  // it passes all the same
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_IO);
  CHECK(last_record().function == "velo_swap_in");
  CHECK(last_record().argument == "object 1");
  CHECK_FALSE(ran);
}

TEST_CASE("copies queued behind one that fails are dropped with it, and memory goes back") {
  const live_pool pool;
  const swap_folder folder{};
  const healthy_again after;
  velo_swap_desc desc = disk_desc(folder.path());
  desc.memory = pool;
  {
    const swap_world w(desc);
    held_queue queue(w.context);
    const std::uint64_t id = w.add(nullptr, object_bytes);
    void* const home = w.object(id).memory;
    std::memset(home, 9, object_bytes);
    fail_pages(true, 0);
    REQUIRE(velo_swap_out(w.swap, id, queue, nullptr) == VELO_OK);
    REQUIRE(velo_swap_in(w.swap, id, nullptr, queue, nullptr) == VELO_OK);
    REQUIRE(velo_swap_out(w.swap, id, queue, nullptr) == VELO_OK);
    REQUIRE(velo_swap_in(w.swap, id, nullptr, queue, nullptr) == VELO_OK);
    queue.open();
    CHECK(velo_swap_wait(w.swap, id, w.stream) == VELO_ERR_IO);  // when all four have ended
    CHECK(w.stats().failures == 1);
    CHECK(w.object(id).state == VELO_SWAP_RESIDENT);
    CHECK(w.object(id).memory == home);
    CHECK(static_cast<unsigned char*>(home)[object_bytes - 1] == 9);
    CHECK(pool.stats().allocations - pool.stats().frees == 1);
    w.out(id);
    fail_pages(false, 0);
    CHECK(w.try_in(id) == VELO_ERR_IO);
    CHECK(w.object(id).memory == nullptr);
    CHECK(pool.stats().bytes_live == 0);
    w.in(id);
    CHECK(static_cast<unsigned char*>(w.object(id).memory)[object_bytes - 1] == 9);
  }
  CHECK(pool.stats().bytes_live == 0);
}

TEST_CASE("an update whose write fails says where, and every page is old or new") {
  for (const velo_swap_engine engine : engines) {
    for (const bool writes : {true, false}) {
      for (int page = 0; page < 8; ++page) {
        disk_world w(engine);
        w.out(w.id);
        fail_pages(writes, page);
        const auto flip = [](void*, std::uint64_t, std::uint64_t bytes,
                             void* const* slices) -> std::int32_t {
          for (std::uint64_t i = 0; i < bytes; ++i)
            static_cast<unsigned char*>(slices[0])[i] ^= 255;
          return 0;
        };
        CHECK_REFUSED(velo_swap_update(w.swap, &w.id, 1, 8, flip, nullptr), VELO_ERR_IO,
                      "object 1, slice " + std::to_string(page));
        CHECK(w.state(w.id) == VELO_SWAP_OUT);
        w.in(w.id);
        const std::vector<unsigned char> before = pattern(object_bytes, 3);
        for (int p = 0; p < 8; ++p) {
          const std::size_t first = static_cast<std::size_t>(p) << 16;
          const std::size_t last = std::min<std::size_t>(first + (1 << 16), object_bytes);
          bool is_old = true, is_new = true;
          for (std::size_t i = first; i < last; ++i) {
            is_old = is_old && w.memory[i] == before[i];
            is_new = is_new && w.memory[i] == (before[i] ^ 255);
          }
          CHECK((p < page ? is_new : p == page ? is_old : is_old || is_new));
        }
      }
    }
  }
}

TEST_CASE("a swap that cannot be made leaves no file, no ring and no memory") {
  const swap_folder folder{};
  const live_context context;
  const velo_swap_desc desc = disk_desc(folder.path());
  for (int call = 0;; ++call) {
    REQUIRE(call < 1000);
    velo_swap made = nullptr;
    calls() = system_calls{};
    const std::int64_t before = calls().mapped;
    calls().remaining = call;
    calls().all_later = true;
    const velo_status status = velo_swap_create(context, &desc, &made);
    const bool refused = calls().refused;
    calls().remaining = -1;
    if (made == nullptr) {
      CHECK(status == VELO_ERR_MEMORY);
      CHECK(files_in(folder.path()).empty());
      CHECK(calls().mapped == before);
    }
    velo_swap_destroy(made);
    if (!refused) break;
  }
}
