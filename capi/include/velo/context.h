/* The context: device, threads, memory, configuration, log. Everything velo knows about its host,
 * and nothing process-wide.
 *
 * A context owns a small fork-join pool (or borrows the host's parallel_for), an allocator, a
 * scratch arena and a set of configuration keys, each of which remembers where its value came from.
 * Creating one starts its threads; loading the library starts nothing. After fork the parent's
 * contexts are refused in the child with VELO_ERR_STATE.
 *
 * Configuration keys; velo_config_list enumerates them. VELO_<KEY> in the environment overrides
 * what code set, visibly; the name is the key in capitals with _ for each dot, so
 * VELO_KERNEL_RMS_NORM for kernel.rms_norm:
 * - threads: 0 = as many as the affinity mask and the cgroup quota allow
 * - isa: scalar | avx2 | avx512 | avx512_bf16 | amx; may only lower what the processor offers
 * - level: 0 reference kernels, no overlap; 1 fused kernels; 2 everything (default)
 * - kernel.<op>: the kernel to force for an operator, one that velo_op_describe lists; empty =
 *   choose; every operator has `reference`, the other names may change from release to release
 * - queue: most pieces of work a stream may hold before a call is refused with VELO_ERR_FULL;
 *   default 16384, at 4 KiB a piece
 * - closures: on | off; off makes closures from precompiled functions alone
 * - log: off | error | warn | info | debug; what reaches the sink (stderr when the host gave none);
 *   default off, or warn when the host gave a sink
 * - plugin_path: folders, separated by ':', in which velo looks for its own plugins
 *   (libvelo_mpi.so) before the folder of libvelo.so
 * - counters: off | on | recompute; whether calls of operators are counted (velo_op_get_counts)
 * - check.mode: off | sample | all; which calls of operators run again by the reference, which
 *   takes long; one whose results differ by more than the operator's bound fails with INTERNAL, and
 *   its outputs hold the kernel's results. check.share: the share that sample checks, default 0.01.
 *   check.capsules: folder for the first call that diverged (velo replay-capsule), empty = none.
 *   check.data: on | off; whether that file holds the tensors' elements
 * - overlap.mode: auto | whole | sliced; how operators that overlap a product with a collective
 *   work: by their field parallel_num, overlap.slices or velo's choice; without slices (coc-mode 0
 *   and 1 of MindSpeed); as auto, but in slices also where velo would choose none (coc-mode 2)
 * - overlap.slices: their slices by the shape of the product, where parallel_num is 0: entries
 *   ROWSxDEPTHxCOLUMNS:SLICES with commas between them, such as 4096x512x1024:4,*:2; a size * is
 *   any, * alone any shape; the first that fits decides; SLICES 0 = chosen, 1 = none; the same on
 *   all ranks; default empty
 * - limits.f32_gflops, limits.bf16_gflops, limits.read_gbytes, limits.copy_gbytes: the rates that
 *   the machine can reach with the context's threads (velo_op_cost); 0 = not known
 */
#ifndef VELO_CONTEXT_H
#define VELO_CONTEXT_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The source of velo's memory. Both functions may be called from any thread; alignment is a
 * power of two >= 64. allocate returns NULL on failure. device lives until the call returns;
 * stream is the velo_stream the memory is for, or NULL. An exception of allocate is
 * VELO_ERR_FOREIGN, bad_alloc VELO_ERR_MEMORY; one of deallocate is ignored. In use meanwhile
 * (types.h): what allocates. */
typedef struct velo_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment, const velo_device* device,
                    void* stream);
  void (*deallocate)(void* user, void* memory, uint64_t bytes, const velo_device* device,
                     void* stream);
} velo_allocator;

#define VELO_ALLOCATOR_INIT \
  { sizeof(velo_allocator), 0, 0, 0, 0 }

/* The host's threads. run calls task(task_user, i) for every i in [0, tasks), possibly at once on
 * `threads` threads, and returns when all are done. Calls do not nest. An exception, thrown when no
 * task is running any more, is VELO_ERR_FOREIGN. In use meanwhile (types.h): what the work uses. */
typedef struct velo_parallel_for {
  uint32_t struct_size;
  int32_t threads; /* how many tasks may run at once, >= 1 */
  void* user;
  void (*run)(void* user, int64_t tasks, void (*task)(void* task_user, int64_t index),
              void* task_user);
} velo_parallel_for;

