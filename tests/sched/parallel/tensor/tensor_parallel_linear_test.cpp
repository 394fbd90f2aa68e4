// column_parallel_linear, row_parallel_linear and their gradients against the whole layer in double
// and the calls apart: ranks, rows, dtypes, levels, transports, parts of the gradient.
#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/tensor/linear_ranks.hpp"

using namespace velo::testing;

namespace {

// Whole and cut rows; rows and widths that differ, ranks without rows or without a width; no rows;
// outputs of all ranks.
std::vector<linear_case> cases_of(int ranks) {
  std::vector<linear_case> all;
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs}) {
    for (const bool cuts : {true, false}) {
      all.push_back(even_linear(weight, ranks));
      all.back().cuts_rows = cuts;
      all.back().has_bias = cuts;
    }
    linear_case uneven = even_linear(weight, ranks, 4, 5);
    uneven.lists_rows = uneven.accumulates = true;
    uneven.rows[0] = 7, uneven.rows.back() = ranks == 1 ? 7 : 0;
    uneven.widths.back() = 9;
    all.push_back(uneven);
    uneven.keeps_x = false;
    uneven.widths[0] = 0;
    uneven.cuts_rows = weight == cut_of::outputs;
    all.push_back(uneven);
  }
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs})
    all.push_back(even_linear(weight, ranks, 0));  // no rows at all
  all.push_back(even_linear(cut_of::outputs, ranks));
  all.back().cuts_rows = false, all.back().gathers_output = true, all.back().accumulates = true;
  for (const std::int64_t first : {0, 3}) {  // outputs by a list
    all.push_back(all.back());
    all.back().lists_columns = true;
    all.back().widths[0] = first, all.back().widths.back() = 9;
  }
  return all;
}

void check(const linear_ranks& now, const linear_case& of) {
  for (const auto& one : now) {
    CHECK(one->is_right(rounding_of(of)));
    CHECK(one->borders_kept());
    if (of.by_outputs()) continue;
    CHECK(one->dbias.same_bits(now[0]->dbias));
    if (!of.cuts_rows) CHECK(one->y.same_bits(now[0]->y));
  }
}

std::string text_of(const linear_case& of) {
  return std::to_string(of.ranks()) + " ranks, outputs cut " + std::to_string(of.by_outputs()) +
         ", rows cut " + std::to_string(of.cuts_rows) + ", list " + std::to_string(of.lists_rows) +
         ", dtype " + std::to_string(of.dtype.code) + "." + std::to_string(of.dtype.bits) +
         ", slices " + std::to_string(of.slices) + ", gathers output " +
         std::to_string(of.gathers_output) + ", keeps x " + std::to_string(of.keeps_x);
}

// Both levels have the bits of the calls apart.
void check_bits(const local_ranks& all, const linear_case& of) {
  const linear_ranks sliced = ranks_of(of), composed = ranks_of(of), apart = ranks_of(of);
  INFO(text_of(of));
  set_all(all, "level", "2");
  all.require([&](const rank_of_group& me) { return sliced[at(me.rank)]->run(me); });
  set_all(all, "level", "1");
  all.require([&](const rank_of_group& me) { return composed[at(me.rank)]->run(me); });
  all.require([&](const rank_of_group& me) { return apart[at(me.rank)]->apart(me); });
  for (std::size_t r = 0; r < apart.size(); ++r) {
    CHECK(sliced[r]->same_bits(*apart[r]));
    CHECK(composed[r]->same_bits(*apart[r]));
  }
}

// Adds the number of layers whose numbers are wrong on a rank that is a process. Two ranks have
// layers of many slices and blocks of columns, whose numbers are not held to the whole in double.
template <class Count>
velo_status count_wrong(const rank_of_group& me, Count& wrong) {
  for (linear_case of : cases_of(me.size)) {
    if (me.size == 2) of.other = 300;
    for (std::int64_t& rows : of.rows) rows *= me.size == 2 ? 12 : 1;
    for (const velo_dtype dtype : {f32, bf16, f16}) {
      of.dtype = dtype;
      const linear_rank mine(of, me.rank), apart(of, me.rank);
      velo_status done = mine.run(me);
      if (done == VELO_OK && !of.gathers_output) done = apart.apart(me);
      if (done != VELO_OK) return done;
      const bool right = me.size == 2 || mine.is_right(rounding_of(of));
      if (!right || !(of.gathers_output || mine.same_bits(apart))) ++wrong;
    }
  }
  return VELO_OK;
}

}  // namespace

TEST_CASE("a layer cut between ranks is the whole layer, and so is its gradient") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    for (linear_case of : cases_of(count))
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const char* level : {"2", "1", "0"}) {
          of.dtype = dtype;
          of.dweight = level[0] == '1' ? dtype : f32;
          set_all(all, "level", level);
          const linear_ranks now = ranks_of(of);
          INFO(text_of(of) << ", level " << level);
          all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
          check(now, of);
        }
  }
}

TEST_CASE("a layer cut between ranks has the bits of gather, product, sum and addition apart") {
  for (const int count : {2, 3}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;
    const local_ranks all(count, desc);
    for (linear_case of : cases_of(count)) {
      if (of.gathers_output) continue;
      for (std::int64_t& rows : of.rows) rows *= 20;
      of.other = 130;
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t slices : {0, 4}) {
          of.dtype = dtype, of.slices = slices;
          check_bits(all, of);
        }
    }
  }
}

