// Errors of topologies: the named argument, and untouched outputs; texts.
#include <jansson.h>

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>

#include "comm/topology/topologies.hpp"
#include "tests/record.hpp"

using velo::testing::call_record;
using velo::testing::last_record;
using velo::testing::sizes;
using velo::testing::topology;

namespace {

void refused(const velo_topology_desc& desc, const std::string& argument,
             const std::string& expected, const std::string& got) {
  velo_topology made = nullptr;
  CHECK(velo_topology_create(&desc, &made) == VELO_ERR_ARGUMENT);
  CHECK(made == nullptr);
  const call_record info = last_record();
  CHECK(info.argument == argument);
  CHECK(info.expected.find(expected) != std::string::npos);
  CHECK(info.got == got);
}

}  // namespace

TEST_CASE("sizes that make no job are refused by name") {
  using member = std::int64_t velo_topology_desc::*;
  const std::pair<member, std::string> dense[] = {{&velo_topology_desc::tp, "desc.tp"},
                                                  {&velo_topology_desc::cp, "desc.cp"},
                                                  {&velo_topology_desc::dp, "desc.dp"},
                                                  {&velo_topology_desc::pp, "desc.pp"},
                                                  {&velo_topology_desc::gtp, "desc.gtp"}};
  for (const auto& [field, name] : dense) {
    velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
    desc.*field = 0;
    refused(desc, name, "1 or more", "0");
    desc.*field = INT64_MIN;
    refused(desc, name, "1 or more", "-9223372036854775808");
    desc.*field = std::int64_t{1} << 31;
    refused(desc, name, "at most 2147483647", "2147483648");
    desc.*field = INT64_MAX;
    refused(desc, name, "at most 2147483647", "9223372036854775807");
  }
  refused(sizes(65536, 1, 1, 65536, 1), "desc.dp", "at most 32767", "65536");
  refused(sizes(2, 2, 1, 3, std::int64_t{1} << 62), "desc.pp", "at most 178956970",
          "4611686018427387904");
  for (const std::int64_t bad : {INT64_MIN, std::int64_t{-1}, std::int64_t{5}, INT64_MAX}) {
    velo_topology_desc desc = sizes(2, 1, 1, 6, 2);
    desc.etp = bad;
    refused(desc, "desc.etp", "a divisor of tp * cp * dp * gtp, 12", std::to_string(bad));
    desc.etp = 3;
    desc.ep = bad;
    refused(desc, "desc.ep", "a divisor of tp * cp * dp * gtp / etp, 4", std::to_string(bad));
    desc.ep = 2;
    desc.egtp = bad;
    refused(desc, "desc.egtp", "tp * cp * dp * gtp / (etp * ep), 2", std::to_string(bad));
    desc.egtp = 1;
    desc.instances = bad;
    refused(desc, "desc.instances", "a divisor of dp * cp, 6", std::to_string(bad));
  }
  refused(sizes(2, 1, 0, 6, 2), "desc.ep", "a divisor", "0");
  velo_topology_desc desc = sizes(1, 1, 4, 8, 1);
  desc.instances = 4;  // of dp, yet not of edp
  refused(desc, "desc.instances", "a divisor of edp, 2", "4");
}

TEST_CASE("orders are refused for unknown axes, axes twice, axes left out, stages apart") {
  const auto order = [](const velo_topology_desc& of, const char* text, const std::string& expected,
                        const std::string& got) {
    velo_topology_desc desc = of;
    desc.order = text;
    refused(desc, "desc.order", expected, got);
  };
  const velo_topology_desc job = sizes(2, 2, 2, 2, 2);
  order(job, "tp-cp-ep-dp-xp", "tp, cp, ep, dp and pp", R"("xp" in "tp-cp-ep-dp-xp")");
  order(job, "", "tp, cp, ep, dp and pp", R"("" in "")");
  order(job, "tp-cp-ep-dp-pp-", "tp, cp, ep, dp and pp", R"("" in "tp-cp-ep-dp-pp-")");
  order(job, "tp cp", "tp, cp, ep, dp and pp", R"("tp cp" in "tp cp")");
  order(job, "tp-cp-tp", "each axis once", "tp twice in tp-cp-tp");
  order(job, "tp-cp-dp-pp", "ep in it: ep is 2", "tp-cp-dp-pp");
  order(job, "tp-ep-dp-pp", "cp in it: cp is 2", "tp-ep-dp-pp");
  order(sizes(2, 1, 1, 1, 1), "cp-ep-dp-pp", "tp in it: tp is 2", "cp-ep-dp-pp");
  velo_topology_desc experts = sizes(2, 1, 1, 1, 1);
  experts.etp = 1;
  order(experts, "tp-pp", "dp in it: edp is 2", "tp-pp");
  order(sizes(1, 1, 2, 4, 2), "tp-cp-ep-pp-dp",
        "pp last, or experts with the dp of dense layers, 4", "tp-cp-ep-pp-dp");
  order(sizes(1, 2, 2, 2, 2), "tp-cp-pp-ep-dp", "2 and 1 ranks apart", "tp-cp-pp-ep-dp");
  const topology allowed(sizes(1, 2, 2, 2, 2, "tp-cp-ep-pp-dp"));
  CHECK(allowed.group("pp", 0) == std::vector<std::int32_t>{0, 2});
}

