// Every text that is read and written: an accepted one is written so that it is accepted again, and
// is the same. Texts are mutated at random, with the bytes that tables, JSON and C strings treat in
// their own ways.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/utf8.hpp"
#include "tests/context.hpp"
#include "tests/random.hpp"
#include "tests/record.hpp"
#include "tests/structs.hpp"
#include "velo/velo.h"

using velo::testing::desc_of;
using velo::testing::random_source32;
using velo::testing::request_of;

using velo::core::json;

namespace {

// The text that function(arguments.., buffer, capacity, &needed) writes. It may grow by 4096 bytes
// between two calls.
template <class Function, class... Arguments>
std::string written(const Function& function, const Arguments&... arguments) {
  std::uint64_t needed = 0;
  REQUIRE(function(arguments..., nullptr, 0, &needed) == VELO_OK);
  std::string all(needed + 4096, 0);
  REQUIRE(function(arguments..., all.data(), all.size(), &needed) == VELO_OK);
  REQUIRE(needed <= all.size());
  all.resize(needed - 1);
  CHECK(all.find('\0') == std::string::npos);  // else its end was lost
  CHECK(velo::core::find_no_text(all) == std::string::npos);
  return all;
}

int rounds() {
  const char* asked = std::getenv("VELO_TEXTS");
  return asked != nullptr ? std::atoi(asked) : 3000;
}

class mutator {
 public:
  explicit mutator(unsigned seed) : random_(seed) {}

  std::string operator()(std::string text) {
    static const std::string odd[] = {std::string(1, 0),
                                      "\xff",
                                      "\xc3",
                                      "\xc3\xa9",
                                      "\xe2\x82\xac",
                                      "\xed\xa0\x80",
                                      "\xf0\x9f\x98\x80",
                                      "\xc0\x80",
                                      "\"",
                                      "'",
                                      "\\",
                                      ",",
                                      "\n",
                                      "\r",
                                      "\r\n",
                                      "\t",
                                      "\x7f",
                                      "\x01",
                                      " ",
                                      "#1",
                                      "\xef\xbb\xbf",
                                      "\xf4\x90\x80\x80",
                                      "-",
                                      "0",
                                      "\\u0000",
                                      "<&>",
                                      ";",
                                      "a"};
    for (int n = static_cast<int>(random_.below(3)) + 1; n > 0; --n) {
      const std::size_t at = random_() % (text.size() + 1);
      switch (random_.below(4)) {
        case 0:
          if (at < text.size()) text.erase(at, random_.below(3) + 1);
          break;
        case 1:
          text.insert(at, text.substr(random_() % (text.size() + 1), random_.below(12)));
          break;
        default:
          text.insert(at, odd[random_() % std::size(odd)]);
      }
    }
    return text;
  }
  std::string word() { return (*this)("word"); }
  std::size_t below(std::size_t n) { return random_.below(n); }

 private:
  random_source32 random_;
};

bool is_c_text(const std::string& text) {
  return velo::core::find_no_text(text) == std::string::npos;
}

// The part of a text that C functions see.
std::string until_zero(const std::string& text) {
  return text.substr(0, text.find('\0'));
}

struct live_plan {
  velo_plan handle = nullptr;
  live_plan() {
    velo_plan_desc desc = VELO_PLAN_DESC_INIT;
    REQUIRE(velo_plan_create(&desc, &handle) == VELO_OK);
  }
  ~live_plan() { velo_plan_destroy(handle); }
  live_plan(const live_plan&) = delete;

  std::vector<std::int64_t> buffers() const {
    velo_plan_stats stats = VELO_PLAN_STATS_INIT;
    REQUIRE(velo_plan_get_stats(handle, &stats) == VELO_OK);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(stats.buffers); ++i) {
      velo_plan_buffer one = VELO_PLAN_BUFFER_INIT;
      REQUIRE(velo_plan_get_buffer(handle, i, &one) == VELO_OK);
      all.insert(all.end(), {one.lower, one.upper, static_cast<std::int64_t>(one.bytes)});
    }
    return all;
  }
  std::string csv() const {
    velo_plan_options how = VELO_PLAN_OPTIONS_INIT;
    how.seconds = 0;
    REQUIRE(velo_plan_solve(handle, &how) == VELO_OK);
    return written(velo_plan_write, handle, VELO_PLAN_CSV);
  }
};

