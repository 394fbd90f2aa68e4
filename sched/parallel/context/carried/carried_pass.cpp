// The steps of a pass.
#include "sched/parallel/context/carried/carried_pass.hpp"

#include <algorithm>
#include <cfloat>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {
namespace {

constexpr ops::element_type f32 = ops::element_type::f32;

bool is_sum_of_keys(content what) {
  return what == content::dk || what == content::dv;
}

}  // namespace

carried_pass::carried_pass(const rank_share& share, const head_widths& widths,
                           const attention_call& call, const pass_tensors& tensors,
                           step_memory& memory, core::execution& on)
    : share_(share), widths_(widths), call_(call), tensors_(tensors), memory_(memory), on_(on) {}

void carried_pass::run(block_carrier& by, bool gradient) {
  is_gradient_ = gradient;
  pass_ = gradient ? &share_.plan().gradient : &share_.plan().forward;
  by.begin(0);
  set_up();
  offer_kept(by);
  for (step_ = 0; step_ <= pass_->steps; ++step_) {
    if (step_ > 0) by.begin(step_);
    arrive(by);
    send(by);
    compute(by);
  }
  step_ = pass_->steps;
  finish_results(by);
  by.end();
}

// ---- memory ----

row_store carried_pass::temporary(const row_places& places, span heads, std::int64_t width,
                                  ops::element_type type) {
  void* memory = memory_.take(dense_bytes(call_.batch, places.size(), heads, width, type), step_);
  return dense_store(memory, places, heads, width, type);
}

void carried_pass::set_up() {
  holdings_ = {{content::q, tensors_.q}, {content::k, tensors_.k}, {content::v, tensors_.v}};
  if (is_gradient_) {
    holdings_.push_back({content::dout, tensors_.dout});
    holdings_.push_back({content::out, tensors_.out});
  }
  place_given();
  place_kept();
  const row_places& queries = share_.queries();
  const span heads = share_.heads();
  const std::int64_t width = is_gradient_ ? widths_.key : widths_.value;
  if (!share_.exchanges())
    result_ = is_gradient_ ? tensors_.dq : tensors_.out;
  else if (result_.data == nullptr)
    result_ = temporary(queries, heads, width, tensors_.q.type);
  sums_ = result_.type == f32 ? result_ : temporary(queries, heads, width, f32);
  has_any_.assign(core::at(queries.size()), false);
  is_written_.assign(core::at(queries.size()), result_.type == f32);
  const auto statistic = [&](float* given) {
    return given != nullptr ? given : static_cast<float*>(memory_.take(statistic_bytes(), 0));
  };
  statistics_ = {statistic(tensors_.max), statistic(tensors_.sum), queries.size(), heads};
  if (!is_gradient_) count_tasks();
}

void carried_pass::count_tasks() {
  tasks_left_.assign(has_any_.size(), 0);
  for (const attention_task& task : pass_->tasks[core::at(share_.rank())])
    for (const row_run& run : share_.queries().runs(task.queries))
      for (std::int64_t i = 0; i < run.count; ++i) ++tasks_left_[core::at(run.position + i)];
  for (const std::size_t message : share_.results(false)) {
    const block_message& m = pass_->messages[message];
    if (!m.part) continue;
    for (const row_run& run : share_.queries().runs(m.of))
      for (std::int64_t i = 0; i < run.count; ++i) ++tasks_left_[core::at(run.position + i)];
  }
}

// Finds keys and values in what the call of the layer that owns them has kept.
void carried_pass::place_given() {
  char* at = tensors_.given;
  for (const landing& one : share_.given()) {
    const row_store made =
        dense_store(at, one.places, one.heads, widths_.of(one.what), tensors_.q.type);
    at += dense_bytes(call_.batch, one.places.size(), one.heads, made.width, made.type);
    if (is_of_keys(one.what)) holdings_.push_back({one.what, made});
  }
}

