// Sequence plans of many ranks and of long sequences against an enumeration that asks the C entries
// alone: each row lies on one rank, each visible cell of a head is computed once and no other, and
// what a rank sends another one receives. The cells of some heads are listed; those of all are
// counted. The suite has a sample; VELO_SEQUENCE_PLANS asks for up to 64 ranks and 4096 rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <tuple>

#include "tests/random.hpp"
#include "tests/sched/parallel/context/visible_cells.hpp"

using namespace velo::testing;

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct enumerated_case {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  std::vector<std::int64_t> ends;
  std::vector<std::uint8_t> mask;

  velo_sequence_desc described() const {
    velo_sequence_desc all = desc;
    if (!ends.empty()) all.document_ends = ends.data();
    all.document_count = static_cast<std::int64_t>(ends.size());
    if (!mask.empty()) all.mask = mask.data();
    return all;
  }
};

void require_rows(const described_plan& plan, std::int64_t ranks, std::int64_t sequence) {
  std::vector<std::int64_t> all;
  for (std::int64_t r = 0; r < ranks; ++r)
    for (const std::int64_t row : plan.held(r)) all.push_back(row);
  std::sort(all.begin(), all.end());
  REQUIRE(static_cast<std::int64_t>(all.size()) == sequence);
  for (std::int64_t row = 0; row < sequence; ++row) REQUIRE(all[at(row)] == row);
}

void require_counts(const described_plan& plan, velo_sequence_pass pass, std::int64_t cells) {
  const velo_sequence_info info = plan.info();
  const bool forward = pass == VELO_SEQUENCE_FORWARD;
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < info.cp; ++r)
    for (std::int64_t s = 0; s < (forward ? info.forward_steps : info.gradient_steps); ++s)
      sum += plan.step(pass, r, s).cells;
  REQUIRE(sum == cells);
}

void require_messages(const described_plan& plan, velo_sequence_pass pass) {
  using way = std::tuple<std::int64_t, std::int64_t, velo_sequence_content, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;
  const auto listed = [&](velo_sequence_part part) {
    std::vector<way> all;
    for (const described_message& m : plan.messages(pass, part))
      all.push_back({m.is.from, m.is.to, m.is.content, m.is.step, m.is.needed, m.is.heads_begin,
                     m.is.heads_end, m.rows});
    std::sort(all.begin(), all.end());
    return all;
  };
  REQUIRE(bool(listed(VELO_SEQUENCE_SENT) == listed(VELO_SEQUENCE_RECEIVED)));
}

void require_enumerated(const enumerated_case& of) {
  const velo_sequence_desc& d = of.desc;
  INFO("kind " << d.kind << ", cp " << d.cp << ", ulysses " << d.ulysses << ", window " << d.window
               << ", sequence " << d.sequence << ", causal " << d.causal << ", documents "
               << of.ends.size() << ", heads " << d.heads << ", kv_heads " << d.kv_heads
               << ", kv_cache " << d.kv_cache << ", kv_gather " << d.kv_gather);
  const described_plan plan(of.described());
  require_rows(plan, d.cp, d.sequence);
  const std::vector<std::uint8_t> visible = visible_cells(of.described());
  const std::int64_t cells = std::count(visible.begin(), visible.end(), 1);
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
    const std::vector<described_task> tasks = plan.tasks(pass);
    for (const std::int64_t head : std::set<std::int64_t>{0, d.heads / 2, d.heads - 1}) {
      INFO("head " << head);
      REQUIRE(compute_each_once(tasks, head, visible, d.sequence));
    }
    require_counts(plan, pass, cells * d.heads);
    require_messages(plan, pass);
  }
}

using drawing = random_numbers<std::mt19937_64>;

// Ends of documents, some of which have no row or one.
std::vector<std::int64_t> some_documents(drawing& random, std::int64_t sequence) {
  std::vector<std::int64_t> ends;
  for (std::int64_t end = 0; end < sequence;) {
    const std::uint64_t longest =
        random.one_in(2) ? 2 : 1 + static_cast<std::uint64_t>(sequence) / 2;
    end = std::min(sequence, end + static_cast<std::int64_t>(random.below(longest)));
    ends.push_back(end);
  }
  if (ends.empty() || random.one_in(2)) ends.push_back(sequence);
  return ends;
}

