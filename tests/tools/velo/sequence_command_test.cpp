// velo sequence, run as a program: rows, cells and bytes of known plans, texts, and what it
// refuses.
#include <catch2/catch.hpp>
#include <string>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

std::string text(const json& all, const char* key) {
  const std::unique_ptr<char, void (*)(void*)> written(
      json_dumps(json_object_get(all.get(), key), JSON_COMPACT | JSON_ENCODE_ANY), &free);
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
  check_refused("sequence ring --cp 2", "sequence wants --sequence S, 1 or more");
  check_refused("sequence ring --cp 2 --sequence 5 --mask " + mask, "mask.txt:1: expected 5");
  check_refused("sequence ring --cp 2 --sequence 3 --mask " + mask, "mask.txt:1: expected 3");
  check_refused("sequence ring --cp 2 --sequence 4 --mask " + folder.put("bad.txt", "01x\n"),
                "bad.txt:1: expected 0 or 1");
}

TEST_CASE("sequence plans any mask in rounds") {
  const velo::testing::temporary_folder folder;
  const std::string mask = folder.put("mask.txt", "0101\n1010\n0101\n1010\n"),
                    hidden = folder.put("hidden.txt", "11\n11\n"),
                    uneven = folder.put("uneven.txt", "0111\n001\n0001\n0000\n"),
                    lines = folder.put("lines.txt", "0111\n0011\n0001\n");
  const json groups = plan("adaptive --cp 2 --sequence 4 --heads 1 --mask " + mask);
  CHECK(text(groups, "rows") == "[[0,2],[1,3]]");
  CHECK(text(groups, "cells") == "[[4],[4]]");
  CHECK(text(groups, "rounds") == "1");
  CHECK(text(groups, "rule_rounds") == "1");
  const json triangle = plan("adaptive --cp 4 --sequence 16");
  CHECK(text(triangle, "rounds") == "3");
  CHECK(text(triangle, "rule_rounds") == "3");
  CHECK(text(plan("ring --cp 4 --sequence 16"), "rounds") == "none");
  const json nothing = plan("adaptive --cp 2 --sequence 2 --mask " + hidden);
  CHECK(text(nothing, "rounds") == "0");
  CHECK(text(nothing, "cells") == "[[],[]]");
  const json hybrid = plan("hybrid_adaptive --cp 4 --ulysses 2 --sequence 8 --heads 2");
  CHECK(text(hybrid, "rows") == "[[0,1],[6,7],[2,3],[4,5]]");
  const outcome summary = run_velo("sequence adaptive --cp 8 --sequence 64 --full");
  CHECK(summary.out.find("rounds: 8; the rule without the limit of 6 units needs 8") == 0);
  const outcome drawn = run_velo("sequence adaptive --cp 4 --sequence 64 --format svg");
  CHECK(drawn.out.find("<svg ") == 0);
  check_refused("sequence adaptive --cp 2 --sequence 4 --mask " + uneven,
                "uneven.txt:2: expected 4 characters, got 3");
  check_refused("sequence adaptive --cp 2 --sequence 4 --mask " + lines,
                "expected 4 lines of 4 characters");
  check_refused("sequence adaptive --cp 2 --sequence 5 --mask " + mask, "mask.txt:1: expected 5");
  check_refused("sequence adaptive --cp 257 --sequence 5", "at most 256 blocks");
  check_refused("sequence hybrid_adaptive --cp 4 --ulysses 3 --sequence 5",
                "ulysses: expected a divisor");
  check_refused("sequence adaptive --cp 4 --window 2 --sequence 5", "window: expected 1");
}

TEST_CASE("sequence shows a hybrid of one neighbor as the ring, and of all as ulysses") {
  const auto shown = [](const std::string& words) {
    const outcome o = run_velo("sequence " + words + " --sequence 32 --heads 8 --format json");
    CHECK(o.code == 0);
    return o.out;
  };
  CHECK(shown("hybrid --cp 8") == shown("ring --cp 8"));
  CHECK(shown("hybrid --cp 8 --ulysses 1 --window 2") == shown("ring --cp 8 --window 2"));
  CHECK(shown("hybrid --cp 8 --ulysses 8") == shown("ulysses --cp 8"));
  CHECK(shown("hybrid_adaptive --cp 8 --ulysses 1") == shown("adaptive --cp 8"));
}

