// Plans through their C entries: what they take, give and refuse.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/record.hpp"
#include "velo/plan.h"

namespace {

class plan {
 public:
  explicit plan(std::uint64_t capacity = 0) {
    velo_plan_desc desc = VELO_PLAN_DESC_INIT;
    desc.capacity = capacity;
    REQUIRE(velo_plan_create(&desc, &handle_) == VELO_OK);
  }
  ~plan() { velo_plan_destroy(handle_); }
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;
  operator velo_plan() const { return handle_; }

  velo_plan_stats stats() const {
    velo_plan_stats stats = VELO_PLAN_STATS_INIT;
    REQUIRE(velo_plan_get_stats(handle_, &stats) == VELO_OK);
    return stats;
  }
  velo_plan_buffer buffer(std::int64_t index) const {
    velo_plan_buffer found = VELO_PLAN_BUFFER_INIT;
    REQUIRE(velo_plan_get_buffer(handle_, index, &found) == VELO_OK);
    return found;
  }

 private:
  velo_plan handle_ = nullptr;
};

velo_status read(velo_plan to, const std::string& text) {
  return velo_plan_read(to, VELO_PLAN_CSV, text.data(), text.size());
}

}  // namespace

TEST_CASE("a plan has numbers before and after it is solved") {
  const plan p;
  std::int64_t index = -1;
  CHECK(velo_plan_add(p, 0, 4, 100, &index) == VELO_OK);
  CHECK(velo_plan_add(p, 2, 6, 50, nullptr) == VELO_OK);
  CHECK(index == 0);
  CHECK(p.stats().solved == 0);
  CHECK(p.stats().lower_bound == 150);
  CHECK(p.stats().height == 0);
  CHECK(p.buffer(1).offset == -1);
  REQUIRE(velo_plan_solve(p, nullptr) == VELO_OK);
  CHECK(p.stats().solved == 1);
  CHECK(p.stats().height == 150);
  CHECK(p.buffer(0).offset + p.buffer(1).offset == (p.buffer(0).offset == 0 ? 100 : 50));
}

TEST_CASE("what comes after the solution ends it") {
  const plan p;
  REQUIRE(read(p, "id,lower,upper,size\na,0,4,100\n") == VELO_OK);
  REQUIRE(velo_plan_solve(p, nullptr) == VELO_OK);
  REQUIRE(velo_plan_add(p, 0, 4, 100, nullptr) == VELO_OK);
  CHECK(p.stats().solved == 0);
  CHECK(p.buffer(0).offset == -1);
  CHECK(velo_plan_write(p, VELO_PLAN_SVG, nullptr, 0, nullptr) == VELO_ERR_STATE);
}

TEST_CASE("a text that is refused adds nothing") {
  const plan p(1000);
  CHECK(read(p, "id,lower,upper,size\na,0,4,100\nb,0,4,1001\n") == VELO_ERR_ARGUMENT);
  CHECK(p.stats().buffers == 0);
  REQUIRE(read(p, "id,lower,upper,size\na,0,4,100\n") == VELO_OK);
  CHECK_REFUSED(read(p, "id,lower,upper,size\nb,0,4,1\na,0,4,1\n"), VELO_ERR_ARGUMENT,
                "text, line 3, column 1");
  CHECK(p.stats().buffers == 1);
}

TEST_CASE("buffers, options and formats that make no sense are refused") {
  const plan p(1000);
  CHECK(velo_plan_add(p, 4, 4, 1, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add(p, 4, 3, 1, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add(p, 0, 1, 0, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add(p, 0, 1, 1001, nullptr) == VELO_ERR_ARGUMENT);
  velo_plan_options options = VELO_PLAN_OPTIONS_INIT;
  for (const double seconds : {-1.0, std::nan("")}) {
    options.seconds = seconds;
    CHECK(velo_plan_solve(p, &options) == VELO_ERR_ARGUMENT);
  }
  options = VELO_PLAN_OPTIONS_INIT;
  for (const std::int32_t threads : {0, -1, 65}) {
    options.threads = threads;
    CHECK_REFUSED(velo_plan_solve(p, &options), VELO_ERR_ARGUMENT, "options.threads");
  }
  CHECK(velo_plan_read(p, VELO_PLAN_SVG, "", 0) == VELO_ERR_ARGUMENT);
  REQUIRE(velo_plan_solve(p, nullptr) == VELO_OK);
  CHECK(velo_plan_write(p, VELO_PLAN_RMM_LOG, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
  velo_plan_buffer found = VELO_PLAN_BUFFER_INIT;
  CHECK(velo_plan_get_buffer(p, 0, &found) == VELO_ERR_ARGUMENT);
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  desc.capacity = ~std::uint64_t{0};
  velo_plan none = nullptr;
  CHECK(velo_plan_create(&desc, &none) == VELO_ERR_ARGUMENT);
}

TEST_CASE("sizes may not add up to more than 63 bits") {
  const plan p;
  const std::uint64_t half = std::uint64_t{1} << 62;
  REQUIRE(velo_plan_add(p, 0, 1, half, nullptr) == VELO_OK);
  CHECK(velo_plan_add(p, 5, 6, half, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add(p, 5, 6, half - 1, nullptr) == VELO_OK);
}
