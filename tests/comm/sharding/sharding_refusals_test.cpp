// Shardings refuse a wrong parameter by the name of its field and stay as they were; random
// descriptions get a status.
#include <cstdlib>
#include <functional>
#include <limits>

#include "comm/sharding/enumeration.hpp"
#include "tests/record.hpp"

using namespace velo::testing;

namespace {

struct world {
  sharding s{sizes(4, 1, 2, 2, 2)};
  std::int64_t shape[2] = {8, 6};
  std::int64_t bounds[8] = {0, 2, 2, 4, 4, 6, 6, 8};
  std::int64_t stages[2] = {0, 1};
  velo_sharding_block blocks[2] = {{4, 0, 0}, {4, 2, 1}};
  velo_sharding_cut cuts[2] = {{"tp", 0, nullptr, 0, nullptr, 0},
                               {"gtp", 1, nullptr, 0, nullptr, 0}};
  velo_sharding_parameter p = VELO_SHARDING_PARAMETER_INIT;
  world() { p.name = "w", p.ndim = 2, p.shape = shape, p.cuts = cuts, p.cut_count = 2; }
};

void refused(const std::function<void(world&)>& change, const std::string& argument,
             const std::string& expected, const std::string& got,
             velo_status status = VELO_ERR_ARGUMENT) {
  world w;
  change(w);
  std::int64_t index = -7;
  INFO(argument << ", " << expected);
  CHECK(velo_sharding_add(w.s, &w.p, &index) == status);
  CHECK(index == -7);
  const call_record record = last_record();
  CHECK(record.argument == argument);
  CHECK(record.expected.find(expected) != std::string::npos);
  CHECK(record.got == got);
  velo_sharding_info info = VELO_SHARDING_INFO_INIT;
  CHECK(velo_sharding_get_info(w.s, &info) == VELO_OK);
  CHECK(info.parameters == 0);
}

}  // namespace

TEST_CASE("a parameter that makes no sense is refused by its field") {
  const std::string p = "parameter.", first = "parameter.cuts[0].", second = "parameter.cuts[1].";
  refused([](world& w) { w.p.name = nullptr; }, p + "name", "a name", "NULL", VELO_ERR_NULL);
  refused([](world& w) { w.p.name = ""; }, p + "name", "a name", "\"\"");
  refused([](world& w) { w.p.name = "w\xff"; }, p + "name", "UTF-8", "byte \\xff at byte 1");
  refused([](world& w) { w.p.ndim = 9; }, p + "ndim", "0 to 8", "9");
  refused([](world& w) { w.p.ndim = -1; }, p + "ndim", "0 to 8", "-1");
  refused([](world& w) { w.p.shape = nullptr; }, p + "shape", "ndim sizes", "NULL", VELO_ERR_NULL);
  refused([](world& w) { w.shape[1] = -1; }, p + "shape[1]", "0 or more", "-1");
  refused([](world& w) { w.shape[1] = std::int64_t{1} << 60; }, p + "shape[1]", "2^60",
          "1152921504606846976");
  refused([](world& w) { w.p.cuts = nullptr; }, p + "cuts", "cut_count", "NULL", VELO_ERR_NULL);
  refused([](world& w) { w.p.cut_count = -1; }, p + "cut_count", "0 to 8", "-1");
  refused([](world& w) { w.cuts[0].axis = nullptr; }, first + "axis", "an axis", "NULL",
          VELO_ERR_NULL);
  refused([](world& w) { w.cuts[0].axis = "dp"; }, first + "axis", "tp, tp_x, tp_y, gtp or pp",
          "dp");
  refused([](world& w) { w.cuts[0].axis = "ep"; }, first + "axis", "tp, tp_x", "ep");
  refused([](world& w) { w.cuts[0].axis = ""; }, first + "axis", "tp, tp_x", "\"\"");
  refused([](world& w) { w.p.partial = ""; }, p + "partial", "tp, tp_x", "\"\"");
  refused([](world& w) { w.p.experts = 1; }, first + "axis", "ep, etp, egtp or pp", "tp");
  refused([](world& w) { w.cuts[0].axis = "tp_x"; }, first + "axis", "has no tp_x", "tp_x");
  refused([](world& w) { w.cuts[1].axis = "tp"; }, second + "axis", "cuts no other dimension",
          "tp");
  refused([](world& w) { w.cuts[1].dimension = 0; }, second + "dimension", "no other axis", "0");
  refused([](world& w) { w.cuts[1].dimension = 2; }, second + "dimension", "0 to 1", "2");
  refused([](world& w) { w.p.experts = 2; }, p + "experts", "0 or 1", "2");
  refused([](world& w) { w.p.no_gradient = 2; }, p + "no_gradient", "0 or 1", "2");
  refused([](world& w) { w.p.no_gradient = 1, w.p.bucket = 0; }, p + "bucket",
          "-1, because parameter.no_gradient is 1", "0");
  refused([](world& w) { w.p.no_gradient = 1, w.p.partial = "gtp"; }, p + "partial",
          "NULL, because parameter.no_gradient is 1", "gtp");
  refused([](world& w) { w.p.bucket = -2; }, p + "bucket", "-1 or more", "-2");
  refused([](world& w) { w.p.partial = "tp"; }, p + "partial", "hold copies", "tp");
  refused([](world& w) { w.p.partial = "tp_x"; }, p + "partial", "has no tp_x", "tp_x");
  refused([](world& w) { w.p.partial = "cp"; }, p + "partial", "tp, tp_x", "cp");
  refused([](world& w) { w.p.partial = "pp"; }, p + "partial", "hold copies", "pp");
  refused([](world& w) { w.p.stage_count = 1; }, p + "stages", "stage_count", "NULL",
          VELO_ERR_NULL);
  refused([](world& w) { w.p.stage_count = 3; }, p + "stage_count", "0 to 2", "3");
  refused([](world& w) { w.p.stages = w.stages, w.p.stage_count = 2, w.stages[1] = 2; },
          p + "stages[1]", "0 to 1", "2");
  refused([](world& w) { w.p.stages = w.stages, w.p.stage_count = 2, w.stages[1] = 0; },
          p + "stages[1]", "1, the last stage, behind stage 0", "0");
  refused([](world& w) { w.p.stages = w.stages, w.p.stage_count = 1, w.cuts[1].axis = "pp"; },
          second + "axis", "has stages", "pp");
  refused([](world& w) { w.p.struct_size = 4; }, p + "struct_size", "a size in", "4",
          VELO_ERR_STRUCT);
}

