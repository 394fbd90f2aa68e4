// Adaptive sequence plans: rounds of known masks, and random masks against an enumeration that
// asks the C entries alone: cells, rows, messages, units and rounds.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/random.hpp"
#include "tests/sched/parallel/context/described_plan.hpp"

using namespace velo::testing;

namespace {

using pairs = std::vector<std::vector<bool>>;  // [queries' block][keys' block]

// The rule as published, whose first choices are not held to the limit.
std::int64_t rounds_by_the_rule(pairs open) {
  const std::size_t n = open.size();
  std::vector<int> returned(n, 0);
  std::int64_t rounds = 0;
  const auto is_open = [&] {
    for (const auto& row : open)
      if (std::find(row.begin(), row.end(), true) != row.end()) return true;
    return false;
  };
  for (; is_open(); ++rounds) {
    std::vector<int> used = returned;
    std::vector<bool> busy(n), sent(n);
    returned.assign(n, 0);
    for (std::size_t d = 0; d < n; ++d)
      for (std::size_t i = 0; i < n && !busy[d]; ++i) {
        const std::size_t c = i == 0 ? (d + static_cast<std::size_t>(rounds)) % n : (d + n - i) % n;
        if (!open[d][c] || (i > 0 && (used[d] > 4 || used[c] > 4))) continue;
        open[d][c] = false, busy[d] = true;
        if (c != d) used[d] += 2, used[c] += 2;
      }
    for (std::size_t d = 0; d < n; ++d)
      for (std::size_t i = 1; i < n && !busy[d]; ++i) {
        const std::size_t r = (d + i) % n;
        if (!open[r][d] || sent[r] || used[d] > 5 || used[r] > 5) continue;
        open[r][d] = false, busy[d] = sent[r] = true;
        for (const std::size_t end : {d, r}) ++used[end], ++returned[end];
      }
  }
  return rounds;
}

// A mask in which blocks of `each` rows see each other as a function says.
using sees_block = std::function<bool(std::int64_t, std::int64_t)>;
std::vector<std::uint8_t> mask_of(std::int64_t blocks, std::int64_t each, const sees_block& sees) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t q = 0; q < blocks * each; ++q)
    for (std::int64_t k = 0; k < blocks * each; ++k)
      mask.push_back(sees(q / each, k / each) ? 0 : 1);
  return mask;
}

velo_sequence_desc adaptive(std::int64_t cp, std::int64_t sequence,
                            const std::vector<std::uint8_t>& mask) {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_ADAPTIVE;
  desc.cp = cp, desc.sequence = sequence, desc.mask = mask.data(), desc.head_dim = 8;
  return desc;
}

velo_sequence_info rounds_of(std::int64_t cp, const sees_block& sees) {
  velo_sequence_info first{};
  for (const std::int64_t each : {1, 3}) {
    const std::vector<std::uint8_t> mask = mask_of(cp, each, sees);
    const described_plan plan(adaptive(cp, cp * each, mask));
    plan.require_proven();
    if (each == 1)
      first = plan.info();
    else
      CHECK(plan.info().rounds == first.rounds);
  }
  return first;
}

// ---- the enumeration ----

using cell = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // query, key, head

// Each visible cell of each head once, and nothing else.
void require_cells(const described_plan& plan, const velo_sequence_desc& desc,
                   velo_sequence_pass pass) {
  std::set<cell> computed;
  for (const described_task& task : plan.tasks(pass))
    for (const std::int64_t q : task.queries)
      for (const std::int64_t k : task.keys) {
        const bool is_visible = desc.mask[q * desc.sequence + k] == 0;
        if (task.is.cells == VELO_SEQUENCE_CELLS_CAUSAL   ? k > q
            : task.is.cells == VELO_SEQUENCE_CELLS_MASKED ? !is_visible
                                                          : false)
          continue;
        REQUIRE(is_visible);
        for (std::int64_t h = task.is.heads_begin; h < task.is.heads_end; ++h)
          REQUIRE(computed.insert({q, k, h}).second);
      }
  std::size_t visible = 0;
  for (std::int64_t i = 0; i < desc.sequence * desc.sequence; ++i)
    visible += desc.mask[i] == 0 ? 1 : 0;
  REQUIRE(computed.size() == visible * static_cast<std::size_t>(desc.heads));
}

