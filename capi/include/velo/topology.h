/* Topology: which ranks of a job work together, in every way they do.
 *
 * A job splits its model in several ways at once: tensors (tp), sequences (cp), batches (dp),
 * stages (pp), experts (ep). Each rank has an index on each of these axes; ranks that differ in
 * some axes alone form a group, and all such groups a family: "tp", "dp-cp", "mp". A topology knows
 * the families of a job, the groups of a family and the ranks of a group, in the order in which
 * Megatron-LM enumerates them. It is arithmetic: nothing is sent, nothing is kept for a rank, and a
 * million ranks cost as much as one.
 *
 * Layouts. Ranks are numbered with the first axis of `order` fastest. Dense layers have the axes
 * tp, cp, dp, pp; experts have etp, ep, edp, pp, where tp, ep, dp, pp stand in the order, and edp
 * is what is left of a stage. gtp and egtp, for weights gathered where they are used, come after tp
 * and ep.
 *
 * Families
 *   always       tp pp dp cp dp-cp tp-cp tp-dp tp-dp-cp, mp (tp-pp), embedding (first and last
 *                stage), position-embedding (first stage), ep etp tp-ep tp-ep-pp edp
 *   gtp, egtp    gtp; egtp
 *   instances    intra-dp-cp, intra-edp (slices, one an instance), inter-dp-cp, inter-edp (the same
 *                place of each slice), optimizer-instance (all ranks of an instance)
 *   cp_levels    cp-level-1, .. (level 1: neighbors)
 *   hybrid       dp-cp-2, dp-cp-4, .. (slices of each power of two up to half of dp-cp; where it
 *                does not divide, the last is shorter)
 *   cp_ulysses   cp-ulysses (neighbors), cp-ring (across)
 *   cp_window    cp-ring-intra (windows of neighbors in the ring)
 *   tp_x, tp_y   nd1-dim1 (neighbors, tp_x of them), nd1-dim2 (across), nd2-dim1, nd2-dim2 (as
 *                with tp_y); tp-x-cp, tp-y-cp (nd1-dim1, nd1-dim2 together with cp)
 *   twins        the same groups once more, for communication that must not wait for the first:
 *                dp-cp-overlap cp-overlap pp-new-stream cp-ring-intra-overlap nd1-dim1-overlap
 *                nd1-dim2-overlap tp-y-cp-overlap
 * Any set of axes of one layout is a family too, where one is asked for by name: "cp-pp", "ep-edp".
 *
 * A topology belongs to no context and never changes; its calls may overlap.
 */
#ifndef VELO_TOPOLOGY_H
#define VELO_TOPOLOGY_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_topology_s* velo_topology;

/* A job of tp * cp * dp * pp * gtp ranks, less than 2^31. */
typedef struct velo_topology_desc {
  uint32_t struct_size;
  uint32_t reserved;        /* 0 */
  const char* order;        /* axes in letters of either case, the fastest first; those of
                               one index may be left out; NULL = "tp-cp-ep-dp-pp" */
  int64_t tp, cp, dp, pp;   /* sizes of the dense axes */
  int64_t ep;               /* of the expert axis; divides a stage together with etp */
  int64_t etp;              /* tensor parallel size of experts; 0 = tp */
  int64_t gtp, egtp;        /* ranks that hold parts of a weight and gather it where it is used */
  int64_t instances;        /* of the sharded optimizer; divides dp * cp and edp */
  const int64_t* cp_levels; /* sizes whose product is cp, neighbors first; copied */
  int64_t cp_level_count;   /* 0 = no levels; cp_levels may be NULL then */
  int64_t cp_ulysses;       /* neighbors in cp that exchange heads; 1 = none */
  int64_t cp_window;        /* neighbors of a ring's inner window; 1 = none */
  int64_t tp_x, tp_y;       /* tp in two dimensions; tp_x 0 = one, tp_y 0 = tp / tp_x */
  int32_t hybrid;           /* 1 = slices of dp-cp by powers of two; an even dp * cp */
  int32_t twins;            /* 1 = twins */
} velo_topology_desc;