struct live_schedule {
  velo_schedule handle = nullptr;
  live_schedule() {
    const velo_schedule_desc desc = desc_of(VELO_SCHEDULE_1F1B, {2, 2});
    REQUIRE(velo_schedule_create(&desc, &handle) == VELO_OK);
  }
  ~live_schedule() { velo_schedule_destroy(handle); }
  live_schedule(const live_schedule&) = delete;

  std::string text(velo_schedule_format format) const {
    return written(velo_schedule_write, handle, format);
  }
};

}  // namespace

TEST_CASE("a plan that is read is written so that it is read again, and is the same") {
  const std::string seeds[] = {"id,lower,upper,size\nalpha,0,5,100\nb,2,9,7\n0,1,4,3\n",
                               "size,lower,upper,id\r\n5,0,3,x\r\n7,1,2,y z\r\n",
                               "Thread,Time,Action,Pointer,Size,Stream\n1,0,allocate,0x10,64,0\n"
                               "1,1,free,0x10,64,0\n1,2,allocate,0x10,32,0\n1,3,free,0x10,32,0\n"};
  mutator mutate(7);
  int accepted = 0, refused = 0;
  for (int i = 0; i < rounds(); ++i) {
    const std::size_t which = mutate.below(3);
    const auto format = which == 2 ? VELO_PLAN_RMM_LOG : VELO_PLAN_CSV;
    const std::string text = i < 3 ? seeds[which] : mutate(seeds[which]);
    const live_plan first;
    std::int64_t index = 0;
    if (i % 3 == 0) REQUIRE(velo_plan_add(first.handle, 0, 3, 8, &index) == VELO_OK);  // id 0
    const velo_status done = velo_plan_read(first.handle, format, text.data(), text.size());
    if (done != VELO_OK) {
      ++refused;
      CHECK(done == VELO_ERR_ARGUMENT);
      continue;
    }
    ++accepted;
    CHECK(is_c_text(text));
    const std::string csv = first.csv();
    const live_plan again;
    INFO(text << "\n--\n" << csv);
    REQUIRE(velo_plan_read(again.handle, VELO_PLAN_CSV, csv.data(), csv.size()) == VELO_OK);
    CHECK(again.buffers() == first.buffers());
    CHECK(again.csv() == csv);
  }
  CHECK(accepted > 50);
  CHECK(refused > 50);
}

TEST_CASE("an id is refused at its line and column where it is no text") {
  const struct {
    std::string text;
    const char *place, *got;
  } cases[] = {
      {std::string("id,lower,upper,size\na\0b,0,5,1\n", 29), "text, line 2, column 2",
       "a zero byte"},
      {"id,lower,upper,size\nab,0,5,1\nc\xff,0,5,1\n", "text, line 3, column 2", "byte \\xff"},
      {"id,lower,upper,size\n\x01,0,5,1\n", "text, line 2, column 1", "\\x01"},
  };
  for (const auto& one : cases) {
    const live_plan plan;
    CHECK_REFUSED(velo_plan_read(plan.handle, VELO_PLAN_CSV, one.text.data(), one.text.size()),
                  VELO_ERR_ARGUMENT, one.place);
    CHECK(velo::testing::last_record().got == one.got);
    CHECK(plan.buffers().empty());
  }
}

TEST_CASE("a schedule that is read is written so that it is read again, and is the same") {
  const live_schedule base;
  mutator mutate(11);
  for (const velo_schedule_format format : {VELO_SCHEDULE_CSV, VELO_SCHEDULE_JSON}) {
    const std::string seed = base.text(format);
    int accepted = 0, refused = 0;
    for (int i = 0; i < rounds(); ++i) {
      const std::string text = i == 0 ? seed : mutate(seed);
      const live_schedule first, again;
      if (velo_schedule_read(first.handle, format, text.data(), text.size()) != VELO_OK) {
        ++refused;
        CHECK(first.text(format) == seed);  // as it was
        continue;
      }
      ++accepted;
      CHECK(text.find('\0') == std::string::npos);
      const std::string once = first.text(format);
      INFO(text << "\n--\n" << once);
      REQUIRE(velo_schedule_read(again.handle, format, once.data(), once.size()) == VELO_OK);
      CHECK(again.text(format) == once);
    }
    CHECK(accepted > 10);
    CHECK(refused > 50);
  }
}