// All cuts of so many ranks without a mask: rings by window, Ulysses, hybrids by both, all_gather.
std::vector<enumerated_case> cuts_of(std::int64_t ranks, std::int64_t sequence) {
  std::vector<enumerated_case> all;
  const auto add = [&](velo_sequence_kind kind, std::int64_t ulysses, std::int64_t window) {
    enumerated_case made;
    const std::int64_t exchange = kind == VELO_SEQUENCE_ULYSSES ? ranks : ulysses;
    made.desc.kind = kind, made.desc.cp = ranks, made.desc.sequence = sequence;
    made.desc.ulysses = ulysses, made.desc.window = window;
    made.desc.heads = exchange == 1 ? 2 : exchange + exchange % 3 + 1;
    made.desc.kv_heads = made.desc.heads % 2 == 0 ? made.desc.heads / 2 : 1;
    all.push_back(made);
  };
  const auto add_windows = [&](velo_sequence_kind kind, std::int64_t ulysses) {
    const std::int64_t ring = ranks / ulysses;
    add(kind, ulysses, 1);
    for (std::int64_t window = 2; window < ring; ++window)
      if (ring % window == 0) add(kind, ulysses, window);
  };
  add_windows(VELO_SEQUENCE_RING, 1);
  for (std::int64_t ulysses = 2; ulysses <= ranks; ++ulysses)
    if (ranks % ulysses == 0) add_windows(VELO_SEQUENCE_HYBRID, ulysses);
  add(VELO_SEQUENCE_ULYSSES, 1, 1);
  add(VELO_SEQUENCE_ALL_GATHER, 1, 1);
  return all;
}

// Those with some causality, documents, caches and gathered keys.
void require_cuts(drawing& random, std::int64_t ranks, std::int64_t sequence) {
  for (enumerated_case& of : cuts_of(ranks, sequence)) {
    velo_sequence_desc& d = of.desc;
    d.causal = random.one_in(3) ? 0 : 1;
    if (random.one_in(2)) of.ends = some_documents(random, sequence);
    if (d.kind != VELO_SEQUENCE_ALL_GATHER)
      d.kv_cache = static_cast<velo_sequence_cache>(random.below(3));
    if (d.ulysses > 1 || (d.kind == VELO_SEQUENCE_ULYSSES && ranks > 1))
      d.kv_gather = random.one_in(2) ? 1 : 0;
    require_enumerated(of);
  }
}

// A mask of one of four kinds: a window behind each query, groups, documents with a first one that
// all see, some cells of a triangle.
std::vector<std::uint8_t> some_mask(drawing& random, std::int64_t sequence) {
  const std::uint64_t shape = random.below(4);
  const std::int64_t width =
      1 + static_cast<std::int64_t>(random.below(1 + static_cast<std::uint64_t>(sequence) / 4));
  std::vector<std::uint8_t> mask;
  for (std::int64_t q = 0; q < sequence; ++q)
    for (std::int64_t k = 0; k < sequence; ++k) {
      const bool sees = shape == 0   ? k <= q && q - k < width
                        : shape == 1 ? q % 7 == k % 7
                        : shape == 2 ? q / width == k / width || k < width
                                     : k <= q && random.one_in(8);
      mask.push_back(sees ? 0 : 1);
    }
  return mask;
}

void require_adaptive(drawing& random, std::int64_t ranks, std::int64_t sequence) {
  for (const std::int64_t neighbors : {1, 2, 4}) {
    if (ranks % neighbors != 0) continue;
    enumerated_case of;
    of.desc.kind = neighbors == 1 ? VELO_SEQUENCE_ADAPTIVE : VELO_SEQUENCE_HYBRID_ADAPTIVE;
    of.desc.cp = ranks, of.desc.sequence = sequence, of.desc.ulysses = neighbors;
    of.desc.heads = neighbors + 1, of.desc.kv_heads = 1;
    of.mask = some_mask(random, sequence);
    require_enumerated(of);
  }
}

bool is_long() {
  return std::getenv("VELO_SEQUENCE_PLANS") != nullptr;
}

}  // namespace

TEST_CASE("plans of up to 64 ranks compute each visible cell once") {
  drawing random(41);
  const std::vector<std::int64_t> some = {8, 17, 64}, all = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                                             12, 16, 17, 24, 31, 32, 48, 60, 64};
  for (const std::int64_t ranks : is_long() ? all : some) {
    require_cuts(random, ranks, ranks - 1);
    require_cuts(random, ranks, 2 * ranks + 5);
    if (!is_long()) continue;
    require_cuts(random, ranks, 4 * ranks);
    require_cuts(random, ranks, 257);
  }
}

TEST_CASE("plans of long sequences compute each visible cell once") {
  drawing random(42);
  if (!is_long()) return require_cuts(random, 8, 1026);
  for (const std::int64_t ranks : {8, 31, 64})
    for (const std::int64_t sequence : {1026, 4096}) require_cuts(random, ranks, sequence);
}

TEST_CASE("adaptive plans of long sequences compute each visible cell once") {
  drawing random(43);
  if (!is_long()) return require_adaptive(random, 16, 200);
  for (const std::int64_t ranks : {8, 16, 31, 64})
    for (const std::int64_t sequence : {200, 900, 1500}) require_adaptive(random, ranks, sequence);
  require_adaptive(random, 8, 4096);  // more rows than the parts that their order is sought for
}
