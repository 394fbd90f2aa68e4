/* Sharding: where each element of each parameter lies among the ranks of a job.
 *
 * A parameter is cut by axes of a topology, a dimension by at most one. Each index on that axis
 * holds a range of the dimension, or a range of each of its blocks. Ranks that differ in other axes
 * alone hold copies. From this follow, for every rank: its part of a parameter, over which ranks
 * its gradient is a sum, how many copies of an element the job has, and which elements the rank
 * updates with a sharded optimizer.
 *
 *   velo_sharding_create(topology, &sharding)
 *   velo_sharding_add(sharding, &parameter, &index)   for each parameter
 *   velo_sharding_check(sharding)                     proves that the parts make up the whole
 *   velo_sharding_get_part(sharding, index, rank, &part)
 *
 * Axes. Of a dense parameter tp, or tp_x and tp_y (nd1-dim1 and nd1-dim2 of a topology with tensor
 * ranks in two dimensions), gtp and pp; of a parameter of experts ep, etp, egtp and pp.
 *
 * Blocks. A dimension may be several blocks, one behind the other, each cut by itself: query, key
 * and value; gate and up. A block of `size` elements consists of `units` that are not cut. With n
 * indices each gets units div n of them, and the first units mod n get one more. `repeat`
 * neighboring units may share their elements; an index then holds what its units need, and
 * neighbors may hold copies. Keys of 3 heads of 64 for 12 query heads are {192, 12, 4}: the size is
 * that of the keys, the units are query heads, 4 of which share a key head; cut in 4 they give key
 * heads 0, 0 to 1, 1 to 2, and 2. Bounds take the place of blocks where a host has ranges
 * of its own; whether they make up the dimension is what velo_sharding_check says.
 *
 * Pieces. A rank's part is a list of boxes, in each of which all elements have as many copies.
 *
 * Sums. After the sum over these groups, one after another, all copies of a gradient are equal:
 *   dp-cp, gtp     of a dense parameter
 *   edp, egtp      of a parameter of experts
 *   partial        the family of the axis that the parameter calls partial: of the weight of a norm
 *                  with sequence parallelism, of a router, of a bias behind a reduce-scatter
 *   copies         not a family: where units share elements, piece by piece the ranks of
 *                  velo_sharding_get_holders that differ from this one in the cutting axis alone
 *   embedding, pp  of a parameter of the first and last stage; of one of all stages
 * Groups of one rank are left out, and a parameter without a gradient has no sums. Then norm^2 is
 * the sum of |gradient|^2 / copies over all ranks and pieces.
 *
 * Sharded optimizer. The parts of a bucket's parameters lie one behind the other, flat, in the
 * order of velo_sharding_add. Of E elements each of the n ranks of dp-cp (experts: edp; with
 * instances intra-dp-cp, intra-edp) updates the next ceil(E / n) of them, rounded up to a multiple
 * of 16, as in a bucket of velo_buckets. A parameter's range is what of these belongs to its part.
 *
 * A sharding belongs to no context and keeps a copy of the topology. Nothing is sent, and nothing
 * is kept for a rank: a query takes time in proportion to the blocks of a parameter's cuts, and a
 * range to the parameters of its bucket, whatever the number of ranks, unless its comment states
 * another.
 */
#ifndef VELO_SHARDING_H
#define VELO_SHARDING_H

#include "velo/status.h"
#include "velo/topology.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_sharding_s* velo_sharding;

/* A run of elements of a dimension, which is cut by itself. */
typedef struct velo_sharding_block {
  int64_t size;   /* elements */
  int64_t units;  /* that are not cut, a multiple of repeat; 0 = size */
  int64_t repeat; /* neighboring units that share their elements; 0 = 1 */
} velo_sharding_block;

/* An axis that cuts a dimension. */
typedef struct velo_sharding_cut {
  const char* axis;                  /* "tp", "tp_x", "tp_y", "gtp", "ep", "etp", "egtp", "pp" */
  int64_t dimension;                 /* of the parameter, from 0 */
  const velo_sharding_block* blocks; /* sizes add up to the dimension's; NULL = one block */
  int64_t block_count;               /* 0 = one block, of as many units as elements */
  const int64_t* bounds;             /* begin and end of each index, in place of blocks, or NULL */
  int64_t bound_count;               /* 0 or 2 * the axis's size */
} velo_sharding_cut;