TEST_CASE("blocks and bounds that do not fit a dimension are refused by their field") {
  const std::string cut = "parameter.cuts[0].";
  const auto blocks = [](world& w) { w.cuts[0].blocks = w.blocks, w.cuts[0].block_count = 2; };
  refused([&](world& w) { blocks(w), w.blocks[1].size = 5; }, cut + "blocks[1].size", "0 to 4",
          "5");
  refused([&](world& w) { blocks(w), w.blocks[1].size = 2; }, cut + "blocks", "add up to 8", "6");
  refused([&](world& w) { blocks(w), w.blocks[0].size = -1; }, cut + "blocks[0].size", "0 to 8",
          "-1");
  refused([&](world& w) { blocks(w), w.blocks[1].units = 3; }, cut + "blocks[1].units",
          "a divisor of size, 4", "3");
  refused([&](world& w) { blocks(w), w.blocks[1].repeat = 3; }, cut + "blocks[1].units",
          "a multiple of repeat, 3", "2");
  refused([&](world& w) { blocks(w), w.blocks[1].repeat = -1; }, cut + "blocks[1].repeat",
          "0 or more", "-1");
  refused([&](world& w) { blocks(w), w.cuts[0].blocks = nullptr; }, cut + "blocks", "block_count",
          "NULL", VELO_ERR_NULL);
  refused([&](world& w) { blocks(w), w.cuts[0].block_count = -1; }, cut + "block_count",
          "0 to 2^20", "-1");
  const auto bounds = [](world& w) { w.cuts[0].bounds = w.bounds, w.cuts[0].bound_count = 8; };
  refused([&](world& w) { bounds(w), w.cuts[0].bound_count = 6; }, cut + "bound_count",
          "8: begin and end", "6");
  refused([&](world& w) { bounds(w), w.cuts[0].bounds = nullptr; }, cut + "bounds", "bound_count",
          "NULL", VELO_ERR_NULL);
  refused([&](world& w) { bounds(w), w.bounds[3] = 1; }, cut + "bounds[2]",
          "0 <= begin <= end <= 8", "2, 1");
  refused([&](world& w) { bounds(w), w.bounds[7] = 9; }, cut + "bounds[6]",
          "0 <= begin <= end <= 8", "6, 9");
  refused([&](world& w) { bounds(w), blocks(w); }, cut + "block_count", "0 beside bounds", "2");
}

