// Texts of actions: a stage, a name, a micro-batch; two of them in parentheses for an FB.
#include "sched/schedule/action.hpp"

#include <charconv>

namespace velo::sched {
namespace {

struct name_row {
  velo_action_kind kind;
  std::string_view name;
};
// A longer name precedes the names that are its beginnings. FB has a form of its own.
constexpr name_row names[] = {{VELO_ACTION_F, "F"},
                              {VELO_ACTION_I, "I"},
                              {VELO_ACTION_W, "W"},
                              {VELO_ACTION_B, "B"},
                              {VELO_ACTION_UNSHARD, "UNSHARD"},
                              {VELO_ACTION_RESHARD, "RESHARD"},
                              {VELO_ACTION_SEND_F, "SEND_F"},
                              {VELO_ACTION_RECV_F, "RECV_F"},
                              {VELO_ACTION_SEND_B, "SEND_B"},
                              {VELO_ACTION_RECV_B, "RECV_B"},
                              {VELO_ACTION_REDUCE_GRAD, "REDUCE_GRAD"},
                              {VELO_ACTION_RECOMPUTE, "RECOMPUTE"},
                              {VELO_ACTION_OFFLOAD, "OFFLOAD"},
                              {VELO_ACTION_RELOAD, "RELOAD"},
                              {VELO_ACTION_OPTIMIZER, "OPTIMIZER"}};
constexpr std::string_view overlap = "OVERLAP_F_B";

std::string_view name_of(velo_action_kind kind) {
  for (const name_row& row : names)
    if (row.kind == kind) return row.name;
  return "?";
}

void append_number(std::string& to, std::int32_t number) {
  char digits[16];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_plain(std::string& to, velo_action_kind kind, std::int32_t stage,
                  std::int32_t microbatch) {
  append_number(to, stage);
  to += name_of(kind);
  if (microbatch >= 0) append_number(to, microbatch);
}

// Takes a number from the front of the text.
bool take_number(std::string_view& text, std::int32_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-' || number > most_index) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

bool parse_plain(std::string_view text, action& into) {
  std::int32_t stage = 0;
  if (text.empty() || !take_number(text, stage)) return false;
  const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
  const std::string_view name = text.substr(0, letters);
  text.remove_prefix(letters);
  for (const name_row& row : names) {
    if (row.name != name) continue;
    std::int32_t microbatch = -1;
    if (of_stage(row.kind) != text.empty()) return false;
    if (!text.empty() && (!take_number(text, microbatch) || !text.empty())) return false;
    into = make_action(row.kind, stage, microbatch);
    return true;
  }
  return false;
}

// The text in parentheses before `overlap`: (F;B).
bool parse_fused(std::string_view text, action& into) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  text = text.substr(1, text.size() - 2);
  const std::size_t middle = text.find(';');
  if (middle == std::string_view::npos) return false;
  action forward{}, backward{};
  if (!parse_plain(text.substr(0, middle), forward) ||
      !parse_plain(text.substr(middle + 1), backward))
    return false;
  if (forward.kind != VELO_ACTION_F || backward.kind != VELO_ACTION_B) return false;
  into = fused(forward.stage, forward.microbatch, backward.stage, backward.microbatch);
  return true;
}

}  // namespace

void append(std::string& to, const action& a) {
  if (a.kind != VELO_ACTION_FB) return append_plain(to, a.kind, a.stage, a.microbatch);
  to += '(';
  append_plain(to, VELO_ACTION_F, a.stage, a.microbatch);
  to += ';';
  append_plain(to, VELO_ACTION_B, a.other_stage, a.other_microbatch);
  to += ')';
  to += overlap;
}

std::string text_of(const action& a) {
  std::string text;
  append(text, a);
  return text;
}

bool parse(std::string_view text, action& into) {
  if (text.empty() || text.front() != '(') return parse_plain(text, into);
  if (text.size() < overlap.size() || text.substr(text.size() - overlap.size()) != overlap)
    return false;
  return parse_fused(text.substr(0, text.size() - overlap.size()), into);
}

}  // namespace velo::sched
