// vocab_parallel_embedding and its gradient against rows of the whole table: ranks, cuts, padding,
// dtypes, levels and transports, bit for bit; refusals that keep the group.
#include <limits>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/random.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

// A table, how its rows are cut, and the indices, [rows of the sequence, 3].
struct table_case {
  std::int64_t vocab = 24, width = 20, sequence = 8;
  std::vector<std::int64_t> rows;  // of each rank, with padding
  velo_dtype dtype = f32;
  bool scatters = false, accumulates = false, narrow = false;
  std::vector<std::int64_t> token_rows{};  // of each rank; empty: even

  static constexpr std::int64_t batch = 3;
  std::int64_t tokens() const { return sequence * batch; }
  std::int64_t parts() const { return scatters ? static_cast<std::int64_t>(rows.size()) : 1; }
  std::int64_t own_sequence(int rank) const {
    return token_rows.empty() ? sequence / parts() : token_rows[at(rank)];
  }
  std::int64_t first_token(int rank) const {
    std::int64_t first = 0;
    for (int r = 0; scatters && r < rank; ++r) first += own_sequence(r) * batch;
    return first;
  }
  std::int64_t begin(int rank) const {
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += rows[at(r)];
    return first;
  }
  // The tokens of the first quarter all name the last row.
  std::int64_t index(std::int64_t t) const { return t < tokens() / 4 ? vocab - 1 : t * 7 % vocab; }
  double weight(std::int64_t row, std::int64_t i) const {
    return i == 1 ? -0.0 : static_cast<double>(row * 37 + i * 11) / 16 - 20;
  }
  double dy(std::int64_t t, std::int64_t i) const {
    return static_cast<double>(t * 13 % 17 - i) / 8;
  }
};

table_case even(int ranks, std::int64_t vocab = 24) {
  table_case made;
  made.vocab = vocab;
  made.rows.assign(at(ranks), (vocab + ranks - 1) / ranks);
  made.sequence = 4 * ranks;
  return made;
}