// Places the forward's stores in `kept`: written by the forward, read by the gradient.
void carried_pass::place_kept() {
  const std::vector<landing>& all = share_.landings(false);
  kept_.resize(all.size());
  char* at = tensors_.kept;
  if (at == nullptr && !is_gradient_) return;  // null in the gradient if nothing was kept
  const ops::element_type type = tensors_.q.type;
  const auto next = [&](const row_places& places, span heads, std::int64_t width) {
    const row_store made = dense_store(at, places, heads, width, type);
    at += dense_bytes(call_.batch, places.size(), heads, width, type);
    return made;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].kept) continue;
    kept_[i] = next(all[i].places, all[i].heads, widths_.of(all[i].what));
    if (is_gradient_) holdings_.push_back({all[i].what, kept_[i]});
  }
  if (!share_.exchanges()) return;
  const row_store out = next(share_.queries(), share_.heads(), widths_.value);
  if (is_gradient_)
    holdings_.push_back({content::out, out});
  else
    result_ = out;
}

// Messages that fill consecutive rows of what is kept arrive there and need no copy.
void carried_pass::offer_kept(block_carrier& by) const {
  const std::vector<landing>& all = share_.landings(false);
  if (is_gradient_ || call_.batch != 1) return;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const std::size_t message : all[i].messages)
      if (void* place = place_in(kept_[i], pass_->messages[message]); place != nullptr)
        by.offer(message, place);
}

// The place of a message's rows in a dense store of one sequence; nullptr where they are not
// consecutive there.
void* carried_pass::place_in(const row_store& store, const block_message& m) const {
  if (store.data == nullptr || !(store.heads == m.heads) || m.statistics > 0) return nullptr;
  const std::vector<row_run> runs = store.places->runs(m.of);
  std::int64_t end = runs.empty() ? 0 : runs[0].position;
  for (const row_run& run : runs) {
    if (run.position != end) return nullptr;
    end += run.count;
  }
  return runs.empty() ? nullptr : store.at(0, runs[0].position, store.heads.begin);
}

const row_store& carried_pass::own_of(content what) const {
  return what == content::q   ? tensors_.q
         : what == content::k ? tensors_.k
         : what == content::v ? tensors_.v
                              : tensors_.dout;
}

const row_store& carried_pass::find(content what, const rows& of, span heads) const {
  for (auto one = holdings_.rbegin(); one != holdings_.rend(); ++one)
    if (one->what == what && one->store.has(of, heads)) return one->store;
  core::fail(VELO_ERR_INTERNAL, "plan",
             core::concat("rows of a task or message of rank ", share_.rank(), " in step ", step_),
             core::concat("none"));
}

carried_pass::key_sums* carried_pass::find_sums(content what, const rows& of, span heads) {
  for (key_sums& one : key_sums_)
    if (one.what == what && one.store.has(of, heads)) return &one;
  return nullptr;
}

carried_pass::key_sums& carried_pass::sums_of(content what, const rows& of, span heads) {
  for (key_sums& one : key_sums_)
    if (one.what == what && one.store.heads == heads && one.store.places->list() == of) return one;
  places_.emplace_back(of);
  key_sums_.push_back({what, temporary(places_.back(), heads, widths_.of(what), f32)});
  return key_sums_.back();
}

// The sums to which a message of dk or dv is added. Where the receiver gathered all heads of keys,
// it has begun sums of more heads than the message. In an adaptive plan it holds the sums of its
// whole block of keys, and the message has some rows of it.
carried_pass::key_sums& carried_pass::sums_that_take(const block_message& m) {
  if (!share_.plan().adaptive) {
    key_sums* const begun = find_sums(m.what, m.of, m.heads);
    return begun != nullptr ? *begun : sums_of(m.what, m.of, m.heads);
  }
  const row_store& keys = find(content::k, m.of, m.heads);
  return sums_of(m.what, keys.places->list(), keys.heads);
}

// Begins sums by setting all rows to 0 but those that the caller writes next.
void carried_pass::begin(key_sums& sums, const row_run& written, core::execution& turn) {
  if (sums.is_begun) return;
  sums.is_begun = true;
  const std::int64_t end = written.position + written.count;
  clear(sums.store, {0, written.position}, call_.batch, turn);
  clear(sums.store, {end, sums.store.places->size()}, call_.batch, turn);
}

// ---- what arrives ----

