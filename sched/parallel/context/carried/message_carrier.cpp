// The carrier that sends: messages of a step start with the step and end with the next step.
//
// A rank receives the messages of a step when it begins the next step, whether the next or a later
// step needs them. So all ranks end the same messages between the same two steps, and ranks do not
// wait for each other in a circle. Where the transport starts messages, they move while the step
// computes.
#include "core/index.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "sched/overlap/product.hpp"
#include "sched/parallel/context/carried/block_carrier.hpp"

namespace velo::sched {
namespace {

class message_carrier final : public block_carrier {
 public:
  message_carrier(const carried_messages& of, const comm::operation& what, comm::transport& link,
                  step_memory& memory, core::execution& on)
      : of_(of),
        what_(what),
        link_(link),
        memory_(memory),
        on_(on),
        arrived_(of.pass.messages.size()),
        offered_(of.pass.messages.size()),
        places_(of.pass.messages.size()) {}

  void begin(std::int64_t step) override {
    if (step == 0) return agree();
    finish_step(step - 1);
  }

  void send(std::size_t message, const row_store& from) override {
    const block_message& m = of_.pass.messages[message];
    const std::int64_t rows_of_it = size_of(m.of);
    char* data = from.is_exactly(m.of, m.heads, of_.batch) ? from.data : packed(m, from);
    sent_.push_back(message_of(m, data, rows_of_it, false));
  }

  void start_sent() override {
    if (!link_.starts_messages() || sent_.empty()) return;
    comm::message_batch batch = batch_of(std::move(sent_));
    sent_.clear();
    batch.awaited = comm::awaited::nothing;
    link_.run_messages(batch, on_);
    has_started_ = true;
  }

  void offer(std::size_t message, void* memory) override { offered_[message] = memory; }
  row_store received(std::size_t message) override { return arrived_[message]; }
  void end() override {}
  bool is_in_place() const override { return false; }

 private:
  void agree() {
    comm::operation begin = what_;
    begin.in_blocks.assign(core::at(of_.ranks), {0, 0});
    begin.out_blocks = begin.in_blocks;
    link_.run(begin, on_);
  }

  comm::message_batch batch_of(std::vector<comm::message> messages) const {
    comm::message_batch batch;
    batch.terms.kind = comm::other_call::exchange;
    batch.function = what_.function;
    batch.messages = std::move(messages);
    return batch;
  }

  // Receives what was sent to this rank in a step, and ends what it sent.
  void finish_step(std::int64_t step) {
    comm::message_batch batch = batch_of(std::move(sent_));
    sent_.clear();
    const message_range all = of_.pass.sent_in(step);
    for (std::size_t i = all.begin; i < all.end; ++i)
      if (of_.pass.messages[i].to == of_.rank) batch.messages.push_back(expect(i, step + 1));
    if (batch.messages.empty() && !has_started_) return;
    has_started_ = false;
    batch.awaited = link_.starts_messages() ? comm::awaited::all : comm::awaited::own;
    link_.run_messages(batch, on_);
  }

  // Keys, values and their gradients are last used in the step that needs them, which may send them
  // on; so are remote queries and parts of results. Other contents are used until the end.
  comm::message expect(std::size_t index, std::int64_t now) {
    const block_message& m = of_.pass.messages[index];
    const std::int64_t rows_of_it = size_of(m.of);
    void* memory = offered_[index];
    if (memory == nullptr)
      memory = memory_.take(
          bytes_of(m, rows_of_it), now,
          is_of_keys(m.what) || m.remote || m.part ? m.needed + 2 : step_memory::to_the_end);
    places_[index] = std::make_unique<row_places>(m.of);
    arrived_[index] =
        dense_store(memory, *places_[index], m.heads, of_.width_of(m), of_.type_of(m));
    return message_of(m, arrived_[index].data, rows_of_it, true);
  }

  std::size_t bytes_of(const block_message& m, std::int64_t rows_of_it) const {
    return dense_bytes(of_.batch, rows_of_it, m.heads, of_.width_of(m), of_.type_of(m));
  }

  char* packed(const block_message& m, const row_store& from) {
    const row_places places(m.of);
    const row_store to = dense_store(memory_.take(bytes_of(m, places.size()), m.step, m.step + 2),
                                     places, m.heads, from.width, from.type);
    in_turn(on_, [&](core::execution& turn) {
      copy_rows(from, to, {of_.batch, m.of, m.heads}, turn);
    });
    return to.data;
  }

  comm::message message_of(const block_message& m, char* data, std::int64_t rows_of_it,
                           bool receives) const {
    comm::message made;
    made.data = data;
    made.bytes = static_cast<std::int64_t>(bytes_of(m, rows_of_it));
    made.peer = static_cast<int>(receives ? m.from : m.to);
    made.receives = receives;
    made.terms.kind = receives ? comm::other_call::receive : comm::other_call::send;
    const velo_dtype dtype = ops::dtype_of(of_.type_of(m));
    made.terms.in_code = made.terms.out_code = dtype.code;
    made.terms.in_bits = made.terms.out_bits = dtype.bits;
    made.terms.count = made.bytes / (dtype.bits / 8);
    made.terms.root = static_cast<std::uint16_t>(made.peer);
    return made;
  }

  const carried_messages of_;
  const comm::operation& what_;
  comm::transport& link_;
  step_memory& memory_;
  core::execution& on_;
  bool has_started_ = false;         // messages of the step
  std::vector<comm::message> sent_;  // of the step, not started
  std::vector<row_store> arrived_;   // by message
  std::vector<void*> offered_;       // by message, or null
  std::vector<std::unique_ptr<row_places>> places_;
};

}  // namespace

std::unique_ptr<block_carrier> make_message_carrier(const carried_messages& of,
                                                    const comm::operation& what,
                                                    comm::transport& link, step_memory& memory,
                                                    core::execution& on) {
  return std::make_unique<message_carrier>(of, what, link, memory, on);
}

}  // namespace velo::sched
