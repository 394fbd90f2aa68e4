// The arithmetic of who gives what to whom, without a transport: the pattern of every collective on
// every rank, and how blocks are cut.
#include "comm/pattern/pattern.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "comm/pattern/slices.hpp"

using namespace velo;
using comm::block;
using comm::blocks;
using comm::collective;
using comm::layout;
using comm::pattern;

namespace {

constexpr int most_ranks = 8;

// Elements that `from` has for `to`. Even collectives have `count` for each.
using amounts = std::vector<std::vector<std::int64_t>>;

// The blocks of each rank's tensors: of its input in order, of its output from the last rank on
// with gaps between them.
struct world {
  world(collective kind, int size, int root, const amounts& given, bool even)
      : kind(kind), size(size), root(root), given(given), even(even) {
    for (int rank = 0; rank < size; ++rank) {
      blocks gives, takes(at(size));
      std::int64_t end = 0;
      for (int to = 0; to < size; ++to) {
        gives.push_back({end, amount(rank, to)});
        end += amount(rank, to);
      }
      end = 3;
      for (int from = size; from-- > 0; end += amount(from, rank) + 2)
        takes[at(from)] = {end, amount(from, rank)};
      in.push_back(gives);
      out.push_back(takes);
    }
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::int64_t amount(int from, int to) const { return given[at(from)][at(to)]; }
  pattern of(int rank) const {
    return {comm::traits_of(kind),
            rank,
            size,
            root,
            even || comm::traits_of(kind).out == layout::blocks ? amount(rank, rank)
                                                                : amount(root, rank),
            even ? nullptr : in[at(rank)].data(),
            even ? nullptr : out[at(rank)].data()};
  }

  const collective kind;
  const int size, root;
  const amounts given;
  const bool even;
  std::vector<blocks> in, out;
};

amounts amounts_of(int size, bool even, bool by_giver, bool by_taker) {
  const auto ranks = static_cast<std::size_t>(size);
  amounts all(ranks, std::vector<std::int64_t>(ranks));
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to)
      all[world::at(from)][world::at(to)] =
          even ? 5 : (by_giver ? 3 * from : 0) + (by_taker ? 2 * to % 5 : 0);
  return all;
}

// f(world) for every collective, number of ranks and root, with even and uneven blocks where it has
// them.
template <class F>
void each_world(F&& f) {
  for (std::size_t k = 0; k < comm::collective_count; ++k) {
    const comm::collective_traits& traits = comm::collectives[k];
    for (int size = 1; size <= most_ranks; ++size)
      for (int root = 0; root < (traits.root == comm::root_role::none ? 1 : size); ++root)
        for (const bool even : {true, false}) {
          const bool has_blocks = traits.in == layout::blocks || traits.out == layout::blocks;
          if (!even && !has_blocks) continue;
          const amounts given =
              amounts_of(size, even, traits.out == layout::blocks, traits.in == layout::blocks);
          INFO(traits.name << " of " << size << " ranks, root " << root << (even ? ", even" : ""));
          f(world(static_cast<collective>(k), size, root, given, even));
        }
  }
}

}  // namespace

TEST_CASE("what a rank gives a peer has as many elements as the peer takes from it") {
  each_world([](const world& w) {
    for (int from = 0; from < w.size; ++from)
      for (int to = 0; to < w.size; ++to)
        CHECK(w.of(from).gives(to).count == w.of(to).takes(from).count);
  });
}

TEST_CASE("only the root gives, or takes, in a collective with a root") {
  each_world([](const world& w) {
    const comm::root_role role = comm::traits_of(w.kind).root;
    for (int rank = 0; rank < w.size; ++rank) {
      const pattern p = w.of(rank);
      const bool gives = role == comm::root_role::gives, takes = role == comm::root_role::takes;
      CHECK(p.takes_result() == (!takes || rank == w.root));
      bool to_others = false;
      for (int peer = 0; peer < w.size; ++peer) {
        if (gives && rank != w.root) CHECK(p.gives(peer).count == 0);
        if (takes && rank != w.root) CHECK(p.takes(peer).count == 0);
        to_others = to_others || (peer != rank && p.gives(peer).count > 0);
      }
      if (to_others) CHECK(p.gives_others());
      if (w.even && w.size > 1) CHECK(p.gives_others() == to_others);
    }
  });
}