// What a rank sends in a step another one receives, the same rows in the step that needs them.
void require_matched_messages(const described_plan& plan, velo_sequence_pass pass) {
  const auto sent = plan.messages(pass, VELO_SEQUENCE_SENT),
             received = plan.messages(pass, VELO_SEQUENCE_RECEIVED);
  REQUIRE(sent.size() == received.size());
  const auto key = [](const described_message& m) {
    return std::make_tuple(m.is.from, m.is.to, m.is.content, m.is.step, m.is.needed,
                           m.is.heads_begin, m.is.heads_end, m.rows);
  };
  std::multiset<decltype(key(sent[0]))> ways;
  for (const described_message& m : sent) ways.insert(key(m));
  for (const described_message& m : received) {
    const auto found = ways.find(key(m));
    REQUIRE(found != ways.end());
    ways.erase(found);
  }
}

// Units of a rank in a step: one for each content, keys and values two. In the forward results
// are also counted one round earlier, where the rule has them.
void require_units(const described_plan& plan, velo_sequence_pass pass, std::int64_t neighbors) {
  const bool forward = pass == VELO_SEQUENCE_FORWARD;
  std::map<std::pair<std::int64_t, std::int64_t>, int> as_sent, as_ruled;
  for (const described_message& m : plan.messages(pass, VELO_SEQUENCE_SENT)) {
    if (m.is.from / neighbors == m.is.to / neighbors) continue;
    for (const std::int64_t end : {m.is.from, m.is.to}) {
      REQUIRE(++as_sent[{end, m.is.step}] <= (forward ? 6 : 12));
      const std::int64_t ruled = m.is.step - (m.is.content == VELO_SEQUENCE_OUT ? 1 : 0);
      if (forward) REQUIRE(++as_ruled[{end, ruled}] <= 6);
    }
  }
  std::set<std::pair<std::int64_t, std::int64_t>> busy;
  for (const described_task& task : plan.tasks(pass))
    REQUIRE(busy.insert({task.rank, task.is.step}).second);
}

// A task has its rows at hand: own ones, or those that a message brought in time.
void require_rows_at_hand(const described_plan& plan, const velo_sequence_desc& desc,
                          velo_sequence_pass pass) {
  using place = std::tuple<std::int64_t, velo_sequence_content, std::int64_t>;  // rank, row
  std::map<place, std::int64_t> since;
  for (std::int64_t r = 0; r < desc.cp; ++r)
    for (const std::int64_t row : plan.held(r))
      for (const velo_sequence_content what :
           {VELO_SEQUENCE_Q, VELO_SEQUENCE_K, VELO_SEQUENCE_V, VELO_SEQUENCE_DOUT})
        since[{r, what, row}] = 0;
  for (const described_message& m : plan.messages(pass, VELO_SEQUENCE_SENT))
    for (const std::int64_t row : m.rows) since.insert({{m.is.to, m.is.content, row}, m.is.needed});
  const auto require_row = [&](const described_task& task, velo_sequence_content what,
                               std::int64_t row) {
    const auto found = since.find({task.rank, what, row});
    REQUIRE(found != since.end());
    REQUIRE(found->second <= task.is.step);
  };
  for (const described_task& task : plan.tasks(pass)) {
    for (const std::int64_t q : task.queries) require_row(task, VELO_SEQUENCE_Q, q);
    for (const std::int64_t k : task.keys)
      require_row(task, VELO_SEQUENCE_K, k), require_row(task, VELO_SEQUENCE_V, k);
    for (const std::int64_t q : task.queries)
      if (pass == VELO_SEQUENCE_GRADIENT) require_row(task, VELO_SEQUENCE_DOUT, q);
  }
}

