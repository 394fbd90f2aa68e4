// The explanation of a call before it is made: the algorithm that it will use, and its time
// predicted from the last measurement.
#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "comm/group/group.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "core/context.hpp"
#include "core/index.hpp"
#include "core/text/json_writer.hpp"

namespace velo::comm {
namespace {

constexpr const char* function = "velo_group_measure";

// The barrier that begins a measurement. No caller's barrier has its terms, so a mismatch is found.
operation measure_call() {
  operation what;
  what.function = function;
  what.terms.counts = terms::of_measure;
  return what;
}

using kinds = measured_times;

// The calls to measure, of every kind and size, and the memory that they need. All memory is
// allocated before the first call enters the group's order, since a later failure would end the
// group.
class measurement {
 public:
  measurement(core::context& owner, const transport& link)
      : rank_(link.rank()), ranks_(link.size()), isa_(owner.isa()), scratch_(owner.memory()) {
    const std::int64_t most = whole_of(kinds::sizes[kinds::points - 1]);
    in_.resize(static_cast<std::size_t>(most));
    out_.resize(static_cast<std::size_t>(most));
    took_.reserve(short_calls);
    moves_messages_ = has_messages(link);
    for (const call_kind kind : kinds::kinds)
      for (const std::int64_t bytes : kinds::sizes)
        if (kind == other_call::exchange)
          all_.emplace_back(messages_of(whole_of(bytes)));
        else
          all_.emplace_back(operation_of(kind, bytes));
    together_ = operation_of(collective::barrier, 0);
    agreed_ = operation_of(collective::all_reduce, 0);
    agreed_.terms.in_bits = agreed_.terms.out_bits = 64;
    agreed_.terms.reduction = VELO_REDUCE_MAX;
    agreed_.terms.count = agreed_.count = agreed_.out_count = kinds::count;
    agreed_.reducer.kernel = kernel_for(agreed_.terms, reductions_for(isa_));
    agreed_.in = agreed_.out = times_.begin();
  }

  // Returns the times of the slowest rank, equal on all ranks. count() runs before each collective.
  template <class Count>
  const measured_times& run(transport& link, core::execution& by, Count&& count) {
    core::execution state{by.context, by.stream,       by.threads, scratch_,
                          by.isa,     by.optimization, by.caches};
    const auto run_collective = [&](const operation& what) {
      count();
      link.run(what, state);
      scratch_.reset();
    };
    const auto run_one = [&](const measured_call& what) {
      if (const auto* one = std::get_if<operation>(&what)) return run_collective(*one);
      const auto& batch = *std::get_if<message_batch>(&what);
      batch.restart();
      link.run_messages(batch, state);
      scratch_.reset();
    };
    for (std::size_t i = 0; i < all_.size(); ++i) {
      double& seconds = times_.at(i / kinds::points, i % kinds::points);
      seconds = -1;
      if (std::holds_alternative<message_batch>(all_[i]) && !moves_messages_) continue;
      const int calls = kinds::sizes[i % kinds::points] < 1 << 20 ? short_calls : long_calls;
      took_.clear();
      for (int call = 0; call < calls; ++call) {
        run_collective(together_);
        const std::int64_t begin = now_ns();
        run_one(all_[i]);
        took_.push_back(static_cast<double>(now_ns() - begin) / 1e9);
      }
      std::nth_element(took_.begin(), took_.begin() + calls / 2, took_.end());
      seconds = took_[core::at(calls) / 2];
    }
    run_collective(agreed_);
    return times_;
  }

 private:
  using measured_call = std::variant<operation, message_batch>;
  static constexpr int short_calls = 15, long_calls = 5;  // calls for each median

  std::int64_t part_of(std::int64_t bytes) const {
    return std::max<std::int64_t>(bytes / 4 / ranks_, 1);
  }
  std::int64_t whole_of(std::int64_t bytes) const { return part_of(bytes) * ranks_; }

