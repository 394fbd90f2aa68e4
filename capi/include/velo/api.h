/* All functions of velo as one table: what a program uses that opens the library itself.
 *
 * velo_get_api gives the table. It begins with its size; slots are never removed or reordered, each
 * release appends a band. A function withdrawn from a later release keeps its slot and answers
 * VELO_ERR_UNSUPPORTED; no slot within struct_size is NULL. The functions are the exported ones; a
 * slot is named as its function without velo_.
 *
 * Generated from abi/spec: change that and build the target `generate`. */
#ifndef VELO_API_H
#define VELO_API_H

#include "velo/adaptor.h"
#include "velo/buckets.h"
#include "velo/collective.h"
#include "velo/context.h"
#include "velo/dispatch.h"
#include "velo/dispatcher.h"
#include "velo/executor.h"
#include "velo/expert_plan.h"
#include "velo/group.h"
#include "velo/history.h"
#include "velo/host.h"
#include "velo/introspect.h"
#include "velo/ops_activation.h"
#include "velo/ops_attention.h"
#include "velo/ops_elementwise.h"
#include "velo/ops_embedding.h"
#include "velo/ops_experts.h"
#include "velo/ops_loss.h"
#include "velo/ops_matmul.h"
#include "velo/ops_norm.h"
#include "velo/ops_optimizer.h"
#include "velo/ops_overlap.h"
#include "velo/ops_parallel.h"
#include "velo/ops_quant.h"
#include "velo/ops_rope.h"
#include "velo/ops_softmax.h"
#include "velo/ops_unpad.h"
#include "velo/pack.h"
#include "velo/plan.h"
#include "velo/plugin.h"
#include "velo/pool.h"
#include "velo/profiler.h"
#include "velo/recompute.h"
#include "velo/recompute_plan.h"
#include "velo/schedule.h"
#include "velo/sequence_plan.h"
#include "velo/sharding.h"
#include "velo/status.h"
#include "velo/stream.h"
#include "velo/sublayers.h"
#include "velo/swap.h"
#include "velo/tensor.h"
#include "velo/timeline.h"
#include "velo/topology.h"
#include "velo/tune.h"
#include "velo/types.h"

VELO_BEGIN_C

struct velo_api {
  uint32_t struct_size; /* bytes of the table this library fills */
  uint32_t abi;         /* newest ABI of this library, major * 100 + minor */

  /* ==== ABI 1.0 ==== */

  /* velo/status.h */
  velo_status (*last_error)(velo_error_info* info);
  velo_status (*error_text)(char* buffer, uint64_t capacity, uint64_t* needed);
  velo_status (*status_describe)(velo_status code, const char** name, const char** meaning);

  /* velo/tensor.h */
  velo_status (*tensor_create)(velo_context context, const velo_dtype* dtype, int32_t ndim,
                               const int64_t* shape, velo_managed_tensor** tensor);
  velo_status (*tensor_import)(velo_context context, velo_managed_tensor* managed,
                               velo_tensor* view);
  void (*tensor_release)(velo_managed_tensor* managed);
  velo_status (*tensor_extent)(const velo_tensor* tensor, uint64_t* bytes);

  /* velo/context.h */
  velo_status (*context_create)(const velo_context_desc* desc, velo_context* context);
  void (*context_destroy)(velo_context context);
  velo_status (*context_stream)(velo_context context, velo_stream* stream);
  velo_status (*config_set)(velo_context context, const char* key, const char* value);
  velo_status (*config_get)(velo_context context, const char* key, char* buffer,
                            uint64_t capacity, uint64_t* needed, const char** origin);
  velo_status (*config_list)(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed);
  velo_status (*context_get_stats)(velo_context context, velo_context_stats* stats);

  /* velo/stream.h */
  velo_status (*stream_create)(velo_context context, velo_stream* stream);
  void (*stream_destroy)(velo_stream stream);
  velo_status (*stream_synchronize)(velo_stream stream);
  velo_status (*stream_query)(velo_stream stream, int32_t* done);
  velo_status (*stream_clear)(velo_stream stream);
  velo_status (*stream_wait)(velo_stream stream, velo_event event);
  velo_status (*event_create)(velo_context context, velo_event* event);
  void (*event_destroy)(velo_event event);
  velo_status (*event_record)(velo_event event, velo_stream stream);
  velo_status (*event_synchronize)(velo_event event, int64_t timeout_ns);
  velo_status (*event_query)(velo_event event, int32_t* done);

  /* velo/pack.h */
  velo_status (*pack_create)(velo_context context, const velo_pack_desc* desc, velo_pack* pack);
  void (*pack_destroy)(velo_pack pack);
  velo_status (*pack_update)(velo_stream stream, velo_pack pack, const velo_tensor* weight);

  /* velo/introspect.h */
  velo_status (*get_api)(uint32_t needed, uint64_t table_size, const struct velo_api** api);
  velo_status (*version)(int32_t* major, int32_t* minor, int32_t* patch, uint32_t* abi);
  velo_status (*capability_query)(velo_capability capability, int32_t* available);
  velo_status (*describe)(char* buffer, uint64_t capacity, uint64_t* needed);
  velo_status (*op_count)(int64_t* count);
  velo_status (*op_name)(int64_t index, const char** name);
  velo_status (*op_describe)(const char* op, char* buffer, uint64_t capacity, uint64_t* needed);
  velo_status (*op_call)(velo_stream stream, const char* op, const velo_named_value* values,
                         int64_t count);
  velo_status (*op_infer)(velo_context context, const char* op, const velo_named_value* values,
                          int64_t count, velo_shape* shapes, int64_t capacity, int64_t* outputs);
  velo_status (*op_explain)(velo_context context, const char* op, const velo_named_value* values,
                            int64_t count, char* buffer, uint64_t capacity, uint64_t* needed);
  velo_status (*invoke)(const char* function, const velo_value* values, int64_t count,
                        velo_value* result);

