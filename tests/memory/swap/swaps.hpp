// Shared by the tests of swaps: a context with a swap, folders for files, work that stands still
// until the test lets it go on.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/context.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/random.hpp"
#include "tests/stream_work.hpp"
#include "tests/temporary_folder.hpp"

namespace velo::testing {

// A folder in which nothing may be left.
class swap_folder : public temporary_folder {
 public:
  swap_folder() = default;
  swap_folder(swap_folder&&) noexcept = default;
  ~swap_folder() {
    if (!path().empty()) CHECK(files() == 0);
  }
};

// Descriptors of this process whose files were made in a folder.
inline std::vector<int> files_in(const std::string& folder) {
  std::vector<int> found;
  for (int file = 3; file < 1024; ++file) {
    char target[512];
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    if (length > 0 &&
        std::string(target, static_cast<std::size_t>(length)).rfind(folder + "/", 0) == 0)
      found.push_back(file);
  }
  return found;
}

// Bytes that are no others'.
inline std::vector<unsigned char> pattern(std::uint64_t bytes, std::uint32_t seed) {
  std::vector<unsigned char> made(bytes);
  cheap_random draw(seed * 2654435761u + 1);
  for (unsigned char& byte : made) byte = static_cast<unsigned char>(draw() >> 24);
  return made;
}

// memory: the pool of objects without memory of the caller's.
inline velo_swap_desc host_desc(velo_pool memory = nullptr) {
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.memory = memory;
  return desc;
}
inline velo_swap_desc disk_desc(const std::string& directories,
                                velo_swap_engine engine = VELO_SWAP_ENGINE_AUTO) {
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.engine = engine;
  desc.tier = VELO_SWAP_DISK;
  desc.directories = directories.c_str();
  desc.block = 64 << 10;
  return desc;
}

struct swap_world {
  explicit swap_world(const velo_swap_desc& desc, const char* config = nullptr) : context(config) {
    REQUIRE(velo_context_stream(context, &stream) == VELO_OK);
    REQUIRE(velo_swap_create(context, &desc, &swap) == VELO_OK);
  }
  ~swap_world() { velo_swap_destroy(swap); }
  swap_world(const swap_world&) = delete;
  swap_world& operator=(const swap_world&) = delete;

  std::uint64_t add(void* memory, std::uint64_t bytes, velo_swap_use use = VELO_SWAP_WARM) const {
    std::uint64_t id = 0;
    REQUIRE(velo_swap_add(swap, memory, bytes, use, &id) == VELO_OK);
    return id;
  }
  // There and, if it fails, named; waits for the copy.
  velo_status try_out(std::uint64_t id) const {
    const velo_status queued = velo_swap_out(swap, id, stream, nullptr);
    return queued != VELO_OK ? queued : velo_swap_wait(swap, id, stream);
  }
  velo_status try_in(std::uint64_t id, void* memory = nullptr) const {
    const velo_status queued = velo_swap_in(swap, id, memory, stream, nullptr);
    return queued != VELO_OK ? queued : velo_swap_wait(swap, id, stream);
  }
  void out(std::uint64_t id) const { REQUIRE(try_out(id) == VELO_OK); }
  void in(std::uint64_t id, void* memory = nullptr) const {
    REQUIRE(try_in(id, memory) == VELO_OK);
  }

  velo_swap_object object(std::uint64_t id) const {
    velo_swap_object info = VELO_SWAP_OBJECT_INIT;
    REQUIRE(velo_swap_get_object(swap, id, &info) == VELO_OK);
    return info;
  }
  velo_swap_state state(std::uint64_t id) const { return object(id).state; }
  velo_swap_stats stats() const {
    velo_swap_stats now = VELO_SWAP_STATS_INIT;
    REQUIRE(velo_swap_get_stats(swap, &now) == VELO_OK);
    return now;
  }
  // Until no copy of an object that is known is queued or under way, well ended or not.
  void settle() const {
    char memory = 0;
    const std::uint64_t next = add(&memory, 1);  // numbers are never used again
    REQUIRE(velo_swap_drop(swap, next, nullptr) == VELO_OK);
    for (std::uint64_t id = 1; id < next; ++id) velo_swap_wait(swap, id, stream);
  }
  // Whether pool and tier get all back: what an object had that was dropped before its copies were
  // done goes back behind them, which nobody can wait for. Five seconds at most.
  bool gives_all_back(const live_pool& pool) const {
    const auto all = [&] { return pool.stats().bytes_live == 0 && stats().bytes_held == 0; };
    for (int ms = 0; ms < 5000 && !all(); ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return all();
  }

  live_context context;
  velo_stream stream = nullptr;  // inline
  velo_swap swap = nullptr;
};

// Every way in which contents are kept.
struct tier_case {
  const char* name;
  velo_swap_desc desc;
  std::shared_ptr<std::vector<swap_folder>> folders;
  std::shared_ptr<std::string> directories;
};

inline std::vector<tier_case> tier_cases() {
  std::vector<tier_case> all;
  all.push_back({"host", host_desc(), nullptr, nullptr});
  const auto disk = [&](const char* name, int folders,
                        const std::function<void(velo_swap_desc&)>& change) {
    tier_case made{
        name, {}, std::make_shared<std::vector<swap_folder>>(), std::make_shared<std::string>()};
    for (int i = 0; i < folders; ++i) {
      made.folders->emplace_back();
      *made.directories += (i > 0 ? ":" : "") + made.folders->back().path();
    }
    made.desc = disk_desc(*made.directories);
    change(made.desc);
    all.push_back(std::move(made));
  };
  disk("disk", 1, [](velo_swap_desc&) {});
  disk("disk by threads", 1, [](velo_swap_desc& d) { d.engine = VELO_SWAP_ENGINE_THREADS; });
  disk("disk through the page cache", 1, [](velo_swap_desc& d) { d.direct = 0; });
  disk("disk without checksums, one block at a time", 1, [](velo_swap_desc& d) {
    d.checksums = 0;
    d.depth = 1;
    d.block = 4096;
  });
  disk("three folders", 3, [](velo_swap_desc& d) { d.depth = 5; });
  return all;
}

// A stream whose work stands still until open().
class held_queue {
 public:
  explicit held_queue(const live_context& context) : handle_(context.new_stream()) {
    hold(handle_, open_);
  }
  ~held_queue() { open_ = true; }
  held_queue(const held_queue&) = delete;
  held_queue& operator=(const held_queue&) = delete;
  operator velo_stream() const { return handle_; }

  // Work of the stream.
  void then(std::function<void()> function) const {
    queue_work(handle_, std::move(function), core::demand::computes);
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> open_{false};
  velo_stream handle_;
};

}  // namespace velo::testing
