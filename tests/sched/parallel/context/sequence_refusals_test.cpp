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
#include "tests/sched/parallel/context/described_plan.hpp"
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

}  // namespace

TEST_CASE("a sequence plan that makes no sense is refused by its field") {
  using desc = velo_sequence_desc;
  refused([](desc& d) { d.kind = 6; }, "desc.kind", "VELO_SEQUENCE_ULYSSES to", "6");
  refused([](desc& d) { d.cp = 0; }, "desc.cp", "1 to 4096", "0");
  refused([](desc& d) { d.cp = 4097; }, "desc.cp", "1 to 4096", "4097");
  refused([](desc& d) { d.ulysses = 2; }, "desc.ulysses", "1, except for", "2");
  for (const velo_sequence_kind kind : {VELO_SEQUENCE_HYBRID, VELO_SEQUENCE_HYBRID_ADAPTIVE})
    for (const std::int64_t ulysses : {-1, 0, 3, 8})
      refused([=](desc& d) { d.kind = kind, d.ulysses = ulysses; }, "desc.ulysses",
              "a divisor of cp, 4", std::to_string(ulysses));
  refused([](desc& d) { d.window = 3; }, "desc.window", "a divisor of the ring, cp, 4", "3");
  refused([](desc& d) { d.window = 4; }, "desc.window", "less than the ring, cp, 4", "4");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.ulysses = 2, d.window = 3; },
          "desc.window", "a divisor of the ring, cp / ulysses, 2", "3");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ULYSSES, d.window = 2; }, "desc.window",
          "1 without a ring", "2");
  refused([](desc& d) { d.sequence = -1; }, "desc.sequence", "below 2^31", "-1");
  refused([](desc& d) { d.sequence = (std::int64_t{1} << 31) - 1; }, "desc.heads",
          "less than 2^62 cells and bytes", "8");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ULYSSES, d.heads = 3; }, "desc.heads",
          "4 to 65536, one for each rank that exchanges heads (cp)", "3");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.ulysses = 2, d.heads = 1; }, "desc.heads",
          "2 to 65536, one for each rank that exchanges heads (ulysses)", "1");
  refused([](desc& d) { d.kv_heads = 3; }, "desc.kv_heads", "a divisor of heads, 8", "3");
  refused([](desc& d) { d.head_dim = 0; }, "desc.head_dim", "1 to", "0");
  refused([](desc& d) { d.element_bytes = 3; }, "desc.element_bytes", "2 or 4", "3");
  refused([](desc& d) { d.causal = 2; }, "desc.causal", "0 or 1", "2");
  refused([](desc& d) { d.kv_cache = 3; }, "desc.kv_cache", "VELO_SEQUENCE_CACHE_NONE to", "3");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ALL_GATHER, d.kv_cache = 1; }, "desc.kv_cache",
          "except for ULYSSES, RING and HYBRID", "1");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ADAPTIVE, d.kv_cache = 2; }, "desc.kv_cache",
          "except for ULYSSES, RING and HYBRID", "2");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ADAPTIVE, d.ulysses = 2; }, "desc.ulysses",
          "1, except for hybrids", "2");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ADAPTIVE, d.window = 2; }, "desc.window",
          "1 without a ring", "2");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ADAPTIVE, d.cp = 257; }, "desc.cp",
          "at most 256 blocks", "257");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ADAPTIVE, d.sequence = 65537; }, "desc.sequence",
          "at most 65536", "65537");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.ulysses = 4, d.window = 2; },
          "desc.window", "a divisor of the ring, cp / ulysses, 1", "2");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_HYBRID, d.kv_gather = 1; }, "desc.kv_gather",
          "1 where heads are exchanged", "1");
  for (const std::int64_t layers : {1, 2})
    refused([=](desc& d) { d.kv_interval = 1, d.layers = layers; }, "desc.kv_cache",
            "half or full, which kv_interval 1 needs", "none");
  refused([](desc& d) { d.kv_cache = 2, d.kv_interval = 3, d.layers = 3; }, "desc.kv_interval",
          "below layers, 3", "3");
  refused([](desc& d) { d.kv_interval = -1; }, "desc.kv_interval", "0 or more", "-1");
  refused([](desc& d) { d.layers = 0; }, "desc.layers", "1 to", "0");
  refused([](desc& d) { d.layers = 3, d.layer = 3; }, "desc.layer", "0 to 2", "3");
  refused([](desc& d) { d.layer = -1; }, "desc.layer", "0 to 0", "-1");
  refused([](desc& d) { d.kv_gather = 1; }, "desc.kv_gather", "1 where heads are exchanged", "1");
  refused([](desc& d) { d.kind = VELO_SEQUENCE_ULYSSES, d.kv_gather = 2; }, "desc.kv_gather",
          "0, or 1", "2");
  refused([](desc& d) { d.keys = 3; }, "desc.keys", "VELO_SEQUENCE_KEYS_OWN to", "3");
  refused([](desc& d) { d.keys = -1; }, "desc.keys", "VELO_SEQUENCE_KEYS_OWN to", "-1");
  refused([](desc& d) { d.reserved = 1; }, "desc.reserved", "0", "1");
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
  const described_plan p(desc);
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
  const described_plan p(desc);
  const std::string all = p.text(VELO_SEQUENCE_JSON);
  CHECK(all.find("{\"rows\": [[0, 1, 6, 7],\n [2, 3, 4, 5]],\n"
                 " \"cells\": [[20, 16], [20, 16]],\n \"bytes\": [[0, 64, 0], [0, 64, 0]],\n"
                 " \"steps\": [") == 0);
  CHECK(all.find("{\"to\": 1, \"what\": \"k\", \"rows\": [[0, 2], [6, 8]], \"heads\": [0, 1], "
                 "\"needed\": 1, \"bytes\": 32}") != std::string::npos);
  CHECK(all.find("\"gradient\": {") != std::string::npos);
  CHECK(p.text(VELO_SEQUENCE_SVG).find("<svg ") == 0);
}

