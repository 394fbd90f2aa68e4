/* Streams and events: the order of work.
 *
 * A stream runs its calls one after another. The context's inline stream does so on the calling
 * thread; a created stream has a worker, and its calls return as soon as they are queued (arguments
 * are checked first, and copied; tensor data is not). Events order streams: record one after the
 * work to wait for, let another stream or the host wait for it.
 *
 * A failure of queued work is kept on the stream: velo_stream_synchronize and every later call on
 * the stream return it, with its record, until velo_stream_clear. Streams of one context take turns
 * on its thread pool.
 *
 * A queue has an end: a call that would queue more than the key `queue` allows is refused with
 * VELO_ERR_FULL, nothing queued and nothing waited for, since the caller may be who the queued work
 * waits for. A host that runs that far ahead synchronizes and calls again.
 */
#ifndef VELO_STREAM_H
#define VELO_STREAM_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Creates a stream with a worker of its own; destroy it with velo_stream_destroy.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_stream_create(velo_context context, velo_stream* stream);

/* Finishes the queued work, then frees the stream. NULL is ignored, and so are (with a log line)
 * the inline stream and a call from inside its own work, or work that others wait for (types.h).
 * Thread class: per-handle. */
VELO_API void velo_stream_destroy(velo_stream stream);

/* Waits until all work queued so far is done and returns the first failure the stream holds, if
 * any; the codes behind STATE are such failures.
 * Thread class: any. Errors: NULL, HANDLE, STATE (called by the stream's own work; while it is not
 * done, by work that it waits for), ARGUMENT (an index out of its range), MEMORY, IO, PEER,
 * FOREIGN, INTERNAL. */
VELO_API velo_status velo_stream_synchronize(velo_stream stream);

/* *done = 1 when no work is queued or running, else 0.
 * Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_stream_query(velo_stream stream, int32_t* done);

/* Forgets the stream's failure and drops nothing else: work queued after the failure was never run.
 * Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_stream_clear(velo_stream stream);

/* Lets all later work of `stream` wait for the event's last record. On the inline stream the
 * caller waits.
 * Thread class: any. Errors: NULL, HANDLE, STATE (never recorded; as of velo_event_synchronize),
 * MEMORY. */
VELO_API velo_status velo_stream_wait(velo_stream stream, velo_event event);

/* Creates an event of a context, not yet recorded; destroy it with velo_event_destroy.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_event_create(velo_context context, velo_event* event);

/* Frees an event; work that waits for it is not disturbed. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_event_destroy(velo_event event);

/* Marks the point the stream has reached. A later record replaces an earlier one.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_event_record(velo_event event, velo_stream stream);

/* Waits on the calling thread until the recorded point has passed. timeout_ns < 0 waits for ever.
 * Thread class: any. Errors: NULL, HANDLE, STATE (never recorded; for ever, by work that the
 * event's stream may wait for), TIMEOUT. */
VELO_API velo_status velo_event_synchronize(velo_event event, int64_t timeout_ns);

/* *done = 1 when the recorded point has passed, else 0.
 * Thread class: any. Errors: NULL, HANDLE, STATE (never recorded). */
VELO_API velo_status velo_event_query(velo_event event, int32_t* done);

VELO_END_C

#endif
