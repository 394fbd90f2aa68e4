/* Layers with experts on other ranks: in which order a forward and a backward at once go through
 * the parts of their layers.
 *
 * Such a layer is attention, a message that takes tokens to their experts (dispatch), the experts,
 * a message back (combine); backward the same from its end. The forward of one micro-batch and the
 * backward of another have nothing to do with each other, so the messages of one go while the other
 * computes. Nothing here runs anything: a plan says what to start when.
 */
#ifndef VELO_SUBLAYERS_H
#define VELO_SUBLAYERS_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Parts of a layer with experts, forward (F), gradient of inputs (B), gradient of weights (W). */
typedef int32_t velo_sublayer_kind;
enum {
  VELO_SUBLAYER_ATTENTION_F = 1,  /* attention */
  VELO_SUBLAYER_DISPATCH_F = 2,   /* message: tokens to the ranks of their experts */
  VELO_SUBLAYER_EXPERTS_F = 3,    /* routed experts */
  VELO_SUBLAYER_COMBINE_F = 4,    /* message: tokens back */
  VELO_SUBLAYER_SHARED_F = 5,     /* the shared expert, which all tokens go through: no message */
  VELO_SUBLAYER_COMBINE_B = 6,    /* message: gradients to the ranks of their experts */
  VELO_SUBLAYER_EXPERTS_B = 7,    /* routed experts */
  VELO_SUBLAYER_DISPATCH_B = 8,   /* message: gradients back */
  VELO_SUBLAYER_SHARED_B = 9,     /* the shared expert, inputs and weights */
  VELO_SUBLAYER_ATTENTION_B = 10, /* attention */
  VELO_SUBLAYER_EXPERTS_W = 11,   /* routed experts */
  VELO_SUBLAYER_ATTENTION_W = 12, /* attention */
  VELO_SUBLAYER_SEND_B = 13       /* message: the chunk's gradient to the stage before */
};

/* A step: the sublayer that is computed, and the message that travels meanwhile. */
typedef struct velo_sublayer_step {
  velo_sublayer_kind compute; /* 0 = nothing */
  int32_t compute_layer;      /* of the chunk, from 0; -1 = of none */
  velo_sublayer_kind message; /* 0 = none */
  int32_t message_layer;      /* of the chunk, from 0; -1 = of none */
} velo_sublayer_step;

/* The order in which an FB goes through the parts of layers with experts, so that each message
 * hides behind arithmetic of the other direction: its F through `forward_layers` of its chunk,
 * its B through `backward_layers`. 0 backward layers give the order of an F by itself, where the
 * shared expert hides what it can; 0 forward layers that of a B. steps: receives at most
 * `capacity`; NULL with capacity 0 asks for the count alone. count: receives how many steps
 * there are. Thread class: any. Errors: NULL, ARGUMENT (numbers of layers, capacity), MEMORY. */
VELO_API velo_status velo_sublayer_plan(int32_t forward_layers, int32_t backward_layers,
                                        int64_t capacity, velo_sublayer_step* steps,
                                        int64_t* count);

VELO_END_C

#endif