void carried_pass::arrive(block_carrier& by) {
  const std::vector<landing>& all = share_.landings(is_gradient_);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].needed == step_) land(all[i], is_gradient_ ? row_store() : kept_[i], by);
  for (const std::size_t i : share_.results(is_gradient_))
    if (pass_->messages[i].needed == step_) take(pass_->messages[i], by.received(i), by);
}

// kept: the store that the gradient needs again; without memory if there is none.
void carried_pass::land(const landing& one, const row_store& kept, block_carrier& by) {
  if (one.comes_as_one() && kept.data == nullptr)
    return holdings_.push_back({one.what, by.received(one.messages[0])});
  const ops::element_type type = tensors_.q.type;
  const std::int64_t numbers = pass_->messages[one.messages[0]].statistics,
                     width = widths_.of(one.what) + elements_of(numbers, type);
  const row_store to = kept.data != nullptr ? kept : temporary(one.places, one.heads, width, type);
  if (one.remote) memory_.free(to.data, step_ + 1);
  const auto copy = [&](const row_store& from, const rows& of) {
    in_turn(on_, [&](core::execution& turn) {
      block_carrier::access access;
      by.begin_access(access);
      copy_rows(from, to, {call_.batch, of, one.heads}, turn);
    });
  };
  if (one.with_own) copy(own_of(one.what), share_.held().list());
  for (const std::size_t message : one.messages) {
    const row_store from = by.received(message);
    if (from.data != place_in(to, pass_->messages[message]))
      copy(from, pass_->messages[message].of);
  }
  holdings_.push_back({one.what, without_numbers(to, numbers)});
}

// Copies a result, or adds a part of a result to its sums. At the end the sums may have more rows
// and heads than the part.
void carried_pass::take(const block_message& m, const row_store& from, block_carrier& by) {
  if (m.part) return take_part(m, from, by);
  const rows_of_heads which{call_.batch, m.of, m.heads};
  key_sums* sums = nullptr;
  if (is_sum_of_keys(m.what)) {
    sums = step_ == pass_->steps ? find_sums(m.what, m.of, m.heads) : nullptr;
    if (sums == nullptr) sums = &sums_that_take(m);
  }
  in_turn(on_, [&](core::execution& turn) {
    block_carrier::access access;
    by.begin_access(access);
    if (sums == nullptr)
      return copy_rows(from, m.what == content::out ? tensors_.out : tensors_.dq, which, turn);
    if (sums->is_begun) return add_rows(from, sums->store, which, turn);
    if (!sums->store.is_exactly(m.of, m.heads, call_.batch)) begin(*sums, {0, 0, 0}, turn);
    sums->is_begun = true;
    copy_rows(from, sums->store, which, turn);
  });
}

// ---- what is sent ----

void carried_pass::send(block_carrier& by) {
  const message_range sent = pass_->sent_in(step_);
  for (std::size_t i = sent.begin; i < sent.end; ++i) {
    const block_message& m = pass_->messages[i];
    if (m.from == share_.rank()) by.send(i, source_of(m, by));
  }
  by.start_sent();
}

// The store in which a message lies. Sums of keys that go as a whole are forgotten here.
row_store carried_pass::source_of(const block_message& m, block_carrier& by) {
  if (m.part) return computed_part_of(m);
  if (m.what == content::dout && m.remote) return remote_gradient_of(m);
  if (m.what == content::out || m.what == content::dq) {
    complete_queries(by);
    return result_;
  }
  if (!is_sum_of_keys(m.what)) return find(m.what, m.of, m.heads);
  key_sums* sums = find_sums(m.what, m.of, m.heads);
  if (sums == nullptr) sums = &sums_of(m.what, m.of, m.heads);
  if (!sums->is_begun) in_turn(on_, [&](core::execution& turn) { begin(*sums, {0, 0, 0}, turn); });
  const row_store from = sums->store;
  if (from.is_exactly(m.of, m.heads, call_.batch)) {
    memory_.free(from.data, m.needed + 1);
    key_sums_.erase(std::find_if(key_sums_.begin(), key_sums_.end(),
                                 [&](const key_sums& one) { return one.store.data == from.data; }));
  }
  return from;
}

// ---- what is computed ----