TEST_CASE("a cache of some layers is in the plan, and priced") {
  const auto layers_of = [](std::int64_t interval) {
    velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
    desc.cp = 4, desc.sequence = 32, desc.kv_cache = VELO_SEQUENCE_CACHE_FULL;
    desc.layers = 12, desc.kv_interval = interval;
    const std::string all = described_plan(desc).text(VELO_SEQUENCE_JSON);
    const std::size_t begin = all.find("\"layers\": ") + 10, end = all.find(']', begin);
    return all.substr(begin, end + 1 - begin);
  };
  CHECK(layers_of(0) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]");
  CHECK(layers_of(1) == "[0, 2, 4, 6, 8, 10]");
  CHECK(layers_of(4) == "[0, 5, 10]");
  CHECK(layers_of(5) == "[0, 6]");
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.cp = 8, desc.sequence = 64, desc.head_dim = 4;
  desc.kv_interval = 4, desc.layers = 12;
  // Of 7 blocks of others the last is kept in any case, the one before it never.
  const std::int64_t block = 8 * 4 * 2;
  for (const velo_sequence_cache kept : {VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL})
    for (desc.layer = 0; desc.layer < desc.layers; ++desc.layer) {
      desc.kv_cache = kept;
      const described_plan p(desc);
      velo_sequence_info info = VELO_SEQUENCE_INFO_INIT;
      REQUIRE(velo_sequence_plan_get_info(p, &info) == VELO_OK);
      CHECK((info.kv_layers == 3 && info.rounds == 0 && info.rule_rounds == 0));
      const bool keeps = desc.layer % 5 == 0, values = kept == VELO_SEQUENCE_CACHE_FULL;
      velo_sequence_step step = VELO_SEQUENCE_STEP_INIT;
      std::int64_t received = 0;
      for (std::int64_t at = 0; at < info.forward_steps; ++at) {
        REQUIRE(velo_sequence_plan_get_step(p, VELO_SEQUENCE_FORWARD, 3, at, &step) == VELO_OK);
        // Blocks come in steps 1 to 7; the one of step 6 is not kept.
        const std::int64_t blocks = at < 6 ? at : at - 1, last = at == 7 ? 1 : 0;
        CHECK(step.bytes_kept == block * (keeps ? blocks + (values ? blocks : last) : 2 * last));
      }
      for (std::int64_t at = 0; at <= info.gradient_steps; ++at) {
        REQUIRE(velo_sequence_plan_get_step(p, VELO_SEQUENCE_GRADIENT, 3, at, &step) == VELO_OK);
        CHECK(step.bytes_kept == block * (keeps ? values ? 12 : 7 : 2));
        received += step.bytes_received;
      }
      const std::int64_t again = keeps ? values ? 2 : 7 : 12;  // dk and dv in float32
      CHECK(received == block * (again + 7 * 2 * 2));
      CHECK(velo_sequence_plan_check(p) == VELO_OK);
    }
}