  /* velo/plugin.h */
  velo_status (*kernel_register)(velo_context context, const velo_kernel_desc* desc,
                                 velo_kernel* kernel);
  void (*kernel_destroy)(velo_kernel kernel);
  velo_status (*kernel_list)(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed);
  velo_status (*plugin_load)(velo_context context, const char* path);
  velo_status (*closure_create)(velo_stream stream, const char* op, const char* fields,
                                void** function, velo_closure* closure);
  void (*closure_destroy)(velo_closure closure);

  /* velo/ops_norm.h */
  velo_status (*rms_norm)(velo_stream stream, const velo_rms_norm_args* args);
  velo_status (*rms_norm_backward)(velo_stream stream, const velo_rms_norm_backward_args* args);

  /* velo/ops_activation.h */
  velo_status (*swiglu)(velo_stream stream, const velo_swiglu_args* args);
  velo_status (*swiglu_backward)(velo_stream stream, const velo_swiglu_backward_args* args);

  /* velo/ops_rope.h */
  velo_status (*rotary_position_embedding)(velo_stream stream,
                                           const velo_rotary_position_embedding_args* args);
  velo_status (*rotary_position_embedding_backward)(
      velo_stream stream, const velo_rotary_position_embedding_backward_args* args);

  /* velo/ops_matmul.h */
  velo_status (*matmul)(velo_stream stream, const velo_matmul_args* args);
  velo_status (*matmul_add_fp32)(velo_stream stream, const velo_matmul_add_fp32_args* args);

  /* velo/ops_attention.h */
  velo_status (*fusion_attention)(velo_stream stream, const velo_fusion_attention_args* args);
  velo_status (*fusion_attention_backward)(velo_stream stream,
                                           const velo_fusion_attention_backward_args* args);

  /* velo/ops_embedding.h */
  velo_status (*embedding)(velo_stream stream, const velo_embedding_args* args);
  velo_status (*embedding_backward)(velo_stream stream, const velo_embedding_backward_args* args);

  /* velo/ops_loss.h */
  velo_status (*cross_entropy)(velo_stream stream, const velo_cross_entropy_args* args);
  velo_status (*cross_entropy_backward)(velo_stream stream,
                                        const velo_cross_entropy_backward_args* args);

  /* velo/ops_optimizer.h */
  velo_status (*apply_fused_adamw)(velo_stream stream, const velo_apply_fused_adamw_args* args);
  velo_status (*global_norm)(velo_stream stream, const velo_global_norm_args* args);

  /* velo/ops_elementwise.h */
  velo_status (*add)(velo_stream stream, const velo_add_args* args);
  velo_status (*cast)(velo_stream stream, const velo_cast_args* args);

  /* velo/pool.h */
  velo_status (*pool_create)(const velo_pool_desc* desc, velo_pool* pool);
  void (*pool_destroy)(velo_pool pool);
  velo_status (*pool_allocate)(velo_pool pool, const velo_pool_request* request, void** memory);
  velo_status (*pool_free)(velo_pool pool, void* memory, uint64_t bytes, velo_stream stream);
  velo_status (*pool_trim)(velo_pool pool, uint64_t keep, uint64_t* released);
  velo_status (*pool_set_limit)(velo_pool pool, uint64_t limit);
  velo_status (*pool_allocator)(velo_pool pool, velo_allocator* allocator);
  velo_status (*pool_check)(velo_pool pool);
  velo_status (*pool_locate)(velo_pool pool, const void* memory, int32_t* file, uint64_t* offset);
  velo_status (*pool_get_stats)(velo_pool pool, velo_pool_stats* stats);

  /* velo/adaptor.h */
  velo_status (*adaptor_create)(const velo_adaptor_desc* desc, velo_adaptor* adaptor);
  void (*adaptor_destroy)(velo_adaptor adaptor);
  velo_status (*adaptor_allocator)(velo_adaptor adaptor, velo_allocator* allocator);
  velo_status (*adaptor_get_stats)(velo_adaptor adaptor, velo_adaptor_stats* stats);
  velo_status (*adaptor_flush)(velo_adaptor adaptor);

  /* velo/pool.h */
  velo_status (*pool_functions)(velo_pool pool, void** allocate, void** deallocate);

  /* velo/plan.h */
  velo_status (*plan_create)(const velo_plan_desc* desc, velo_plan* plan);
  void (*plan_destroy)(velo_plan plan);
  velo_status (*plan_add)(velo_plan plan, int64_t lower, int64_t upper, uint64_t bytes,
                          int64_t* index);
  velo_status (*plan_read)(velo_plan plan, velo_plan_format format, const char* text,
                           uint64_t length);
  velo_status (*plan_solve)(velo_plan plan, const velo_plan_options* options);
  velo_status (*plan_get_buffer)(velo_plan plan, int64_t index, velo_plan_buffer* buffer);
  velo_status (*plan_get_stats)(velo_plan plan, velo_plan_stats* stats);
  velo_status (*plan_write)(velo_plan plan, velo_plan_format format, char* buffer,
                            uint64_t capacity, uint64_t* needed);

  /* velo/swap.h */
  velo_status (*swap_create)(velo_context context, const velo_swap_desc* desc, velo_swap* swap);
  void (*swap_destroy)(velo_swap swap);
  velo_status (*swap_add)(velo_swap swap, void* memory, uint64_t bytes, velo_swap_use use,
                          uint64_t* object);
  velo_status (*swap_drop)(velo_swap swap, uint64_t object, velo_stream stream);
  velo_status (*swap_out)(velo_swap swap, uint64_t object, velo_stream stream, velo_event event);
  velo_status (*swap_in)(velo_swap swap, uint64_t object, void* memory, velo_stream stream,
                         velo_event event);
  velo_status (*swap_wait)(velo_swap swap, uint64_t object, velo_stream stream);
  velo_status (*swap_get_object)(velo_swap swap, uint64_t object, velo_swap_object* info);
  velo_status (*swap_assign)(velo_swap swap, uint64_t object, int64_t layer);
  velo_status (*swap_forward)(velo_swap swap, int64_t layer, velo_stream stream);
  velo_status (*swap_backward)(velo_swap swap, int64_t layer, velo_stream stream);
  velo_status (*swap_update)(velo_swap swap, const uint64_t* objects, int64_t count,
                             int64_t slices, velo_swap_update_fn update, void* user);
  velo_status (*swap_get_stats)(velo_swap swap, velo_swap_stats* stats);