TEST_CASE("a name twice, and questions about what is not there, are refused") {
  world w;
  REQUIRE(velo_sharding_add(w.s, &w.p, nullptr) == VELO_OK);
  CHECK(velo_sharding_add(w.s, &w.p, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "parameter.name");
  velo_sharding_part part = VELO_SHARDING_PART_INIT;
  part.elements = 77;
  const auto got = [&](std::int64_t parameter, std::int64_t rank) {
    CHECK(velo_sharding_get_part(w.s, parameter, rank, &part) == VELO_ERR_ARGUMENT);
    CHECK(part.elements == 77);
    return last_record().argument;
  };
  CHECK(got(1, 0) == "parameter");
  CHECK(got(-1, 0) == "parameter");
  CHECK(got(0, 16) == "rank");
  CHECK(got(0, -1) == "rank");
  velo_sharding_piece piece = VELO_SHARDING_PIECE_INIT;
  CHECK(velo_sharding_get_piece(w.s, 0, 0, 1, &piece) == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "index");
  const char* name = nullptr;
  CHECK(velo_sharding_get_sum(w.s, 0, 0, 2, &name) == VELO_ERR_ARGUMENT);
  CHECK(velo_sharding_write(w.s, -2, VELO_SHARDING_JSON, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_sharding_write(w.s, -1, 2, nullptr, 0, nullptr) == VELO_ERR_ARGUMENT);
  std::int32_t ranks[1];
  CHECK(velo_sharding_get_holders(w.s, 0, 0, 0, nullptr, 1, nullptr) == VELO_ERR_NULL);
  CHECK(velo_sharding_get_holders(w.s, 0, 0, 0, ranks, -1, nullptr) == VELO_ERR_ARGUMENT);
}

TEST_CASE("any description of a parameter gets a status, and an accepted one answers") {
  const char* asked = std::getenv("VELO_SHARDINGS");
  const int rounds = 20 * (asked != nullptr ? std::atoi(asked) : 150);
  random_numbers<std::mt19937_64> random(5);
  const std::int64_t odd[] = {0,
                              1,
                              2,
                              3,
                              4,
                              6,
                              8,
                              9,
                              -1,
                              1 << 20,
                              std::int64_t{1} << 40,
                              std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::min()};
  const char* const axes[] = {"tp", "gtp", "pp", "ep", "etp", "egtp", "tp_x", "cp", "", nullptr};
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    world w;
    std::int64_t* const numbers[] = {&w.shape[0],          &w.shape[1],       &w.cuts[0].dimension,
                                     &w.cuts[1].dimension, &w.blocks[0].size, &w.blocks[0].units,
                                     &w.blocks[0].repeat,  &w.blocks[1].size, &w.blocks[1].units,
                                     &w.blocks[1].repeat,  &w.p.bucket,       &w.stages[0],
                                     &w.stages[1],         &w.bounds[1],      &w.bounds[2]};
    for (std::uint64_t changes = random.below(4); changes > 0; --changes)
      *numbers[random.below(std::size(numbers))] = random.pick(odd);
    for (velo_sharding_cut& cut : w.cuts) {
      if (random.one_in(4)) cut.axis = random.pick(axes);
      if (random.one_in(4)) cut.blocks = w.blocks, cut.block_count = random.below(3);
      if (random.one_in(6)) cut.bounds = w.bounds, cut.bound_count = random.below(9);
    }
    if (random.one_in(3)) w.p.stages = w.stages, w.p.stage_count = random.below(3);
    if (random.one_in(4)) w.p.partial = random.pick(axes);
    if (random.one_in(4)) w.p.experts = 1;
    w.p.ndim = static_cast<std::int32_t>(random.below(3));
    w.p.cut_count = random.below(3);
    const velo_status status = velo_sharding_add(w.s, &w.p, nullptr);
    if (status != VELO_OK) {
      CHECK((status == VELO_ERR_ARGUMENT || status == VELO_ERR_NULL));
      continue;
    }
    ++accepted;
    for (const std::int64_t rank : {0, 5, 15}) {
      const velo_sharding_part part = w.s.part(0, rank);
      CHECK(part.range_begin <= part.range_end);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(part.pieces, 3); ++i)
        CHECK(w.s.piece(0, rank, i).copies >= 1);
    }
    const velo_status proof = velo_sharding_check(w.s);
    CHECK((proof == VELO_OK || proof == VELO_ERR_ARGUMENT));
  }
  CHECK(accepted > rounds / 20);
}