// A rank's rows, and its calls.
class table_rank {
 public:
  table_rank(const table_case& of, int rank)
      : of_(of),
        first_token_(of.first_token(rank)),
        own_tokens_(of.own_sequence(rank) * table_case::batch),
        begin_(of.begin(rank)),
        rows_(of.rows[at(rank)]),
        wide_(at(of.tokens())),
        narrow_(at(of.tokens())),
        weight(of.dtype, {rows_, of.width}),
        y(of.dtype, {of.own_sequence(rank), of.batch, of.width}),
        dy(of.dtype, {of.own_sequence(rank), of.batch, of.width}),
        dweight(f32, {rows_, of.width}, 5) {
    for (std::int64_t t = 0; t < of.tokens(); ++t) set_index(t, of.index(t));
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t i = 0; i < of.width; ++i)
        weight.set(r * of.width + i, of.weight(begin_ + r, i));
    for (std::int64_t t = 0; t < own_tokens(); ++t)
      for (std::int64_t i = 0; i < of.width; ++i)
        dy.set(t * of.width + i, of.dy(first_token_ + t, i));
    for (std::int64_t i = 0; i < dweight.count(); ++i) before_.push_back(dweight[i]);
  }

  velo_status forward(velo_stream stream, velo_group group) const {
    const velo_tensor in = weight.view(), out = y.view(), ids = indices();
    velo_vocab_parallel_embedding_args args = VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT;
    args.weight = &in, args.y = &out;
    set_common(args, group, ids);
    return velo_vocab_parallel_embedding(stream, &args);
  }
  velo_status gradient(velo_stream stream, velo_group group) const {
    const velo_tensor in = dy.view(), out = dweight.view(), ids = indices();
    velo_vocab_parallel_embedding_backward_args args =
        VELO_VOCAB_PARALLEL_EMBEDDING_BACKWARD_ARGS_INIT;
    args.dy = &in, args.dweight = &out, args.rows = rows_, args.accumulate = of_.accumulates;
    set_common(args, group, ids);
    return velo_vocab_parallel_embedding_backward(stream, &args);
  }
  velo_status run(const rank_of_group& me) const {
    const velo_status done = forward(me.stream, me.group);
    return done == VELO_OK ? gradient(me.stream, me.group) : done;
  }

  void place(std::int64_t first) { begin_ = first; }
  void set_index(std::int64_t t, std::int64_t row) {
    wide_[at(t)] = row, narrow_[at(t)] = static_cast<std::int32_t>(row);
  }

  // Whether y has the numbers of the table, -0 among them, and dweight the sums of dy, which are
  // exact in float32.
  bool is_right() const {
    bool right = weight.borders_kept() && y.borders_kept() && dweight.borders_kept();
    elements one(of_.dtype, 1, 0);
    const auto rounded = [&](double x) {
      one.set(0, x);
      return one.get(0);
    };
    std::vector<double> sums(at(rows_ * of_.width));
    for (std::int64_t i = 0; i < dweight.count(); ++i)
      sums[at(i)] = of_.accumulates ? before_[at(i)] : 0;
    for (std::int64_t t = 0; t < of_.tokens(); ++t)
      for (std::int64_t i = 0; i < of_.width; ++i) {
        const std::int64_t row = of_.index(t), own = row - begin_, here = t - first_token_;
        if (own >= 0 && own < rows_) {
          double& sum = sums[at(own * of_.width + i)];
          sum = static_cast<double>(static_cast<float>(sum + rounded(of_.dy(t, i))));
        }
        if (here < 0 || here >= own_tokens()) continue;
        const double got = y[here * of_.width + i], wanted = rounded(of_.weight(row, i));
        right = right && got == wanted && std::signbit(got) == std::signbit(wanted);
      }
    for (std::int64_t i = 0; i < dweight.count(); ++i) right = right && dweight[i] == sums[at(i)];
    return right;
  }
  bool same_bits(const table_rank& other) const {
    return y.same_bits(other.y) && dweight.same_bits(other.dweight);
  }
  velo_tensor indices() const {
    velo_tensor all = of_.narrow ? view_of(narrow_.data(), i32, shape_[0])
                                 : view_of(wide_.data(), i64, shape_[0]);
    all.ndim = 2, all.shape = shape_;
    return all;
  }

 private:
  std::int64_t own_tokens() const { return own_tokens_; }
  template <class Args>
  void set_common(Args& args, velo_group group, const velo_tensor& ids) const {
    args.group = group, args.indices = &ids, args.vocab_begin = begin_;
    args.vocab_size = of_.vocab, args.sequence_parallel = of_.scatters;
    if (!of_.token_rows.empty()) args.token_rows = &token_rows_;
  }

  const table_case& of_;
  const std::int64_t first_token_, own_tokens_;
  const velo_ints token_rows_{of_.token_rows.data(),
                              static_cast<std::int64_t>(of_.token_rows.size())};
  std::int64_t begin_;
  const std::int64_t rows_;
  std::vector<std::int64_t> wide_;
  std::vector<std::int32_t> narrow_;
  std::vector<double> before_;
  const std::int64_t shape_[2] = {of_.sequence, table_case::batch};

 public:
  matrix weight, y, dy, dweight;
};

using table_ranks = std::vector<std::unique_ptr<table_rank>>;

table_ranks ranks_of(const table_case& of) {
  table_ranks all;
  for (std::size_t r = 0; r < of.rows.size(); ++r)
    all.push_back(std::make_unique<table_rank>(of, static_cast<int>(r)));
  return all;
}

std::vector<table_case> cases_of(int ranks) {
  std::vector<table_case> all{even(ranks), even(ranks, 7 * ranks + 1), even(ranks), even(ranks)};
  all[1].narrow = true;
  all[2].rows.assign(at(ranks), 3);  // uneven, and a rank of padding alone
  all[2].rows[0] = 24 - 3 * (ranks - 1) + (ranks > 1 ? 3 : 0);
  all[3].rows.assign(at(ranks), 0);  // all rows on one rank, none on the others
  all[3].rows.back() = 24;
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().scatters = true;
    all.back().accumulates = i % 2 == 0;
    all.push_back(all.back());  // a rank without tokens, if there are several, and one of many
    all.back().token_rows.assign(at(ranks), 2);
    all.back().token_rows[at(ranks / 2)] = 0, all.back().token_rows.back() += 11;
    all.back().sequence = 11 + 2 * (ranks - (ranks > 1 ? 1 : 0));
    if (ranks == 1) all.back().token_rows[0] = 13;
  }
  for (std::size_t last : {std::size_t{0}, at(ranks - 1)}) {  // all tokens on one rank
    all.push_back(all[all.size() - 1]);
    all.back().token_rows.assign(at(ranks), 0);
    all.back().token_rows[last] = all.back().sequence;
  }
  return all;
}