  /* velo/recompute.h */
  velo_status (*recompute_layers)(const velo_recompute_rule* rule, velo_recompute_layer* layers,
                                  int64_t capacity, int64_t* count);
  velo_status (*recompute_choose)(const velo_recompute_rule* rule,
                                  const velo_recompute_budget* budget,
                                  const velo_recompute_module* modules, int64_t count,
                                  int32_t* chosen, velo_recompute_choice* choice);
  velo_status (*recompute_create)(const velo_recompute_desc* desc, velo_recompute* recompute);
  void (*recompute_destroy)(velo_recompute recompute);
  velo_status (*recompute_add)(velo_recompute recompute, const velo_recompute_region* region,
                               velo_stream stream, int64_t* index);
  velo_status (*recompute_get_output)(velo_recompute recompute, int64_t region, int64_t output,
                                      void** memory);
  velo_status (*recompute_release)(velo_recompute recompute, int64_t region, velo_stream stream);
  velo_status (*recompute_restore)(velo_recompute recompute, int64_t region, velo_stream stream);
  velo_status (*recompute_end)(velo_recompute recompute, int64_t region, velo_stream stream);
  velo_status (*recompute_get_stats)(velo_recompute recompute, velo_recompute_stats* stats);

  /* velo/history.h */
  velo_status (*pool_record)(velo_pool pool, uint64_t events);
  velo_status (*pool_note)(velo_pool pool, const void* memory, const char* text);
  velo_status (*pool_snapshot)(velo_pool pool, velo_snapshot_format format, char* buffer,
                               uint64_t capacity, uint64_t* needed);
  velo_status (*pool_save)(velo_pool pool, velo_snapshot_format format, const char* path);
  velo_status (*pool_get_stream_stats)(velo_pool pool, velo_stream stream,
                                       velo_pool_stream_stats* stats);

  /* velo/recompute_plan.h */
  velo_status (*recompute_plan_create)(velo_recompute_plan* plan);
  void (*recompute_plan_destroy)(velo_recompute_plan plan);
  velo_status (*recompute_plan_add)(velo_recompute_plan plan, const velo_recompute_op* op,
                                    int64_t* index);
  velo_status (*recompute_plan_solve)(velo_recompute_plan plan,
                                      const velo_recompute_plan_options* options);
  velo_status (*recompute_plan_get_step)(velo_recompute_plan plan, int64_t index,
                                         velo_recompute_step* step);
  velo_status (*recompute_plan_get_stats)(velo_recompute_plan plan,
                                          velo_recompute_plan_stats* stats);

  /* velo/plan.h */
  velo_status (*plan_add_use)(velo_plan plan, int64_t index, int64_t time, velo_access access);
  velo_status (*plan_add_work)(velo_plan plan, int64_t time, double seconds);
  velo_status (*plan_get_use)(velo_plan plan, int64_t index, velo_plan_use_info* use);
  velo_status (*plan_begin)(velo_plan plan, velo_plan_mode mode);
  velo_status (*plan_end)(velo_plan plan);
  velo_status (*plan_allocate)(velo_plan plan, const velo_pool_request* request, void** memory);
  velo_status (*plan_free)(velo_plan plan, void* memory, uint64_t bytes, velo_stream stream);
  velo_status (*plan_use)(velo_plan plan, const void* memory, velo_access access);
  velo_status (*plan_work)(velo_plan plan, double seconds);
  velo_status (*plan_allocator)(velo_plan plan, velo_allocator* allocator);
  velo_status (*plan_get_step)(velo_plan plan, velo_plan_step* step);
  velo_status (*plan_solve_swaps)(velo_plan plan, const velo_swap_options* options);
  velo_status (*plan_get_swap_stats)(velo_plan plan, velo_plan_swap_stats* stats);
  velo_status (*plan_get_swap)(velo_plan plan, int64_t index, velo_plan_swap* swap);

  /* velo/group.h */
  velo_status (*group_create)(velo_context context, const velo_group_desc* desc, velo_group* group);
  velo_status (*group_create_local)(const velo_context* contexts, int32_t count,
                                    const velo_group_desc* desc, velo_group* groups);
  void (*group_destroy)(velo_group group);
  velo_status (*group_abort)(velo_group group);
  velo_status (*group_get_info)(velo_group group, velo_group_info* info);
  velo_status (*group_describe)(velo_group group, char* buffer, uint64_t capacity,
                                uint64_t* needed);
  velo_status (*group_barrier)(velo_stream stream, velo_group group);
  velo_status (*group_all_reduce)(velo_stream stream, velo_group group,
                                  const velo_reduction* reduction, const velo_tensor* in,
                                  const velo_tensor* out);

  /* velo/topology.h */
  velo_status (*topology_create)(const velo_topology_desc* desc, velo_topology* topology);
  void (*topology_destroy)(velo_topology topology);
  velo_status (*topology_get_info)(velo_topology topology, velo_topology_info* info);
  velo_status (*topology_family_name)(velo_topology topology, int64_t index, const char** name);
  velo_status (*topology_get_family)(velo_topology topology, const char* family,
                                     velo_topology_family* info);
  velo_status (*topology_get_place)(velo_topology topology, const char* family, int64_t rank,
                                    velo_topology_place* place);
  velo_status (*topology_get_group)(velo_topology topology, const char* family, int64_t group,
                                    int32_t* ranks, int64_t capacity, int64_t* count);
  velo_status (*topology_write)(velo_topology topology, const char* family,
                                velo_topology_format format, char* buffer, uint64_t capacity,
                                uint64_t* needed);

