/* libvelo_adapters.so: velo's operators in the calling conventions of frameworks that have never
 * heard of velo. It needs libvelo.so beside it and nothing else; no framework's header.
 *
 * - MindSpore, ops.Custom(.., func_type="aot"): velo_ms_<op>, and velo_ms_slot_000 .. _127 for
 * calls with attributes (mindspore.cpp has the rules)
 * - JAX and XLA, jax.ffi: velo_xla_<op> (xla.cpp)
 * - tvm-ffi: __tvm_ffi_velo_<op> (tvm.cpp)
 * - hosts that take bare C function pointers: velo_closure_create of velo/plugin.h
 *
 * Every entry runs on the inline stream of one context: the one the host gave, else one the
 * adapters create at the first call and keep. XLA's entries use a context of their own that runs on
 * XLA's threads, unless the host gave one. A context belongs to the process that made it: in a
 * forked child the entries fail with VELO_ERR_STATE until the child gives a context of its own.
 * Loading the library does nothing; it stays mapped after dlclose, as libvelo.so does.
 */
#ifndef VELO_ADAPTERS_H
#define VELO_ADAPTERS_H

#include <stdint.h>

#include "velo/context.h"
#include "velo/export.h"
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

/* Frees a slot. Errors: ARGUMENT (slot). Thread class: no call may use the slot at the same time.
 */
VELO_API velo_status velo_ms_slot_release(int32_t slot);

VELO_END_C

#endif