// Every part of a result that another rank computes returns to the owner of its row.
void require_returns(const described_plan& plan, const velo_sequence_desc& desc) {
  std::vector<std::int64_t> owner(static_cast<std::size_t>(desc.sequence), -1);
  for (std::int64_t r = 0; r < desc.cp; ++r)
    for (const std::int64_t row : plan.held(r)) {
      REQUIRE(owner[static_cast<std::size_t>(row)] == -1);
      owner[static_cast<std::size_t>(row)] = r;
    }
  REQUIRE(std::count(owner.begin(), owner.end(), -1) == 0);
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
    using way = std::tuple<std::int64_t, std::int64_t, velo_sequence_content, std::int64_t>;
    std::set<way> expected, found;  // step, rank, content, row
    for (const described_task& task : plan.tasks(pass)) {
      const auto add = [&](const std::vector<std::int64_t>& all, velo_sequence_content what) {
        for (const std::int64_t row : all)
          if (owner[static_cast<std::size_t>(row)] != task.rank)
            expected.insert({task.is.step + 1, task.rank, what, row});
      };
      const bool forward = pass == VELO_SEQUENCE_FORWARD;
      add(task.queries, forward ? VELO_SEQUENCE_OUT : VELO_SEQUENCE_DQ);
      if (!forward) add(task.keys, VELO_SEQUENCE_DK), add(task.keys, VELO_SEQUENCE_DV);
    }
    for (const described_message& m : plan.messages(pass, VELO_SEQUENCE_SENT)) {
      if (m.is.content == VELO_SEQUENCE_Q || m.is.content == VELO_SEQUENCE_K ||
          m.is.content == VELO_SEQUENCE_V || m.is.content == VELO_SEQUENCE_DOUT)
        continue;
      for (const std::int64_t row : m.rows) {
        REQUIRE(owner[static_cast<std::size_t>(row)] == m.is.to);
        REQUIRE(found.insert({m.is.step, m.is.from, m.is.content, row}).second);
      }
    }
    REQUIRE(expected == found);
  }
}

pairs pairs_of(const described_plan& plan, const velo_sequence_desc& desc, std::int64_t neighbors) {
  const auto blocks = static_cast<std::size_t>(desc.cp / neighbors);
  std::vector<std::size_t> block_of(static_cast<std::size_t>(desc.sequence));
  for (std::int64_t r = 0; r < desc.cp; ++r)
    for (const std::int64_t row : plan.held(r))
      block_of[static_cast<std::size_t>(row)] = static_cast<std::size_t>(r / neighbors);
  pairs see(blocks, std::vector<bool>(blocks));
  for (std::int64_t q = 0; q < desc.sequence; ++q)
    for (std::int64_t k = 0; k < desc.sequence; ++k)
      if (desc.mask[q * desc.sequence + k] == 0)
        see[block_of[static_cast<std::size_t>(q)]][block_of[static_cast<std::size_t>(k)]] = true;
  return see;
}

// A mask of random density, some of them bands, groups or blocks.
std::vector<std::uint8_t> random_mask(random_numbers<std::mt19937_64>& random, std::int64_t size) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  const std::int64_t shape = below(4), width = 1 + below(6), density = 1 + below(100);
  std::vector<std::uint8_t> mask;
  for (std::int64_t q = 0; q < size; ++q)
    for (std::int64_t k = 0; k < size; ++k) {
      const bool likely = shape == 0   ? true
                          : shape == 1 ? std::abs(q - k) <= width
                          : shape == 2 ? q % width == k % width
                                       : q / width == k / width || k < width;
      mask.push_back(likely && below(100) < density ? 0 : 1);
    }
  return mask;
}

}  // namespace

TEST_CASE("rounds of adaptive plans are not more than those known") {
  const auto planned = [](std::int64_t cp, std::int64_t rule, std::int64_t most,
                          const sees_block& sees) {
    const velo_sequence_info info = rounds_of(cp, sees);
    CHECK(info.rule_rounds == rule);
    CHECK(info.rounds <= most);
  };
  using at = std::int64_t;
  planned(8, 8, 8, [](at, at) { return true; });
  planned(4, 3, 3, [](at q, at k) { return k <= q; });
  planned(8, 6, 6, [](at q, at k) { return k <= q; });
  planned(8, 2, 2, [](at q, at k) { return k == q || k == q - 1; });
  planned(8, 3, 3, [](at q, at k) { return k == 0 || k == q; });  // the rule uses 8 units
  planned(8, 1, 1, [](at q, at k) { return k == q; });
  planned(1, 1, 1, [](at, at) { return true; });
}

