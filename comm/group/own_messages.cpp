// Matching of sends and receives of one rank.
#include "comm/group/own_messages.hpp"

#include <algorithm>
#include <cstring>

namespace velo::comm {
namespace {

void copy(const char* from, char* to, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void require_sent(const message& wanted, const terms* sent, int rank) {
  if (sent != nullptr && wanted.terms.has_elements_of(*sent)) return;
  fault why;
  why.kind = sent != nullptr ? fault::how::disagree : fault::how::dropped;
  why.terms = wanted.terms;
  if (sent != nullptr) why.other = *sent;
  if (sent == nullptr) core::copy_text(why.cause, sizeof why.cause, "it has sent itself nothing");
  why.culprits.add(rank);
  throw why;
}

}  // namespace

bool own_messages::has(const message_batch& what, int rank) noexcept {
  return std::any_of(what.messages.begin(), what.messages.end(),
                     [rank](const message& one) { return one.peer == rank; });
}

bool own_messages::has_others(const message_batch& what, int rank) noexcept {
  return std::any_of(what.messages.begin(), what.messages.end(),
                     [rank](const message& one) { return one.peer != rank; });
}

void own_messages::run(const message_batch& what, int rank) {
  const auto end = what.messages.end();
  auto next = what.messages.begin();  // send
  const auto find_send = [&] {
    next =
        std::find_if(next, end, [rank](const message& m) { return m.peer == rank && !m.receives; });
    return next != end ? &*next : nullptr;
  };
  for (const message& one : what.messages) {
    if (one.peer != rank || !one.receives) continue;
    const bool is_kept = !sent_.empty();
    const message* given = is_kept ? nullptr : find_send();
    const terms* const sent = is_kept            ? &sent_.front().terms
                              : given != nullptr ? &given->terms
                                                 : nullptr;
    require_sent(one, sent, rank);
    one.moved = one.bytes;
    if (one.borrows) continue;  // it lies in no block, and stays until it is received
    copy(is_kept ? sent_.front().bytes.data() : given->data, one.data, one.bytes);
    if (is_kept) sent_.pop_front();
    if (!is_kept) {
      given->moved = given->bytes;
      ++next;
    }
  }
  while (const message* one = find_send()) {
    sent_.push_back({one->terms, {one->data, one->data + one->bytes}});
    one->moved = one->bytes;
    ++next;
  }
}

}  // namespace velo::comm