TEST_CASE("parts that do not divide are refused") {
  velo_topology_desc desc = sizes(4, 8, 1, 3, 1);
  const auto changed = [&](void (*change)(velo_topology_desc&), const char* argument,
                           const char* expected, const char* got) {
    velo_topology_desc wrong = desc;
    change(wrong);
    refused(wrong, argument, expected, got);
  };
  changed([](auto& d) { d.cp_ulysses = 3; }, "desc.cp_ulysses", "a divisor of cp, 8", "3");
  changed([](auto& d) { d.cp_ulysses = 8; }, "desc.cp_ulysses", "a ring of 2 or more", "8");
  desc.cp_ulysses = 2;
  changed([](auto& d) { d.cp_window = 3; }, "desc.cp_window", "the ring, cp / cp_ulysses, 4", "3");
  changed([](auto& d) { d.cp_window = 4; }, "desc.cp_window", "less than the ring", "4");
  changed([](auto& d) { d.cp_window = 0; }, "desc.cp_window", "a divisor", "0");
  changed([](auto& d) { d.tp_x = 3; }, "desc.tp_x", "a divisor of tp, 4", "3");
  changed([](auto& d) { d.tp_x = 0, d.tp_y = 2; }, "desc.tp_y", "0 where tp_x is 0", "2");
  changed([](auto& d) { d.tp_x = 2, d.tp_y = -2; }, "desc.tp_y", "a divisor of tp, 4", "-2");
  changed([](auto& d) { d.hybrid = 2; }, "desc.hybrid", "0 or 1", "2");
  changed([](auto& d) { d.twins = -1; }, "desc.twins", "0 or 1", "-1");
  velo_topology_desc odd = sizes(2, 1, 1, 3, 1);
  odd.hybrid = 1;
  refused(odd, "desc.hybrid", "an even dp * cp", "3");

  const std::int64_t levels[] = {2, 3, 4}, less[] = {2, 2}, zero[] = {2, 0};
  desc.cp_levels = levels;
  desc.cp_level_count = 3;
  refused(desc, "desc.cp_levels[1]", "a divisor of what those before leave, 4", "3");
  desc.cp_levels = less;
  desc.cp_level_count = 2;
  refused(desc, "desc.cp_levels[1]", "what the others leave, 4: the product is cp, 8", "2");
  desc.cp_levels = zero;
  refused(desc, "desc.cp_levels[1]", "what the others leave", "0");
  desc.cp_level_count = -1;
  refused(desc, "desc.cp_level_count", "0 to 64", "-1");
  desc.cp_level_count = 2;
  desc.cp_levels = nullptr;
  velo_topology made = nullptr;
  CHECK(velo_topology_create(&desc, &made) == VELO_ERR_NULL);
}

