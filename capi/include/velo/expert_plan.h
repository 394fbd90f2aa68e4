/* Expert plans: on which ranks each expert lies, so that ranks have equal work.
 *
 * A plan is made of the rows that each expert got, say of the last steps. Busy experts get copies:
 * their rows are dealt evenly to all ranks that have one. Places are chosen so that the busiest
 * rank has at most the mean and the largest share of a copy, and usually much less; there are as
 * many copies as `tolerance` needs, or up to an eighth more. A plan is data: it can be read, priced
 * and drawn.
 *
 * The weights of a copy are those of its expert, and its gradient is a part of the expert's: the
 * sum over the copies is the whole. Where experts lie now may be given; then nothing moves while
 * the present places are even enough or the plan would be no better, and otherwise each rank gets a
 * part of the plan of which it has much.
 *
 * A plan belongs to no context; it never changes, so calls may overlap. Equal descriptions give
 * equal plans on every machine.
 * Sources: DeepSeek-AI's EPLB (copies of busy experts, packed evenly); Graham 1969 (longest
 * processing time first).
 */
#ifndef VELO_EXPERT_PLAN_H
#define VELO_EXPERT_PLAN_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_expert_plan_s* velo_expert_plan;

typedef struct velo_expert_plan_desc {
  uint32_t struct_size;
  uint32_t reserved;    /* 0 */
  int64_t ranks;        /* 1 to 1024 */
  int64_t slots;        /* experts that a rank has room for; ranks * slots at least experts, at most
                             65536 */
  int64_t experts;      /* 1 to 65536 */
  const int64_t* loads; /* [experts] rows of each, 0 to 2^40 */
  const int64_t* current; /* [ranks * slots] the experts of each rank now, -1 in empty slots; NULL:
                             none lies anywhere yet */
  double tolerance;       /* the busiest rank may have (1 + tolerance) times the mean; 0 to 1024 */
} velo_expert_plan_desc;

#define VELO_EXPERT_PLAN_DESC_INIT \
  { sizeof(velo_expert_plan_desc), 0, 1, 1, 1, 0, 0, 0.1 }

typedef struct velo_expert_plan_info {
  uint32_t struct_size;
  int32_t kept; /* 1: the plan is `current` */
  int64_t ranks;
  int64_t slots;
  int64_t experts;
  int64_t copies;  /* of all experts, each one's first included */
  int64_t moved;   /* copies on ranks that do not have the expert in `current`; 0 without it */
  int64_t rows;    /* of all experts */
  int64_t busiest; /* rows of the rank that has most */
  int64_t idlest;  /* rows of the rank that has least */
} velo_expert_plan_info;

#define VELO_EXPERT_PLAN_INFO_INIT \
  { sizeof(velo_expert_plan_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A text that a plan writes. */
typedef int32_t velo_expert_plan_format;
enum {
  VELO_EXPERT_PLAN_JSON = 0, /* an object of ranks, slots, experts, copies, moved, kept, rows (by
                                rank), placement (experts by rank) and ranks_of (by expert) */
  VELO_EXPERT_PLAN_SVG = 1   /* a picture: the rows of each rank, colored by expert */
};

/* Makes a plan. desc: copied, with all that it points at. plan: receives the handle; destroy it
 * with velo_expert_plan_destroy. Thread class: any. Errors: NULL (desc, desc.loads, plan), STRUCT,
 * ARGUMENT (the field that makes no sense, alone or with others), UNSUPPORTED (a field of newer
 * headers), MEMORY. */
VELO_API velo_status velo_expert_plan_create(const velo_expert_plan_desc* desc,
                                             velo_expert_plan* plan);

/* Ends a plan. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_expert_plan_destroy(velo_expert_plan plan);

/* Numbers of a plan. info: receives them, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_expert_plan_get_info(velo_expert_plan plan, velo_expert_plan_info* info);

/* The experts of a rank. experts: receives the first `capacity` of them, in rising order; may be
 * NULL when that is 0. count: receives how many there are; may be NULL. Thread class: any. Errors:
 * NULL, HANDLE, ARGUMENT (no such rank, capacity), STATE. */
VELO_API velo_status velo_expert_plan_get_experts(velo_expert_plan plan, int64_t rank,
                                                  int64_t* experts, int64_t capacity,
                                                  int64_t* count);

/* The ranks that have an expert, in rising order: of n rows, copy i of c gets n / c, and one more
 * where i is below n mod c. ranks, capacity, count: as of velo_expert_plan_get_experts. Thread
 * class: any. Errors: NULL, HANDLE, ARGUMENT (no such expert, capacity), STATE. */
VELO_API velo_status velo_expert_plan_get_ranks(velo_expert_plan plan, int64_t expert,
                                                int64_t* ranks, int64_t capacity, int64_t* count);

/* The plan as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with capacity 0
 * asks for the size alone. needed: receives the size with its terminator; may be NULL. Thread
 * class: any. Errors: NULL (plan, buffer), HANDLE, ARGUMENT (format), STATE, MEMORY. */
VELO_API velo_status velo_expert_plan_write(velo_expert_plan plan, velo_expert_plan_format format,
                                            char* buffer, uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