void carried_pass::compute(block_carrier& by) {
  const std::vector<attention_task>& all = pass_->tasks[core::at(share_.rank())];
  auto task = std::lower_bound(all.begin(), all.end(), step_,
                               [](const attention_task& t, std::int64_t s) { return t.step < s; });
  for (; task != all.end() && task->step == step_; ++task)
    if (is_remote(*task))
      is_gradient_ ? add_gradients_of_remote(*task, by) : attend_to_remote(*task, by);
    else
      is_gradient_ ? add_gradients_of(*task, by) : add_parts_of(*task);
  if (!by.is_in_place()) attend_to_parts(by);
}

void carried_pass::add_parts_of(const attention_task& task) {
  const span key_heads = share_.shape().heads.keys_of(task.heads);
  const row_store& k = find(content::k, task.keys, key_heads);
  const row_store& v = find(content::v, task.keys, key_heads);
  const row_store& q = find(content::q, task.queries, task.heads);
  const std::vector<attention_part> parts =
      parts_of(task, call_, share_.queries(), *k.places, share_.shape());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const row_run& run = parts[i].queries;
    const row_store before = goes_on(run) ? sums_ : row_store();
    const bool ends = is_last(parts, i);
    if (ends) std::fill_n(is_written_.begin() + run.position, run.count, true);
    waiting_.push_back(
        {parts[i], task.heads, {q, k, v, before, ends ? result_ : sums_, statistics_}});
  }
  for (const row_run& run : share_.queries().runs(task.queries))
    for (std::int64_t i = 0; i < run.count; ++i) --tasks_left_[core::at(run.position + i)];
}

// The number of key heads whose queries have sums of some 512 KB a thread.
std::int64_t carried_pass::key_heads_at_once() const {
  constexpr std::int64_t cached = 512 << 10;
  std::int64_t threads = 1;
  in_turn(on_, [&](core::execution& turn) { threads = turn.threads.threads(); });
  const std::int64_t each = call_.batch * share_.queries().size() * call_.heads_each * sums_.width *
                            std::int64_t{sizeof(float)};
  return std::max<std::int64_t>(threads * cached / std::max<std::int64_t>(each, 1), threads);
}

void carried_pass::attend_to_parts(block_carrier& by) {
  if (waiting_.empty()) return;
  const std::int64_t at_once = key_heads_at_once() * call_.heads_each;
  const span all = share_.heads();
  for (std::int64_t first = all.begin / call_.heads_each * call_.heads_each; first < all.end;
       first += at_once)
    for (const waiting_part& one : waiting_) {
      const span heads{std::max(first, one.heads.begin), std::min(first + at_once, one.heads.end)};
      if (heads.empty()) continue;
      in_turn(on_, [&](core::execution& turn) {
        block_carrier::access access;
        by.begin_access(access);
        attend(one.part, heads, call_, one.in, turn);
      });
    }
  waiting_.clear();
}

// Whether a part goes on from earlier sums: some of its rows have them, and the others get 0. If
// none has, the part begins the sums of all its rows.
bool carried_pass::goes_on(const row_run& run) {
  const auto begin = has_any_.begin() + run.position, end = begin + run.count;
  if (std::find(begin, end, true) != end) {
    fill_rows(run.position, run.position + run.count);
    return true;
  }
  std::fill(begin, end, true);
  return false;
}

// Whether a part is the last one of its rows. Parts of the same rows follow each other.
bool carried_pass::is_last(const std::vector<attention_part>& parts, std::size_t index) const {
  const row_run& run = parts[index].queries;
  if (index + 1 < parts.size() && parts[index + 1].queries.position == run.position) return false;
  const auto begin = tasks_left_.begin() + run.position;
  return std::all_of(begin, begin + run.count, [](int left) { return left == 1; });
}

// Rows without any key have results of 0.
void carried_pass::fill_rows(std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    if (has_any_[core::at(row)]) continue;
    has_any_[core::at(row)] = true;
    for (std::int64_t batch = 0; batch < call_.batch; ++batch)
      for (std::int64_t head = share_.heads().begin; head < share_.heads().end; ++head) {
        std::fill_n(reinterpret_cast<float*>(sums_.at(batch, row, head)), sums_.width, 0.0f);
        const std::int64_t at = statistics_.place(batch, head, row);
        if (!is_gradient_) statistics_.max[at] = -FLT_MAX, statistics_.sum[at] = 0;
      }
  }
}

