// Sequence plans through their C entries: refusals by the name of the field, texts, and random
// descriptions.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/random.hpp"
#include "tests/record.hpp"
#include "velo/sequence_plan.h"

using namespace velo::testing;

namespace {

void refused(const std::function<void(velo_sequence_desc&)>& change, const std::string& argument,
             const std::string& expected, const std::string& got,
             velo_status status = VELO_ERR_ARGUMENT) {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.cp = 4, desc.sequence = 32, desc.heads = 8;
  change(desc);
  velo_sequence_plan made = nullptr;
  INFO(argument << ", " << expected);
  CHECK(velo_sequence_plan_create(&desc, &made) == status);
  CHECK(made == nullptr);
  const call_record record = last_record();
  CHECK(record.argument == argument);
  CHECK(record.expected.find(expected) != std::string::npos);
  CHECK(record.got == got);
}

class plan {
 public:
  explicit plan(const velo_sequence_desc& desc) {
    REQUIRE(velo_sequence_plan_create(&desc, &handle_) == VELO_OK);
  }
  ~plan() { velo_sequence_plan_destroy(handle_); }
  plan(const plan&) = delete;
  operator velo_sequence_plan() const { return handle_; }

 private:
  velo_sequence_plan handle_ = nullptr;
};

std::string text_of(velo_sequence_plan of, velo_sequence_format format) {
  std::uint64_t needed = 0;
  REQUIRE(velo_sequence_plan_write(of, format, nullptr, 0, &needed) == VELO_OK);
  std::string all(needed, ' ');
  REQUIRE(velo_sequence_plan_write(of, format, all.data(), needed, nullptr) == VELO_OK);
  all.pop_back();
  return all;
}

}  // namespace

TEST_CASE("a sequence plan that makes no sense is refused by its field") {
  using desc = velo_sequence_desc;
  refused([](desc& d) { d.kind = 4; }, "desc.kind", "VELO_SEQUENCE_ULYSSES to", "4");
  refused([](desc& d) { d.cp = 0; }, "desc.cp", "1 to 4096", "0");
  refused([](desc& d) { d.cp = 4097; }, "desc.cp", "1 to 4096", "4097");
  refused([](desc& d) { d.ulysses = 2; }, "desc.ulysses", "1, except for", "2");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.ulysses = 3; }, "desc.ulysses",
          "a divisor of cp, 4", "3");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.ulysses = 4; }, "desc.ulysses",
          "leaves a ring of 2", "4");
  refused([](desc& d) { d.window = 3; }, "desc.window", "a divisor of the ring, 4", "3");
  refused([](desc& d) { d.window = 4; }, "desc.window", "less than the ring, 4", "4");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ULYSSES, d.window = 2; }, "desc.window",
          "1 without a ring", "2");
  refused([](desc& d) { d.sequence = -1; }, "desc.sequence", "below 2^31", "-1");
  refused([](desc& d) { d.sequence = (std::int64_t{1} << 31) - 1; }, "desc.heads",
          "less than 2^62 cells and bytes", "8");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ULYSSES, d.heads = 3; }, "desc.heads", "4 to", "3");
  refused([](desc& d) { d.kv_heads = 3; }, "desc.kv_heads", "a divisor of heads, 8", "3");
  refused([](desc& d) { d.head_dim = 0; }, "desc.head_dim", "1 to", "0");
  refused([](desc& d) { d.element_bytes = 3; }, "desc.element_bytes", "2 or 4", "3");
  refused([](desc& d) { d.causal = 2; }, "desc.causal", "0 or 1", "2");
  refused([](desc& d) { d.kv_cache = 3; }, "desc.kv_cache", "VELO_SEQUENCE_CACHE_NONE to", "3");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ALL_GATHER, d.kv_cache = 1; }, "desc.kv_cache",
          "without a ring", "1");
  refused([](desc& d) { d.document_count = 1; }, "desc.document_ends", "document_count", "NULL",
          VELO_ERR_NULL);
  static const std::int64_t back[] = {8, 4, 32}, low[] = {8, 31}, high[] = {8, 33};
  refused([](desc& d) { d.document_ends = back, d.document_count = 3; }, "desc.document_ends[1]",
          "8 to 32", "4");
  refused([](desc& d) { d.document_ends = low, d.document_count = 2; }, "desc.document_ends[1]",
          "32, the sequence", "31");
  refused([](desc& d) { d.document_ends = high, d.document_count = 2; }, "desc.document_ends[1]",
          "8 to 32", "33");
  refused([](desc& d) { d.document_ends = low, d.document_count = 1 << 24; }, "desc.document_count",
          "at most 1048576 with cp 4", "16777216");
  static const std::vector<std::uint8_t> mask(32 * 32);
  refused([](desc& d) { d.mask = mask.data(), d.document_ends = low, d.document_count = 2; },
          "desc.document_count", "0 beside a mask", "2");
  refused([](desc& d) { d.mask = mask.data(), d.sequence = 65537; }, "desc.sequence",
          "at most 65536 with a mask", "65537");
}