TEST_CASE("a configured text is given out as it was set, also as JSON") {
  const velo::testing::live_context context;
  mutator mutate(13);
  int accepted = 0, refused = 0;
  for (int i = 0; i < rounds(); ++i) {
    const std::string value = mutate.word();
    const velo_status done = velo_config_set(context, "plugin_path", value.c_str());
    if (done != VELO_OK) {
      ++refused;
      CHECK(done == VELO_ERR_ARGUMENT);
      continue;
    }
    ++accepted;
    const std::string got = written([&](char* to, std::uint64_t capacity, std::uint64_t* needed) {
      return velo_config_get(context, "plugin_path", to, capacity, needed, nullptr);
    });
    CHECK(got == until_zero(value));
    const json all = json::parse(written(velo_config_list, context), "config");
    bool found = false;
    for (std::size_t k = 0; k < all.size(); ++k)
      found = found || all.at(k).get("value").string() == until_zero(value);
    CHECK(found);
  }
  CHECK(accepted > 50);
  CHECK(refused > 50);
}

TEST_CASE("a group's label is given out as it was set") {
  mutator mutate(17);
  int accepted = 0, refused = 0;
  const velo::testing::live_context context;
  const velo_context contexts[] = {context};
  for (int i = 0; i < rounds() / 10; ++i) {
    const std::string label = mutate.word();
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    desc.label = label.c_str();
    velo_group group = nullptr;
    const velo_status done = velo_group_create_local(contexts, 1, &desc, &group);
    if (done != VELO_OK) {
      ++refused;
      CHECK(done == VELO_ERR_ARGUMENT);
      CHECK_FALSE(is_c_text(until_zero(label)));
      continue;
    }
    ++accepted;
    const json all = json::parse(written(velo_group_describe, group), "group");
    CHECK(all.get("group").string() == until_zero(label));
    velo_group_destroy(group);
  }
  CHECK(accepted > 20);
  CHECK(refused > 20);
}

namespace {

bool has_string(const json& all, const std::string& wanted) {
  if (all.kind() == json::type::string) return all.string() == wanted;
  bool found = false;
  if (all.kind() == json::type::array)
    for (std::size_t i = 0; i < all.size() && !found; ++i) found = has_string(all.at(i), wanted);
  if (all.kind() == json::type::object)
    all.each([&](const char*, const json& value) { found = found || has_string(value, wanted); });
  return found;
}

}  // namespace

TEST_CASE("a note is in the snapshot as it was written") {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  velo_pool pool = nullptr;
  REQUIRE(velo_pool_create(&desc, &pool) == VELO_OK);
  mutator mutate(19);
  int accepted = 0, refused = 0;
  for (int i = 0; i < rounds() / 10; ++i) {
    const std::string note = mutate.word();
    REQUIRE(velo_pool_record(pool, 16) == VELO_OK);
    const velo_status done = velo_pool_note(pool, nullptr, note.c_str());
    if (done != VELO_OK) {
      ++refused;
      CHECK_FALSE(is_c_text(until_zero(note)));
    } else if (!note.empty() && note[0] != 0) {
      ++accepted;
      const velo_pool_request request = request_of(64);
      void* block = nullptr;
      REQUIRE(velo_pool_allocate(pool, &request, &block) == VELO_OK);
      const std::string text = written(velo_pool_snapshot, pool, VELO_SNAPSHOT_JSON);
      INFO(text);
      CHECK(has_string(json::parse(text, "snapshot"), until_zero(note)));
      CHECK(velo_pool_free(pool, block, 64, nullptr) == VELO_OK);
    }
    REQUIRE(velo_pool_record(pool, 0) == VELO_OK);
  }
  velo_pool_destroy(pool);
  CHECK(accepted > 20);
  CHECK(refused > 20);
}