TEST_CASE("either half of the gradient of a cut layer may be left out") {
  const local_ranks all(3);
  for (const linear_case& of : cases_of(3))
    for (const char* level : {"2", "1"})
      for (const linear_rank::wanted& some : {linear_rank::wanted{true, false, false},
                                              {false, true, true},
                                              {false, true, false},
                                              {false, false, true},
                                              {true, false, true},
                                              {false, false, false}}) {
        set_all(all, "level", level);
        const linear_ranks now = ranks_of(of), before = ranks_of(of);
        INFO(text_of(of) << ", level " << level << ": " << some.dx << some.dweight << some.dbias);
        all.require([&](const rank_of_group& me) {
          const velo_status done = now[at(me.rank)]->forward(me.stream, me.group);
          return done == VELO_OK ? now[at(me.rank)]->gradient(me.stream, me.group, some) : done;
        });
        for (std::size_t r = 0; r < now.size(); ++r) {
          CHECK(now[r]->is_right(rounding_of(of), some));
          if (!some.dx) CHECK(now[r]->dx.same_bits(before[r]->dx));
          if (!some.dweight) CHECK(now[r]->dweight.same_bits(before[r]->dweight));
          if (!some.dbias) CHECK(now[r]->dbias.same_bits(before[r]->dbias));
        }
      }
}

TEST_CASE("hosts compute the cut layers of threads") {
  const ranks_on_hosts hosts("0011");
  const local_ranks threads(4);
  for (linear_case of : cases_of(4)) {
    of.dtype = bf16;
    const linear_ranks by_hosts = ranks_of(of), by_threads = ranks_of(of);
    INFO(text_of(of));
    hosts.require([&](const rank_of_group& me) { return by_hosts[at(me.rank)]->run(me); });
    threads.require([&](const rank_of_group& me) { return by_threads[at(me.rank)]->run(me); });
    for (std::size_t r = 0; r < 4; ++r) CHECK(by_hosts[r]->same_bits(*by_threads[r]));
  }
}

TEST_CASE("processes compute the bits of the calls apart at each level, in many slices, too") {
  for (const int count : {2, 3, 8}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = 64 << 10;
    ranks.start_all(count, desc, [](const rank_of_group& me) {
      ending all;
      for (const char* level : {"2", "1", "0"}) {
        all.code = velo_config_set(me.context, "level", level);
        if (all.code == VELO_OK) all.code = count_wrong(me, all.value);
        if (all.code != VELO_OK) return ending_of(all.code);
      }
      return all;
    });
    for (const ending& one : ranks.wait()) {
      CHECK_OK(one);
      CHECK(one.value == 0);
    }
  }
}

TEST_CASE("the gradients of cut layers are the slopes of the layer") {
  const local_ranks all(2);
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs}) {
    const linear_case of = even_linear(weight, 2);
    const linear_ranks now = ranks_of(of);
    const auto run = [&] {
      all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
    };
    // The sum over ranks of y times dy.
    const auto loss = [&] {
      double sum = 0;
      for (const auto& one : now)
        for (std::int64_t i = 0; i < one->y.rows() * one->y.columns(); ++i)
          sum += one->y.get(i) * one->dy.get(i);
      return sum;
    };
    run();
    const auto slope = [&](part_of_matrix& x, std::int64_t i) {
      const double at = x.get(i);
      x.set(i, at + 0.25), run();
      const double above = loss();
      x.set(i, at - 0.25), run();
      const double below = loss();
      x.set(i, at), run();
      return (above - below) / 0.5;
    };
    for (const std::int64_t i : {0, 5, 17}) {
      CHECK(std::abs(slope(now[1]->x, i) - now[1]->dx.get(i)) < 1e-4);
      CHECK(std::abs(slope(now[0]->weight, i) - now[0]->dweight.get(i)) < 1e-4);
    }
  }
}

TEST_CASE("cut layers of many rows are sliced without a word, and queues keep their order") {
  const local_ranks all(2);
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs}) {
    linear_case of = even_linear(weight, 2, 200, 40);
    of.slices = 0;
    const linear_ranks now = ranks_of(of), inlined = ranks_of(of);
    std::vector<velo_stream> queues;
    for (int r = 0; r < 2; ++r) queues.push_back(all.context(r).new_stream());
    all.require([&](const rank_of_group& me) { return inlined[at(me.rank)]->run(me); });
    all.require([&](const rank_of_group& me) {
      const velo_stream queue = queues[at(me.rank)];
      velo_status done = VELO_OK;
      for (int i = 0; i < 10 && done == VELO_OK; ++i) {
        done = now[at(me.rank)]->forward(queue, me.group);
        if (done == VELO_OK) done = now[at(me.rank)]->gradient(queue, me.group, {});
      }
      return done == VELO_OK ? velo_stream_synchronize(queue) : done;
    });
    for (std::size_t r = 0; r < 2; ++r) CHECK(now[r]->same_bits(*inlined[r]));
  }
}
