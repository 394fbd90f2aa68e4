// velo experts, run as a program: places of known loads, texts, and what it refuses.
#include <catch2/catch.hpp>
#include <string>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

TEST_CASE("experts gives busy experts copies, and says what moves") {
  const outcome o = run_velo("experts --ranks 2 --loads 60,20,10,10 --current 0,1,-1,2,3,-1");
  CHECK(o.code == 0);
  CHECK(o.out.find("busiest rank: 50 rows, 1.000 of the mean 50.0") != std::string::npos);
  CHECK(o.out.find("copies: 1 beside 4 experts; 1 move") != std::string::npos);
  CHECK(o.out.find("0* 1") != std::string::npos);
  const outcome kept = run_velo("experts --ranks 2 --loads 5,5 --current 1,-1,0,-1");
  CHECK(kept.out.find("all stay") != std::string::npos);
}

TEST_CASE("experts writes JSON and pictures") {
  const outcome o = run_velo("experts --ranks 2 --slots 2 --loads 3,3,3,3 --format json");
  REQUIRE(o.code == 0);
  const json all = parsed(o.out);
  CHECK(json_integer_value(json_object_get(all.get(), "copies")) == 4);
  CHECK(json_array_size(json_object_get(all.get(), "placement")) == 2);
  CHECK(json_array_size(json_object_get(all.get(), "ranks_of")) == 4);
  const velo::testing::temporary_folder folder;
  const outcome drawn =
      run_velo("experts --ranks 3 --loads 9,1,1 --format svg -o " + folder.at("e.svg"));
  CHECK(drawn.code == 0);
  CHECK(contents_of(folder.at("e.svg")).find("<svg ") == 0);
}

TEST_CASE("experts refuses what makes no plan") {
  check_refused("experts --ranks 2", "experts wants --loads");
  check_refused("experts --loads 1,2", "experts wants --ranks R");
  check_refused("experts --ranks 2 --loads 1,-2", "loads[1]: expected 0 to 1099511627776, got -2");
  check_refused("experts --ranks 2 --slots 1 --loads 1,2,3", "slots: expected 2 to 32768");
  check_refused("experts --ranks 2 --loads 1,2 --current 0,1", "--current: expected 2 experts");
  check_refused("experts --ranks 2 --loads 1,2 --tolerance x", "--tolerance wants a number");
  check_refused("experts --ranks -1 --loads 1,2", "ranks: expected 1 to 1024, got -1");
}