TEST_CASE("families, groups and ranks that are not there are refused, and nothing is written") {
  const topology t(sizes(2, 1, 1, 3, 2));
  velo_topology_place place = VELO_TOPOLOGY_PLACE_INIT;
  place.group = 77;
  velo_topology_family info = VELO_TOPOLOGY_FAMILY_INIT;
  info.groups = 77;
  const std::string long_name(100000, 'x');
  for (const char* name : {"", "xp", "tp-", "tp-tp", "tp-ep-cp", "gtp-egtp", "cp-level-1",
                           "gtp_remat", "TP", "-", long_name.c_str()}) {
    INFO(std::string(name).substr(0, 20));
    CHECK_REFUSED(velo_topology_get_family(t, name, &info), VELO_ERR_ARGUMENT, "family");
    CHECK(velo_topology_get_place(t, name, 0, &place) == VELO_ERR_ARGUMENT);
  }
  for (const std::int64_t rank : {INT64_MIN, std::int64_t{-1}, std::int64_t{12}, INT64_MAX}) {
    CHECK_REFUSED(velo_topology_get_place(t, "tp", rank, &place), VELO_ERR_ARGUMENT, "rank");
    CHECK(last_record().expected == "0 to 11");
    CHECK(last_record().got == std::to_string(rank));
    const char* name = "untouched";
    CHECK(velo_topology_family_name(t, rank == 12 ? 16 : rank, &name) == VELO_ERR_ARGUMENT);
    CHECK(std::string(name) == "untouched");
  }
  CHECK(place.group == 77);
  CHECK(info.groups == 77);
  std::int32_t ranks[4] = {-5, -5, -5, -5};
  std::int64_t count = -5;
  for (const std::int64_t group : {INT64_MIN, std::int64_t{-1}, std::int64_t{4}, INT64_MAX})
    CHECK(velo_topology_get_group(t, "dp", group, ranks, 4, &count) == VELO_ERR_ARGUMENT);
  CHECK(velo_topology_get_group(t, "dp", 0, ranks, -1, &count) == VELO_ERR_ARGUMENT);
  CHECK(velo_topology_get_group(t, "dp", 0, nullptr, 1, &count) == VELO_ERR_NULL);
  CHECK(count == -5);
  CHECK(ranks[0] == -5);
  CHECK(velo_topology_get_group(t, "dp", 1, ranks, 2, &count) == VELO_OK);
  CHECK(count == 3);
  CHECK(ranks[1] == 3);
  CHECK(ranks[2] == -5);
  CHECK(velo_topology_write(t, "tp", 2, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
}

TEST_CASE("a topology without a description is one rank") {
  velo_topology made = nullptr;
  REQUIRE(velo_topology_create(nullptr, &made) == VELO_OK);
  char text[8];
  CHECK(velo_topology_write(made, "tp-ep-pp", VELO_TOPOLOGY_JSON, text, sizeof text, nullptr) ==
        VELO_OK);
  CHECK(std::string(text) == "[[0]]");
  velo_topology_destroy(made);
}

namespace {

std::string written(velo_topology from, const char* family, velo_topology_format format) {
  std::uint64_t needed = 0;
  REQUIRE(velo_topology_write(from, family, format, nullptr, 0, &needed) == VELO_OK);
  std::string text(needed, 0);
  REQUIRE(velo_topology_write(from, family, format, text.data(), needed, nullptr) == VELO_OK);
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("JSON has every family that has a name, in their order, with the same groups") {
  velo_topology_desc desc = sizes(2, 4, 2, 2, 3);
  desc.hybrid = desc.twins = 1;
  const topology t(desc);
  json_error_t error;
  const std::unique_ptr<json_t, void (*)(json_t*)> all(
      json_loads(written(t, nullptr, VELO_TOPOLOGY_JSON).c_str(), JSON_REJECT_DUPLICATES, &error),
      [](json_t* node) { json_decref(node); });
  REQUIRE(all != nullptr);
  std::vector<std::string> names;
  const char* name = nullptr;
  json_t* value = nullptr;
  json_object_foreach(all.get(), name, value) {
    names.emplace_back(name);
    velo::testing::groups read;
    for (std::size_t g = 0; g < json_array_size(value); ++g) {
      read.emplace_back();
      for (std::size_t i = 0; i < json_array_size(json_array_get(value, g)); ++i)
        read.back().push_back(static_cast<std::int32_t>(
            json_integer_value(json_array_get(json_array_get(value, g), i))));
    }
    CHECK(read == t.all(name));
  }
  CHECK(names == t.names());
}

TEST_CASE("a picture has a square for each rank of each family, colored by group") {
  const topology t(sizes(2, 1, 1, 2, 2));
  const auto count = [](const std::string& in, const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1))
      ++found;
    return found;
  };
  const std::string all = written(t, nullptr, VELO_TOPOLOGY_SVG);
  CHECK(count(all, "<title>rank ") == 16 * 8);
  CHECK(count(all, "in no group") == 4);  // the second stage has no position embedding
  const std::string one = written(t, "tp-pp", VELO_TOPOLOGY_SVG);
  CHECK(count(one, "<title>rank ") == 8);
  CHECK(one.find("tp-pp: 2 of 4") != std::string::npos);
  CHECK(one.find("rank 6: group 1, position 2") != std::string::npos);
  const std::string large = written(topology(sizes(8, 1, 1, 256, 1)), "tp", VELO_TOPOLOGY_SVG);
  CHECK(count(large, "<title>rank ") == 1024);
  CHECK(large.find("the first 1024 shown") != std::string::npos);
}

TEST_CASE("no two groups of a picture have the same color") {
  const std::string picture = written(topology(sizes(1, 1, 1, 1024, 1)), "tp", VELO_TOPOLOGY_SVG);
  const std::string begin = "fill=\"#", end = "\"><title>rank ";
  std::set<std::string> colors;
  for (std::size_t at = picture.find(end); at != std::string::npos; at = picture.find(end, at + 1))
    colors.insert(picture.substr(picture.rfind(begin, at), at - picture.rfind(begin, at)));
  CHECK(colors.size() == 1024);
}
