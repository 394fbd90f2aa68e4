/* A library with the exported names of this release and nothing behind them: link tests use it as
 * the old or the new side.
 *
 * Generated from abi/spec: change that and build the target `generate`. */

/* ABI 1.0 */
int velo_last_error(void) { return 0; }
int velo_error_text(void) { return 0; }
int velo_status_describe(void) { return 0; }
int velo_tensor_create(void) { return 0; }
int velo_tensor_import(void) { return 0; }
void velo_tensor_release(void) {}
int velo_tensor_extent(void) { return 0; }
int velo_context_create(void) { return 0; }
void velo_context_destroy(void) {}
int velo_context_stream(void) { return 0; }
int velo_config_set(void) { return 0; }
int velo_config_get(void) { return 0; }
int velo_config_list(void) { return 0; }
int velo_context_get_stats(void) { return 0; }
int velo_stream_create(void) { return 0; }
void velo_stream_destroy(void) {}
int velo_stream_synchronize(void) { return 0; }
int velo_stream_query(void) { return 0; }
int velo_stream_clear(void) { return 0; }
int velo_stream_wait(void) { return 0; }
int velo_event_create(void) { return 0; }
void velo_event_destroy(void) {}
int velo_event_record(void) { return 0; }
int velo_event_synchronize(void) { return 0; }
int velo_event_query(void) { return 0; }
int velo_pack_create(void) { return 0; }
void velo_pack_destroy(void) {}
int velo_pack_update(void) { return 0; }
int velo_get_api(void) { return 0; }
int velo_version(void) { return 0; }
int velo_capability_query(void) { return 0; }
int velo_describe(void) { return 0; }
int velo_op_count(void) { return 0; }
int velo_op_name(void) { return 0; }
int velo_op_describe(void) { return 0; }
int velo_op_call(void) { return 0; }
int velo_op_infer(void) { return 0; }
int velo_op_explain(void) { return 0; }
int velo_invoke(void) { return 0; }
int velo_kernel_register(void) { return 0; }
void velo_kernel_destroy(void) {}
int velo_kernel_list(void) { return 0; }
int velo_plugin_load(void) { return 0; }
int velo_closure_create(void) { return 0; }
void velo_closure_destroy(void) {}
int velo_rms_norm(void) { return 0; }
int velo_rms_norm_backward(void) { return 0; }
int velo_swiglu(void) { return 0; }
int velo_swiglu_backward(void) { return 0; }
int velo_rotary_position_embedding(void) { return 0; }
int velo_rotary_position_embedding_backward(void) { return 0; }
int velo_matmul(void) { return 0; }
int velo_matmul_add_fp32(void) { return 0; }
int velo_fusion_attention(void) { return 0; }
int velo_fusion_attention_backward(void) { return 0; }
int velo_embedding(void) { return 0; }
int velo_embedding_backward(void) { return 0; }
int velo_cross_entropy(void) { return 0; }
int velo_cross_entropy_backward(void) { return 0; }
int velo_apply_fused_adamw(void) { return 0; }
int velo_global_norm(void) { return 0; }
int velo_add(void) { return 0; }
int velo_cast(void) { return 0; }
