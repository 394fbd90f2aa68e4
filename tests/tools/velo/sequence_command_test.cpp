// velo sequence, run as a program: rows, cells and bytes of known plans, texts, and what it
// refuses.
#include <catch2/catch.hpp>
#include <string>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

std::string text(const json& all, const char* key) {
  const std::unique_ptr<char, void (*)(void*)> written(
      json_dumps(json_object_get(all.get(), key), JSON_COMPACT), &free);
  return written != nullptr ? written.get() : "none";
}

json plan(const std::string& words) {
  const outcome o = run_velo("sequence " + words + " --format json");
  INFO(o.out);
  REQUIRE(o.code == 0);
  return parsed(o.out);
}

}  // namespace

TEST_CASE("sequence prints a plan as JSON, lists by rank") {
  const json ring = plan("ring --cp 4 --sequence 16 --heads 1");
  CHECK(text(ring, "rows") == "[[0,1,14,15],[2,3,12,13],[4,5,10,11],[6,7,8,9]]");
  CHECK(text(ring, "cells") == "[[10,8,8,8],[10,8,8,8],[10,8,8,8],[10,8,8,8]]");
  CHECK(json_array_size(json_object_get(ring.get(), "steps")) == 4);
  CHECK(json_array_size(json_object_get(ring.get(), "bytes")) == 4);
  const json packed = plan("ring --cp 2 --sequence 24 --documents 8,12,24 --heads 1");
  CHECK(text(packed, "rows").find("[0,1,6,7,8,11,12,13,14,21,22,23]") == 1);
  const json hybrid = plan("hybrid --cp 8 --ulysses 2 --sequence 32");
  CHECK(text(hybrid, "rows").find("[[0,1,2,3],[28,29,30,31],[4,5,6,7]") == 0);
  const json windows = plan("ring --cp 8 --window 2 --sequence 16");
  CHECK(json_array_size(json_array_get(json_object_get(windows.get(), "steps"), 0)) == 9);
}

TEST_CASE("sequence takes masks, and writes summaries and pictures") {
  const velo::testing::temporary_folder folder;
  const std::string mask = folder.put("mask.txt", "0111\n0011\n0001\n0000\n");
  const json masked = plan("ring --cp 2 --sequence 4 --heads 1 --mask " + mask);
  CHECK(text(masked, "rows") == "[[0,1],[2,3]]");
  CHECK(text(masked, "cells") == "[[3,0],[3,4]]");
  const outcome summary = run_velo("sequence ulysses --cp 4 --sequence 1026 --kv-heads 8");
  CHECK(summary.code == 0);
  CHECK(summary.out.find("forward: 3 steps") != std::string::npos);
  CHECK(summary.out.find("0:257") != std::string::npos);
  CHECK(summary.out.find("gradient: 3 steps") != std::string::npos);
  const outcome drawn =
      run_velo("sequence ring --cp 4 --sequence 64 --format svg -o " + folder.at("ring.svg"));
  CHECK(drawn.code == 0);
  CHECK(contents_of(folder.at("ring.svg")).find("<svg ") == 0);
  check_refused("sequence ring --cp 2 --sequence 5 --mask " + mask, "mask.txt:1: expected 5");
  check_refused("sequence ring --cp 2 --sequence 3 --mask " + mask, "mask.txt:1: expected 3");
  check_refused("sequence ring --cp 2 --sequence 4 --mask " + folder.put("bad.txt", "01x\n"),
                "bad.txt:1: expected 0 or 1");
}

TEST_CASE("sequence refuses what makes no plan, in words") {
  check_refused("sequence", "wants a kind");
  check_refused("sequence rings --cp 2", "expected ulysses, ring, hybrid or all_gather");
  check_refused("sequence ring --cp 0", "cp: expected 1 to 4096, got 0");
  check_refused("sequence ring --cp x", "expected a whole number");
  check_refused("sequence ring --cp 4 --window 3", "window: expected a divisor of the ring, 4");
  check_refused("sequence hybrid --cp 4 --ulysses 3", "ulysses: expected a divisor of cp, 4");
  check_refused("sequence ulysses --cp 4 --heads 3", "heads: expected 4 to");
  check_refused("sequence ring --sequence 9 --documents 3,2,9",
                "document_ends[1]: expected 3 to 9");
  check_refused("sequence ring --format picture", "--format wants summary, json or svg");
}