TEST_CASE("a hybrid of one neighbor is the ring, and one of a single ring rank is ulysses") {
  const auto require_same = [](velo_sequence_desc hybrid, velo_sequence_kind kind) {
    velo_sequence_desc plain = hybrid;
    plain.kind = kind, plain.ulysses = 1;
    const described_plan one(hybrid), other(plain);
    one.require_proven();
    CHECK(one.text(VELO_SEQUENCE_JSON) == other.text(VELO_SEQUENCE_JSON));
  };
  static const std::int64_t ends[] = {5, 5, 20, 43};
  for (const std::int32_t causal : {0, 1})
    for (const std::int64_t documents : {0, 4})
      for (const velo_sequence_cache kept :
           {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL}) {
        velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
        desc.kind = VELO_SEQUENCE_HYBRID, desc.causal = causal, desc.kv_cache = kept;
        desc.cp = 8, desc.sequence = 43, desc.heads = 12, desc.kv_heads = 3;
        desc.document_ends = documents == 0 ? nullptr : ends, desc.document_count = documents;
        for (desc.window = 1; desc.window < 8; desc.window *= 2)
          require_same(desc, VELO_SEQUENCE_RING);
        desc.window = 1, desc.ulysses = 8;
        for (desc.kv_gather = 0; desc.kv_gather < 2; ++desc.kv_gather)
          require_same(desc, VELO_SEQUENCE_ULYSSES);
      }
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_HYBRID_ADAPTIVE, desc.cp = 4, desc.sequence = 43, desc.heads = 8;
  require_same(desc, VELO_SEQUENCE_ADAPTIVE);
  desc.ulysses = 4;  // one block of rows, in one round
  const described_plan one(desc);
  one.require_proven();
  CHECK(one.info().rounds == 1);
}

TEST_CASE("key heads are sent where they are needed, or gathered") {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_ULYSSES;
  desc.cp = 4, desc.sequence = 32, desc.heads = 12, desc.kv_heads = 3, desc.head_dim = 4;
  const auto received = [&](std::int64_t gather, std::int64_t rank) {
    desc.kv_gather = gather;
    const described_plan p(desc);
    CHECK(velo_sequence_plan_check(p) == VELO_OK);
    velo_sequence_step step = VELO_SEQUENCE_STEP_INIT;
    REQUIRE(velo_sequence_plan_get_step(p, VELO_SEQUENCE_FORWARD, rank, 1, &step) == VELO_OK);
    return step.bytes_received;
  };
  const std::int64_t head = 24 * 4 * 2;  // rows of the others
  // Query heads 0-2 need key head 0, 3-5 heads 0 and 1, 6-8 heads 1 and 2, 9-11 head 2.
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    CHECK(received(0, rank) == head * (3 + 2 * (rank == 1 || rank == 2 ? 2 : 1)));
    CHECK(received(1, rank) == head * (3 + 2 * 3));
  }
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
    desc.kind = static_cast<velo_sequence_kind>(random.below(7));
    desc.cp = random.pick(odd), desc.sequence = static_cast<std::int64_t>(random.below(40));
    desc.heads = random.pick(odd);
    std::int64_t* const numbers[] = {
        &desc.ulysses,       &desc.window,      &desc.kv_heads, &desc.head_dim, &desc.sequence,
        &desc.element_bytes, &desc.kv_interval, &desc.layers,   &desc.layer,    &desc.kv_gather};
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