std::vector<call_record> forward_of(const local_ranks& all, const table_ranks& now) {
  return all.run(
      [&](const rank_of_group& me) { return now[at(me.rank)]->forward(me.stream, me.group); });
}

// Every rank has refused, and nothing was written; the group goes on.
void check_refused(const local_ranks& all, const table_ranks& now, const table_case& of) {
  const table_ranks before = ranks_of(of);
  for (std::size_t r = 0; r < now.size(); ++r) CHECK(now[r]->same_bits(*before[r]));
  all.require_barrier();
}

}  // namespace

TEST_CASE("rows of a cut table are those of the whole, and so is its gradient") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    for (table_case of : cases_of(count))
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const char* level : {"2", "1", "0"}) {
          of.dtype = dtype;
          set_all(all, "level", level);
          const table_ranks now = ranks_of(of);
          INFO(count << " ranks, level " << level << ", scatters " << of.scatters << ", "
                     << int{dtype.code} << "." << int{dtype.bits} << ", vocab " << of.vocab);
          all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
          for (const auto& one : now) CHECK(one->is_right());
        }
  }
}

TEST_CASE("a table on a rank without a group is the whole table") {
  const live_context one;
  table_case of = even(1);
  const table_rank now(of, 0);
  REQUIRE(now.forward(one.inline_stream(), nullptr) == VELO_OK);
  REQUIRE(now.gradient(one.inline_stream(), nullptr) == VELO_OK);
  CHECK(now.is_right());
}

TEST_CASE("rows that do not fit a slot at once move in pieces between processes") {
  velo_group_desc desc = group_desc();
  desc.buffer = 8 << 10;
  for (const std::int64_t width : {20, 300, 5000}) {  // many tokens in a slot, few, not one
    processes ranks;
    ranks.start_all(3, desc, [&](const rank_of_group& me) {
      std::int64_t right = 1;
      for (table_case of : cases_of(3)) {
        of.width = width;
        const table_rank mine(of, me.rank);
        const velo_status done = mine.run(me);
        if (done != VELO_OK) return ending_of(done, 0);
        right = mine.is_right() ? right : 0;
      }
      return ending_of(VELO_OK, right);
    });
    for (const ending& one : ranks.wait()) {
      INFO("width " << width);
      CHECK_OK(one);
      CHECK(one.value == 1);
    }
  }
}

TEST_CASE("ranks on hosts have the rows of threads") {
  const ranks_on_hosts hosts("0011");
  for (const table_case& of : cases_of(4)) {
    const table_ranks now = ranks_of(of);
    hosts.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
    for (const auto& one : now) CHECK(one->is_right());
  }
}

TEST_CASE("an index that is no row fails on every rank, writes nothing, and ends no group") {
  const local_ranks all(2);
  for (const std::int64_t wrong :
       {std::int64_t{23}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()})
    for (const bool scatters : {false, true}) {
      table_case of = even(2, 23);  // and a row of padding
      of.scatters = scatters;
      const table_ranks now = ranks_of(of);
      for (const auto& one : now) one->set_index(3, wrong);
      for (const bool gradient : {false, true})
        for (const call_record& one : all.run([&](const rank_of_group& me) {
               const table_rank& mine = *now[at(me.rank)];
               return gradient ? mine.gradient(me.stream, me.group)
                               : mine.forward(me.stream, me.group);
             })) {
          CHECK(one.code == VELO_ERR_ARGUMENT);
          CHECK(one.argument == "args.indices");
          CHECK(one.expected == "indices in [0, 23)");
          CHECK(one.got == std::to_string(wrong) + " in element 3");
        }
      check_refused(all, now, of);
    }
}

TEST_CASE("indices that differ between ranks fail on every rank and write nothing") {
  const local_ranks all(3);
  const table_case of = even(3);
  const table_ranks now = ranks_of(of);
  now[1]->set_index(3, 1000);  // rank 1 names its own fault
  const std::vector<call_record> records = forward_of(all, now);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(records[r].code == VELO_ERR_ARGUMENT);
    CHECK(records[r].argument == "args.indices");
    CHECK(records[r].got == (r == 1 ? "1000 in element 3" : "others on rank 1"));
  }
  check_refused(all, now, of);
}