TEST_CASE("rows that see the same keys move together where that leaves fewer blocks") {
  const auto groups = [](std::int64_t q, std::int64_t k) { return q % 4 == k % 4; };
  const std::vector<std::uint8_t> mask = mask_of(64, 1, groups);
  const described_plan plan(adaptive(4, 64, mask));
  plan.require_proven();
  CHECK(plan.info().rounds == 1);
  CHECK(plan.info().forward_steps == 1);
  CHECK(plan.messages(VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_SENT).empty());
  for (std::int64_t r = 0; r < 4; ++r)
    for (const std::int64_t row : plan.held(r)) CHECK(row % 4 == plan.held(r)[0] % 4);
  // A triangle stays as it is: no order has fewer blocks.
  const std::vector<std::uint8_t> triangle =
      mask_of(16, 1, [](std::int64_t q, std::int64_t k) { return k <= q; });
  const described_plan causal(adaptive(4, 16, triangle));
  for (std::int64_t r = 0; r < 4; ++r) CHECK(causal.held(r)[0] == 4 * r);
}

TEST_CASE("two blocks of a causal sequence lie in a zigzag and need no mask") {
  for (const std::int64_t sequence : {4, 16, 18, 27, 1000, 2048})
    for (const std::int64_t neighbors : {1, 2}) {
      INFO("sequence " << sequence << ", neighbors " << neighbors);
      velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
      desc.kind = neighbors == 1 ? VELO_SEQUENCE_ADAPTIVE : VELO_SEQUENCE_HYBRID_ADAPTIVE;
      desc.cp = 2 * neighbors, desc.ulysses = desc.heads = neighbors, desc.sequence = sequence;
      const described_plan plan(desc);
      plan.require_proven();
      CHECK(plan.info().rounds == 2);
      CHECK(plan.info().rule_rounds == 2);
      std::vector<std::int64_t> cells(static_cast<std::size_t>(desc.cp));
      for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT})
        for (const described_task& task : plan.tasks(pass))
          CHECK(task.is.cells != VELO_SEQUENCE_CELLS_MASKED);
      for (const described_task& task : plan.tasks(VELO_SEQUENCE_FORWARD))
        for (const std::int64_t q : task.queries)
          for (const std::int64_t k : task.keys)
            cells[static_cast<std::size_t>(task.rank)] += k <= q ? 1 : 0;
      const auto [least, most] = std::minmax_element(cells.begin(), cells.end());
      CHECK(*most - *least <= 2 * sequence);
    }
}

TEST_CASE("an adaptive task that a formula describes needs no mask") {
  const auto cells_by_task = [](std::int64_t cp, const sees_block& sees) {
    const std::vector<std::uint8_t> mask = mask_of(cp, 4, sees);
    const velo_sequence_desc desc = adaptive(cp, 4 * cp, mask);
    const described_plan plan(desc);
    plan.require_proven();
    require_cells(plan, desc, VELO_SEQUENCE_FORWARD);
    std::map<velo_sequence_cells, int> found;
    for (const described_task& task : plan.tasks(VELO_SEQUENCE_FORWARD)) ++found[task.is.cells];
    return found;
  };
  using at = std::int64_t;
  using kinds = std::map<velo_sequence_cells, int>;
  CHECK(cells_by_task(3, [](at q, at k) { return k <= q; }) == kinds{{VELO_SEQUENCE_CELLS_ALL, 6}});
  static const std::int64_t ends[] = {3, 24};
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_ADAPTIVE, desc.cp = 3, desc.sequence = 24;
  const described_plan causal(desc);
  for (const described_task& task : causal.tasks(VELO_SEQUENCE_FORWARD))
    CHECK(task.is.cells ==
          (task.queries == task.keys ? VELO_SEQUENCE_CELLS_CAUSAL : VELO_SEQUENCE_CELLS_ALL));
  desc.document_ends = ends, desc.document_count = 2;
  const described_plan two(desc);
  two.require_proven();
  int masked = 0;
  for (const described_task& task : two.tasks(VELO_SEQUENCE_FORWARD))
    masked += task.is.cells == VELO_SEQUENCE_CELLS_MASKED ? 1 : 0;
  CHECK(masked == 1);  // the first block has rows of both documents
}