  /* velo/schedule.h */
  velo_status (*schedule_create)(const velo_schedule_desc* desc, velo_schedule* schedule);
  void (*schedule_destroy)(velo_schedule schedule);
  velo_status (*schedule_read)(velo_schedule schedule, velo_schedule_format format,
                               const char* text, uint64_t length);
  velo_status (*schedule_get_info)(velo_schedule schedule, velo_schedule_info* info);
  velo_status (*schedule_get_length)(velo_schedule schedule, int32_t rank, int64_t* length);
  velo_status (*schedule_get_actions)(velo_schedule schedule, int32_t rank, int64_t first,
                                      int64_t count, velo_action* actions);
  velo_status (*schedule_write)(velo_schedule schedule, velo_schedule_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed);
  velo_status (*schedule_check)(velo_schedule schedule, int64_t* violations);
  velo_status (*schedule_get_violation)(velo_schedule schedule, int64_t index,
                                        velo_violation* violation);
  velo_status (*schedule_simulate)(velo_schedule schedule, const velo_schedule_costs* costs,
                                   velo_timeline* timeline);

  /* velo/timeline.h */
  void (*timeline_destroy)(velo_timeline timeline);
  velo_status (*timeline_get_stats)(velo_timeline timeline, velo_timeline_stats* stats);
  velo_status (*timeline_get_rank)(velo_timeline timeline, int32_t rank, velo_timeline_rank* stats);
  velo_status (*timeline_write)(velo_timeline timeline, velo_timeline_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed);

  /* velo/group.h */
  velo_status (*group_reduce)(velo_stream stream, velo_group group, int32_t root,
                              const velo_reduction* reduction, const velo_tensor* in,
                              const velo_tensor* out);
  velo_status (*group_broadcast)(velo_stream stream, velo_group group, int32_t root,
                                 const velo_tensor* x);
  velo_status (*group_all_gather)(velo_stream stream, velo_group group, const velo_tensor* in,
                                  const velo_tensor* out);
  velo_status (*group_all_gather_v)(velo_stream stream, velo_group group, const velo_tensor* in,
                                    const int64_t* counts, const int64_t* offsets,
                                    const velo_tensor* out);
  velo_status (*group_reduce_scatter)(velo_stream stream, velo_group group,
                                      const velo_reduction* reduction, const velo_tensor* in,
                                      const velo_tensor* out);
  velo_status (*group_reduce_scatter_v)(velo_stream stream, velo_group group,
                                        const velo_reduction* reduction, const velo_tensor* in,
                                        const int64_t* counts, const velo_tensor* out);
  velo_status (*group_all_to_all)(velo_stream stream, velo_group group, const velo_tensor* in,
                                  const velo_tensor* out);
  velo_status (*group_all_to_all_v)(velo_stream stream, velo_group group, const velo_tensor* in,
                                    const int64_t* in_counts, const int64_t* in_offsets,
                                    const int64_t* out_counts, const int64_t* out_offsets,
                                    const velo_tensor* out);
  velo_status (*group_gather)(velo_stream stream, velo_group group, int32_t root,
                              const velo_tensor* in, const velo_tensor* out);
  velo_status (*group_gather_v)(velo_stream stream, velo_group group, int32_t root,
                                const velo_tensor* in, const int64_t* counts,
                                const int64_t* offsets, const velo_tensor* out);
  velo_status (*group_scatter)(velo_stream stream, velo_group group, int32_t root,
                               const velo_tensor* in, const velo_tensor* out);
  velo_status (*group_scatter_v)(velo_stream stream, velo_group group, int32_t root,
                                 const velo_tensor* in, const int64_t* counts,
                                 const int64_t* offsets, const velo_tensor* out);
  velo_status (*group_send)(velo_stream stream, velo_group group, int32_t to, const velo_tensor* x);
  velo_status (*group_receive)(velo_stream stream, velo_group group, int32_t from,
                               const velo_tensor* x);
  velo_status (*group_exchange)(velo_stream stream, velo_group group,
                                const velo_group_message* messages, int64_t count);

  /* velo/ops_overlap.h */
  velo_status (*matmul_all_reduce)(velo_stream stream, const velo_matmul_all_reduce_args* args);

  /* velo/group.h */
  velo_status (*transport_query)(velo_context context, velo_transport transport);
  velo_status (*group_create_part)(velo_group parent, const int32_t* ranks, int32_t count,
                                   const velo_group_desc* desc, velo_group* group);
  velo_status (*group_shrink)(velo_group group, const velo_group_desc* desc, velo_group* survivors);
  velo_status (*group_history)(velo_group group, char* buffer, uint64_t capacity, uint64_t* needed);

  /* velo/executor.h */
  velo_status (*mailbox_create)(int32_t ranks, int64_t timeout_ns, velo_mailbox* mailbox);
  void (*mailbox_destroy)(velo_mailbox mailbox);
  velo_status (*mailbox_get_link)(velo_mailbox mailbox, int32_t rank, velo_link* link);
  velo_status (*executor_create)(velo_context context, velo_schedule schedule,
                                 const velo_executor_desc* desc, velo_executor* executor);
  void (*executor_destroy)(velo_executor executor);
  velo_status (*executor_run)(velo_stream stream, velo_executor executor);
  velo_status (*executor_cancel)(velo_executor executor);
  velo_status (*executor_get_timeline)(velo_executor executor, velo_timeline* timeline);

  /* velo/schedule.h */
  velo_status (*schedule_lower)(velo_schedule schedule, velo_schedule* lowered);

  /* velo/buckets.h */
  velo_status (*buckets_create)(velo_stream stream, velo_group group,
                                const velo_tensor* gradients, const int64_t* counts,
                                int64_t count, const velo_buckets_desc* desc,
                                velo_buckets* buckets);
  void (*buckets_destroy)(velo_buckets buckets);
  velo_status (*buckets_ready)(velo_buckets buckets, velo_stream stream, int64_t slice);
  velo_status (*buckets_finish)(velo_buckets buckets, velo_stream stream);
  velo_status (*buckets_gather)(velo_buckets buckets, velo_stream stream,
                                const velo_tensor* parameters);
  velo_status (*buckets_wait)(velo_buckets buckets, velo_stream stream, int64_t slice);
  velo_status (*buckets_get_info)(velo_buckets buckets, velo_buckets_info* info);
  velo_status (*buckets_get_bucket)(velo_buckets buckets, int64_t index, velo_bucket* bucket);

