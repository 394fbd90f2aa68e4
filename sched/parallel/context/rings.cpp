// Ulysses, ring, double ring and their hybrid: one plan, whose ring or whose exchange of heads may
// be of one rank.
//
// Rank r is member r mod u of ring rank r div u. The u members of a ring rank exchange heads: each
// gets the rows of all u, of its share of the heads, and gives its results back. Ring rank i meets
// blocks (rows of ring ranks) in windows of w: in round o it begins with block b = i - o w, and
// step t of the round meets that of b's window which lies t before b, cyclically. In every step all
// ranks hold different blocks, so a block's way is from the rank that meets it to the one that
// meets it next. A round's first blocks go to the next round while the whole round computes. The
// gradient meets the blocks in reverse, from the one that the forward met last and kept, with dk
// and dv one step behind, to their owner.
#include <algorithm>
#include <iterator>

#include "core/index.hpp"
#include "sched/parallel/context/heads/head_exchange.hpp"

namespace velo::sched {

namespace {

class ring_visits {
 public:
  ring_visits(std::int64_t ranks, std::int64_t window) : ranks_(ranks), window_(window) {}

  // The block that a rank meets in a step.
  std::int64_t block(std::int64_t rank, std::int64_t step) const {
    const std::int64_t round = step / window_, within = step % window_;
    const std::int64_t base = ((rank - round * window_) % ranks_ + ranks_) % ranks_;
    const std::int64_t first = base / window_ * window_;
    return first + (base - first - within + window_) % window_;
  }
  // The rank that meets a block in a step.
  std::int64_t rank(std::int64_t block_of, std::int64_t step) const {
    const std::int64_t first = block_of / window_ * window_;
    const std::int64_t base = first + (block_of - first + step % window_) % window_;
    return (base + step / window_ * window_) % ranks_;
  }
  std::int64_t window() const { return window_; }

 private:
  std::int64_t ranks_, window_;
};

bool in_zigzag(const sequence_shape& of) {
  return of.visible() == cells::causal;
}

std::vector<rows> lists_of(const sequence_shape& of, std::int64_t ring) {
  std::vector<rows> all;
  for (std::int64_t i = 0; i < ring; ++i)
    all.push_back(in_zigzag(of) ? zigzag_rows(of.all, ring, i)
                                : contiguous_rows(of.sequence(), ring, i));
  return all;
}

class ring_plan {
 public:
  ring_plan(const sequence_shape& of, const ring_shape& ring)
      : of_(of),
        u_(ring.ulysses),
        kept_(ring.kept),
        keeps_each_(ring.keeps_each),
        ring_(of.ranks / ring.ulysses),
        visits_(ring_, ring.window),
        neighbors_(of, {ring.ulysses, ring.gathers_keys}, lists_of(of, ring_)) {}

  sequence_plan make() const {
    sequence_plan plan;
    plan.held = neighbors_.all_held();
    fill(plan.forward, false);
    fill(plan.gradient, true);
    return plan;
  }

 private:
  std::int64_t exchange() const { return neighbors_.steps(); }
  std::int64_t visit(std::int64_t step, bool gradient) const {  // the forward's step
    return gradient ? ring_ - 1 - step : step;
  }

  void fill(attention_pass& pass, bool gradient) const {
    pass.steps = ring_ + 2 * exchange();
    pass.tasks.resize(core::at(of_.ranks));
    for (std::int64_t r = 0; r < of_.ranks; ++r)
      for (std::int64_t s = 0; s < ring_; ++s)
        add_tasks(pass.tasks[core::at(r)], exchange() + s, r / u_,
                  visits_.block(r / u_, visit(s, gradient)), neighbors_.heads_of(r % u_));
    if (gradient) {
      neighbors_.send_heads(pass, 0, {content::dout}, false);
      send_keys_of_heads(pass, true);
      send_blocks(pass, true);
      send_gradients(pass);
      neighbors_.send_back(pass, pass.steps - 1, {content::dq, content::dk, content::dv});
    } else {
      neighbors_.send_heads(pass, 0, {content::q}, true);
      send_keys_of_heads(pass, false);
      send_blocks(pass, false);
      neighbors_.send_back(pass, pass.steps - 1, {content::out});
    }
    pass.sort_messages();
  }

  // Ring rank i with block j, document by document.
  void add_tasks(std::vector<attention_task>& to, std::int64_t step, std::int64_t i, std::int64_t j,
                 span heads) const {
    const auto add = [&](rows queries, rows keys, cells visible) {
      if (!queries.empty() && !keys.empty())
        to.push_back({step, std::move(queries), std::move(keys), heads, visible});
    };
    if (of_.visible() == cells::masked) {
      add(neighbors_.list(i), neighbors_.list(j), cells::masked);
      return;
    }
    for (std::int64_t d = 0; d < of_.all.count(); ++d) {
      const span document = of_.all.at(d);
      rows queries, keys;
      if (!in_zigzag(of_)) {
        add(within(neighbors_.list(i), document), within(neighbors_.list(j), document), cells::all);
        continue;
      }
      const zigzag_chunks own = zigzag(document, ring_, i), met = zigzag(document, ring_, j);
      if (j <= i) append(queries, own.first);
      append(queries, own.second);
      append(keys, met.first);
      if (j >= i) append(keys, met.second);
      add(queries, keys, i == j ? cells::causal : cells::all);
    }
  }