TEST_CASE("sequence prices a cache of some layers") {
  const std::string cached =
      "ring --cp 4 --sequence 32 --heads 1 --head-dim 4 --kv-cache full "
      "--layers 12 --kv-interval 4";
  const json first = plan(cached), second = plan(cached + " --layer 1");
  CHECK(text(first, "kv_cache") ==
        "{\"kept\":\"full\",\"interval\":4,\"layers\":[0,5,10],\"bytes\":[256,256,256,256]}");
  CHECK(text(second, "kv_cache").find("\"bytes\":[128,128,128,128]") != std::string::npos);
  const outcome summary = run_velo("sequence " + cached);
  CHECK(summary.out.find("kv cache: full in 3 of 12 layers") != std::string::npos);
  // 3 * 256 + 9 * 128; of blocks of 64 bytes 2 or 4 again, and 3 of dk and dv in float32
  CHECK(summary.out.find("1920") != std::string::npos);
  CHECK(summary.out.find(std::to_string(3 * (128 + 768) + 9 * (256 + 768))) != std::string::npos);
  for (const char* layers : {"", " --layers 3"})
    check_refused(std::string("sequence ring --cp 4 --sequence 16 --kv-interval 1") + layers,
                  "kv_cache: expected half or full, which kv_interval 1 needs, got none");
  const json shared = plan(cached + " --keys shared"), given = plan(cached + " --keys given");
  CHECK(text(shared, "kv_cache").find("\"bytes\":[384,384,384,384]") != std::string::npos);
  CHECK(text(shared, "keys") == "\"shared\"");
  CHECK(text(given, "bytes") == "[[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0]]");
  check_refused("sequence ring --cp 4 --keys borrowed", "--keys wants own, shared or given");
  check_refused("sequence ring --sequence 64 --cp 4 --kv-cache half --kv-interval 3 --layers 3",
                "kv_interval: expected 0 or more, below layers, 3");
  check_refused("sequence ring --sequence 64 --cp 4 --kv-gather", "kv_gather: expected 0, or 1");
  check_refused(
      "sequence ring --cp 4 --sequence 8388607 --heads 65535 --head-dim 65536 --kv-cache full "
      "--layers 65536",
      "--layers: expected less than 2^63 bytes");
}

TEST_CASE("sequence prices a cache of what ranks have before they exchange heads") {
  const std::string of = "ulysses --cp 4 --sequence 32 --heads 8 --kv-heads 2 --head-dim 4 ";
  // Of each rank's 8 rows of 4 elements and 2 bytes, 3 others' with 2 heads, and with 1 of keys.
  const auto bytes = [&](const char* kept) { return text(plan(of + kept), "kv_cache"); };
  CHECK(bytes("--kv-cache half").find("\"bytes\":[576,576,576,576]") != std::string::npos);
  CHECK(bytes("--kv-cache full").find("\"bytes\":[384,384,384,384]") != std::string::npos);
  CHECK(bytes("--kv-cache none") == "none");
  check_refused("sequence all_gather --sequence 64 --cp 4 --kv-cache half",
                "except for ULYSSES, RING and");
}

TEST_CASE("sequence refuses files that are no masks by their line") {
  const velo::testing::temporary_folder folder;
  const auto refused = [&](const std::string& text, const std::string& reason) {
    check_refused("sequence ring --cp 2 --sequence 4 --mask " + folder.put("mask.txt", text),
                  "mask.txt" + reason);
  };
  const std::string good = "0000\n0000\n0000\n0000\n";
  for (std::size_t bytes = 0; bytes < good.size() - 1; ++bytes)
    refused(good.substr(0, bytes), bytes % 5 == 0 || bytes % 5 == 4
                                       ? ": expected 4 lines of 4 characters"
                                       : ":" + std::to_string(bytes / 5 + 1) +
                                             ": expected 4 characters, got " +
                                             std::to_string(bytes % 5));
  refused(std::string(16, '\0'), ":1: expected 0 or 1");
  refused(
      "0000\n00\xff"
      "0\n",
      ":2: expected 0 or 1");
  refused("[[0, 0], [0, 0]]", ":1: expected 0 or 1");
  refused(std::string(16, '0'), ":1: expected 4 characters, got 16");
  refused(std::string(1 << 22, '1'), ":1: expected 4 characters, got 4194304");
  refused(std::string(1 << 22, '\n'), ": expected 4 lines of 4 characters");
  refused(good + "0", ":5: expected 4 characters, got 1");
  refused(good + good, ": expected 4 lines of 4 characters");
  check_refused("sequence ring --cp 2 --sequence 4 --mask " + folder.at(""), "cannot be read");
  check_refused("sequence ring --cp 2 --sequence 4 --mask /dev/null", "expected 4 lines");
  check_refused("sequence ring --cp 2 --sequence 65537 --mask /dev/zero", "expected 0 to 65536");
}

TEST_CASE("sequence proves no plan whose proof would take long") {
  const auto warned = [](const std::string& words) {
    const outcome o = run_velo("sequence ring --cp 4 --sequence 16 " + words);
    CHECK(o.code == 0);
    return o.out.find("not proven: too large") != std::string::npos;
  };
  CHECK_FALSE(warned("--heads 2048"));
  CHECK(warned("--heads 65536 --documents 4,8,12,16"));
}

TEST_CASE("sequence refuses what makes no plan, in words") {
  check_refused("sequence", "wants a kind");
  check_refused("sequence rings --cp 2",
                "expected ulysses, ring, hybrid, all_gather, adaptive or hybrid_adaptive");
  check_refused("sequence ring --sequence 64 --cp 0", "cp: expected 1 to 4096, got 0");
  check_refused("sequence ring --cp x", "expected a whole number");
  check_refused("sequence ring --sequence 64 --cp 4 --window 3",
                "window: expected a divisor of the ring, cp, 4");
  check_refused("sequence hybrid --sequence 64 --cp 4 --ulysses 3",
                "ulysses: expected a divisor of cp, 4");
  check_refused("sequence ulysses --sequence 64 --cp 4 --heads 3", "heads: expected 4 to");
  check_refused("sequence ring --sequence 9 --documents 3,2,9",
                "document_ends[1]: expected 3 to 9");
  check_refused("sequence ring --format picture", "--format wants summary, json or svg");
}