TEST_CASE("an index whose row no rank has, or two, fails on every rank and writes nothing") {
  const local_ranks all(2);
  for (const std::int64_t second : {13, 11}) {  // behind 12 rows of the first
    table_case of = even(2, 25);
    of.rows = {12, 12};
    const table_ranks now = ranks_of(of);
    for (const auto& one : now)
      for (std::int64_t t = 0; t < of.tokens(); ++t)
        one->set_index(t, t == 2 ? 12 : t == 1 ? 11 : 3);
    now[1]->place(second);
    for (const call_record& one : forward_of(all, now)) {
      CHECK(one.code == VELO_ERR_ARGUMENT);
      CHECK(one.argument == "args.vocab_begin");
      CHECK(one.got == (second == 13 ? "row 12 of none or several" : "row 11 of none or several"));
    }
    check_refused(all, now, of);
  }
}

TEST_CASE("ranks with another vocabulary, width, dtype or cut of rows hear of it") {
  const table_case of = even(2);
  std::vector<table_case> others(6, of);
  others[0].vocab = 23, others[1].width = 10, others[2].dtype = bf16, others[3].scatters = true;
  others[4].sequence = 2;
  others[5].scatters = true, others[5].token_rows = {4, 4};
  for (const table_case& odd : others) {
    const local_ranks all(2);
    const table_rank first(of, 0), last(odd, 1);
    for (const call_record& one : all.run([&](const rank_of_group& me) {
           return (me.rank == 0 ? first : last).forward(me.stream, me.group);
         }))
      CHECK(one.code == VELO_ERR_PEER);
  }
}

TEST_CASE("vocab_parallel_embedding refuses what does not fit, by name") {
  const local_ranks all(2);
  table_case of = even(2);
  const table_rank one(of, 0);
  const velo_tensor weight = one.weight.view(), y = one.y.view(), indices = one.indices();
  velo_tensor flat = weight, scalar = indices, odd = indices;
  flat.ndim = 1, scalar.ndim = 0, odd.ndim = 1;
  const std::int64_t three = 3;
  odd.shape = &three;
  const std::int64_t uneven[] = {3, 5}, long_rows[] = {3, 5, 0}, short_rows[] = {3, 4};
  const velo_ints rows{uneven, 2}, three_rows{long_rows, 3}, seven{short_rows, 2};
  using args = velo_vocab_parallel_embedding_args;
  args valid = VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT;
  valid.group = all.group(0), valid.weight = &weight, valid.indices = &indices, valid.y = &y;
  check_refusals<args>(
      valid, [&](const args& a) { return velo_vocab_parallel_embedding(all.stream(0), &a); },
      {{[](args& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.weight = &flat; }, VELO_ERR_RANK, "args.weight.ndim"},
       {[&](args& a) { a.indices = &weight; }, VELO_ERR_DTYPE, "args.indices.dtype"},
       {[&](args& a) { a.y = &weight; }, VELO_ERR_RANK, "args.y.shape"},
       {[](args& a) { a.sequence_parallel = 2; }, VELO_ERR_ARGUMENT, "args.sequence_parallel"},
       {[](args& a) { a.sequence_parallel = 1; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[&](args& a) { a.sequence_parallel = 1, a.indices = &odd; }, VELO_ERR_SHAPE,
        "args.indices.shape"},
       {[&](args& a) { a.sequence_parallel = 1, a.indices = &scalar; }, VELO_ERR_RANK,
        "args.indices.ndim"},
       {[&](args& a) { a.token_rows = &rows; }, VELO_ERR_ARGUMENT, "args.token_rows",
        "NULL without sequence_parallel", "a list"},
       {[&](args& a) { a.sequence_parallel = 1, a.token_rows = &three_rows; }, VELO_ERR_ARGUMENT,
        "args.token_rows.count", "2", "3"},
       {[&](args& a) { a.sequence_parallel = 1, a.token_rows = &seven; }, VELO_ERR_ARGUMENT,
        "args.token_rows", "a sum of 8, the first dimension of indices", "7"},
       {[&](args& a) { a.sequence_parallel = 1, a.token_rows = &rows; }, VELO_ERR_SHAPE,
        "args.y.shape"},
       {[](args& a) { a.vocab_begin = -2; }, VELO_ERR_ARGUMENT, "args.vocab_begin"},
       {[](args& a) { a.vocab_size = -1; }, VELO_ERR_ARGUMENT, "args.vocab_size"},
       {[&](args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  all.require_barrier();
}