  // The exchange of keys and values by heads. A ring keeps what came; without one the cache is of
  // each rank's own rows, as they were before, and the gradient exchanges them again.
  void send_keys_of_heads(attention_pass& pass, bool gradient) const {
    for (const content what : {content::k, content::v}) {
      const bool again = ring_ == 1 && caches(what);
      if (!gradient || again) neighbors_.send_heads(pass, 0, {what}, !gradient && !again);
    }
  }
  bool caches(content what) const {
    return kept_ == kept_blocks::both || (kept_ == kept_blocks::keys && what == content::k);
  }
  // Whether a block that ranks meet in a step of the forward stays for the gradient. The last block
  // does. The block before it need not: it travels while the gradient of the last is computed.
  bool keeps(content what, std::int64_t step) const {
    return step == ring_ - 1 || ((keeps_each_ || step < ring_ - 2) && caches(what));
  }
  // Keys and values of a block go to the rank that meets it next; between rounds while the round
  // before computes. In the gradient those that the rank kept are there.
  void send_blocks(attention_pass& pass, bool gradient) const {
    for (std::int64_t s = 0; s + 1 < ring_; ++s) {
      const std::int64_t now = visit(s, gradient), next = visit(s + 1, gradient);
      const bool between = now / visits_.window() != next / visits_.window();
      // The round's block that the next round begins with is met when the round begins.
      const std::int64_t begin = between ? s / visits_.window() * visits_.window() : s;
      for (std::int64_t i = 0; i < ring_; ++i) {
        const std::int64_t block = visits_.block(i, next);
        for (const content what : {content::k, content::v}) {
          if (gradient && (keeps(what, next) || block == i)) continue;
          send(pass, visits_.rank(block, visit(begin, gradient)), i, block, exchange() + begin,
               exchange() + s + 1, {what}, !gradient && keeps(what, next));
        }
      }
    }
  }
  // dk and dv of a block go to the rank that met it after the sender did.
  void send_gradients(attention_pass& pass) const {
    for (std::int64_t s = 0; s + 1 < ring_; ++s)
      for (std::int64_t i = 0; i < ring_; ++i) {
        const std::int64_t block = visits_.block(i, visit(s, true));
        send(pass, i, visits_.rank(block, visit(s + 1, true)), block, exchange() + s + 1,
             exchange() + s + 2, {content::dk, content::dv}, false);
      }
  }
  void send(attention_pass& pass, std::int64_t from, std::int64_t to, std::int64_t block,
            std::int64_t step, std::int64_t needed, std::initializer_list<content> what,
            bool kept) const {
    const rows& of = neighbors_.list(block);
    if (of.empty() || from == to) return;
    for (std::int64_t member = 0; member < u_; ++member)
      for (const content one : what)
        pass.messages.push_back({step, needed, from * u_ + member, to * u_ + member, one, of,
                                 neighbors_.key_heads_of(member), kept});
  }

  const sequence_shape& of_;
  const std::int64_t u_;
  const kept_blocks kept_;
  const bool keeps_each_;
  const std::int64_t ring_;
  const ring_visits visits_;
  const head_exchange neighbors_;
};

}  // namespace

void attention_pass::sort_messages() {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const block_message& a, const block_message& b) { return a.step < b.step; });
}

message_range attention_pass::sent_in(std::int64_t step) const {
  const auto begin =
      std::lower_bound(messages.begin(), messages.end(), step,
                       [](const block_message& m, std::int64_t of) { return m.step < of; });
  const auto end =
      std::upper_bound(begin, messages.end(), step,
                       [](std::int64_t of, const block_message& m) { return of < m.step; });
  return {static_cast<std::size_t>(begin - messages.begin()),
          static_cast<std::size_t>(end - messages.begin())};
}

void give_keys(sequence_plan& plan) {
  std::vector<block_message>& all = plan.forward.messages;
  std::copy_if(all.begin(), all.end(), std::back_inserter(plan.given),
               [](const block_message& m) { return m.kept; });
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const block_message& m) { return m.kept && is_of_keys(m.what); }),
            all.end());
}

span head_counts::keys_of(span heads) const {
  if (heads.empty()) return {0, 0};
  const std::int64_t each = queries / keys;
  return {heads.begin / each, (heads.end - 1) / each + 1};
}

sequence_plan plan_rings(const sequence_shape& of, const ring_shape& ring) {
  return ring_plan(of, ring).make();
}

}  // namespace velo::sched