TEST_CASE("without a mask an adaptive plan follows documents and causality") {
  static const std::int64_t ends[] = {5, 5, 19, 24};
  for (const std::int32_t causal : {0, 1}) {
    std::vector<std::uint8_t> mask;
    const auto document = [&](std::int64_t row) { return row < 5 ? 0 : row < 19 ? 1 : 2; };
    for (std::int64_t q = 0; q < 24; ++q)
      for (std::int64_t k = 0; k < 24; ++k)
        mask.push_back(document(q) == document(k) && (causal == 0 || k <= q) ? 0 : 1);
    velo_sequence_desc desc = adaptive(6, 24, mask);
    const described_plan masked(desc);
    desc.mask = nullptr, desc.causal = causal;
    desc.document_ends = ends, desc.document_count = 4;
    const described_plan described(desc);
    described.require_proven();
    CHECK(described.text(VELO_SEQUENCE_JSON) == masked.text(VELO_SEQUENCE_JSON));
  }
}

TEST_CASE("masks of nothing, of one row and of fewer rows than ranks have plans") {
  const std::vector<std::uint8_t> hidden(64, 1), open(64, 0);
  for (const std::int64_t sequence : {0, 1, 3, 8})
    for (const std::vector<std::uint8_t>& mask : {hidden, open})
      for (const std::int64_t neighbors : {1, 2}) {
        velo_sequence_desc desc = adaptive(8, sequence, mask);
        if (neighbors == 2) desc.kind = VELO_SEQUENCE_HYBRID_ADAPTIVE;
        desc.ulysses = desc.heads = neighbors;
        const described_plan plan(desc);
        plan.require_proven();
        CHECK((plan.info().rounds == 0) == (sequence == 0 || &mask == &hidden || mask[0] == 1));
        require_cells(plan, desc, VELO_SEQUENCE_FORWARD);
        CHECK(!plan.text(VELO_SEQUENCE_JSON).empty());
        CHECK(plan.text(VELO_SEQUENCE_SVG).find("<svg ") == 0);
      }
}

TEST_CASE("random masks have adaptive plans that an enumeration finds right") {
  const bool is_long = std::getenv("VELO_SEQUENCE_PLANS") != nullptr;
  const int masks = is_long ? 300 : 40;
  int more = 0, fewer = 0;
  for (int round = 0; round < masks; ++round) {
    INFO("mask " << round);
    random_numbers<std::mt19937_64> random(static_cast<std::uint64_t>(round) + 1);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    const std::int64_t ring = 2 + below(is_long && random.one_in(20) ? 31 : 11),
                       neighbors = random.one_in(3) ? 2 : 1,
                       size = 1 + below(is_long ? random.one_in(10) ? 400 : 90 : 50);
    const std::vector<std::uint8_t> mask = random_mask(random, size);
    velo_sequence_desc desc = adaptive(ring * neighbors, size, mask);
    if (neighbors > 1) desc.kind = VELO_SEQUENCE_HYBRID_ADAPTIVE;
    desc.ulysses = neighbors, desc.heads = neighbors, desc.kv_heads = 1 + below(2) % neighbors;
    desc.kv_gather = neighbors > 1 ? below(2) : 0;
    const described_plan plan(desc);
    plan.require_proven();
    for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
      require_cells(plan, desc, pass);
      require_matched_messages(plan, pass);
      require_units(plan, pass, neighbors);
      if (neighbors == 1) require_rows_at_hand(plan, desc, pass);
    }
    if (neighbors == 1) require_returns(plan, desc);
    const velo_sequence_info info = plan.info();
    REQUIRE(info.rule_rounds == rounds_by_the_rule(pairs_of(plan, desc, neighbors)));
    if (info.rounds > info.rule_rounds) ++more;
    if (info.rounds < info.rule_rounds) ++fewer;
    const std::string written = "\"rounds\": " + std::to_string(info.rounds) +
                                ", \"rule_rounds\": " + std::to_string(info.rule_rounds);
    REQUIRE(plan.text(VELO_SEQUENCE_JSON).find(written) != std::string::npos);
  }
  CHECK(more <= masks / 50);  // only where the limit forces it
  CHECK(fewer > 0);
}