typedef struct velo_sharding_parameter {
  uint32_t struct_size;
  int32_t ndim;                  /* 0 to 8 */
  const char* name;              /* no other parameter's */
  const int64_t* shape;          /* of the whole, ndim sizes */
  const velo_sharding_cut* cuts; /* or NULL */
  int64_t cut_count;             /* 0 = held whole */
  const int64_t* stages;         /* that hold it: one, or the first and the last */
  int64_t stage_count;           /* 0 = all stages */
  const char* partial;           /* the axis whose ranks each have a part of the gradient's sum, or
                                    NULL */
  int64_t bucket;                /* of the sharded optimizer; -1 = one of its own */
  int32_t experts;               /* 1 = of experts: the axes ep, etp, edp */
  int32_t no_gradient;           /* 1 = no gradient, so no sums and an empty range */
} velo_sharding_parameter;

#define VELO_SHARDING_PARAMETER_INIT \
  { sizeof(velo_sharding_parameter), 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0 }

typedef struct velo_sharding_info {
  uint32_t struct_size;
  uint32_t reserved;  /* 0 */
  int64_t ranks;      /* of the job */
  int64_t parameters; /* added so far */
} velo_sharding_info;

#define VELO_SHARDING_INFO_INIT \
  { sizeof(velo_sharding_info), 0, 0, 0 }

/* A rank's part of a parameter. */
typedef struct velo_sharding_part {
  uint32_t struct_size;
  int32_t ndim;        /* of the parameter */
  int64_t shape[8];    /* of the rank's own tensor */
  int64_t elements;    /* of it; 0 = the rank holds nothing of the parameter */
  int64_t pieces;      /* boxes */
  int64_t sums;        /* groups that the gradient is summed over */
  int64_t copies;      /* of each element in the job; 0 = they differ by piece, or no element */
  int64_t range_begin; /* the first element of the rank's own tensor that it updates .. */
  int64_t range_end;   /* .. with a sharded optimizer, and the end */
} velo_sharding_part;