// Moves a number for each element, by the patterns alone, and compares with what the collective is
// defined to do.
TEST_CASE("moving what the patterns say carries out every collective") {
  using tensor = std::vector<std::int64_t>;
  constexpr std::int64_t untouched = -1;
  each_world([&](const world& w) {
    const comm::collective_traits& traits = comm::traits_of(w.kind);
    if (traits.in == layout::nothing) return;
    const auto value = [](int rank, std::int64_t element) { return 1000 * rank + element; };
    for (int to = 0; to < w.size; ++to) {
      const pattern taker = w.of(to);
      tensor out(1000, untouched);
      tensor sum(1000, 0);
      for (int from = 0; from < w.size; ++from) {
        const block given = w.of(from).gives(to), taken = taker.takes(from);
        for (std::int64_t i = 0; i < given.count; ++i) {
          const auto place = static_cast<std::size_t>(taken.begin + i);
          out[place] = value(from, given.begin + i);
          sum[place] += out[place];
        }
      }
      for (int from = 0; from < w.size; ++from) {
        const std::int64_t count = w.amount(from, to);
        const bool of_root = traits.root != comm::root_role::gives || from == w.root;
        const bool to_root = traits.root != comm::root_role::takes || to == w.root;
        const std::int64_t begin = traits.in == layout::whole ? 0
                                   : w.even                   ? to * count
                                                              : w.in[w.at(from)][w.at(to)].begin;
        const std::int64_t there = traits.out == layout::whole ? 0
                                   : w.even                    ? from * count
                                                               : w.out[w.at(to)][w.at(from)].begin;
        for (std::int64_t i = 0; of_root && to_root && i < count; ++i) {
          const auto place = static_cast<std::size_t>(there + i);
          if (traits.reduces) {
            std::int64_t all = 0;
            for (int rank = 0; rank < w.size; ++rank) all += value(rank, begin + i);
            CHECK(sum[place] == all);
          } else {
            CHECK(out[place] == value(from, begin + i));
          }
        }
      }
    }
  });
}

TEST_CASE("slices cover a block once, in order") {
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 1000})
    for (const std::int64_t most : {1, 64, 100, 5000}) {
      std::int64_t end = 0;
      for (std::int64_t step = 0; step < comm::slices_in(bytes, most); ++step) {
        const comm::slice s = comm::slice_of(bytes, most, step);
        CHECK(s.begin == end);
        CHECK((s.bytes > 0 && s.bytes <= most));
        end += s.bytes;
      }
      CHECK(end == bytes);
      CHECK(comm::slice_of(bytes, most, comm::slices_in(bytes, most)).bytes == 0);
    }
}

TEST_CASE("the shares of all ranks are all elements, and begin at whole units") {
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000, 4096})
    for (int ranks = 1; ranks <= most_ranks; ++ranks)
      for (const std::int64_t unit : {1, 64, 128}) {
        std::int64_t end = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const block share = comm::share_of(count, ranks, rank, unit);
          CHECK(share.begin == end);
          CHECK((share.begin % unit == 0 || share.count == 0));
          end += share.count;
        }
        CHECK(end == count);
      }
}

TEST_CASE("the sections of a slot lie apart, at whole cache lines, behind the header") {
  for (int ranks = 2; ranks <= most_ranks; ++ranks)
    for (const std::int64_t block_bytes : {0, 1, 64, 100, 1 << 20})
      for (const std::int64_t header : {0, 8, 100}) {
        const std::int64_t slot = 8192;
        const comm::sections cut(slot, ranks, block_bytes, header);
        CHECK(cut.span() <= slot);
        for (int owner = 0; owner < ranks; ++owner) {
          std::int64_t end = header;
          for (int reader = 0; reader < ranks; ++reader) {
            if (reader == owner) continue;
            CHECK(cut.begin(owner, reader) >= end);
            CHECK(cut.begin(owner, reader) % 64 == 0);
            end = cut.begin(owner, reader) + cut.bytes();
          }
          CHECK(end <= slot);
        }
      }
}

TEST_CASE("the names of collectives differ") {
  for (std::size_t i = 0; i < comm::collective_count; ++i)
    for (std::size_t k = 0; k < i; ++k)
      CHECK(std::string(comm::collectives[i].name) != comm::collectives[k].name);
}