#define VELO_PARALLEL_FOR_INIT \
  { sizeof(velo_parallel_for), 1, 0, 0 }

typedef int32_t velo_log_level;
enum {
  VELO_LOG_OFF = 0,
  VELO_LOG_ERROR = 1,
  VELO_LOG_WARN = 2,
  VELO_LOG_INFO = 3,
  VELO_LOG_DEBUG = 4
};

/* Receives log lines: component ("context", "norm"), and one UTF-8 line without its end. Called
 * from any thread. In use meanwhile (types.h): the context or pool whose line it is. A line that
 * the function itself causes goes to stderr. Inside a pool's, calls of the pool may return
 * VELO_ERR_STATE. */
typedef void (*velo_log_fn)(void* user, velo_log_level level, const char* component,
                            const char* line);

typedef struct velo_context_desc {
  uint32_t struct_size;
  int32_t threads;                       /* 0 = let velo choose */
  velo_device device;                    /* {VELO_DEVICE_CPU, 0} */
  const velo_allocator* allocator;       /* copied; NULL = the operating system's pages */
  const velo_parallel_for* parallel_for; /* copied; NULL = velo's own pool */
  velo_log_fn log;                       /* NULL = stderr, when the key `log` asks for lines */
  void* log_user;
  const char* config_json; /* an object of keys, or NULL: {"isa": "avx2", "level": 1} */
} velo_context_desc;

#define VELO_CONTEXT_DESC_INIT \
  { sizeof(velo_context_desc), 0, {VELO_DEVICE_CPU, 0}, 0, 0, 0, 0, 0 }

/* Creates a context and starts its threads. desc: copied; may be NULL for all defaults. context:
 * receives the handle; destroy it with velo_context_destroy.
 * Thread class: any. Errors: NULL (context, or a callback of desc), STRUCT, ARGUMENT, PARSE
 * (config_json: line and column), NOT_FOUND (unknown key), DEVICE, UNSUPPORTED (a field of newer
 * headers), MEMORY. */
VELO_API velo_status velo_context_create(const velo_context_desc* desc, velo_context* context);

/* Waits for the context's streams, stops its threads and frees what it owns. Streams, events,
 * packs, kernels, closures, swaps, groups and executors of the context become destroyed handles.
 * NULL is ignored, and so is (with a log line) a call from inside one that uses it (types.h).
 * Thread class: per-handle; no other call may use the context at the same time. */
VELO_API void velo_context_destroy(velo_context context);

/* The context's inline stream: a call on it is finished when it returns. Owned by the context,
 * never destroyed by the caller.
 * Thread class: any; calls from several threads take turns. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_context_stream(velo_context context, velo_stream* stream);

/* Sets a configuration key by text. Takes effect for calls that start later; `threads` cannot
 * change once work ran. value is copied.
 * Thread class: any. Errors: NULL, HANDLE, NOT_FOUND (key), ARGUMENT (value), STATE (too late, or
 * the environment rules), MEMORY (a new thread). */
VELO_API velo_status velo_config_set(velo_context context, const char* key, const char* value);

/* Reads a configuration key as text, and where it came from: "default", "code", "environment".
 * buffer: caller's, always zero-terminated; NULL with capacity 0 asks for the size. needed:
 * receives the size with its zero byte, may be NULL. origin: receives a static string, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, NOT_FOUND (key), STATE. */
VELO_API velo_status velo_config_get(velo_context context, const char* key, char* buffer,
                                     uint64_t capacity, uint64_t* needed, const char** origin);

/* All keys as one JSON array of {"key","value","origin","doc"}; same buffer rule.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_config_list(velo_context context, char* buffer, uint64_t capacity,
                                      uint64_t* needed);

/* Counters of a context: what it has allocated and run. */
typedef struct velo_context_stats {
  uint32_t struct_size;
  int32_t threads;          /* threads that calls use */
  uint64_t bytes_allocated; /* live bytes obtained from the allocator */
  uint64_t bytes_peak;      /* highest value of bytes_allocated */
  uint64_t allocations;     /* calls of allocator.allocate so far */
  uint64_t operator_calls;  /* operators run so far */
} velo_context_stats;

#define VELO_CONTEXT_STATS_INIT \
  { sizeof(velo_context_stats), 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most stats->struct_size bytes of it, with the counters.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_context_get_stats(velo_context context, velo_context_stats* stats);

VELO_END_C

#endif