#define VELO_SHARDING_PART_INIT \
  { sizeof(velo_sharding_part), 0, {0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0, 0, 0 }

/* A box of elements of a parameter in a rank's own tensor. */
typedef struct velo_sharding_piece {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t begin[8];  /* in the whole, by dimension */
  int64_t end[8];    /* in the whole */
  int64_t at[8];     /* where it begins in the rank's own tensor */
  int64_t copies;    /* of each element in the job */
} velo_sharding_piece;

#define VELO_SHARDING_PIECE_INIT                                                        \
  {                                                                                     \
    sizeof(velo_sharding_piece), 0, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, \
        {0, 0, 0, 0, 0, 0, 0, 0}, 0                                                     \
  }

/* A box of elements that a rank takes from another, or from itself, to have its part in another
 * sharding. */
typedef struct velo_sharding_move {
  int64_t source;       /* rank in the sharding before */
  int64_t begin[8];     /* in the whole, by dimension */
  int64_t end[8];       /* in the whole */
  int64_t source_at[8]; /* where it begins in the source's own tensor */
  int64_t at[8];        /* where it begins in the rank's own tensor */
} velo_sharding_move;

/* The elements that a transfer is about. */
typedef int32_t velo_sharding_content;
enum {
  VELO_SHARDING_PARTS = 0, /* the parts: parameters */
  VELO_SHARDING_RANGES = 1 /* the ranges of the sharded optimizer: its states */
};

/* A text that a sharding writes. */
typedef int32_t velo_sharding_format;
enum {
  VELO_SHARDING_JSON = 0, /* an object by rank, by name: part, sum, copies, range */
  VELO_SHARDING_SVG = 1   /* a picture: parameters as rectangles, parts colored by index */
};

/* A sharding without parameters. topology: copied. sharding: receives the handle; destroy it with
 * velo_sharding_destroy. Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_sharding_create(velo_topology topology, velo_sharding* sharding);

/* Ends a sharding. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_sharding_destroy(velo_sharding sharding);

/* Adds a parameter. parameter: copied, with all that it points at. index: receives its number; may
 * be NULL. A refused one leaves the sharding as it was. Thread class: per-handle. Errors: NULL,
 * HANDLE, STRUCT, ARGUMENT (the field that makes no sense, alone or with the topology), UNSUPPORTED
 * (a field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_sharding_add(velo_sharding sharding,
                                       const velo_sharding_parameter* parameter, int64_t* index);

/* Ranks and number of parameters. info: receives them, at most info->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_sharding_get_info(velo_sharding sharding, velo_sharding_info* info);

/* The name of a parameter. name: receives it, alive as long as the sharding.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_sharding_parameter_name(velo_sharding sharding, int64_t parameter,
                                                  const char** name);

/* A rank's part of a parameter. part: receives it, at most part->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such parameter or rank),
 * STATE, MEMORY. */
VELO_API velo_status velo_sharding_get_part(velo_sharding sharding, int64_t parameter, int64_t rank,
                                            velo_sharding_part* part);

/* A piece of a rank's part, by its index. piece: receives it, at most piece->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such parameter, rank or
 * index), STATE, MEMORY. */
VELO_API velo_status velo_sharding_get_piece(velo_sharding sharding, int64_t parameter,
                                             int64_t rank, int64_t index,
                                             velo_sharding_piece* piece);

/* A group that the gradient of a rank's part is summed over, by its index. family: receives the
 * name of a family of the topology, or "copies", alive as long as the sharding.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (no such parameter, rank or index),
 * STATE, MEMORY. */
VELO_API velo_status velo_sharding_get_sum(velo_sharding sharding, int64_t parameter, int64_t rank,
                                           int64_t index, const char** family);

/* The ranks that hold a piece, in ascending order, in time proportional to the job's ranks. ranks:
 * receives the first `capacity` of them; may be NULL when that is 0. count: receives how many there
 * are; may be NULL. Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (no such parameter,
 * rank or index), STATE, MEMORY. */
VELO_API velo_status velo_sharding_get_holders(velo_sharding sharding, int64_t parameter,
                                               int64_t rank, int64_t index, int32_t* ranks,
                                               int64_t capacity, int64_t* count);

/* Proves that the parts of each parameter hold each element, none twice but declared copies, that
 * as many ranks hold a piece as its copies say, and that the ranges of the sharded optimizer make
 * up the parts. Parameters that are alike are proven once, in time proportional to ranks * pieces.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (the first parameter that breaks this,
 * and where), STATE, MEMORY. */
VELO_API velo_status velo_sharding_check(velo_sharding sharding);

/* The boxes that make up what a rank has of a parameter in `to`, from what ranks have in `from`: of
 * the rank itself where it has them, otherwise of one holder each. Parameters are found by name;
 * shapes must agree. With RANGES boxes are of the ranges alone, and positions are still those of
 * the whole parts. parameter, rank: in `to`. moves: receives the first `capacity` of them; may be
 * NULL when that is 0. count: receives how many there are; may be NULL. Time is proportional to the
 * ranks of `from` times the pieces of both parts. Thread class: per-handle. Errors: NULL, HANDLE,
 * ARGUMENT (no such parameter in one of them, or of another shape; no such rank; elements that no
 * rank holds), STATE, MEMORY. */
VELO_API velo_status velo_sharding_transfer(velo_sharding from, velo_sharding to, int64_t parameter,
                                            int64_t rank, velo_sharding_content content,
                                            velo_sharding_move* moves, int64_t capacity,
                                            int64_t* count);

/* A rank's parts as a text, or those of all ranks (rank -1). A picture shows the first 64 ranks and
 * 60 kinds of parameters. buffer: receives up to `capacity`
 * bytes with the 0 at the end; may be NULL when that is 0. needed: receives the bytes of the whole
 * text and its 0; may be NULL. Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (rank,
 * format), STATE, MEMORY. */
VELO_API velo_status velo_sharding_write(velo_sharding sharding, int64_t rank,
                                         velo_sharding_format format, char* buffer,
                                         uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