TEST_CASE("questions about what is not in a plan are refused") {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.cp = 4, desc.sequence = 32, desc.heads = 8;
  const plan p(desc);
  velo_sequence_step step = VELO_SEQUENCE_STEP_INIT;
  const auto asked = [&](velo_sequence_pass pass, std::int64_t rank, std::int64_t at) {
    step.cells = -5;
    CHECK(velo_sequence_plan_get_step(p, pass, rank, at, &step) == VELO_ERR_ARGUMENT);
    CHECK(step.cells == -5);
    return last_record().argument;
  };
  CHECK(asked(2, 0, 0) == "pass");
  CHECK(asked(VELO_SEQUENCE_FORWARD, 4, 0) == "rank");
  CHECK(asked(VELO_SEQUENCE_FORWARD, -1, 0) == "rank");
  CHECK(asked(VELO_SEQUENCE_FORWARD, 0, 5) == "step");
  velo_sequence_task task = VELO_SEQUENCE_TASK_INIT;
  CHECK(velo_sequence_plan_get_task(p, VELO_SEQUENCE_FORWARD, 0, 4, 0, &task) == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "index");
  velo_sequence_message message = VELO_SEQUENCE_MESSAGE_INIT;
  CHECK(velo_sequence_plan_get_message(p, VELO_SEQUENCE_FORWARD, 0, 0, VELO_SEQUENCE_TASK_KEYS, 0,
                                       &message) == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "part");
  std::int64_t spans[2];
  CHECK(velo_sequence_plan_get_rows(p, 0, spans, -1, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_sequence_plan_get_rows(p, 0, nullptr, 1, nullptr) == VELO_ERR_NULL);
  CHECK(velo_sequence_plan_write(p, 2, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
}

TEST_CASE("a plan is written as JSON and drawn") {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.cp = 2, desc.sequence = 8, desc.heads = 2, desc.kv_heads = 1, desc.head_dim = 4;
  const plan p(desc);
  const std::string all = text_of(p, VELO_SEQUENCE_JSON);
  CHECK(all.find("{\"rows\": [[0, 1, 6, 7],\n [2, 3, 4, 5]],\n"
                 " \"cells\": [[20, 16], [20, 16]],\n \"bytes\": [[0, 64, 0], [0, 64, 0]],\n"
                 " \"steps\": [") == 0);
  CHECK(all.find("{\"to\": 1, \"what\": \"k\", \"rows\": [[0, 2], [6, 8]], \"heads\": [0, 1], "
                 "\"needed\": 1, \"bytes\": 32}") != std::string::npos);
  CHECK(all.find("\"gradient\": {") != std::string::npos);
  CHECK(text_of(p, VELO_SEQUENCE_SVG).find("<svg ") == 0);
}

TEST_CASE("any description gets a status, and an accepted one is proven") {
  const char* asked = std::getenv("VELO_SEQUENCE_PLANS");
  const int rounds = 20 * (asked != nullptr ? std::atoi(asked) : 100);
  random_numbers<std::mt19937_64> random(9);
  const std::int64_t odd[] = {0,
                              1,
                              2,
                              3,
                              4,
                              5,
                              6,
                              8,
                              12,
                              16,
                              33,
                              -1,
                              4096,
                              std::int64_t{1} << 31,
                              std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::min()};
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
    std::vector<std::int64_t> ends;
    desc.kind = static_cast<velo_sequence_kind>(random.below(5));
    desc.cp = random.pick(odd), desc.sequence = static_cast<std::int64_t>(random.below(40));
    desc.heads = random.pick(odd);
    std::int64_t* const numbers[] = {&desc.ulysses,  &desc.window,   &desc.kv_heads,
                                     &desc.head_dim, &desc.sequence, &desc.element_bytes};
    for (std::uint64_t changes = random.below(3); changes > 0; --changes)
      *numbers[random.below(std::size(numbers))] = random.pick(odd);
    for (std::uint64_t i = random.below(4); i > 0; --i) ends.push_back(random.pick(odd));
    if (random.one_in(2) && !ends.empty()) ends.back() = desc.sequence;
    desc.document_ends = ends.data(), desc.document_count = static_cast<std::int64_t>(ends.size());
    desc.causal = static_cast<std::int32_t>(random.below(2));
    if (desc.sequence > 4096 || desc.cp > 64)
      desc.sequence = std::min<std::int64_t>(desc.sequence, 9);
    velo_sequence_plan made = nullptr;
    const velo_status status = velo_sequence_plan_create(&desc, &made);
    if (status != VELO_OK) {
      CHECK(status == VELO_ERR_ARGUMENT);
      continue;
    }
    ++accepted;
    if (desc.cp <= 64 && desc.heads <= 64) CHECK(velo_sequence_plan_check(made) == VELO_OK);
    velo_sequence_plan_destroy(made);
  }
  CHECK(accepted > rounds / 50);
}
