/* libvelo_adapters.so: velo's operators in the calling conventions of frameworks that have never
 * heard of velo. It needs libvelo.so beside it and nothing else; no framework's header.
 *
 * - MindSpore, ops.Custom(.., func_type="aot"): velo_ms_<op>, and velo_ms_slot_000 .. _127 for
 * calls with attributes (mindspore.cpp has the rules)
 * - JAX and XLA, jax.ffi: velo_xla_<op> (xla.cpp)
 * - tvm-ffi: __tvm_ffi_velo_<op> (tvm.cpp)
 * - torch 2.9 and later: velo_torch_register puts every operator into torch's dispatcher
 *   (torch.cpp)
 * - hosts that take bare C function pointers: velo_closure_create of velo/plugin.h
 *
 * Every entry runs on the inline stream of one context: the one the host gave, else one the
 * adapters create at the first call and keep. XLA's and torch's use one of their own that runs on
 * XLA's or torch's threads, unless the host gave one. A context belongs to the process that made
 * it: in a forked child the entries fail with VELO_ERR_STATE until the child gives a context of its
 * own. Loading the library does nothing; it stays mapped after dlclose, as libvelo.so does.
 */
#ifndef VELO_ADAPTERS_H
#define VELO_ADAPTERS_H

#include <stdint.h>

#include "velo/context.h"
#include "velo/export.h"
#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The context that entries use from the next call on: the host's thread pool, allocator, log and
 * configuration. NULL goes back to the adapters' own. The context stays the host's, and has to live
 * until it is replaced and the calls on it have returned. Thread class: any. */
VELO_API velo_status velo_adapters_set_context(velo_context context);

/* The context entries use now; created when there is none yet. Not to be destroyed by the caller.
 * Thread class: any. Errors: NULL, and velo_context_create's. */
VELO_API velo_status velo_adapters_context(velo_context* context);

/* Receives every failure of an entry as one line, level VELO_LOG_ERROR; NULL goes back to stderr,
 * where MindSpore's failures go by default (its users see a number otherwise; the other hosts raise
 * the text, and nothing is logged for them). Thread class: no entry may run at the same time. */
VELO_API velo_status velo_adapters_set_log(velo_log_fn log, void* user);

/* The text of the latest failure of any entry on any thread, empty when there was none: for hosts
 * that run an entry on a thread of theirs and pass on only a number. buffer is the caller's, always
 * zero-terminated; NULL with capacity 0 asks for the size in *needed. Thread class: any. */
VELO_API velo_status velo_adapters_last_error(char* buffer, uint64_t capacity, uint64_t* needed);

/* Binds an operator and its attributes to a slot, so that the symbol velo_ms_slot_<number> runs
 * them. slot: 0..127, or -1 for the slot that holds this binding already, else a free one.
 * attributes_json: an object, {"epsilon": 1e-5, "layout": "bsnd", "fields": "x,gamma->y"}; NULL for
 * none. A bound slot may be bound again while no call uses it. chosen: receives the slot's number;
 * may be NULL. Thread class: any. Errors: NULL (op), NOT_FOUND (operator, attribute), PARSE (JSON),
 * ARGUMENT (slot, kind), STATE (all 128 are bound); velo_adapters_last_error has the text. */
VELO_API velo_status velo_ms_slot_bind(int32_t slot, const char* op, const char* attributes_json,
                                       int32_t* chosen);

/* Infers the outputs of a bound slot from its inputs, both in the order of its `fields`,
 * which it must have. Of an input only shape and dtype are read; a size below 0 is not known yet,
 * and sizes of outputs that depend on it are -1. outputs: room for capacity. Thread class: no call
 * may bind or free the slot at the same time. Errors: NULL, ARGUMENT (slot, count, capacity), STATE
 * (a free slot), and whatever velo refuses; velo_adapters_last_error has the text. */
VELO_API velo_status velo_ms_slot_infer(int32_t slot, const velo_tensor* inputs, int64_t count,
                                        velo_shape* outputs, int64_t capacity);

/* Frees a slot. Thread class: no call may use the slot at the same time. Errors: ARGUMENT
 * (slot). */
VELO_API velo_status velo_ms_slot_release(int32_t slot);

/* Defines and implements every operator in the dispatcher of the torch that this process has
 * loaded: velo::<op> (required outputs as results), velo::<op>.full (all outputs) and
 * velo::<op>.out (outputs of the caller's), for CPU and meta tensors; torch_schema.hpp has the rule
 * that arguments follow. From Python: import torch, call this, use torch.ops.velo.rms_norm. A
 * second call does nothing; what was registered stays for as long as the process lives. torch 2.9
 * is the oldest that works; lists of integers (actual_seq_qlen) and torch's threads need 2.10.
 * Thread class: any. Errors: UNSUPPORTED (no torch in the process, an older one, one without a
 * function: the text names it), STATE (another copy of velo has registered its operators), MEMORY;
 * velo_adapters_last_error has the text. */
VELO_API velo_status velo_torch_register(void);

/* The context that the calling thread's calls from torch run in: the host's, where it gave one,
 * else the one on torch's threads, to be configured (velo_config_set) and looked at; with torch 2.9
 * the one for the number of threads torch is set to now. Not to be destroyed by the caller. Thread
 * class: any. Errors: NULL, STATE (before velo_torch_register), and velo_context_create's. */
VELO_API velo_status velo_torch_context(velo_context* context);

/* Puts velo's attention in the place of torch's own flash attention for the CPU, forward and
 * backward (aten::_scaled_dot_product_flash_attention_for_cpu, key CPU), so that
 * torch.nn.functional.scaled_dot_product_attention and everything above it runs on velo; 0 takes it
 * out again. What velo does not take (a mask, dropout, other dtypes than float32 and bfloat16,
 * heads above 512, a forked child) and what is too small to be worth it still goes to torch's
 * own kernel. Twice the same does nothing. torch warns once in a process that a kernel is
 * overridden. Thread class: any. Errors: STATE (before velo_torch_register, or torch refuses),
 * UNSUPPORTED (a torch without aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu and
 * its _backward), MEMORY; velo_adapters_last_error has the text. */
VELO_API velo_status velo_torch_attention(int32_t replace);

/* How many attentions (forward) of torch's velo has computed in this process. Thread class: any.
 * Errors: NULL. */
VELO_API velo_status velo_torch_attention_calls(uint64_t* calls);

VELO_END_C

#endif