  /* velo/ops_overlap.h */
  velo_status (*matmul_reduce_scatter)(velo_stream stream,
                                       const velo_matmul_reduce_scatter_args* args);
  velo_status (*all_gather_matmul)(velo_stream stream, const velo_all_gather_matmul_args* args);
  velo_status (*all_gather_matmul_reduce_scatter)(
      velo_stream stream, const velo_all_gather_matmul_reduce_scatter_args* args);

  /* velo/schedule.h */
  velo_status (*schedule_kind_name)(velo_schedule_kind kind, const char** name);
  velo_status (*schedule_get_stage)(velo_schedule schedule, int32_t stage, velo_stage_info* info);

  /* velo/sublayers.h */
  velo_status (*sublayers_create)(const velo_sublayers_desc* desc, velo_sublayers* plan);

  /* velo/dispatch.h */
  velo_status (*group_dispatch)(velo_stream stream, velo_group inside, velo_group across,
                                const velo_tensor* in, const velo_tensor* targets,
                                const int64_t* out_counts, const velo_tensor* out);

  /* velo/executor.h */
  velo_status (*group_get_link)(velo_group group, velo_link* link);

  /* velo/tune.h */
  velo_status (*tune)(const velo_tune_desc* desc, velo_tuning* tuning);
  void (*tuning_destroy)(velo_tuning tuning);
  velo_status (*tuning_get_info)(velo_tuning tuning, velo_tuning_info* info);
  velo_status (*tuning_get_plan)(velo_tuning tuning, int64_t index, velo_tuning_plan* plan);
  velo_status (*tuning_get_memory)(velo_tuning tuning, int64_t index, int32_t rank,
                                   velo_tuning_memory* memory);
  velo_status (*tuning_get_rejection)(velo_tuning tuning, int64_t index,
                                      velo_tuning_rejection* rejection);
  velo_status (*tuning_write)(velo_tuning tuning, velo_tuning_format format, char* buffer,
                              uint64_t capacity, uint64_t* needed);

  /* velo/executor.h */
  velo_status (*executor_settle)(velo_stream stream, velo_executor executor);
  velo_status (*executor_get_stats)(velo_executor executor, velo_executor_stats* stats);

  /* velo/dispatch.h */
  velo_status (*group_combine)(velo_stream stream, velo_group inside, velo_group across,
                               const velo_tensor* in, const int64_t* in_counts,
                               const velo_tensor* targets, const velo_tensor* weights,
                               const velo_tensor* out);

  /* velo/collective.h */
  velo_status (*collective_create)(velo_group group, const velo_collective_desc* desc,
                                   velo_collective* collective);
  void (*collective_destroy)(velo_collective collective);
  velo_status (*collective_start)(velo_stream stream, velo_collective collective);
  velo_status (*collective_describe)(velo_collective collective, char* buffer, uint64_t capacity,
                                     uint64_t* needed);

  /* velo/timeline.h */
  velo_status (*timeline_get_memory)(velo_timeline timeline, int32_t rank,
                                     velo_timeline_memory* memory);
  velo_status (*timeline_get_path)(velo_timeline timeline, int64_t capacity,
                                   velo_path_step* steps, int64_t* count);

  /* velo/plan.h */
  velo_status (*plan_place_swaps)(velo_plan plan, const velo_plan_options* options);
  velo_status (*plan_get_stay)(velo_plan plan, int64_t index, velo_plan_stay* stay);

  /* velo/swap.h */
  velo_status (*swap_begin_step)(velo_swap swap, velo_plan plan, void* memory, velo_stream stream);
  velo_status (*swap_begin_stage)(velo_swap swap, int64_t* time);
  velo_status (*swap_get_buffer)(velo_swap swap, int64_t buffer, void** memory);
  velo_status (*swap_end_step)(velo_swap swap);

  /* velo/collective.h */
  velo_status (*group_measure)(velo_stream stream, velo_group group);
  velo_status (*collective_explain)(velo_collective collective, char* buffer, uint64_t capacity,
                                    uint64_t* needed);

  /* velo/introspect.h */
  velo_status (*op_cost)(velo_context context, const char* op, const velo_named_value* values,
                         int64_t count, velo_cost* cost);
  velo_status (*op_get_counts)(velo_context context, const char* op, velo_op_counts* counts);
  velo_status (*op_reset_counts)(velo_context context);

  /* velo/ops_elementwise.h */
  velo_status (*dropout)(velo_stream stream, const velo_dropout_args* args);
  velo_status (*dropout_backward)(velo_stream stream, const velo_dropout_backward_args* args);

  /* velo/ops_norm.h */
  velo_status (*layer_norm)(velo_stream stream, const velo_layer_norm_args* args);
  velo_status (*layer_norm_backward)(velo_stream stream, const velo_layer_norm_backward_args* args);

  /* velo/ops_matmul.h */
  velo_status (*grouped_matmul)(velo_stream stream, const velo_grouped_matmul_args* args);
  velo_status (*grouped_matmul_backward)(velo_stream stream,
                                         const velo_grouped_matmul_backward_args* args);
  velo_status (*grouped_matmul_add_fp32)(velo_stream stream,
                                         const velo_grouped_matmul_add_fp32_args* args);
  velo_status (*matmul_backward)(velo_stream stream, const velo_matmul_backward_args* args);

