// How snapshots are given out: whole or not at all, to a buffer or a file, and what stands in the
// way.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/memory/history/snapshots.hpp"
#include "tests/memory/system.hpp"
#include "tests/temporary_folder.hpp"

using namespace velo::testing;

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct filled_pool {
  live_pool pool;
  char* block = nullptr;
  filled_pool() {
    REQUIRE(velo_pool_record(pool, 100000) == VELO_OK);
    REQUIRE(velo_pool_note(pool, nullptr, "step <1> & \"on\"") == VELO_OK);
    for (int i = 0; i < 3000; ++i) pool.give(pool.take(64), 64);
    block = pool.take(mib);
  }
  ~filled_pool() { pool.give(block, mib); }
};

}  // namespace

TEST_CASE("a snapshot is cut to the caller's buffer, and its size can be asked for") {
  const filled_pool f;
  for (const velo_snapshot_format format :
       {VELO_SNAPSHOT_JSON, VELO_SNAPSHOT_PICKLE, VELO_SNAPSHOT_TIMELINE}) {
    CAPTURE(format);
    const std::string whole = snapshot_of(f.pool, format);
    char some[101];
    some[100] = '!';
    std::uint64_t needed = 0;
    REQUIRE(velo_pool_snapshot(f.pool, format, some, 100, &needed) == VELO_OK);
    // A snapshot measures its clock anew, so sizes of two differ by digits of times.
    std::string all(whole.size() + 10000, '!');
    std::uint64_t size = 0;
    REQUIRE(velo_pool_snapshot(f.pool, format, &all[0], all.size(), &size) == VELO_OK);
    REQUIRE(size < all.size());
    CHECK(all[size - 1] == 0);
    CHECK(all[size] == '!');
    CHECK(static_cast<double>(needed) == Approx(static_cast<double>(size)).epsilon(0.1));
    CHECK(std::string(some, 99) == whole.substr(0, 99));
    CHECK(some[99] == 0);
    CHECK(some[100] == '!');
  }
  CHECK(velo_pool_snapshot(f.pool, VELO_SNAPSHOT_JSON, nullptr, 1, nullptr) == VELO_ERR_NULL);
  CHECK(velo_pool_snapshot(f.pool, 3, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_pool_save(f.pool, -1, "none") == VELO_ERR_ARGUMENT);
}

TEST_CASE("a snapshot goes to a file that its owner alone can read, and replaces an older one") {
  const filled_pool f;
  const temporary_folder here;
  const std::string path = here.at("snapshot.json");
  for (int i = 0; i < 2; ++i) {
    REQUIRE(velo_pool_save(f.pool, VELO_SNAPSHOT_JSON, path.c_str()) == VELO_OK);
    const parsed all(contents(path));
    CHECK(all.trace().size() > 6000);
    struct stat s {};
    REQUIRE(stat(path.c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
    CHECK(here.files() == 1);
  }
}

TEST_CASE("a file that cannot be written is named, and nothing is left behind") {
  const filled_pool f;
  const temporary_folder here;
  const auto refused = [&](const std::string& path, const char* cause) {
    CAPTURE(path);
    CHECK(velo_pool_save(f.pool, VELO_SNAPSHOT_JSON, path.c_str()) == VELO_ERR_IO);
    const call_record info = last_record();
    CHECK(info.argument == "path");
    CHECK(info.got == path.substr(0, sizeof(velo_error_info::got) - 1));
    CHECK(info.cause == cause);
  };
  refused(here.at("none/snapshot.json"), "No such file or directory");
  refused(here.path(), "something else");
  refused("/dev/null", "something else");
  REQUIRE(symlink("elsewhere", here.at("link").c_str()) == 0);
  refused(here.at("link"), "a symbolic link");
  CHECK(here.files() == 1);
  CHECK(velo_pool_save(f.pool, VELO_SNAPSHOT_JSON, nullptr) == VELO_ERR_NULL);
  CHECK(velo_pool_save(f.pool, VELO_SNAPSHOT_JSON, "") == VELO_ERR_ARGUMENT);
  CHECK(last_record().got == "an empty one");
}

TEST_CASE("a file may have the longest name that its folder takes, and no longer one") {
  const live_pool pool;
  const temporary_folder here;
  for (const std::size_t size : {1, 249, 255}) {
    INFO("a name of " << size << " bytes");
    const std::string path = here.at(std::string(size, 'n'));
    CHECK(velo_pool_save(pool, VELO_SNAPSHOT_JSON, path.c_str()) == VELO_OK);
    CHECK(contents(path).front() == '{');
  }
  CHECK(here.files() == 3);
  const std::string longer = here.at(std::string(256, 'n'));
  CHECK(velo_pool_save(pool, VELO_SNAPSHOT_JSON, longer.c_str()) == VELO_ERR_IO);
  CHECK(last_record().expected == "a file to write");
  CHECK(last_record().cause == "File name too long");
  CHECK(here.files() == 3);
}

TEST_CASE("a full disk, a failing close and a failing rename leave the older file as it was") {
  const filled_pool f;
  const temporary_folder here;
  const std::string path = here.at("snapshot.pickle");
  std::ofstream(path) << "older";
  for (const velo_snapshot_format format : {VELO_SNAPSHOT_JSON, VELO_SNAPSHOT_TIMELINE}) {
    for (int* fault : {&calls().write_error, &calls().close_error, &calls().rename_error}) {
      *fault = ENOSPC;
      CHECK(velo_pool_save(f.pool, format, path.c_str()) == VELO_ERR_IO);
      *fault = 0;
      CHECK(last_record().cause == "No space left on device");
      CHECK(contents(path) == "older");
      CHECK(here.files() == 1);
    }
  }
  calls().write_short = true;
  REQUIRE(velo_pool_save(f.pool, VELO_SNAPSHOT_JSON, path.c_str()) == VELO_OK);
  calls().write_short = false;
  CHECK(parsed(contents(path)).trace().size() > 6000);
}

TEST_CASE("a snapshot of a destroyed pool is refused, that of an empty one is complete") {
  const live_pool empty;
  const parsed all(empty);
  CHECK(all.list("segments").empty());
  CHECK(all.trace().empty());
  CHECK(all.list("host_segments").empty());
  CHECK(json_is_true(
      json_object_get(json_object_get(all.all, "allocator_settings"), "expandable_segments")));
  velo_pool gone = nullptr;
  REQUIRE(velo_pool_create(nullptr, &gone) == VELO_OK);
  velo_pool_destroy(gone);
  CHECK(velo_pool_snapshot(gone, VELO_SNAPSHOT_JSON, nullptr, 0, nullptr) == VELO_ERR_HANDLE);
  CHECK(velo_pool_record(gone, 1) == VELO_ERR_HANDLE);
}
