// One action of a rank, and its text.
//
// An action is velo_action itself, 20 bytes: the library computes with what callers get. Its text
// is PyTorch's where PyTorch has one: 2F0, 3SEND_B1, 1UNSHARD, (0F7;7B3)OVERLAP_F_B. Other actions
// have texts of the same form: 2RECOMPUTE0, 2OFFLOAD0, 2RELOAD0, 1OPTIMIZER.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "velo/schedule.h"

namespace velo::sched {

using action = velo_action;
inline constexpr velo_action_kind last_kind = VELO_ACTION_OPTIMIZER;

inline action make_action(velo_action_kind kind, std::int32_t stage, std::int32_t microbatch) {
  return {kind, stage, microbatch, -1, -1};
}
inline action fused(std::int32_t stage, std::int32_t microbatch, std::int32_t other_stage,
                    std::int32_t other_microbatch) {
  return {VELO_ACTION_FB, stage, microbatch, other_stage, other_microbatch};
}

inline bool has_forward(velo_action_kind kind) {
  return kind == VELO_ACTION_F || kind == VELO_ACTION_FB;
}
// Whether an action of the kind occupies the rank. Messages and copies run beside it.
inline bool computes(velo_action_kind kind) {
  return kind == VELO_ACTION_F || kind == VELO_ACTION_I || kind == VELO_ACTION_W ||
         kind == VELO_ACTION_B || kind == VELO_ACTION_FB || kind == VELO_ACTION_RECOMPUTE ||
         kind == VELO_ACTION_OPTIMIZER;
}
inline bool copies(velo_action_kind kind) {
  return kind == VELO_ACTION_OFFLOAD || kind == VELO_ACTION_RELOAD;
}
// Whether the action releases the activations of its stage and micro-batch; an FB releases those of
// its B.
inline bool releases(velo_action_kind kind) {
  return kind == VELO_ACTION_W || kind == VELO_ACTION_B || kind == VELO_ACTION_FB;
}
// Whether the action makes the gradient that the previous stage needs.
inline bool has_gradient(velo_action_kind kind) {
  return kind == VELO_ACTION_I || kind == VELO_ACTION_B || kind == VELO_ACTION_FB;
}
inline bool communicates(velo_action_kind kind) {
  return kind >= VELO_ACTION_SEND_F && kind <= VELO_ACTION_RECV_B;
}
inline bool is_send(velo_action_kind kind) {
  return kind == VELO_ACTION_SEND_F || kind == VELO_ACTION_SEND_B;
}
// Whether the action concerns a whole stage and no micro-batch.
inline bool of_stage(velo_action_kind kind) {
  return kind == VELO_ACTION_UNSHARD || kind == VELO_ACTION_RESHARD ||
         kind == VELO_ACTION_REDUCE_GRAD || kind == VELO_ACTION_OPTIMIZER;
}

// Sets of kinds.
using kind_set = std::uint32_t;
constexpr kind_set set_of(velo_action_kind kind) {
  return kind_set{1} << kind;
}

inline bool same(const action& a, const action& b) {
  return a.kind == b.kind && a.stage == b.stage && a.microbatch == b.microbatch &&
         a.other_stage == b.other_stage && a.other_microbatch == b.other_microbatch;
}

// The largest number of a stage or micro-batch.
inline constexpr std::int32_t most_index = (1 << 24) - 1;

void append(std::string& to, const action& a);
std::string text_of(const action& a);

// Reads an action from a text without surrounding spaces; returns false if the text is not an
// action.
bool parse(std::string_view text, action& into);

}  // namespace velo::sched