  /* velo/ops_activation.h */
  velo_status (*geglu)(velo_stream stream, const velo_geglu_args* args);
  velo_status (*geglu_backward)(velo_stream stream, const velo_geglu_backward_args* args);
  velo_status (*reglu)(velo_stream stream, const velo_reglu_args* args);
  velo_status (*reglu_backward)(velo_stream stream, const velo_reglu_backward_args* args);
  velo_status (*gelu)(velo_stream stream, const velo_gelu_args* args);
  velo_status (*gelu_backward)(velo_stream stream, const velo_gelu_backward_args* args);
  velo_status (*fast_gelu)(velo_stream stream, const velo_fast_gelu_args* args);
  velo_status (*fast_gelu_backward)(velo_stream stream, const velo_fast_gelu_backward_args* args);
  velo_status (*silu)(velo_stream stream, const velo_silu_args* args);
  velo_status (*silu_backward)(velo_stream stream, const velo_silu_backward_args* args);
  velo_status (*relu)(velo_stream stream, const velo_relu_args* args);
  velo_status (*relu_backward)(velo_stream stream, const velo_relu_backward_args* args);

  /* velo/ops_norm.h */
  velo_status (*dropout_add_rms_norm)(velo_stream stream,
                                      const velo_dropout_add_rms_norm_args* args);
  velo_status (*dropout_add_rms_norm_backward)(velo_stream stream,
                                               const velo_dropout_add_rms_norm_backward_args* args);
  velo_status (*dropout_add_layer_norm)(velo_stream stream,
                                        const velo_dropout_add_layer_norm_args* args);
  velo_status (*dropout_add_layer_norm_backward)(
      velo_stream stream, const velo_dropout_add_layer_norm_backward_args* args);

  /* velo/ops_experts.h */
  velo_status (*moe_token_permute)(velo_stream stream, const velo_moe_token_permute_args* args);
  velo_status (*moe_token_permute_backward)(velo_stream stream,
                                            const velo_moe_token_permute_backward_args* args);
  velo_status (*moe_token_unpermute)(velo_stream stream, const velo_moe_token_unpermute_args* args);
  velo_status (*moe_token_unpermute_backward)(velo_stream stream,
                                              const velo_moe_token_unpermute_backward_args* args);

  /* velo/ops_attention.h */
  velo_status (*ring_attention_update)(velo_stream stream,
                                       const velo_ring_attention_update_args* args);

  /* velo/ops_experts.h */
  velo_status (*topk_router)(velo_stream stream, const velo_topk_router_args* args);
  velo_status (*topk_router_backward)(velo_stream stream,
                                      const velo_topk_router_backward_args* args);

  /* velo/ops_optimizer.h */
  velo_status (*apply_fused_ema_adamw)(velo_stream stream,
                                       const velo_apply_fused_ema_adamw_args* args);

  /* velo/ops_elementwise.h */
  velo_status (*accumulate)(velo_stream stream, const velo_accumulate_args* args);
  velo_status (*reduce_max_abs)(velo_stream stream, const velo_reduce_max_abs_args* args);

  /* velo/ops_softmax.h */
  velo_status (*softmax)(velo_stream stream, const velo_softmax_args* args);
  velo_status (*softmax_backward)(velo_stream stream, const velo_softmax_backward_args* args);

  /* velo/ops_unpad.h */
  velo_status (*pad_seqlen)(velo_stream stream, const velo_pad_seqlen_args* args);
  velo_status (*pad_seqlen_backward)(velo_stream stream, const velo_pad_seqlen_backward_args* args);
  velo_status (*unpad_seqlen)(velo_stream stream, const velo_unpad_seqlen_args* args);
  velo_status (*unpad_seqlen_backward)(velo_stream stream,
                                       const velo_unpad_seqlen_backward_args* args);
  velo_status (*unpad_gen_attention_mask)(velo_stream stream,
                                          const velo_unpad_gen_attention_mask_args* args);
  velo_status (*unpad_rope)(velo_stream stream, const velo_unpad_rope_args* args);
  velo_status (*unpad_rope_backward)(velo_stream stream, const velo_unpad_rope_backward_args* args);
  velo_status (*unpad_softmax)(velo_stream stream, const velo_unpad_softmax_args* args);
  velo_status (*unpad_softmax_backward)(velo_stream stream,
                                        const velo_unpad_softmax_backward_args* args);

  /* velo/ops_attention.h */
  velo_status (*flash_attention)(velo_stream stream, const velo_flash_attention_args* args);
  velo_status (*flash_attention_backward)(velo_stream stream,
                                          const velo_flash_attention_backward_args* args);

  /* velo/ops_rope.h */
  velo_status (*rope_frequencies)(velo_stream stream, const velo_rope_frequencies_args* args);

  /* velo/ops_matmul.h */
  velo_status (*weight_quant_grouped_matmul)(velo_stream stream,
                                             const velo_weight_quant_grouped_matmul_args* args);
  velo_status (*quant_grouped_matmul)(velo_stream stream,
                                      const velo_quant_grouped_matmul_args* args);
  velo_status (*ffn)(velo_stream stream, const velo_ffn_args* args);

  /* velo/ops_quant.h */
  velo_status (*quantize)(velo_stream stream, const velo_quantize_args* args);

  /* velo/ops_matmul.h */
  velo_status (*weight_quant_matmul)(velo_stream stream, const velo_weight_quant_matmul_args* args);
  velo_status (*weight_quant_matmul_backward)(velo_stream stream,
                                              const velo_weight_quant_matmul_backward_args* args);

  /* velo/ops_optimizer.h */
  velo_status (*bf16_param_split)(velo_stream stream, const velo_bf16_param_split_args* args);
  velo_status (*bf16_param_merge)(velo_stream stream, const velo_bf16_param_merge_args* args);

  /* velo/ops_matmul.h */
  velo_status (*matmul_add)(velo_stream stream, const velo_matmul_add_args* args);
  velo_status (*matmul_add_backward)(velo_stream stream, const velo_matmul_add_backward_args* args);

  /* velo/ops_attention.h */
  velo_status (*cached_attention)(velo_stream stream, const velo_cached_attention_args* args);
  velo_status (*generate_mask)(velo_stream stream, const velo_generate_mask_args* args);
  velo_status (*alibi_slopes)(velo_stream stream, const velo_alibi_slopes_args* args);

  /* velo/ops_unpad.h */
  velo_status (*unpad_strided_batch_matmul)(velo_stream stream,
                                            const velo_unpad_strided_batch_matmul_args* args);
  velo_status (*unpad_strided_batch_matmul_backward)(
      velo_stream stream, const velo_unpad_strided_batch_matmul_backward_args* args);