void carried_pass::add_gradients_of(const attention_task& task, block_carrier& by) {
  const span key_heads = share_.shape().heads.keys_of(task.heads);
  const row_store& k = find(content::k, task.keys, key_heads);
  const row_store dk = sums_of(content::dk, k.places->list(), k.heads).store;
  const row_store dv = sums_of(content::dv, k.places->list(), k.heads).store;
  gradient_stores in{find(content::q, task.queries, task.heads),
                     k,
                     find(content::v, task.keys, key_heads),
                     find(content::dout, task.queries, task.heads),
                     find(content::out, task.queries, task.heads),
                     sums_,
                     dk,
                     dv,
                     statistics_,
                     false,
                     false};
  for (const attention_part& part :
       parts_of(task, call_, share_.queries(), *k.places, share_.shape())) {
    in.adds_queries = goes_on(part.queries);
    add_part_gradients(part, task, in, by);
  }
}

void carried_pass::add_part_gradients(const attention_part& part, const attention_task& task,
                                      gradient_stores& in, block_carrier& by) {
  key_sums& dk = sums_of(content::dk, in.k.places->list(), in.k.heads);
  key_sums& dv = sums_of(content::dv, in.k.places->list(), in.k.heads);
  const span key_heads = share_.shape().heads.keys_of(task.heads);
  in.adds_keys = dk.is_begun || dv.is_begun || !(key_heads == in.k.heads);
  const row_run written = in.adds_keys ? row_run{0, 0, 0} : part.keys;
  in_turn(on_, [&](core::execution& turn) {
    begin(dk, written, turn);
    begin(dv, written, turn);
    block_carrier::access access;
    by.begin_access(access);
    add_gradients(part, task.heads, call_, in, turn);
  });
}

// ---- results ----

// Ends the sums of queries, and rounds the rows that no part has written to the result.
void carried_pass::complete_queries(block_carrier& by) {
  if (is_complete_) return;
  attend_to_parts(by);
  is_complete_ = true;
  fill_rows(0, share_.queries().size());
  rows left;
  std::int64_t position = 0;
  for (const span& s : share_.queries().list())
    for (std::int64_t row = s.begin; row < s.end; ++row, ++position)
      if (!is_written_[core::at(position)]) append(left, {row, row + 1});
  in_turn(on_, [&](core::execution& turn) {
    copy_rows(sums_, result_, {call_.batch, left, share_.heads()}, turn);
  });
}

void carried_pass::finish_results(block_carrier& by) {
  complete_queries(by);
  if (share_.exchanges())
    in_turn(on_, [&](core::execution& turn) {
      copy_rows(result_, is_gradient_ ? tensors_.dq : tensors_.out,
                {call_.batch, share_.held().list(), share_.heads()}, turn);
    });
  if (!is_gradient_) return;
  finish_keys(content::dk, tensors_.dk);
  finish_keys(content::dv, tensors_.dv);
}

// Sums what this rank has of its own rows into the result.
void carried_pass::finish_keys(content what, const row_store& to) {
  const rows& held = share_.held().list();
  std::vector<row_store> parts;
  for (const key_sums& one : key_sums_)
    if (one.what == what && one.is_begun && one.store.places->has_some(held))
      parts.push_back(one.store);
  const bool is_one = parts.size() == 1 && parts[0].has(held, to.heads);
  const row_store sum = is_one           ? parts[0]
                        : to.type == f32 ? to
                                         : temporary(share_.held(), to.heads, to.width, f32);
  in_turn(on_, [&](core::execution& turn) {
    const rows_of_heads all{call_.batch, held, to.heads};
    if (!is_one) {
      clear(sum, {0, share_.held().size()}, call_.batch, turn);
      for (const row_store& part : parts) add_rows(part, sum, all, turn);
    }
    if (sum.data != to.data) copy_rows(sum, to, all, turn);
  });
}

}  // namespace velo::sched