#define VELO_TOPOLOGY_DESC_INIT \
  { sizeof(velo_topology_desc), 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0 }

typedef struct velo_topology_info {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t ranks;     /* of the job */
  int64_t families;  /* that have a name */
  int64_t etp, edp;  /* sizes of expert axes */
} velo_topology_info;

#define VELO_TOPOLOGY_INFO_INIT \
  { sizeof(velo_topology_info), 0, 0, 0, 0, 0 }

typedef struct velo_topology_family {
  uint32_t struct_size;
  uint32_t reserved;   /* 0 */
  int64_t groups;      /* their number */
  int64_t size;        /* ranks of the largest */
  const char* twin_of; /* the family with the same groups, alive as long as the topology; or NULL */
} velo_topology_family;

#define VELO_TOPOLOGY_FAMILY_INIT \
  { sizeof(velo_topology_family), 0, 0, 0, 0 }

/* A rank's place in a family. */
typedef struct velo_topology_place {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t group;     /* its group's number; -1 = the rank is in none, as of "embedding" */
  int64_t position;  /* in the group; -1 = in none */
} velo_topology_place;

#define VELO_TOPOLOGY_PLACE_INIT \
  { sizeof(velo_topology_place), 0, 0, 0 }

/* A text that a topology writes. */
typedef int32_t velo_topology_format;
enum {
  VELO_TOPOLOGY_JSON = 0, /* of a family a list of groups, each a list of ranks; of all an object */
  VELO_TOPOLOGY_SVG = 1   /* a picture: ranks as squares, colored by group; a panel a family */
};

/* A topology. desc: copied; may be NULL for one rank. topology: receives the handle; destroy it
 * with velo_topology_destroy. Thread class: any. Errors: NULL (topology; a list with a count),
 * STRUCT, ARGUMENT (the field that makes no sense, alone or with those before it), UNSUPPORTED
 * (a field of newer headers), MEMORY. */
VELO_API velo_status velo_topology_create(const velo_topology_desc* desc, velo_topology* topology);

/* Ends a topology. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_topology_destroy(velo_topology topology);

/* Ranks and number of families. info: receives them, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_topology_get_info(velo_topology topology, velo_topology_info* info);

/* The name of a family, by its index among those that have one. name: receives it, alive as long as
 * the topology.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_topology_family_name(velo_topology topology, int64_t index,
                                               const char** name);

/* A family. info: receives it, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such family), STATE, MEMORY. */
VELO_API velo_status velo_topology_get_family(velo_topology topology, const char* family,
                                              velo_topology_family* info);

/* Gives a rank's place in a family. place: receives it, at most place->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such family or rank), STATE,
 * MEMORY. */
VELO_API velo_status velo_topology_get_place(velo_topology topology, const char* family,
                                             int64_t rank, velo_topology_place* place);

/* The ranks of a group. ranks: receives the first `capacity` of them; may be NULL when that is 0.
 * count: receives how many there are; may be NULL.
 * Thread class: any. Errors: NULL (topology, family, ranks), HANDLE, ARGUMENT (no such family or
 * group, capacity), STATE, MEMORY. */
VELO_API velo_status velo_topology_get_group(velo_topology topology, const char* family,
                                             int64_t group, int32_t* ranks, int64_t capacity,
                                             int64_t* count);

/* A family as a text, or all that have a name (family NULL). buffer: the caller's, `capacity`
 * bytes, zero-terminated; NULL with capacity 0 asks for the size alone. needed: receives the
 * size with its terminator; may be NULL. A picture shows the first 1024 ranks. Thread class:
 * any. Errors: NULL (topology, buffer), HANDLE, ARGUMENT (no such family, format), STATE,
 * MEMORY. */
VELO_API velo_status velo_topology_write(velo_topology topology, const char* family,
                                         velo_topology_format format, char* buffer,
                                         uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