  /* velo/ops_optimizer.h */
  velo_status (*multi_tensor_adamw)(velo_stream stream, const velo_multi_tensor_adamw_args* args);
  velo_status (*multi_tensor_ema_adamw)(velo_stream stream,
                                        const velo_multi_tensor_ema_adamw_args* args);

  /* velo/ops_matmul.h */
  velo_status (*matmul_swiglu)(velo_stream stream, const velo_matmul_swiglu_args* args);
  velo_status (*matmul_swiglu_backward)(velo_stream stream,
                                        const velo_matmul_swiglu_backward_args* args);
  velo_status (*rms_norm_matmul)(velo_stream stream, const velo_rms_norm_matmul_args* args);
  velo_status (*rms_norm_matmul_backward)(velo_stream stream,
                                          const velo_rms_norm_matmul_backward_args* args);

  /* velo/sharding.h */
  velo_status (*sharding_create)(velo_topology topology, velo_sharding* sharding);
  void (*sharding_destroy)(velo_sharding sharding);
  velo_status (*sharding_add)(velo_sharding sharding, const velo_sharding_parameter* parameter,
                              int64_t* index);
  velo_status (*sharding_get_info)(velo_sharding sharding, velo_sharding_info* info);
  velo_status (*sharding_parameter_name)(velo_sharding sharding, int64_t parameter,
                                         const char** name);
  velo_status (*sharding_get_part)(velo_sharding sharding, int64_t parameter, int64_t rank,
                                   velo_sharding_part* part);
  velo_status (*sharding_get_piece)(velo_sharding sharding, int64_t parameter, int64_t rank,
                                    int64_t index, velo_sharding_piece* piece);
  velo_status (*sharding_get_sum)(velo_sharding sharding, int64_t parameter, int64_t rank,
                                  int64_t index, const char** family);
  velo_status (*sharding_get_holders)(velo_sharding sharding, int64_t parameter, int64_t rank,
                                      int64_t index, int32_t* ranks, int64_t capacity,
                                      int64_t* count);
  velo_status (*sharding_check)(velo_sharding sharding);
  velo_status (*sharding_transfer)(velo_sharding from, velo_sharding to, int64_t parameter,
                                   int64_t rank, velo_sharding_content content,
                                   velo_sharding_move* moves, int64_t capacity, int64_t* count);
  velo_status (*sharding_write)(velo_sharding sharding, int64_t rank, velo_sharding_format format,
                                char* buffer, uint64_t capacity, uint64_t* needed);

  /* velo/sequence_plan.h */
  velo_status (*sequence_plan_create)(const velo_sequence_desc* desc, velo_sequence_plan* plan);
  void (*sequence_plan_destroy)(velo_sequence_plan plan);
  velo_status (*sequence_plan_get_info)(velo_sequence_plan plan, velo_sequence_info* info);
  velo_status (*sequence_plan_get_rows)(velo_sequence_plan plan, int64_t rank, int64_t* spans,
                                        int64_t capacity, int64_t* count);
  velo_status (*sequence_plan_get_step)(velo_sequence_plan plan, velo_sequence_pass pass,
                                        int64_t rank, int64_t step, velo_sequence_step* price);
  velo_status (*sequence_plan_get_task)(velo_sequence_plan plan, velo_sequence_pass pass,
                                        int64_t rank, int64_t step, int64_t index,
                                        velo_sequence_task* task);
  velo_status (*sequence_plan_get_message)(velo_sequence_plan plan, velo_sequence_pass pass,
                                           int64_t rank, int64_t step, velo_sequence_part part,
                                           int64_t index, velo_sequence_message* message);
  velo_status (*sequence_plan_get_spans)(velo_sequence_plan plan, velo_sequence_pass pass,
                                         int64_t rank, int64_t step, velo_sequence_part part,
                                         int64_t index, int64_t* spans, int64_t capacity,
                                         int64_t* count);
  velo_status (*sequence_plan_check)(velo_sequence_plan plan);
  velo_status (*sequence_plan_write)(velo_sequence_plan plan, velo_sequence_format format,
                                     char* buffer, uint64_t capacity, uint64_t* needed);

  /* velo/ops_optimizer.h */
  velo_status (*multi_tensor_global_norm)(velo_stream stream,
                                          const velo_multi_tensor_global_norm_args* args);

  /* velo/ops_parallel.h */
  velo_status (*sequence_all_to_all)(velo_stream stream, const velo_sequence_all_to_all_args* args);
  velo_status (*context_parallel_attention)(velo_stream stream,
                                            const velo_context_parallel_attention_args* args);
  velo_status (*context_parallel_attention_backward)(
      velo_stream stream, const velo_context_parallel_attention_backward_args* args);
  velo_status (*vocab_parallel_cross_entropy)(velo_stream stream,
                                              const velo_vocab_parallel_cross_entropy_args* args);
  velo_status (*vocab_parallel_cross_entropy_backward)(
      velo_stream stream, const velo_vocab_parallel_cross_entropy_backward_args* args);
  velo_status (*vocab_parallel_embedding)(velo_stream stream,
                                          const velo_vocab_parallel_embedding_args* args);
  velo_status (*vocab_parallel_embedding_backward)(
      velo_stream stream, const velo_vocab_parallel_embedding_backward_args* args);
  velo_status (*column_parallel_linear)(velo_stream stream,
                                        const velo_column_parallel_linear_args* args);
  velo_status (*column_parallel_linear_backward)(
      velo_stream stream, const velo_column_parallel_linear_backward_args* args);
  velo_status (*row_parallel_linear)(velo_stream stream, const velo_row_parallel_linear_args* args);
  velo_status (*row_parallel_linear_backward)(velo_stream stream,
                                              const velo_row_parallel_linear_backward_args* args);
  velo_status (*parallel_rms_norm)(velo_stream stream, const velo_parallel_rms_norm_args* args);
  velo_status (*parallel_rms_norm_backward)(velo_stream stream,
                                            const velo_parallel_rms_norm_backward_args* args);
  velo_status (*parallel_layer_norm)(velo_stream stream, const velo_parallel_layer_norm_args* args);
  velo_status (*parallel_layer_norm_backward)(velo_stream stream,
                                              const velo_parallel_layer_norm_backward_args* args);

