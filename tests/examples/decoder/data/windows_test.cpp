// The order of windows, and the other functions of a step number.
#include "examples/decoder/data/windows.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/data/window_writer.hpp"
#include "examples/decoder/optimizer/learning_rate.hpp"
#include "examples/decoder/parallel/model_parallel.hpp"
#include "examples/decoder/random.hpp"
#include "examples/decoder/report/flops.hpp"

using namespace decoder;

TEST_CASE("an epoch visits every place of its grid once") {
  const windows w(10007, 100, 7);
  REQUIRE(w.per_epoch() == 99);
  std::set<std::int64_t> phases;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<std::int64_t> begins;
    for (std::int64_t i = 0; i < 99; ++i) begins.insert(w.begin(epoch * 99 + i));
    CHECK(begins.size() == 99);
    CHECK(*begins.begin() >= 0);
    CHECK(*begins.rbegin() + 100 <= 10007);
    CHECK(*begins.rbegin() - *begins.begin() == 98 * 100);
    phases.insert(*begins.begin());
  }
  CHECK(phases.size() > 1);
}

TEST_CASE("seeds and epochs order windows differently, the same seed the same") {
  const windows a(100000, 100, 1), b(100000, 100, 2), again(100000, 100, 1);
  int equal = 0, in_order = 0;
  for (std::int64_t i = 0; i < 900; ++i) {
    CHECK(a.begin(i) == again.begin(i));
    equal += a.begin(i) == b.begin(i);
    in_order += a.begin(i + 1) == a.begin(i) + 100;
  }
  CHECK(equal < 20);
  CHECK(in_order < 20);
}

TEST_CASE("a text of one window has one window") {
  const windows w(100, 100, 1);
  CHECK(w.begin(0) == 0);
  CHECK(w.begin(12345) == 0);
}

TEST_CASE("a sequence begins with bos and predicts its bytes") {
  std::int32_t in[3], out[3];
  write_piece({"a\xff"
               "b"},
              in, out);
  CHECK(std::vector<int>(in, in + 3) == std::vector<int>{bos, 'a', 255});
  CHECK(std::vector<int>(out, out + 3) == std::vector<int>{'a', 255, 'b'});
}

TEST_CASE("uniform and normal numbers have their moments") {
  const random_stream r(3, purpose::weights);
  double sum = 0, square = 0, fourth = 0, uniform = 0;
  constexpr int n = 100000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = r.normal(i);
    sum += x, square += x * x, fourth += x * x * x * x;
    uniform += r.uniform(i);
  }
  CHECK(std::abs(sum / n) < 0.02);
  CHECK(square / n == Approx(1).margin(0.03));
  CHECK(fourth / n == Approx(3).margin(0.2));
  CHECK(uniform / n == Approx(0.5).margin(0.01));
}

TEST_CASE("the learning rate warms up in a line and decays in half a cosine") {
  const schedule_settings s{100, 10, 0.1};
  CHECK(learning_rate(0, 2, s) == Approx(0.2));
  CHECK(learning_rate(9, 2, s) == Approx(2));
  CHECK(learning_rate(54, 2, s) == Approx(2 * (0.1 + 0.9 * 0.5)));
  CHECK(learning_rate(99, 2, s) == Approx(0.2));
  CHECK(learning_rate(0, 2, {5, 0, 0.5}) < 2);
  CHECK(learning_rate(0, 2, {1, 1, 0.5}) == 2);
}

TEST_CASE("the arithmetic of a step follows the formula") {
  model_settings m;
  m.hidden = 512, m.layers = 8, m.heads = 8, m.kv_heads = 4, m.inner = 1408, m.vocab = 260;
  data_settings d;
  d.sequence = 512, d.batch = 8;
  const double matrices = 8 * (512.0 * (512 + 2 * 256) + 512 * 512 + 3 * 512 * 1408) + 260 * 512;
  CHECK(matrix_parameters(m) == matrices);
  CHECK(step_flops(m, d) == 6 * matrices * 4096 + 12.0 * 8 * 8 * 512 * 512 * 512 / 2);
}

TEST_CASE("a rank writes its rows of windows, whose inputs and targets cross ranks") {
  const held_rows rows(8, {0, 2, 5, 8});
  CHECK(rows.count() == 5);
  CHECK(rows.positions() == std::vector<std::int64_t>{0, 1, 5, 6, 7});
  window_writer writer(8);
  const piece first{"12345678"}, second{"abcdefg", 1};  // a byte short, the first unseen
  std::vector<std::int32_t> inputs(10, -1), targets(10, -1);
  for (int i = 0; i < 2; ++i) {  // one object writes one micro-batch after another
    writer.begin();
    writer.add({&first, 1});
    writer.add({&second, 1});
    CHECK(writer.windows() == 2);
    CHECK(writer.ends() == std::vector<std::int64_t>{8, 16});
  }
  writer.copy_symbols(rows, inputs.data(), targets.data());
  constexpr std::int32_t not_counted = -100;
  CHECK(inputs == std::vector<std::int32_t>{bos, '1', '5', '6', '7', bos, 'a', 'e', 'f', pad});
  CHECK(targets == std::vector<std::int32_t>{'1', '2', '6', '7', '8', not_counted, 'b', 'f', 'g',
                                             not_counted});
}

TEST_CASE("documents side by side begin anew, and end with eos") {
  const piece two[] = {{"abc", 0, true}, {"de", 0, true}};
  window_writer writer(9);
  writer.begin();
  writer.add({two, 2});
  CHECK(writer.ends() == std::vector<std::int64_t>{4, 9});
  std::vector<std::int32_t> inputs(9), targets(9), positions(9);
  writer.copy_symbols(held_rows(9), inputs.data(), targets.data());
  writer.copy_positions(held_rows(9), positions.data());
  CHECK(inputs == std::vector<std::int32_t>{bos, 'a', 'b', 'c', bos, 'd', 'e', pad, pad});
  CHECK(targets == std::vector<std::int32_t>{'a', 'b', 'c', eos, 'd', 'e', eos, -100, -100});
  CHECK(positions == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 4});
}

TEST_CASE("positions of a rank's rows begin anew with each document") {
  const std::int64_t ends[] = {8, 12, 24};
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.cp = 2, desc.sequence = 24, desc.document_ends = ends, desc.document_count = 3;
  const held_rows rows = decoder::sequence_rows(velo::sequence_plan::create(desc), 24, 0);
  CHECK(rows.positions() == std::vector<std::int64_t>{0, 1, 6, 7, 8, 11, 12, 13, 14, 21, 22, 23});
  const piece three[] = {{"12345678"}, {"abcd"}, {"ABCDEFGHIJKL"}};
  window_writer writer(24);
  writer.begin();
  writer.add({three, 3});
  CHECK(writer.ends() == std::vector<std::int64_t>{8, 12, 24});
  std::vector<std::int32_t> inputs(12), targets(12), positions(12);
  writer.copy_positions(rows, positions.data());
  CHECK(positions == std::vector<std::int32_t>{0, 1, 6, 7, 0, 3, 0, 1, 2, 9, 10, 11});
  writer.copy_symbols(rows, inputs.data(), targets.data());
  CHECK(targets ==
        std::vector<std::int32_t>{'1', '2', '7', '8', 'a', 'd', 'A', 'B', 'C', 'J', 'K', 'L'});
}