  operation operation_of(call_kind kind, std::int64_t bytes) {
    const std::int64_t part = part_of(bytes), whole = whole_of(bytes);
    const collective_traits& traits = kind.traits();
    const bool is_whole = traits.in == layout::whole && traits.out == layout::whole;
    const bool splits_result = traits.reduces && !is_whole;
    operation what;
    what.function = function;
    what.terms.kind = kind;
    what.terms.in_code = what.terms.out_code = VELO_DTYPE_FLOAT;
    what.terms.in_bits = what.terms.out_bits = 32;
    what.in = traits.root == root_role::gives ? out_.data() : in_.data();
    what.out = out_.data();
    what.set_count(is_whole ? whole : part);
    what.terms.count = splits_result ? whole : what.count;
    what.out_count = splits_result ? part : whole;
    what.terms.scale = traits.reduces ? 1 : 0;
    if (traits.reduces) what.reducer.kernel = kernel_for(what.terms, reductions_for(isa_));
    return what;
  }
  // One message to the next rank, and one from the previous rank.
  message_batch messages_of(std::int64_t count) {
    message_batch what;
    what.function = function;
    what.terms.kind = other_call::exchange;
    what.terms.in_code = what.terms.out_code = VELO_DTYPE_FLOAT;
    what.terms.in_bits = what.terms.out_bits = 32;
    what.terms.count = 2;
    for (const bool receives : {false, true}) {
      message one;
      one.data = reinterpret_cast<char*>(receives ? out_.data() : in_.data());
      one.bytes = 4 * count;
      one.peer = (rank_ + (receives ? ranks_ - 1 : 1)) % ranks_;
      one.receives = receives;
      one.terms = what.terms;
      one.terms.kind = receives ? other_call::receive : other_call::send;
      one.terms.count = count;
      one.terms.root = static_cast<std::uint16_t>(one.peer);
      what.messages.push_back(one);
    }
    return what;
  }
  // A single rank has no peer for messages, and a host transport may lack send and receive.
  static bool has_messages(const transport& link) {
    if (link.size() == 1) return false;
    try {
      link.require_messages();
      return true;
    } catch (const core::failure&) {
      return false;
    }
  }

  const int rank_, ranks_;
  const core::isa isa_;
  core::arena scratch_;
  std::vector<float> in_, out_;
  std::vector<double> took_;
  std::vector<measured_call> all_;  // kind by kind
  bool moves_messages_ = false;
  operation together_, agreed_;
  measured_times times_;
};

void write_number(core::json_writer& to, const char* name, bool is_known, double value) {
  to.key(name);
  if (is_known)
    to.value(static_cast<std::int64_t>(value));
  else
    to.null();
}

}  // namespace

struct group::measuring final : core::work {
  explicit measuring(group& home)
      : work(core::demand::waits),
        home(home),
        what(measure_call()),
        all(std::make_unique<measurement>(home.owner_, *home.link_)) {
    function = what.function;
  }
  void run(core::execution& state) override {
    home.serve(place, what, [&](transport& link, core::arena&) {
      link.run(what, state);
      home.keep(all->run(link, state, [this] { home.count_another(); }));
    });
  }
  void skip() noexcept override { home.drop(place, what); }

  group& home;
  const operation what;
  const std::unique_ptr<measurement> all;
  ticket place;
};

void group::measure(core::stream& on) {
  on.call(
      {core::demand::waits},
      [&](core::execution& state) {
        measuring one(*this);
        enter(on, one.place, one.what, [] {});
        one.run(state);
      },
      [&] { return on.make<measuring>(*this); },
      [&](measuring& piece, auto&& enqueue) {
        const request what = piece.what;  // a copy: the queue may free `piece` at once
        enter(on, piece.place, what, enqueue);
      });
}

void group::count_another() {
  const std::lock_guard<std::mutex> held(lock_);
  past_.count_another();
}

void group::keep(const measured_times& all) {
  const std::lock_guard<std::mutex> held(lock_);
  measured_ = all;
  measured_.settle();
  is_measured_ = true;
}

std::string group::explain(const operation& what) const {
  explanation all;
  link_->explain(what, all);
  return text_of(all, what, whole_bytes(what, size()));
}

std::string group::explain(const message_batch& what) const {
  explanation all;
  if (!what.messages.empty()) {
    const bool others = own_messages::has_others(what, rank());
    all.consider("copy", !others, others ? "messages are for other ranks" : "messages to itself");
  }
  if (!all.is_chosen("copy")) link_->explain_messages(what, all);
  return text_of(all, what, what.bytes);
}

std::string group::text_of(const explanation& all, const request& what, std::int64_t bytes) const {
  std::string json;
  core::json_writer to(json);
  to.object().member("operation", what.terms.text());
  to.member("transport", name_of(link_->kind())).member("bytes", bytes);
  to.key("ways").array();
  for (const candidate& one : all.algorithms) {
    to.object().member("name", one.name).member("chosen", one.chosen);
    to.member("reason", one.reason).end();
  }
  to.end().member("steps", all.steps).member("step_bytes", all.step_bytes);
  const std::lock_guard<std::mutex> held(lock_);
  const call_kind kind = what.terms.kind;
  const bool knows = is_measured_ && measured_.latency(kind) >= 0;
  write_number(to, "predicted_ns", knows, measured_.predict(kind, bytes) * 1e9);
  write_number(to, "latency_ns", knows, measured_.latency(kind) * 1e9);
  write_number(to, "bytes_per_second", knows, measured_.bandwidth(kind));
  to.end();
  return json;
}

}  // namespace velo::comm