  /* velo/profiler.h */
  velo_status (*profiler_create)(velo_context context, const velo_profiler_desc* desc,
                                 velo_profiler* profiler);
  void (*profiler_destroy)(velo_profiler profiler);
  velo_status (*profiler_begin)(velo_profiler profiler, const char* text);
  velo_status (*profiler_end)(velo_profiler profiler);
  velo_status (*profiler_stop)(velo_profiler profiler);
  velo_status (*profiler_get_stats)(velo_profiler profiler, velo_profiler_stats* stats);
  velo_status (*profiler_get_event)(velo_profiler profiler, int64_t index,
                                    velo_profiler_event* event);
  velo_status (*profiler_write)(velo_profiler profiler, velo_profiler_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed);
  velo_status (*profiler_save)(velo_profiler profiler, const char* path);

  /* velo/ops_overlap.h */
  velo_status (*matmul_all_reduce_add_rms_norm)(
      velo_stream stream, const velo_matmul_all_reduce_add_rms_norm_args* args);

  /* velo/dispatcher.h */
  velo_status (*dispatcher_create)(velo_group group, const velo_dispatcher_desc* desc,
                                   velo_dispatcher* dispatcher);
  void (*dispatcher_destroy)(velo_dispatcher dispatcher);
  velo_status (*dispatcher_get_info)(velo_dispatcher dispatcher, velo_dispatcher_info* info);
  velo_status (*routing_create)(velo_dispatcher dispatcher, velo_routing* routing);
  void (*routing_destroy)(velo_routing routing);
  velo_status (*routing_set)(velo_routing routing, velo_stream stream, const velo_tensor* choices,
                             const velo_tensor* scores, const velo_tensor* places);
  velo_status (*routing_get_rows)(velo_routing routing, int64_t* counts, int64_t capacity,
                                  int64_t* rows);
  velo_status (*routing_reset)(velo_routing routing);
  velo_status (*dispatcher_dispatch)(velo_dispatcher dispatcher, velo_stream stream,
                                     velo_routing routing, const velo_tensor* tokens,
                                     const velo_tensor* rows);
  velo_status (*dispatcher_combine)(velo_dispatcher dispatcher, velo_stream stream,
                                    velo_routing routing, const velo_tensor* rows,
                                    const velo_tensor* weights, const velo_tensor* tokens);
  velo_status (*dispatcher_combine_backward)(velo_dispatcher dispatcher, velo_stream stream,
                                             velo_routing routing, const velo_tensor* dtokens,
                                             const velo_tensor* rows, const velo_tensor* weights,
                                             const velo_tensor* drows, const velo_tensor* dweights);
  velo_status (*dispatcher_dispatch_backward)(velo_dispatcher dispatcher, velo_stream stream,
                                              velo_routing routing, const velo_tensor* drows,
                                              const velo_tensor* dtokens);

  /* velo/expert_plan.h */
  velo_status (*expert_plan_create)(const velo_expert_plan_desc* desc, velo_expert_plan* plan);
  void (*expert_plan_destroy)(velo_expert_plan plan);
  velo_status (*expert_plan_get_info)(velo_expert_plan plan, velo_expert_plan_info* info);
  velo_status (*expert_plan_get_experts)(velo_expert_plan plan, int64_t rank, int64_t* experts,
                                         int64_t capacity, int64_t* count);
  velo_status (*expert_plan_get_ranks)(velo_expert_plan plan, int64_t expert, int64_t* ranks,
                                       int64_t capacity, int64_t* count);
  velo_status (*expert_plan_write)(velo_expert_plan plan, velo_expert_plan_format format,
                                   char* buffer, uint64_t capacity, uint64_t* needed);

  /* velo/ops_experts.h */
  velo_status (*capacity_gate)(velo_stream stream, const velo_capacity_gate_args* args);
  velo_status (*capacity_gate_backward)(velo_stream stream,
                                        const velo_capacity_gate_backward_args* args);
  velo_status (*sinkhorn)(velo_stream stream, const velo_sinkhorn_args* args);
  velo_status (*sinkhorn_backward)(velo_stream stream, const velo_sinkhorn_backward_args* args);

  /* velo/ops_overlap.h */
  velo_status (*grouped_matmul_all_reduce)(velo_stream stream,
                                           const velo_grouped_matmul_all_reduce_args* args);

  /* velo/ops_parallel.h */
  velo_status (*capacity)(velo_stream stream, const velo_capacity_args* args);

  /* velo/ops_overlap.h */
  velo_status (*all_to_all_all_gather_bmm)(velo_stream stream,
                                           const velo_all_to_all_all_gather_bmm_args* args);
  velo_status (*bmm_reduce_scatter_all_to_all)(velo_stream stream,
                                               const velo_bmm_reduce_scatter_all_to_all_args* args);

  /* velo/sublayers.h */
  void (*sublayers_destroy)(velo_sublayers plan);
  velo_status (*sublayers_get_info)(velo_sublayers plan, velo_sublayers_info* info);
  velo_status (*sublayers_get_steps)(velo_sublayers plan, velo_sublayer_step* steps,
                                     int64_t capacity, int64_t* count);
  velo_status (*sublayers_get_needs)(velo_sublayers plan, int64_t step, int64_t* needs,
                                     int64_t capacity, int64_t* count);
  velo_status (*sublayers_write)(velo_sublayers plan, const velo_sublayer_span* spans,
                                 velo_sublayers_format format, char* buffer, uint64_t capacity,
                                 uint64_t* needed);
  velo_status (*sublayers_run)(velo_stream compute, velo_stream messages, velo_sublayers plan,
                               const velo_sublayers_run_desc* desc);
};

VELO_END_C

#endif
