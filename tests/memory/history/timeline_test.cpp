// The picture of a history: the levels it shows are the pool's, what callers say does it no harm.
#include <chrono>
#include <cmath>
#include <regex>
#include <thread>

#include "tests/memory/history/snapshots.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

std::string picture_of(velo_pool pool) {
  return snapshot_of(pool, VELO_SNAPSHOT_TIMELINE);
}

bool shows(const std::string& picture, const char* what) {
  return picture.find(what) != std::string::npos;
}

void* take_for(const live_pool& pool, velo_purpose purpose, std::uint64_t bytes) {
  velo_pool_request request = request_of(bytes);
  request.purpose = purpose;
  return pool.take(request);
}
void pass_through(const live_pool& pool, velo_purpose purpose, std::uint64_t bytes) {
  pool.give(take_for(pool, purpose, bytes), bytes);
}

}  // namespace

TEST_CASE("the picture names peaks, purposes, the limit, texts and refusals") {
  const live_pool pool(limited_pool(50 * mib));
  REQUIRE(velo_pool_record(pool, 10000) == VELO_OK);
  pass_through(pool, VELO_PURPOSE_ACTIVATION, 40 * mib);
  REQUIRE(velo_pool_note(pool, nullptr, "a < b & \"c\"\n") == VELO_OK);
  pass_through(pool, VELO_PURPOSE_GRADIENT, 20 * mib);
  void* memory = nullptr;
  CHECK(pool.allocate(100 * mib, &memory) == VELO_ERR_MEMORY);
  const std::string picture = picture_of(pool);
  CHECK(shows(picture, "at most 40.0 MiB live"));
  CHECK(shows(picture, ">activation, at most 40.0 MiB<"));
  CHECK(shows(picture, ">gradient, at most 20.0 MiB<"));
  CHECK_FALSE(shows(picture, ">optimizer"));
  CHECK(shows(picture, ">limit 50.0 MiB<"));
  CHECK(shows(picture, "refused: 100.0 MiB, largest hole"));
  CHECK(shows(picture, "a &lt; b &amp; \"c\"."));
}

TEST_CASE("a purpose's peak is shown though another's is higher in the same column") {
  live_pool pool;
  REQUIRE(velo_pool_record(pool, 10000) == VELO_OK);
  pass_through(pool, VELO_PURPOSE_ACTIVATION, 40 * mib);
  pass_through(pool, VELO_PURPOSE_GRADIENT, 20 * mib);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // 1200 columns
  pass_through(pool, VELO_PURPOSE_INPUT, mib);
  const std::string picture = picture_of(pool);
  CHECK(shows(picture, ">activation, at most 40.0 MiB<"));
  CHECK(shows(picture, ">gradient, at most 20.0 MiB<"));
}

TEST_CASE("a peak of a moment is seen among a million events") {
  live_pool pool;
  REQUIRE(velo_pool_record(pool, 1000000) == VELO_OK);
  for (int i = 0; i < 400000; ++i) {
    pool.give(pool.take(4096), 4096);
    if (i == 123456) pass_through(pool, VELO_PURPOSE_WORKSPACE, 300 * mib);
  }
  const std::string picture = picture_of(pool);
  CHECK(shows(picture, "at most 300.0 MiB live"));
  // A step of the workspace's area up to the top: 480 pixels above the bottom at 536.
  CHECK(std::regex_search(picture, std::regex("V56\\.0[0-9]H")));
  CHECK(picture.size() < 200000);
}

TEST_CASE("what was live before the recording, and before the first event kept, is shown") {
  live_pool pool;
  void* weights = take_for(pool, VELO_PURPOSE_PARAMETER, 32 * mib);
  REQUIRE(velo_pool_record(pool, 10) == VELO_OK);
  for (int i = 0; i < 1000; ++i) pool.give(pool.take(mib), mib);
  const std::string picture = picture_of(pool);
  CHECK(shows(picture, ">parameter, at most 32.0 MiB<"));
  CHECK(shows(picture, "at most 33.0 MiB live"));
  CHECK(shows(picture, "10 events after 19"));
  pool.give(weights, 32 * mib);
}

TEST_CASE("a pool without a history has a picture that says so") {
  const live_pool pool;
  CHECK(shows(picture_of(pool), ">0 events, "));
}
