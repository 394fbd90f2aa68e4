"""The C interface of velo as ctypes: every struct, constant and function, and nothing else.

    import velo.ctypes as v
    lib = v.load()
    context = v.velo_context()
    v.check(lib, lib.velo_context_create(None, ctypes.byref(context)))

A struct that begins with struct_size has its size and all defaults set when it is made:
v.velo_rms_norm_args(x=ctypes.pointer(tx), epsilon=1e-5). A name that Python reserves has an
underscore behind it (velo_value.as_). The caller keeps callbacks given to velo, and whatever a
pointer points at, alive, as in C. True and False are taken for flags, and refused for an
enumeration and for a number of an operator. abi/generated/api.md says what the functions do.

Generated from abi/spec: change that and build the target `generate`.
"""
import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_float, c_int32, c_int64
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64, c_void_p


class VeloError(RuntimeError):
    """A refused or failed call: `status`, and velo's sentence as the text."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Sized(ctypes.Structure):
    """A struct that begins with its size and may grow: made with its size and its defaults set."""
    _defaults_, _numbers_ = {}, ()

    def __init__(self, **values):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **{**self._defaults_, **values})

    def __setattr__(self, name, value):
        if value is True or value is False:
            if name in self._numbers_:
                raise TypeError(f"{type(self).__name__}.{name}: expected a number, got {value}")
        super().__setattr__(name, value)


class enumeration(c_int32):
    """An enumerator that a function takes."""

    @classmethod
    def from_param(cls, value):
        if isinstance(value, bool):
            raise TypeError(f"expected an enumerator, got {value}")
        return c_int32(value)


VELO_OK = 0
VELO_ERR_NULL = 1
VELO_ERR_HANDLE = 2
VELO_ERR_STRUCT = 3
VELO_ERR_ARGUMENT = 4
VELO_ERR_RANK = 5
VELO_ERR_SHAPE = 6
VELO_ERR_DTYPE = 7
VELO_ERR_LAYOUT = 8
VELO_ERR_DEVICE = 9
VELO_ERR_OVERLAP = 10
VELO_ERR_NOT_FOUND = 11
VELO_ERR_PARSE = 12
VELO_ERR_UNSUPPORTED = 13
VELO_ERR_ABI = 14
VELO_ERR_STATE = 15
VELO_ERR_FULL = 16
VELO_ERR_MEMORY = 32
VELO_ERR_IO = 33
VELO_ERR_TIMEOUT = 34
VELO_ERR_PEER = 35
VELO_ERR_FOREIGN = 36
VELO_ERR_INTERNAL = 37
VELO_DTYPE_INT = 0
VELO_DTYPE_UINT = 1
VELO_DTYPE_FLOAT = 2
VELO_DTYPE_BFLOAT = 4
VELO_DTYPE_BOOL = 6
VELO_DEVICE_CPU = 1
VELO_MANAGED_READ_ONLY = 1
VELO_MANAGED_IS_COPIED = 2
VELO_LOG_OFF = 0
VELO_LOG_ERROR = 1
VELO_LOG_WARN = 2
VELO_LOG_INFO = 3
VELO_LOG_DEBUG = 4
VELO_CAP_CLOSURES = 1
VELO_VALUE_NONE = 0
VELO_VALUE_INT = 1
VELO_VALUE_FLOAT = 2
VELO_VALUE_STRING = 3
VELO_VALUE_TENSOR = 4
VELO_VALUE_INTS = 5
VELO_VALUE_HANDLE = 6
VELO_VALUE_POINTER = 7
VELO_VALUE_TENSORS = 8
VELO_PROFILER_TIMES = 0
VELO_PROFILER_WORK = 1
VELO_PROFILER_WAITS = 2
VELO_PROFILER_OPERATOR = 0
VELO_PROFILER_COLLECTIVE = 1
VELO_PROFILER_RANGE = 2
VELO_PROFILER_WAIT = 3
VELO_PROFILER_FAILED = 4
VELO_PROFILER_TRACE = 0
VELO_PROFILER_EVENTS = 1
VELO_COLLECTIVE_BARRIER = 0
VELO_COLLECTIVE_ALL_REDUCE = 1
VELO_COLLECTIVE_REDUCE = 2
VELO_COLLECTIVE_BROADCAST = 3
VELO_COLLECTIVE_ALL_GATHER = 4
VELO_COLLECTIVE_ALL_GATHER_V = 5
VELO_COLLECTIVE_REDUCE_SCATTER = 6
VELO_COLLECTIVE_REDUCE_SCATTER_V = 7
VELO_COLLECTIVE_ALL_TO_ALL = 8
VELO_COLLECTIVE_ALL_TO_ALL_V = 9
VELO_COLLECTIVE_GATHER = 10
VELO_COLLECTIVE_GATHER_V = 11
VELO_COLLECTIVE_SCATTER = 12
VELO_COLLECTIVE_SCATTER_V = 13
VELO_COLLECTIVE_SEND = 14
VELO_COLLECTIVE_RECEIVE = 15
VELO_COLLECTIVE_EXCHANGE = 16
VELO_TRANSPORT_AUTO = 0
VELO_TRANSPORT_SELF = 1
VELO_TRANSPORT_LOCAL = 2
VELO_TRANSPORT_SHM = 3
VELO_TRANSPORT_MPI = 4
VELO_TRANSPORT_HOST = 5
VELO_GROUP_VERIFY = 1
VELO_HOST_DECLINED = -1000000
VELO_MESSAGE_SEND = 0
VELO_MESSAGE_RECEIVE = 1
VELO_REDUCE_SUM = 0
VELO_REDUCE_AVG = 1
VELO_REDUCE_MIN = 2
VELO_REDUCE_MAX = 3
VELO_REDUCE_CUSTOM = 4
VELO_TOPOLOGY_JSON = 0
VELO_TOPOLOGY_SVG = 1
VELO_SHARDING_PARTS = 0
VELO_SHARDING_RANGES = 1
VELO_SHARDING_JSON = 0
VELO_SHARDING_SVG = 1
VELO_POOL_ORDINARY = 0
VELO_POOL_HUGE = 1
VELO_POOL_SHARED = 2
VELO_POOL_LOCKED = 3
VELO_LIFETIME_DEFAULT = 0
VELO_LIFETIME_LONG = 1
VELO_PURPOSE_OTHER = 0
VELO_PURPOSE_PARAMETER = 1
VELO_PURPOSE_GRADIENT = 2
VELO_PURPOSE_OPTIMIZER = 3
VELO_PURPOSE_ACTIVATION = 4
VELO_PURPOSE_WORKSPACE = 5
VELO_PURPOSE_COMMUNICATION = 6
VELO_PURPOSE_INPUT = 7
VELO_ADAPTOR_LIMIT = 0
VELO_ADAPTOR_STATISTICS = 1
VELO_ADAPTOR_TRACE = 2
VELO_ADAPTOR_CALLBACK = 3
VELO_MEMORY_ALLOCATED = 0
VELO_MEMORY_FREED = 1
VELO_MEMORY_FAILED = 2
VELO_PLAN_CSV = 0
VELO_PLAN_RMM_LOG = 1
VELO_PLAN_SVG = 2
VELO_PLAN_SWAPS = 3
VELO_SWAP_FURTHEST = 0
VELO_SWAP_SMART = 1
VELO_SWAP_JOINT = 2
VELO_SWAP_ACTION_IN = 0
VELO_SWAP_ACTION_OUT = 1
VELO_SWAP_ACTION_DROP = 2
VELO_SWAP_ACTION_MAKE = 3
VELO_PLAN_RECORD = 0
VELO_PLAN_REPLAY = 1
VELO_ACCESS_READ = 0
VELO_ACCESS_WRITE = 1
VELO_RECOMPUTE_METHOD_NONE = 0
VELO_RECOMPUTE_METHOD_FULL = 1
VELO_RECOMPUTE_METHOD_BLOCK = 2
VELO_RECOMPUTE_METHOD_UNIFORM = 3
VELO_RECOMPUTE_METHOD_SELECTIVE = 4
VELO_RECOMPUTE_METHOD_ADAPTIVE = 5
VELO_RECOMPUTE_NONE = 0
VELO_RECOMPUTE_FULL = 1
VELO_RECOMPUTE_SELECTIVE = 2
VELO_RECOMPUTE_ACTIVATION = 4
VELO_RECOMPUTE_NORM = 8
VELO_RECOMPUTE_FEED_FORWARD = 16
VELO_RECOMPUTE_BESIDE_BUBBLE = 1
VELO_RECOMPUTE_BESIDE_ADVANCE = 2
VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION = 4
VELO_RECOMPUTE_BESIDE_LIFETIMES = 8
VELO_RECOMPUTE_BESIDE_AMPIPE = 16
VELO_RECOMPUTE_BESIDE_BALANCE = 32
VELO_SNAPSHOT_JSON = 0
VELO_SNAPSHOT_PICKLE = 1
VELO_SNAPSHOT_TIMELINE = 2
VELO_RECOMPUTE_STEP_COMPUTE = 0
VELO_RECOMPUTE_STEP_FREE = 1
VELO_SWAP_HOST = 0
VELO_SWAP_DISK = 1
VELO_SWAP_ENGINE_AUTO = 0
VELO_SWAP_ENGINE_URING = 1
VELO_SWAP_ENGINE_THREADS = 2
VELO_SWAP_ENGINE_COPY = 3
VELO_SWAP_WARM = 0
VELO_SWAP_COLD = 1
VELO_SWAP_RESIDENT = 0
VELO_SWAP_LEAVING = 1
VELO_SWAP_OUT = 2
VELO_SWAP_RETURNING = 3
VELO_SWAP_UPDATING = 4
VELO_ACTION_F = 1
VELO_ACTION_I = 2
VELO_ACTION_W = 3
VELO_ACTION_UNSHARD = 4
VELO_ACTION_RESHARD = 5
VELO_ACTION_SEND_F = 6
VELO_ACTION_RECV_F = 7
VELO_ACTION_SEND_B = 8
VELO_ACTION_RECV_B = 9
VELO_ACTION_B = 10
VELO_ACTION_FB = 11
VELO_ACTION_REDUCE_GRAD = 12
VELO_ACTION_RECOMPUTE = 13
VELO_ACTION_OFFLOAD = 14
VELO_ACTION_RELOAD = 15
VELO_ACTION_OPTIMIZER = 16
VELO_SCHEDULE_CUSTOM = 0
VELO_SCHEDULE_GPIPE = 1
VELO_SCHEDULE_1F1B = 2
VELO_SCHEDULE_INTERLEAVED = 3
VELO_SCHEDULE_LOOPED_BFS = 4
VELO_SCHEDULE_ZBH1 = 5
VELO_SCHEDULE_ZBH2 = 6
VELO_SCHEDULE_ZB1P = 7
VELO_SCHEDULE_ZBV = 8
VELO_SCHEDULE_ZBV_GREEDY = 9
VELO_SCHEDULE_VHALF = 10
VELO_SCHEDULE_VMIN = 11
VELO_SCHEDULE_1F1B_V = 12
VELO_SCHEDULE_DUALPIPE = 13
VELO_SCHEDULE_DUALPIPEV = 14
VELO_SCHEDULE_SEQ1F1B = 15
VELO_SCHEDULE_AUTO = 16
VELO_SCHEDULE_NANOPIPE = 17
VELO_SCHEDULE_RIPIPE = 18
VELO_SCHEDULE_EXTRA_WARMUP = 1
VELO_SCHEDULE_NO_DW_DETACH = 2
VELO_SCHEDULE_OVERLAP = 4
VELO_SCHEDULE_IN_ADVANCE = 8
VELO_SCHEDULE_SWAP = 16
VELO_SCHEDULE_OPTIMIZER = 32
VELO_SCHEDULE_CSV = 0
VELO_SCHEDULE_JSON = 1
VELO_VIOLATION_MISSING = 1
VELO_VIOLATION_DUPLICATE = 2
VELO_VIOLATION_ORDER = 3
VELO_VIOLATION_PLACEMENT = 4
VELO_VIOLATION_STUCK = 5
VELO_VIOLATION_MESSAGE = 6
VELO_VIOLATION_FIFO = 7
VELO_VIOLATION_RENDEZVOUS = 8
VELO_VIOLATION_BATCHED = 9
VELO_VIOLATION_REDUCE = 10
VELO_VIOLATION_OPTIMIZER = 11
VELO_VIOLATION_OFFLOAD = 12
VELO_VIOLATION_UNSHARD = 13
VELO_SUBLAYER_ATTENTION_F = 1
VELO_SUBLAYER_DISPATCH_F = 2
VELO_SUBLAYER_EXPERTS_F = 3
VELO_SUBLAYER_COMBINE_F = 4
VELO_SUBLAYER_SHARED_F = 5
VELO_SUBLAYER_COMBINE_B = 6
VELO_SUBLAYER_EXPERTS_B = 7
VELO_SUBLAYER_DISPATCH_B = 8
VELO_SUBLAYER_SHARED_B = 9
VELO_SUBLAYER_ATTENTION_B = 10
VELO_SUBLAYER_EXPERTS_W = 11
VELO_SUBLAYER_ATTENTION_W = 12
VELO_SUBLAYER_SEND_B = 13
VELO_SUBLAYER_WHOLE = 0
VELO_SUBLAYER_BY_EXPERT = 1
VELO_SUBLAYER_BY_ROWS = 2
VELO_SUBLAYER_BY_SEQUENCE = 3
VELO_SUBLAYERS_SHARED = 1
VELO_SUBLAYERS_SEND = 2
VELO_SUBLAYERS_JSON = 0
VELO_SUBLAYERS_SVG = 1
VELO_PATH_START = 0
VELO_PATH_RANK = 1
VELO_PATH_MESSAGE = 2
VELO_PATH_COPY = 3
VELO_PATH_COLLECTIVE = 4
VELO_TIMELINE_SUMMARY = 0
VELO_TIMELINE_SUMMARY_JSON = 1
VELO_TIMELINE_SVG = 2
VELO_TIMELINE_TRACE = 3
VELO_TIMELINE_GRID = 4
VELO_BUCKETS_ALL_REDUCE = 0
VELO_BUCKETS_REDUCE_SCATTER = 1
VELO_CAPACITY_NONE = 0
VELO_CAPACITY_ROWS = 1
VELO_CAPACITY_FACTOR = 2
VELO_DISPATCH_ALL_TO_ALL = 0
VELO_DISPATCH_ALL_GATHER = 1
VELO_DISPATCH_ALL_TO_ALL_SEQUENCE = 2
VELO_DISPATCH_HIERARCHICAL = 3
VELO_EXECUTOR_TENSORS = 16
VELO_LINK_WAITS = 1
VELO_EXECUTOR_RECORD = 1
VELO_SEQUENCE_ULYSSES = 0
VELO_SEQUENCE_RING = 1
VELO_SEQUENCE_HYBRID = 2
VELO_SEQUENCE_ALL_GATHER = 3
VELO_SEQUENCE_ADAPTIVE = 4
VELO_SEQUENCE_HYBRID_ADAPTIVE = 5
VELO_SEQUENCE_CACHE_NONE = 0
VELO_SEQUENCE_CACHE_HALF = 1
VELO_SEQUENCE_CACHE_FULL = 2
VELO_SEQUENCE_KEYS_OWN = 0
VELO_SEQUENCE_KEYS_SHARED = 1
VELO_SEQUENCE_KEYS_GIVEN = 2
VELO_SEQUENCE_FORWARD = 0
VELO_SEQUENCE_GRADIENT = 1
VELO_SEQUENCE_CELLS_ALL = 0
VELO_SEQUENCE_CELLS_CAUSAL = 1
VELO_SEQUENCE_CELLS_MASKED = 2
VELO_SEQUENCE_Q = 0
VELO_SEQUENCE_K = 1
VELO_SEQUENCE_V = 2
VELO_SEQUENCE_OUT = 3
VELO_SEQUENCE_DOUT = 4
VELO_SEQUENCE_DQ = 5
VELO_SEQUENCE_DK = 6
VELO_SEQUENCE_DV = 7
VELO_SEQUENCE_TASK_QUERIES = 0
VELO_SEQUENCE_TASK_KEYS = 1
VELO_SEQUENCE_SENT = 2
VELO_SEQUENCE_RECEIVED = 3
VELO_EXPERT_PLAN_JSON = 0
VELO_EXPERT_PLAN_SVG = 1
VELO_SEQUENCE_JSON = 0
VELO_SEQUENCE_SVG = 1
VELO_TUNING_RECOMPUTE_NONE = 0
VELO_TUNING_RECOMPUTE_CORE = 1
VELO_TUNING_RECOMPUTE_ACTIVATION = 2
VELO_TUNING_RECOMPUTE_FULL = 3
VELO_TUNING_RECOMPUTE_NORMS = 4
VELO_TUNING_SPLIT_EVEN = 0
VELO_TUNING_SPLIT_BALANCED = 1
VELO_TUNING_REARRANGE_INDEX = 0
VELO_TUNING_REARRANGE_ONE_HOT = 1
VELO_TUNING_REASON_HEADS = 1
VELO_TUNING_REASON_RANKS = 2
VELO_TUNING_REASON_EXPERTS = 3
VELO_TUNING_REASON_BATCH = 4
VELO_TUNING_REASON_SEQUENCE = 5
VELO_TUNING_REASON_LAYERS = 6
VELO_TUNING_REASON_SCHEDULE = 7
VELO_TUNING_REASON_MEMORY = 8
VELO_TUNING_REASON_SLOWER = 9
VELO_TUNING_REASON_SAME = 10
VELO_TUNING_SUMMARY = 0
VELO_TUNING_JSON = 1
VELO_TUNING_REJECTED = 2
VELO_TUNING_ASSUMPTIONS = 3
VELO_APPROXIMATION_NONE = 0
VELO_APPROXIMATION_TANH = 1
VELO_ROPE_SCALING_NONE = 0
VELO_ROPE_SCALING_LINEAR = 1
VELO_ROPE_SCALING_DYNAMIC = 2
VELO_ROPE_SCALING_YARN = 3
VELO_ROPE_SCALING_LLAMA3 = 4
VELO_ROTARY_MODE_HALF = 0
VELO_ROTARY_MODE_INTERLEAVED = 1
VELO_FFN_ACTIVATION_FASTGELU = 0
VELO_FFN_ACTIVATION_GELU = 1
VELO_FFN_ACTIVATION_RELU = 2
VELO_FFN_ACTIVATION_SILU = 3
VELO_FFN_ACTIVATION_GEGLU = 4
VELO_FFN_ACTIVATION_SWIGLU = 5
VELO_FFN_ACTIVATION_REGLU = 6
VELO_QUANT_OUTPUT_FLOAT16 = 0
VELO_QUANT_OUTPUT_BFLOAT16 = 1
VELO_QUANT_OUTPUT_FLOAT32 = 2
VELO_QUANT_OUTPUT_INT8 = 3
VELO_QUANT_ACTIVATION_NONE = 0
VELO_QUANT_ACTIVATION_RELU = 1
VELO_QUANT_ACTIVATION_GELU_TANH = 2
VELO_QUANT_ACTIVATION_GELU = 3
VELO_QUANT_ACTIVATION_FAST_GELU = 4
VELO_QUANT_ACTIVATION_SILU = 5
VELO_GROUP_LIST_KIND_CUMULATIVE = 0
VELO_GROUP_LIST_KIND_COUNTS = 1
VELO_GROUP_TYPE_ROWS = 0
VELO_GROUP_TYPE_DEPTH = 2
VELO_PRODUCT_DTYPE_LIKE_A = 0
VELO_PRODUCT_DTYPE_FLOAT32 = 1
VELO_ATTENTION_LAYOUT_BSND = 0
VELO_ATTENTION_LAYOUT_BNSD = 1
VELO_ATTENTION_LAYOUT_SBH = 2
VELO_ATTENTION_LAYOUT_BSH = 3
VELO_ATTENTION_LAYOUT_TND = 4
VELO_ATTENTION_STATISTICS_COMPACT = 0
VELO_ATTENTION_STATISTICS_EIGHTFOLD = 1
VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE = 0
VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE = 1
VELO_ATTENTION_PSE_TYPE_ALIBI = 2
VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT = 3
VELO_ATTENTION_SPARSE_MODE_FULL = 0
VELO_ATTENTION_SPARSE_MODE_ALL_MASK = 1
VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL = 2
VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL = 3
VELO_ATTENTION_SPARSE_MODE_BAND = 4
VELO_ATTENTION_SPARSE_MODE_PREFIX = 5
VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED = 6
VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND = 7
VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL = 8
VELO_REDUCTION_NONE = 0
VELO_REDUCTION_MEAN = 1
VELO_REDUCTION_SUM = 2
VELO_BF16_ROUNDING_HALF_UP = 0
VELO_BF16_ROUNDING_HALF_EVEN = 1
VELO_REDUCED_TENSOR = 0
VELO_REDUCED_ROWS = 1
VELO_REDUCED_COLUMNS = 2
VELO_ELEMENT_FLOAT32 = 0
VELO_ELEMENT_BFLOAT16 = 1
VELO_ELEMENT_FLOAT16 = 2
VELO_EXPERT_SHARD_COLUMNS = 0
VELO_EXPERT_SHARD_ROWS = 1
VELO_EXPERT_ACTIVATION_NONE = 0
VELO_EXPERT_ACTIVATION_GELU = 1
VELO_EXPERT_ACTIVATION_SILU = 2
VELO_EXPERT_ACTIVATION_RELU = 3
VELO_EXPERT_ACTIVATION_FASTGELU = 4
VELO_GROUPED_SPLIT_LISTS = 0
VELO_GROUPED_SPLIT_ONE_X = 1
VELO_GROUPED_SPLIT_ONE_Y = 2
VELO_GROUPED_SPLIT_ONE = 3
VELO_DEQUANTIZED_BY_SCALE = 0
VELO_DEQUANTIZED_FLOAT16 = 1
VELO_DEQUANTIZED_BFLOAT16 = 2
VELO_DEQUANTIZED_FLOAT32 = 3
VELO_ROUTER_SCORE_SOFTMAX = 0
VELO_ROUTER_SCORE_SIGMOID = 1
VELO_GROUP_SCORE_MAXIMUM = 0
VELO_GROUP_SCORE_TOP2_SUM = 1
VELO_GATE_NOISE_NONE = 0
VELO_GATE_NOISE_RSAMPLE = 1
VELO_DROP_POLICY_PROBABILITY = 0
VELO_DROP_POLICY_POSITION = 1
VELO_STRIDED_MATMUL_PRESET_NONE = 0
VELO_STRIDED_MATMUL_PRESET_BMM1 = 1
VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD1 = 2
VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD2 = 3
VELO_STRIDED_MATMUL_PRESET_BMM2 = 4
VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD1 = 5
VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD2 = 6
VELO_QUANTIZED_OVER_TENSOR = 0
VELO_QUANTIZED_OVER_TOKEN = 1
VELO_QUANTIZED_OVER_CHANNEL = 2
VELO_QUANTIZED_OVER_GROUP = 3
VELO_QUANTIZED_FORMAT_INT8 = 0
VELO_QUANTIZED_FORMAT_INT4 = 1
VELO_SEQUENCE_CUT_HEADS = 0
VELO_SEQUENCE_CUT_ROWS = 1


class velo_context(c_void_p):
    """Everything a host configures once: device, threads, memory, options, log."""


class velo_stream(c_void_p):
    """An ordered queue of work in a context."""


class velo_event(c_void_p):
    """A point in a stream that other streams and the host can wait for."""


class velo_pack(c_void_p):
    """A weight, or one for each expert, laid out once in the order the matrix kernels read it."""


class velo_kernel(c_void_p):
    """A registered foreign kernel."""


class velo_closure(c_void_p):
    """An operator as a C function pointer."""


class velo_profiler(c_void_p):
    """When the work of a context began and ended, as it was recorded."""


class velo_group(c_void_p):
    """One rank of a group of ranks that work together."""


class velo_collective(c_void_p):
    """A collective of a rank of a group, described once and started many times."""


class velo_topology(c_void_p):
    """Which ranks of a job form which groups."""


class velo_sharding(c_void_p):
    """Where each element of each parameter lies among the ranks of a job."""


class velo_pool(c_void_p):
    """Blocks of memory given and taken back without asking the system each time."""


class velo_adaptor(c_void_p):
    """What goes between an allocator and those that allocate from it: a limit, statistics, a trace, a callback."""


class velo_plan(c_void_p):
    """Buffers whose lifetimes are known, and an address for each."""


class velo_recompute(c_void_p):
    """Regions whose outputs are released after the forward pass and restored before the backward pass."""


class velo_recompute_plan(c_void_p):
    """Operations of a step, and which of their outputs are freed and made again to fit a budget."""


class velo_swap(c_void_p):
    """Objects whose contents wait in other memory or in files while nobody needs them."""


class velo_schedule(c_void_p):
    """Who does what in which order: the actions of a pipeline's ranks."""


class velo_timeline(c_void_p):
    """When a schedule's actions begin and end, simulated or measured."""


class velo_buckets(c_void_p):
    """Gradients of ranks that hold the same parameters, combined while the backward pass goes on."""


class velo_mailbox(c_void_p):
    """Where ranks that are threads of one process leave messages for each other."""


class velo_executor(c_void_p):
    """One rank's part of a schedule, to be carried out."""


class velo_sequence_plan(c_void_p):
    """How ranks share the attention of one sequence that is cut between them."""


class velo_dispatcher(c_void_p):
    """How a layer's rows go to the experts of a group's ranks and back."""


class velo_routing(c_void_p):
    """The choices of one micro-batch, until its backward pass has used them."""


class velo_expert_plan(c_void_p):
    """On which ranks each expert lies."""


class velo_sublayers(c_void_p):
    """The order of a layer's parts, in which messages travel while something else is computed."""


class velo_tuning(c_void_p):
    """What a search for layouts of a job found: plans, and candidates that are none."""


class velo_error_info(Sized):
    """The error record: strings end with a zero byte, are UTF-8, and may be cut at their capacity."""


class velo_dtype(ctypes.Structure):
    """The type of a tensor's elements; the 4 bytes of a DLDataType."""


class velo_device(ctypes.Structure):
    """A device; the 8 bytes of a DLDevice."""


class velo_tensor(ctypes.Structure):
    """A view of a tensor; the 48 bytes of a DLTensor."""


class velo_tensors(ctypes.Structure):
    """A list of tensors as an argument."""


class velo_dlpack_version(ctypes.Structure):
    """The DLPack version a managed tensor was made for."""


class velo_managed_tensor(ctypes.Structure):
    """A tensor with its owner; the 80 bytes of DLPack 1.x's DLManagedTensorVersioned."""


class velo_allocator(Sized):
    """Where velo gets memory."""


class velo_parallel_for(Sized):
    """The host's threads."""


class velo_context_desc(Sized):
    """What a context is made from."""


class velo_context_stats(Sized):
    """Counters of a context."""


class velo_pack_desc(Sized):
    """What a weight pack holds."""


class velo_ints(ctypes.Structure):
    """A list of integers as an argument."""


class velo_value(ctypes.Structure):
    """A tagged value, 16 bytes."""


class velo_named_value(ctypes.Structure):
    """A value for one field of an operator."""


class velo_shape(Sized):
    """What an operator's output must look like for given inputs."""


class velo_cost(Sized):
    """The work of a call of an operator."""


class velo_op_counts(Sized):
    """The work of calls that a context has accepted."""


class velo_kernel_desc(Sized):
    """A foreign kernel: library, symbol, signature and binding."""


class velo_plugin_desc(Sized):
    """What a plugin library gives velo."""


class velo_profiler_desc(Sized):
    """What a profiler records."""


class velo_profiler_stats(Sized):
    """How much was recorded."""


class velo_profiler_event(Sized):
    """Something that began and ended."""


class velo_reduction(Sized):
    """How a collective combines elements."""


class velo_collective_desc(Sized):
    """The arguments of a collective."""


class velo_group_desc(Sized):
    """What a group is made from."""


class velo_host_call(Sized):
    """What every function of the host is told; alive until it returns."""


class velo_host_collectives(Sized):
    """The collectives of a host, of one rank."""


class velo_group_message(ctypes.Structure):
    """One of several messages."""


class velo_group_info(Sized):
    """What is known of a group."""


class velo_topology_desc(Sized):
    """A job of tp * cp * dp * pp * gtp ranks, less than 2^31."""


class velo_topology_info(Sized):
    """Numbers of a topology."""


class velo_topology_family(Sized):
    """A family of groups."""


class velo_topology_place(Sized):
    """Where a rank is in a family."""


class velo_sharding_block(ctypes.Structure):
    """A run of elements of a dimension, which is cut by itself."""


class velo_sharding_cut(ctypes.Structure):
    """An axis that cuts a dimension."""


class velo_sharding_parameter(Sized):
    """A parameter: its shape, its cuts and the stages with it."""


class velo_sharding_info(Sized):
    """Numbers of a sharding."""


class velo_sharding_part(Sized):
    """A rank's part of a parameter."""


class velo_sharding_piece(Sized):
    """A box of elements of a parameter in a rank's own tensor."""


class velo_sharding_move(ctypes.Structure):
    """A box of elements that a rank takes from another, or from itself."""


class velo_pool_desc(Sized):
    """What a pool is made from."""


class velo_pool_request(Sized):
    """What a block is wanted for."""


class velo_pool_stats(Sized):
    """Counters of a pool."""


class velo_adaptor_desc(Sized):
    """What an adaptor is made from."""


class velo_adaptor_stats(Sized):
    """What has gone through an adaptor; bytes as requested."""


class velo_plan_desc(Sized):
    """What a plan is made from."""


class velo_plan_options(Sized):
    """How long to look for addresses."""


class velo_plan_buffer(Sized):
    """A buffer of a plan."""


class velo_plan_stats(Sized):
    """What a plan holds, and how good its addresses are."""


class velo_swap_options(Sized):
    """What swaps are planned for."""


class velo_plan_swap(Sized):
    """A transfer of planned swaps."""


class velo_plan_stay(Sized):
    """A stay of a buffer in memory, between its transfers."""


class velo_plan_swap_stats(Sized):
    """What planned swaps come to."""


class velo_plan_use_info(Sized):
    """A use of a buffer."""


class velo_plan_step(Sized):
    """What became of a step: the one that has begun last."""


class velo_recompute_rule(Sized):
    """A model in a pipeline, seen from one stage, and what to recompute of it."""


class velo_recompute_layer(ctypes.Structure):
    """What a rule makes of a layer."""


class velo_recompute_module(ctypes.Structure):
    """A part of a layer, as measured: the whole layer, a module of it, a module of that."""


class velo_recompute_budget(Sized):
    """Bytes for what the stage's layers keep, and what trials have shown so far."""


class velo_recompute_choice(Sized):
    """Which budget to try, and what the choice made for it takes."""


class velo_recompute_desc(Sized):
    """What regions are kept with."""


class velo_recompute_call(Sized):
    """What a region's function gets; everything lives until it returns."""


class velo_recompute_input(ctypes.Structure):
    """What a region takes."""


class velo_recompute_region(Sized):
    """A part of the forward pass that can be run again."""


class velo_recompute_stats(Sized):
    """Counters of regions."""


class velo_pool_stream_stats(Sized):
    """What a pool holds for one stream; bytes in whole blocks."""


class velo_recompute_op(Sized):
    """An operation with one output."""


class velo_recompute_plan_options(Sized):
    """What a plan for recompute has to keep to."""


class velo_recompute_step(Sized):
    """A step of a plan for recompute."""


class velo_recompute_plan_stats(Sized):
    """Numbers of a plan for recompute."""


class velo_swap_desc(Sized):
    """What a swap is made from."""


class velo_swap_object(Sized):
    """What is known of an object."""


class velo_swap_stats(Sized):
    """Counters of a swap."""


class velo_action(ctypes.Structure):
    """One action of a rank."""


class velo_schedule_costs(Sized):
    """What actions take, in any unit of time: a whole rank's, for one micro-batch."""


class velo_schedule_desc(Sized):
    """What a schedule is made from."""


class velo_schedule_info(Sized):
    """Numbers of a schedule."""


class velo_stage_info(Sized):
    """What a stage is."""


class velo_sublayer_step(ctypes.Structure):
    """A step of a plan of sublayers."""


class velo_sublayers_desc(Sized):
    """What a plan of sublayers is made for."""


class velo_sublayers_info(Sized):
    """Numbers of a plan of sublayers."""


class velo_sublayer_span(ctypes.Structure):
    """When a step of a run began and ended, in nanoseconds of the monotonic clock."""


class velo_sublayers_run_desc(Sized):
    """What carries a plan of sublayers out."""


class velo_violation(Sized):
    """What a schedule does that it must not."""


class velo_timeline_stats(Sized):
    """Numbers of a timeline."""


class velo_timeline_rank(Sized):
    """Numbers of one rank of a timeline."""


class velo_timeline_memory(Sized):
    """What a rank's memory holds when the device holds most, by category, in the unit of the costs' sizes."""


class velo_path_step(ctypes.Structure):
    """One action of the critical path."""


class velo_buckets_desc(Sized):
    """What buckets are made from."""


class velo_buckets_info(Sized):
    """Numbers of buckets."""


class velo_bucket(Sized):
    """One bucket; elements are of gradients, and of parameters."""


class velo_dispatcher_desc(Sized):
    """The properties of a layer of experts."""


class velo_dispatcher_info(Sized):
    """The layout of a dispatcher's experts."""


class velo_expert_plan_desc(Sized):
    """What an expert plan is made for."""


class velo_expert_plan_info(Sized):
    """Numbers of an expert plan."""


class velo_link(Sized):
    """How one rank reaches others."""


class velo_executor_call(Sized):
    """What a function of the host gets; everything lives until it returns."""


class velo_executor_validation(Sized):
    """How steps are taken before all is known."""


class velo_executor_stats(Sized):
    """What became of the steps that a rank took."""


class velo_executor_desc(Sized):
    """What an executor is made from."""


class velo_sequence_desc(Sized):
    """What a sequence plan is made for."""


class velo_sequence_info(Sized):
    """Numbers of a sequence plan."""


class velo_sequence_step(Sized):
    """The price of a rank's step."""


class velo_sequence_task(Sized):
    """Partial attention that a rank computes."""


class velo_sequence_message(Sized):
    """Rows that go from a rank to another."""


class velo_tuning_layout(ctypes.Structure):
    """A way to cut a job."""


class velo_tune_desc(Sized):
    """What is searched for."""


class velo_tuning_info(Sized):
    """Numbers of a tuning."""


class velo_tuning_plan(Sized):
    """A layout that fits, and what a step takes."""


class velo_tuning_memory(Sized):
    """What a rank of a plan's pipeline needs, in bytes."""


class velo_tuning_rejection(Sized):
    """A candidate that is no plan, and why."""


velo_log_fn = CFUNCTYPE(None, c_void_p, c_int32, c_char_p, c_char_p)
velo_plugin_query_fn = CFUNCTYPE(c_int32, c_uint32, POINTER(POINTER(velo_plugin_desc)))
velo_reduce_fn = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_int64, POINTER(velo_dtype))
velo_host_all_gather_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_void_p, c_void_p, c_int64)
velo_host_all_to_all_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_void_p, POINTER(c_int64), c_void_p, POINTER(c_int64))
velo_host_broadcast_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_int32, c_void_p, c_int64)
velo_host_all_reduce_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_int32, POINTER(velo_dtype), c_void_p, c_void_p, c_int64)
velo_host_send_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_int32, c_void_p, c_int64)
velo_host_receive_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), c_int32, c_void_p, c_int64)
velo_host_part_fn = CFUNCTYPE(c_int64, c_void_p, POINTER(velo_host_call), POINTER(c_int32), c_int32, POINTER(velo_host_collectives))
velo_host_abort_fn = CFUNCTYPE(None, c_void_p, c_char_p)
velo_host_release_fn = CFUNCTYPE(None, c_void_p)
velo_pool_pressure_fn = CFUNCTYPE(c_int32, c_void_p, c_uint64)
velo_memory_event_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_uint64, c_void_p)
velo_recompute_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(velo_recompute_call))
velo_swap_update_fn = CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64, POINTER(c_void_p))
velo_link_send_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_uint64)
velo_link_receive_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_uint64)
velo_link_abort_fn = CFUNCTYPE(None, c_void_p, c_char_p)
velo_link_start_send_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_uint64)
velo_link_finish_fn = CFUNCTYPE(c_int32, c_void_p)
velo_link_borrow_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_uint64, POINTER(c_void_p))
velo_link_give_back_fn = CFUNCTYPE(None, c_void_p, c_void_p)
velo_executor_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(velo_executor_call))
velo_executor_released_fn = CFUNCTYPE(None, c_void_p, POINTER(velo_action))
velo_executor_measure_fn = CFUNCTYPE(c_int32, c_void_p, velo_stream, c_void_p)
velo_executor_decide_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, c_int32, POINTER(c_double))
velo_executor_step_fn = CFUNCTYPE(c_int32, c_void_p, velo_stream, POINTER(velo_action), c_double, c_int32)
velo_executor_rollback_fn = CFUNCTYPE(c_int32, c_void_p, velo_stream)
velo_executor_forget_fn = CFUNCTYPE(c_int32, c_void_p)
velo_sublayer_fn = CFUNCTYPE(c_int32, c_void_p, velo_stream, POINTER(velo_sublayer_step))
velo_sublayers_failed_fn = CFUNCTYPE(None, c_void_p, POINTER(velo_sublayer_step), c_int32)

velo_error_info._fields_ = [
    ("struct_size", c_uint32),
    ("code", c_int32),
    ("rank", c_int32),
    ("function", c_char * 64),
    ("argument", c_char * 64),
    ("expected", c_char * 192),
    ("got", c_char * 192),
    ("cause", c_char * 256),
]
velo_dtype._fields_ = [
    ("code", c_uint8),
    ("bits", c_uint8),
    ("lanes", c_uint16),
]
velo_device._fields_ = [
    ("type", c_int32),
    ("id", c_int32),
]
velo_tensor._fields_ = [
    ("data", c_void_p),
    ("device", velo_device),
    ("ndim", c_int32),
    ("dtype", velo_dtype),
    ("shape", POINTER(c_int64)),
    ("strides", POINTER(c_int64)),
    ("byte_offset", c_uint64),
]
velo_tensors._fields_ = [
    ("data", POINTER(velo_tensor)),
    ("count", c_int64),
]
velo_dlpack_version._fields_ = [
    ("major", c_uint32),
    ("minor", c_uint32),
]
velo_managed_tensor._fields_ = [
    ("version", velo_dlpack_version),
    ("manager_context", c_void_p),
    ("deleter", CFUNCTYPE(None, POINTER(velo_managed_tensor))),
    ("flags", c_uint64),
    ("tensor", velo_tensor),
]
velo_allocator._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("user", c_void_p),
    ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_uint64, c_uint64, POINTER(velo_device), c_void_p)),
    ("deallocate", CFUNCTYPE(None, c_void_p, c_void_p, c_uint64, POINTER(velo_device), c_void_p)),
]
velo_parallel_for._fields_ = [
    ("struct_size", c_uint32),
    ("threads", c_int32),
    ("user", c_void_p),
    ("run", CFUNCTYPE(None, c_void_p, c_int64, CFUNCTYPE(None, c_void_p, c_int64), c_void_p)),
]
velo_parallel_for._defaults_ = {"threads": 1}
velo_context_desc._fields_ = [
    ("struct_size", c_uint32),
    ("threads", c_int32),
    ("device", velo_device),
    ("allocator", POINTER(velo_allocator)),
    ("parallel_for", POINTER(velo_parallel_for)),
    ("log", velo_log_fn),
    ("log_user", c_void_p),
    ("config_json", c_char_p),
]
velo_context_desc._defaults_ = {"device": velo_device(1, 0)}
velo_context_stats._fields_ = [
    ("struct_size", c_uint32),
    ("threads", c_int32),
    ("bytes_allocated", c_uint64),
    ("bytes_peak", c_uint64),
    ("allocations", c_uint64),
    ("operator_calls", c_uint64),
]
velo_pack_desc._fields_ = [
    ("struct_size", c_uint32),
    ("transpose", c_int32),
    ("dtype", velo_dtype),
    ("weight_only", c_uint32),
    ("k", c_int64),
    ("n", c_int64),
    ("count", c_int64),
]
velo_pack_desc._defaults_ = {"dtype": velo_dtype(2, 32, 1)}
velo_ints._fields_ = [
    ("data", POINTER(c_int64)),
    ("count", c_int64),
]


class velo_value_as(ctypes.Union):
    """the value"""
    _fields_ = [
        ("i", c_int64),
        ("f", c_double),
        ("s", c_char_p),
        ("tensor", POINTER(velo_tensor)),
        ("ints", POINTER(velo_ints)),
        ("tensors", POINTER(velo_tensors)),
        ("p", c_void_p),
    ]


velo_value._fields_ = [
    ("kind", c_int32),
    ("reserved", c_int32),
    ("as_", velo_value_as),
]
velo_named_value._fields_ = [
    ("name", c_char_p),
    ("value", velo_value),
]
velo_shape._fields_ = [
    ("struct_size", c_uint32),
    ("ndim", c_int32),
    ("dtype", velo_dtype),
    ("reserved", c_uint32),
    ("sizes", c_int64 * 8),
    ("name", c_char * 32),
]
velo_cost._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("flops", c_double),
    ("flops_visible", c_double),
    ("bytes_read", c_double),
    ("bytes_written", c_double),
    ("seconds", c_double),
]
velo_op_counts._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("calls", c_int64),
    ("flops_recorded", c_double),
    ("flops_traversed", c_double),
    ("flops_visible", c_double),
    ("bytes_read", c_double),
    ("bytes_written", c_double),
    ("seconds", c_double),
    ("least_seconds", c_double),
    ("calls_checked", c_int64),
    ("calls_not_judged", c_int64),
]
velo_kernel_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("op", c_char_p),
    ("library", c_char_p),
    ("symbol", c_char_p),
    ("signature", c_char_p),
    ("binding", c_char_p),
    ("tensors", c_char_p),
    ("function", c_void_p),
]
velo_plugin_desc._fields_ = [
    ("struct_size", c_uint32),
    ("abi", c_uint32),
    ("name", c_char_p),
    ("kernels", POINTER(velo_kernel_desc)),
    ("kernel_count", c_int64),
]
velo_plugin_desc._defaults_ = {"abi": 100}
velo_profiler_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("level", c_int32),
    ("rank", c_int32),
    ("events", c_uint64),
    ("label", c_char_p),
]
velo_profiler_desc._defaults_ = {"events": 65536}
velo_profiler_desc._numbers_ = ("level",)
velo_profiler_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("events", c_uint64),
    ("dropped", c_uint64),
    ("begin_ns", c_int64),
    ("end_ns", c_int64),
]
velo_profiler_event._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("kind", c_int32),
    ("thread", c_int32),
    ("begin_ns", c_int64),
    ("end_ns", c_int64),
    ("name", c_char_p),
    ("detail", c_char_p),
    ("flops", c_double),
    ("bytes", c_double),
]
velo_profiler_event._numbers_ = ("kind",)
velo_reduction._fields_ = [
    ("struct_size", c_uint32),
    ("op", c_int32),
    ("scale", c_double),
    ("fn", velo_reduce_fn),
    ("user", c_void_p),
]
velo_reduction._defaults_ = {"scale": 1}
velo_reduction._numbers_ = ("op",)
velo_collective_desc._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("rank", c_int32),
    ("reserved", c_uint32),
    ("reduction", POINTER(velo_reduction)),
    ("in_", POINTER(velo_tensor)),
    ("out", POINTER(velo_tensor)),
    ("in_counts", POINTER(c_int64)),
    ("in_offsets", POINTER(c_int64)),
    ("out_counts", POINTER(c_int64)),
    ("out_offsets", POINTER(c_int64)),
    ("messages", POINTER(velo_group_message)),
    ("message_count", c_int64),
]
velo_collective_desc._numbers_ = ("kind",)
velo_group_desc._fields_ = [
    ("struct_size", c_uint32),
    ("transport", c_int32),
    ("label", c_char_p),
    ("timeout_ns", c_int64),
    ("buffer", c_uint64),
    ("name", c_char_p),
    ("rank", c_int32),
    ("size", c_int32),
    ("communicator", c_int64),
    ("host", POINTER(velo_host_collectives)),
    ("flags", c_uint32),
    ("reserved", c_uint32),
    ("pool", velo_pool),
]
velo_group_desc._defaults_ = {"timeout_ns": 600000000000, "buffer": 524288, "rank": -1, "size": -1, "communicator": -1}
velo_group_desc._numbers_ = ("transport",)
velo_host_call._fields_ = [
    ("struct_size", c_uint32),
    ("capacity", c_uint32),
    ("why", c_char_p),
    ("timeout_ns", c_int64),
    ("late", POINTER(c_uint8)),
]
velo_host_collectives._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("user", c_void_p),
    ("all_gather", velo_host_all_gather_fn),
    ("all_to_all", velo_host_all_to_all_fn),
    ("broadcast", velo_host_broadcast_fn),
    ("all_reduce", velo_host_all_reduce_fn),
    ("send", velo_host_send_fn),
    ("receive", velo_host_receive_fn),
    ("part", velo_host_part_fn),
    ("abort", velo_host_abort_fn),
    ("release", velo_host_release_fn),
]
velo_group_message._fields_ = [
    ("x", POINTER(velo_tensor)),
    ("rank", c_int32),
    ("direction", c_int32),
]
velo_group_info._fields_ = [
    ("struct_size", c_uint32),
    ("transport", c_int32),
    ("rank", c_int32),
    ("size", c_int32),
    ("timeout_ns", c_int64),
    ("called", c_uint64),
    ("finished", c_uint64),
    ("failed", c_int32),
    ("reserved", c_uint32),
]
velo_group_info._numbers_ = ("transport",)
velo_topology_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("order", c_char_p),
    ("tp", c_int64),
    ("cp", c_int64),
    ("dp", c_int64),
    ("pp", c_int64),
    ("ep", c_int64),
    ("etp", c_int64),
    ("gtp", c_int64),
    ("egtp", c_int64),
    ("instances", c_int64),
    ("cp_levels", POINTER(c_int64)),
    ("cp_level_count", c_int64),
    ("cp_ulysses", c_int64),
    ("cp_window", c_int64),
    ("tp_x", c_int64),
    ("tp_y", c_int64),
    ("hybrid", c_int32),
    ("twins", c_int32),
]
velo_topology_desc._defaults_ = {"tp": 1, "cp": 1, "dp": 1, "pp": 1, "ep": 1, "gtp": 1, "egtp": 1, "instances": 1, "cp_ulysses": 1, "cp_window": 1}
velo_topology_info._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("ranks", c_int64),
    ("families", c_int64),
    ("etp", c_int64),
    ("edp", c_int64),
]
velo_topology_family._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("groups", c_int64),
    ("size", c_int64),
    ("twin_of", c_char_p),
]
velo_topology_place._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("group", c_int64),
    ("position", c_int64),
]
velo_sharding_block._fields_ = [
    ("size", c_int64),
    ("units", c_int64),
    ("repeat", c_int64),
]
velo_sharding_cut._fields_ = [
    ("axis", c_char_p),
    ("dimension", c_int64),
    ("blocks", POINTER(velo_sharding_block)),
    ("block_count", c_int64),
    ("bounds", POINTER(c_int64)),
    ("bound_count", c_int64),
]
velo_sharding_parameter._fields_ = [
    ("struct_size", c_uint32),
    ("ndim", c_int32),
    ("name", c_char_p),
    ("shape", POINTER(c_int64)),
    ("cuts", POINTER(velo_sharding_cut)),
    ("cut_count", c_int64),
    ("stages", POINTER(c_int64)),
    ("stage_count", c_int64),
    ("partial", c_char_p),
    ("bucket", c_int64),
    ("experts", c_int32),
    ("no_gradient", c_int32),
]
velo_sharding_parameter._defaults_ = {"bucket": -1}
velo_sharding_info._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("ranks", c_int64),
    ("parameters", c_int64),
]
velo_sharding_part._fields_ = [
    ("struct_size", c_uint32),
    ("ndim", c_int32),
    ("shape", c_int64 * 8),
    ("elements", c_int64),
    ("pieces", c_int64),
    ("sums", c_int64),
    ("copies", c_int64),
    ("range_begin", c_int64),
    ("range_end", c_int64),
]
velo_sharding_piece._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("begin", c_int64 * 8),
    ("end", c_int64 * 8),
    ("at", c_int64 * 8),
    ("copies", c_int64),
]
velo_sharding_move._fields_ = [
    ("source", c_int64),
    ("begin", c_int64 * 8),
    ("end", c_int64 * 8),
    ("source_at", c_int64 * 8),
    ("at", c_int64 * 8),
]
velo_pool_desc._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("limit", c_uint64),
    ("checked", c_int32),
    ("reserved", c_uint32),
    ("pressure", velo_pool_pressure_fn),
    ("pressure_user", c_void_p),
    ("log", velo_log_fn),
    ("log_user", c_void_p),
]
velo_pool_desc._numbers_ = ("kind",)
velo_pool_request._fields_ = [
    ("struct_size", c_uint32),
    ("lifetime", c_int32),
    ("bytes", c_uint64),
    ("alignment", c_uint64),
    ("stream", velo_stream),
    ("purpose", c_int32),
    ("zero", c_int32),
]
velo_pool_request._numbers_ = ("lifetime", "purpose")
velo_pool_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("bytes_live", c_uint64),
    ("bytes_rounding", c_uint64),
    ("bytes_peak", c_uint64),
    ("bytes_reserved", c_uint64),
    ("bytes_reserved_peak", c_uint64),
    ("bytes_cached", c_uint64),
    ("bytes_pending", c_uint64),
    ("bytes_split", c_uint64),
    ("bytes_largest_hole", c_uint64),
    ("bytes_let_go", c_uint64),
    ("bytes_unlocked", c_uint64),
    ("allocations", c_uint64),
    ("frees", c_uint64),
    ("refused", c_uint64),
    ("purpose_live", c_uint64 * 8),
    ("purpose_peak", c_uint64 * 8),
]
velo_adaptor_desc._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("upstream", POINTER(velo_allocator)),
    ("limit", c_uint64),
    ("path", c_char_p),
    ("event", velo_memory_event_fn),
    ("event_user", c_void_p),
]
velo_adaptor_desc._defaults_ = {"kind": 1}
velo_adaptor_desc._numbers_ = ("kind",)
velo_adaptor_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("bytes_live", c_uint64),
    ("bytes_peak", c_uint64),
    ("allocations", c_uint64),
    ("frees", c_uint64),
    ("failures", c_uint64),
]
velo_plan_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("capacity", c_uint64),
    ("pool", velo_pool),
]
velo_plan_options._fields_ = [
    ("struct_size", c_uint32),
    ("threads", c_int32),
    ("seconds", c_double),
    ("seed", c_uint64),
]
velo_plan_options._defaults_ = {"threads": 1, "seconds": 10, "seed": 1}
velo_plan_buffer._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("lower", c_int64),
    ("upper", c_int64),
    ("bytes", c_uint64),
    ("offset", c_int64),
]
velo_plan_stats._fields_ = [
    ("struct_size", c_uint32),
    ("solved", c_int32),
    ("buffers", c_uint64),
    ("capacity", c_uint64),
    ("lower_bound", c_uint64),
    ("height", c_uint64),
    ("uses", c_uint64),
]
velo_swap_options._fields_ = [
    ("struct_size", c_uint32),
    ("policy", c_int32),
    ("budget", c_uint64),
    ("out_bytes_per_second", c_double),
    ("in_bytes_per_second", c_double),
    ("seconds", c_double),
    ("least_bytes", c_uint64),
    ("release_stages", c_int32),
    ("prefetch_stages", c_int32),
]
velo_swap_options._defaults_ = {"out_bytes_per_second": 12000000000.0, "in_bytes_per_second": 12000000000.0, "least_bytes": 1048576}
velo_swap_options._numbers_ = ("policy",)
velo_plan_swap._fields_ = [
    ("struct_size", c_uint32),
    ("action", c_int32),
    ("buffer", c_int64),
    ("after", c_int64),
    ("before", c_int64),
    ("begin", c_double),
    ("end", c_double),
    ("stay", c_int64),
]
velo_plan_swap._numbers_ = ("action",)
velo_plan_stay._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("buffer", c_int64),
    ("begin", c_int64),
    ("end", c_int64),
    ("bytes", c_uint64),
    ("offset", c_int64),
]
velo_plan_swap_stats._fields_ = [
    ("struct_size", c_uint32),
    ("solved", c_int32),
    ("transfers", c_uint64),
    ("bytes_out", c_uint64),
    ("bytes_in", c_uint64),
    ("bytes_peak", c_uint64),
    ("bytes_live", c_uint64),
    ("compute_seconds", c_double),
    ("stall_seconds", c_double),
    ("bound_seconds", c_double),
    ("make_seconds", c_double),
    ("stages", c_uint64),
    ("stays", c_uint64),
    ("bytes_planned", c_uint64),
    ("placed", c_int32),
    ("reserved", c_uint32),
]
velo_plan_use_info._fields_ = [
    ("struct_size", c_uint32),
    ("access", c_int32),
    ("buffer", c_int64),
    ("time", c_int64),
]
velo_plan_use_info._numbers_ = ("access",)
velo_plan_step._fields_ = [
    ("struct_size", c_uint32),
    ("mode", c_int32),
    ("steps", c_uint64),
    ("allocations", c_uint64),
    ("matched", c_uint64),
    ("resized", c_uint64),
    ("outliving", c_uint64),
    ("displaced", c_uint64),
    ("unexpected", c_uint64),
    ("missing", c_uint64),
    ("bytes_planned", c_uint64),
    ("bytes_reserved", c_uint64),
    ("bytes_reserved_peak", c_uint64),
    ("bytes_let_go", c_uint64),
    ("bytes_live", c_uint64),
]
velo_plan_step._numbers_ = ("mode",)
velo_recompute_rule._fields_ = [
    ("struct_size", c_uint32),
    ("method", c_int32),
    ("layers", c_int32),
    ("pipeline_size", c_int32),
    ("pipeline_rank", c_int32),
    ("chunks", c_int32),
    ("micro_batches", c_int32),
    ("count", c_int32),
    ("per_stage", c_int32),
    ("activation", c_int32),
    ("activation_layers", c_int32),
    ("norm", c_int32),
    ("norm_layers", c_int32),
    ("beside", c_int32),
    ("feed_forward_layers", c_int32),
]
velo_recompute_rule._defaults_ = {"layers": 1, "pipeline_size": 1, "chunks": 1, "count": 1, "activation_layers": -1, "norm_layers": -1}
velo_recompute_rule._numbers_ = ("method", "beside")
velo_recompute_layer._fields_ = [
    ("layer", c_int32),
    ("chunk", c_int32),
    ("kinds", c_int32),
    ("first", c_int32),
    ("in_flight", c_int32),
    ("swap", c_int32),
]
velo_recompute_module._fields_ = [
    ("layer", c_int32),
    ("parent", c_int32),
    ("bytes", c_uint64),
    ("bytes_input", c_uint64),
    ("seconds", c_double),
]
velo_recompute_budget._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("bytes", c_uint64),
    ("fits", c_uint64),
    ("fails", c_uint64),
    ("step", c_uint64),
]
velo_recompute_budget._defaults_ = {"step": 1048576}
velo_recompute_choice._fields_ = [
    ("struct_size", c_uint32),
    ("settled", c_int32),
    ("budget", c_uint64),
    ("bytes", c_uint64),
    ("bytes_least", c_uint64),
    ("bytes_most", c_uint64),
    ("seconds", c_double),
    ("seconds_bound", c_double),
]
velo_recompute_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("allocator", POINTER(velo_allocator)),
]
velo_recompute_call._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("recompute", velo_recompute),
    ("region", c_int64),
    ("stream", velo_stream),
    ("name", c_char_p),
    ("seed", c_uint64),
    ("offset", c_uint64),
    ("inputs", POINTER(c_void_p)),
    ("outputs", POINTER(c_void_p)),
]
velo_recompute_input._fields_ = [
    ("memory", c_void_p),
    ("region", c_int64),
    ("output", c_int64),
]
velo_recompute_region._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("name", c_char_p),
    ("restore", velo_recompute_fn),
    ("user", c_void_p),
    ("parent", c_int64),
    ("inputs", POINTER(velo_recompute_input)),
    ("input_count", c_int64),
    ("output_bytes", POINTER(c_uint64)),
    ("output_count", c_int64),
    ("seed", c_uint64),
    ("offset", c_uint64),
]
velo_recompute_region._defaults_ = {"parent": -1}
velo_recompute_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("regions", c_uint64),
    ("bytes", c_uint64),
    ("bytes_peak", c_uint64),
    ("releases", c_uint64),
    ("restores", c_uint64),
]
velo_pool_stream_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("bytes_live", c_uint64),
    ("blocks_live", c_uint64),
    ("bytes_pending", c_uint64),
]
velo_recompute_op._fields_ = [
    ("struct_size", c_uint32),
    ("keep", c_int32),
    ("seconds", c_double),
    ("bytes", c_uint64),
    ("workspace", c_uint64),
    ("inputs", POINTER(c_int64)),
    ("input_count", c_int64),
]
velo_recompute_plan_options._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("budget", c_uint64),
    ("seed", c_uint64),
]
velo_recompute_plan_options._defaults_ = {"seed": 1}
velo_recompute_step._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("op", c_int64),
]
velo_recompute_step._numbers_ = ("kind",)
velo_recompute_plan_stats._fields_ = [
    ("struct_size", c_uint32),
    ("solved", c_int32),
    ("ops", c_uint64),
    ("steps", c_uint64),
    ("bytes_all", c_uint64),
    ("bytes_peak", c_uint64),
    ("seconds", c_double),
    ("seconds_more", c_double),
    ("optimal", c_int32),
    ("reserved", c_int32),
]
velo_swap_desc._fields_ = [
    ("struct_size", c_uint32),
    ("tier", c_int32),
    ("memory", velo_pool),
    ("pool", velo_pool),
    ("directories", c_char_p),
    ("limit", c_uint64),
    ("block", c_uint64),
    ("depth", c_int32),
    ("checksums", c_int32),
    ("direct", c_int32),
    ("engine", c_int32),
    ("minimum", c_uint64),
]
velo_swap_desc._defaults_ = {"block": 1048576, "depth": 8, "checksums": 1, "direct": 1, "minimum": 524288}
velo_swap_desc._numbers_ = ("tier", "engine")
velo_swap_object._fields_ = [
    ("struct_size", c_uint32),
    ("state", c_int32),
    ("memory", c_void_p),
    ("bytes", c_uint64),
    ("bytes_stored", c_uint64),
    ("layer", c_int64),
]
velo_swap_object._numbers_ = ("state",)
velo_swap_stats._fields_ = [
    ("struct_size", c_uint32),
    ("engine", c_int32),
    ("objects", c_uint64),
    ("objects_out", c_uint64),
    ("bytes_held", c_uint64),
    ("bytes_stored", c_uint64),
    ("bytes_peak", c_uint64),
    ("bytes_out", c_uint64),
    ("bytes_in", c_uint64),
    ("failures", c_uint64),
    ("seconds_out", c_double),
    ("seconds_in", c_double),
    ("seconds_checksum_out", c_double),
    ("seconds_checksum_in", c_double),
    ("how", c_char * 192),
]
velo_swap_stats._numbers_ = ("engine",)
velo_action._fields_ = [
    ("kind", c_int32),
    ("stage", c_int32),
    ("microbatch", c_int32),
    ("other_stage", c_int32),
    ("other_microbatch", c_int32),
]
velo_schedule_costs._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("forward", c_double),
    ("input", c_double),
    ("weight", c_double),
    ("fused", c_double),
    ("latency", c_double),
    ("transfer", c_double),
    ("recompute", c_double),
    ("offload", c_double),
    ("reload", c_double),
    ("gather", c_double),
    ("reduce", c_double),
    ("optimizer", c_double),
    ("pending", c_double),
    ("checkpoint", c_double),
    ("embedding", c_double),
    ("predictor", c_double),
    ("loss", c_double),
    ("shares", POINTER(c_double)),
    ("share_count", c_int64),
    ("weight_size", c_double),
    ("gradient_size", c_double),
    ("optimizer_size", c_double),
    ("activation_size", c_double),
    ("message_size", c_double),
]
velo_schedule_costs._defaults_ = {"forward": 1, "input": 1, "weight": 1, "fused": -1, "recompute": -1, "pending": 1, "predictor": 1, "activation_size": 1}
velo_schedule_desc._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("ranks", c_int32),
    ("microbatches", c_int32),
    ("chunks", c_int32),
    ("group", c_int32),
    ("splits", c_int32),
    ("flags", c_uint32),
    ("cap", c_double),
    ("costs", POINTER(velo_schedule_costs)),
    ("layers", c_int32),
    ("noop_count", c_int32),
    ("layout", c_char_p),
    ("noop_layers", POINTER(c_int32)),
]
velo_schedule_desc._numbers_ = ("kind",)
velo_schedule_info._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("ranks", c_int32),
    ("stages", c_int32),
    ("microbatches", c_int32),
    ("layers", c_int32),
    ("actions", c_int64),
]
velo_schedule_info._numbers_ = ("kind",)
velo_stage_info._fields_ = [
    ("struct_size", c_uint32),
    ("rank", c_int32),
    ("chunk", c_int32),
    ("first_layer", c_int32),
    ("layers", c_int32),
    ("noop_layers", c_int32),
    ("predictors", c_int32),
    ("embedding", c_int32),
    ("loss", c_int32),
]
velo_sublayer_step._fields_ = [
    ("kind", c_int32),
    ("layer", c_int32),
    ("slice", c_int32),
    ("message", c_int32),
]
velo_sublayers_desc._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("forward_layers", c_int32),
    ("backward_layers", c_int32),
    ("slicing", c_int32),
    ("slices", c_int32),
    ("forward_dense", POINTER(c_int32)),
    ("backward_dense", POINTER(c_int32)),
    ("times", POINTER(c_double)),
    ("latency", c_double),
    ("order", POINTER(velo_sublayer_step)),
    ("order_steps", c_int64),
]
velo_sublayers_desc._defaults_ = {"slices": 1}
velo_sublayers_desc._numbers_ = ("slicing",)
velo_sublayers_info._fields_ = [
    ("struct_size", c_uint32),
    ("slices", c_int32),
    ("steps", c_int64),
    ("messages", c_int64),
    ("makespan", c_double),
    ("computing", c_double),
    ("communicating", c_double),
    ("exposed", c_double),
]
velo_sublayer_span._fields_ = [
    ("begin", c_int64),
    ("end", c_int64),
]
velo_sublayers_run_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("user", c_void_p),
    ("compute", velo_sublayer_fn),
    ("message", velo_sublayer_fn),
    ("failed", velo_sublayers_failed_fn),
    ("spans", POINTER(velo_sublayer_span)),
]
velo_violation._fields_ = [
    ("struct_size", c_uint32),
    ("code", c_int32),
    ("rank", c_int32),
    ("reserved", c_int32),
    ("index", c_int64),
    ("action", velo_action),
    ("reason", c_char * 172),
]
velo_violation._numbers_ = ("code",)
velo_timeline_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("makespan", c_double),
    ("work", c_double),
    ("beta", c_double),
    ("sigma", c_double),
]
velo_timeline_rank._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("first", c_double),
    ("last", c_double),
    ("work", c_double),
    ("peak_activations", c_double),
    ("peak_offloaded", c_double),
]
velo_timeline_memory._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("time", c_double),
    ("total", c_double),
    ("weights", c_double),
    ("gradients", c_double),
    ("optimizer", c_double),
    ("activations", c_double),
    ("messages", c_double),
    ("offloaded", c_double),
]
velo_path_step._fields_ = [
    ("action", velo_action),
    ("rank", c_int32),
    ("index", c_int64),
    ("begin", c_double),
    ("length", c_double),
    ("wait", c_double),
    ("cause", c_int32),
    ("reserved", c_int32),
]
velo_buckets_desc._fields_ = [
    ("struct_size", c_uint32),
    ("mode", c_int32),
    ("bytes", c_uint64),
    ("scale", c_double),
]
velo_buckets_desc._defaults_ = {"bytes": 1048576}
velo_buckets_desc._numbers_ = ("mode",)
velo_buckets_info._fields_ = [
    ("struct_size", c_uint32),
    ("mode", c_int32),
    ("slices", c_int64),
    ("buckets", c_int64),
    ("steps", c_int64),
]
velo_buckets_info._numbers_ = ("mode",)
velo_bucket._fields_ = [
    ("struct_size", c_uint32),
    ("place", c_int32),
    ("first", c_int64),
    ("slices", c_int64),
    ("offset", c_int64),
    ("count", c_int64),
    ("own_offset", c_int64),
    ("own_count", c_int64),
]
velo_dispatcher_desc._fields_ = [
    ("struct_size", c_uint32),
    ("top_k", c_int32),
    ("experts", c_int64),
    ("capacity_rule", c_int32),
    ("drop_policy", c_int32),
    ("capacity", c_int64),
    ("capacity_factor", c_double),
    ("capacity_by_rank", c_int32),
    ("pad", c_int32),
    ("batch_group", velo_group),
    ("kind", c_int32),
    ("reserved", c_uint32),
]
velo_dispatcher_desc._numbers_ = ("capacity_rule", "kind")
velo_dispatcher_info._fields_ = [
    ("struct_size", c_uint32),
    ("top_k", c_int32),
    ("ranks", c_int64),
    ("experts", c_int64),
    ("first_expert", c_int64),
    ("expert_count", c_int64),
]
velo_expert_plan_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("ranks", c_int64),
    ("slots", c_int64),
    ("experts", c_int64),
    ("loads", POINTER(c_int64)),
    ("current", POINTER(c_int64)),
    ("tolerance", c_double),
]
velo_expert_plan_desc._defaults_ = {"ranks": 1, "slots": 1, "experts": 1, "tolerance": 0.1}
velo_expert_plan_info._fields_ = [
    ("struct_size", c_uint32),
    ("kept", c_int32),
    ("ranks", c_int64),
    ("slots", c_int64),
    ("experts", c_int64),
    ("copies", c_int64),
    ("moved", c_int64),
    ("rows", c_int64),
    ("busiest", c_int64),
    ("idlest", c_int64),
]
velo_link._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("user", c_void_p),
    ("send", velo_link_send_fn),
    ("receive", velo_link_receive_fn),
    ("abort", velo_link_abort_fn),
    ("start_send", velo_link_start_send_fn),
    ("finish", velo_link_finish_fn),
    ("borrow", velo_link_borrow_fn),
    ("give_back", velo_link_give_back_fn),
]
velo_executor_call._fields_ = [
    ("struct_size", c_uint32),
    ("rank", c_int32),
    ("action", velo_action),
    ("reserved", c_uint32),
    ("stream", velo_stream),
    ("inputs", velo_tensors),
    ("other_inputs", velo_tensors),
    ("outputs", POINTER(velo_tensor)),
    ("other_outputs", POINTER(velo_tensor)),
    ("output_count", c_int64),
    ("other_output_count", c_int64),
]
velo_executor_validation._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("state_size", c_uint64),
    ("measure", velo_executor_measure_fn),
    ("decide", velo_executor_decide_fn),
    ("step", velo_executor_step_fn),
    ("rollback", velo_executor_rollback_fn),
    ("forget", velo_executor_forget_fn),
]
velo_executor_stats._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("steps", c_int64),
    ("rolled_back", c_int64),
    ("deferred", c_int64),
    ("skipped", c_int64),
    ("repeated", c_int64),
]
velo_executor_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("rank", c_int32),
    ("flags", c_uint32),
    ("link", POINTER(velo_link)),
    ("user", c_void_p),
    ("forward", velo_executor_fn),
    ("input", velo_executor_fn),
    ("weight", velo_executor_fn),
    ("backward", velo_executor_fn),
    ("fused", velo_executor_fn),
    ("other", velo_executor_fn),
    ("released", velo_executor_released_fn),
    ("validation", POINTER(velo_executor_validation)),
]
velo_sequence_desc._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_int32),
    ("cp", c_int64),
    ("ulysses", c_int64),
    ("window", c_int64),
    ("sequence", c_int64),
    ("document_ends", POINTER(c_int64)),
    ("document_count", c_int64),
    ("mask", POINTER(c_uint8)),
    ("heads", c_int64),
    ("kv_heads", c_int64),
    ("head_dim", c_int64),
    ("element_bytes", c_int64),
    ("causal", c_int32),
    ("kv_cache", c_int32),
    ("kv_interval", c_int64),
    ("layers", c_int64),
    ("layer", c_int64),
    ("kv_gather", c_int64),
    ("keys", c_int32),
    ("reserved", c_int32),
]
velo_sequence_desc._defaults_ = {"kind": 1, "cp": 1, "ulysses": 1, "window": 1, "heads": 1, "head_dim": 128, "element_bytes": 2, "causal": 1, "layers": 1}
velo_sequence_desc._numbers_ = ("kind", "kv_cache", "keys")
velo_sequence_info._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("cp", c_int64),
    ("sequence", c_int64),
    ("forward_steps", c_int64),
    ("gradient_steps", c_int64),
    ("rounds", c_int64),
    ("rule_rounds", c_int64),
    ("kv_layers", c_int64),
]
velo_sequence_step._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("cells", c_int64),
    ("bytes_sent", c_int64),
    ("bytes_received", c_int64),
    ("bytes_in_flight", c_int64),
    ("tasks", c_int64),
    ("sends", c_int64),
    ("receives", c_int64),
    ("bytes_kept", c_int64),
]
velo_sequence_task._fields_ = [
    ("struct_size", c_uint32),
    ("cells", c_int32),
    ("step", c_int64),
    ("heads_begin", c_int64),
    ("heads_end", c_int64),
    ("queries", c_int64),
    ("keys", c_int64),
]
velo_sequence_task._numbers_ = ("cells",)
velo_sequence_message._fields_ = [
    ("struct_size", c_uint32),
    ("content", c_int32),
    ("step", c_int64),
    ("needed", c_int64),
    ("from_", c_int64),
    ("to", c_int64),
    ("heads_begin", c_int64),
    ("heads_end", c_int64),
    ("rows", c_int64),
    ("bytes", c_int64),
    ("kept", c_int32),
    ("reserved", c_int32),
    ("statistics", c_int64),
]
velo_sequence_message._numbers_ = ("content",)
velo_tuning_layout._fields_ = [
    ("tp", c_int32),
    ("pp", c_int32),
    ("vpp", c_int32),
    ("dp", c_int32),
    ("cp", c_int32),
    ("ep", c_int32),
    ("micro_batch", c_int32),
    ("microbatches", c_int32),
    ("recompute", c_int32),
    ("kind", c_int32),
    ("split", c_int32),
    ("reserved", c_int32),
]
velo_tune_desc._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("config", c_char_p),
    ("config_length", c_uint64),
    ("profile", c_char_p),
    ("profile_length", c_uint64),
    ("accelerators", c_int32),
    ("keep", c_int32),
]
velo_tuning_info._fields_ = [
    ("struct_size", c_uint32),
    ("accelerators", c_int32),
    ("candidates", c_int64),
    ("plans", c_int64),
    ("rejections", c_int64),
    ("nearest", c_int64),
    ("memory", c_int64),
]
velo_tuning_plan._fields_ = [
    ("struct_size", c_uint32),
    ("fullest", c_int32),
    ("layout", velo_tuning_layout),
    ("memory", c_int64),
    ("step_seconds", c_double),
    ("pipeline_seconds", c_double),
    ("gradient_seconds", c_double),
    ("optimizer_seconds", c_double),
    ("bubble", c_double),
    ("tokens_per_second", c_double),
    ("utilization", c_double),
    ("cp_algorithm", c_int32),
    ("cp_ulysses", c_int32),
    ("tp_slices", c_int32),
    ("token_rearrange", c_int32),
    ("tp_x", c_int32),
    ("sequence_splits", c_int32),
    ("sequence_parallel", c_int32),
    ("zero", c_int32),
]
velo_tuning_plan._numbers_ = ("cp_algorithm", "token_rearrange")
velo_tuning_memory._fields_ = [
    ("struct_size", c_uint32),
    ("layers", c_int32),
    ("parameters", c_int64),
    ("gradients", c_int64),
    ("optimizer", c_int64),
    ("activations", c_int64),
    ("workspace", c_int64),
    ("communication", c_int64),
    ("total", c_int64),
]
velo_tuning_rejection._fields_ = [
    ("struct_size", c_uint32),
    ("code", c_int32),
    ("layout", velo_tuning_layout),
    ("reason", c_char * 200),
    ("cp_algorithm", c_int32),
    ("cp_ulysses", c_int32),
    ("tp_slices", c_int32),
    ("token_rearrange", c_int32),
    ("tp_x", c_int32),
    ("sequence_splits", c_int32),
    ("sequence_parallel", c_int32),
    ("zero", c_int32),
]
velo_tuning_rejection._numbers_ = ("code", "cp_algorithm", "token_rearrange")


class velo_rms_norm_args(Sized):
    """`rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [..., n], compact rows
        ("gamma", POINTER(velo_tensor)),  # trailing dimensions of x; float32, or the dtype of x
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("rstd", POINTER(velo_tensor)),  # float32, the shape of x with a 1 for each dimension that gamma has; what the gradient needs; NaN where these hold no element
        ("epsilon", c_double),  # added to the mean square; a finite number
    ]
    _defaults_ = {"epsilon": 1e-06}
    _numbers_ = ("epsilon",)


class velo_rms_norm_backward_args(Sized):
    """`dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x * rstd)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("gamma", POINTER(velo_tensor)),  # the forward gain
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dgamma", POINTER(velo_tensor)),  # float32, shape of gamma
        ("accumulate", c_int64),  # 1 adds to dgamma instead of writing it
    ]


class velo_layer_norm_args(Sized):
    """`mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma + beta`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [..., n], compact rows
        ("gamma", POINTER(velo_tensor)),  # trailing dimensions of x; float32, or the dtype of x; NULL = 1
        ("beta", POINTER(velo_tensor)),  # shape of gamma, [n] without it; float32, or the dtype of x; NULL = 0
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("mean", POINTER(velo_tensor)),  # float32, the shape of x with a 1 for each normalized dimension; what the gradient needs; NaN where these hold no element
        ("rstd", POINTER(velo_tensor)),  # like mean
        ("epsilon", c_double),  # added to the mean square; a finite number
    ]
    _defaults_ = {"epsilon": 1e-05}
    _numbers_ = ("epsilon",)


class velo_layer_norm_backward_args(Sized):
    """`g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("gamma", POINTER(velo_tensor)),  # the forward gain; NULL = 1
        ("mean", POINTER(velo_tensor)),  # from the forward pass
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dgamma", POINTER(velo_tensor)),  # float32, the normalized dimensions of x
        ("dbeta", POINTER(velo_tensor)),  # like dgamma
        ("accumulate", c_int64),  # 1 adds to dgamma and dbeta instead of writing them
    ]


class velo_dropout_add_rms_norm_args(Sized):
    """`z = dropout(x * rowscale * layerscale) + residual`; `y = z / sqrt(mean(z^2) + epsilon) * gamma`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [..., n]
        ("residual", POINTER(velo_tensor)),  # shape of x; float32, or the dtype of x; NULL = 0
        ("gamma", POINTER(velo_tensor)),  # [n]; float32, or the dtype of x if the residual has that, too
        ("rowscale", POINTER(velo_tensor)),  # shape of x without n, dtype of x; NULL = 1
        ("layerscale", POINTER(velo_tensor)),  # [n], dtype of x; NULL = 1
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("pre_norm", POINTER(velo_tensor)),  # z, shape of x, dtype of the residual; may be the residual itself
        ("mask", POINTER(velo_tensor)),  # uint8, shape of x: 1 where an element is kept, else 0
        ("rstd", POINTER(velo_tensor)),  # float32, shape of x with 1 for n; what the gradient needs
        ("p", c_double),  # probability of dropping an element, as `dropout` has it; 1 drops all
        ("seed", c_int64),  # key of the generator, as `dropout` has it
        ("offset", c_int64),  # upper half of its counter, as `dropout` has it
        ("epsilon", c_double),  # added to the mean square; a finite number
        ("residual_in_fp32", c_int64),  # 1 makes pre_norm float32; without a residual only
        ("dropout_origin", POINTER(velo_ints)),  # a value for each dimension of x: where x begins in the whole, whose indices decide
        ("dropout_extents", POINTER(velo_ints)),  # the sizes of the whole; by default those of x
    ]
    _defaults_ = {"epsilon": 1e-05}
    _numbers_ = ("p", "seed", "offset", "epsilon")


class velo_dropout_add_rms_norm_backward_args(Sized):
    """`dz = dpre_norm + rms_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`; `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale = sum[columns](dz * m * layerscale * x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("dpre_norm", POINTER(velo_tensor)),  # gradient of pre_norm, like it; NULL = 0
        ("x", POINTER(velo_tensor)),  # the forward input; what drowscale and dlayerscale need
        ("pre_norm", POINTER(velo_tensor)),  # from the forward pass; float32, or the dtype of x
        ("gamma", POINTER(velo_tensor)),  # the forward gain
        ("rowscale", POINTER(velo_tensor)),  # that of the forward call
        ("layerscale", POINTER(velo_tensor)),  # that of the forward call
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dresidual", POINTER(velo_tensor)),  # shape and dtype of pre_norm; may be dpre_norm itself
        ("dgamma", POINTER(velo_tensor)),  # float32, [n]
        ("drowscale", POINTER(velo_tensor)),  # float32, shape of rowscale
        ("dlayerscale", POINTER(velo_tensor)),  # float32, [n]
        ("p", c_double),  # that of the forward call
        ("seed", c_int64),  # that of the forward call
        ("offset", c_int64),  # that of the forward call
        ("accumulate", c_int64),  # 1 adds to the gradients of gains and scales instead of writing them
        ("dropout_origin", POINTER(velo_ints)),  # that of the forward call
        ("dropout_extents", POINTER(velo_ints)),  # those of the forward call
    ]
    _numbers_ = ("p", "seed", "offset")


class velo_dropout_add_layer_norm_args(Sized):
    """`z = dropout(x * rowscale * layerscale) + residual`; `mu = mean(z)`; `y = (z - mu) / sqrt(mean((z - mu)^2) + epsilon) * gamma + beta`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [..., n]
        ("residual", POINTER(velo_tensor)),  # shape of x; float32, or the dtype of x; NULL = 0
        ("gamma", POINTER(velo_tensor)),  # [n]; float32, or the dtype of x if the residual has that, too
        ("beta", POINTER(velo_tensor)),  # shape and dtype of gamma; NULL = 0
        ("rowscale", POINTER(velo_tensor)),  # shape of x without n, dtype of x; NULL = 1
        ("layerscale", POINTER(velo_tensor)),  # [n], dtype of x; NULL = 1
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("pre_norm", POINTER(velo_tensor)),  # z, shape of x, dtype of the residual; may be the residual itself
        ("mask", POINTER(velo_tensor)),  # uint8, shape of x: 1 where an element is kept, else 0
        ("mean", POINTER(velo_tensor)),  # float32, shape of x with 1 for n; what the gradient needs
        ("rstd", POINTER(velo_tensor)),  # float32, shape of x with 1 for n; what the gradient needs
        ("p", c_double),  # probability of dropping an element, as `dropout` has it; 1 drops all
        ("seed", c_int64),  # key of the generator, as `dropout` has it
        ("offset", c_int64),  # upper half of its counter, as `dropout` has it
        ("epsilon", c_double),  # added to the mean square; a finite number
        ("residual_in_fp32", c_int64),  # 1 makes pre_norm float32; without a residual only
        ("dropout_origin", POINTER(velo_ints)),  # a value for each dimension of x: where x begins in the whole, whose indices decide
        ("dropout_extents", POINTER(velo_ints)),  # the sizes of the whole; by default those of x
    ]
    _defaults_ = {"epsilon": 1e-05}
    _numbers_ = ("p", "seed", "offset", "epsilon")


class velo_dropout_add_layer_norm_backward_args(Sized):
    """`dz = dpre_norm + layer_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`; `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale = sum[columns](dz * m * layerscale * x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("dpre_norm", POINTER(velo_tensor)),  # gradient of pre_norm, like it; NULL = 0
        ("x", POINTER(velo_tensor)),  # the forward input; what drowscale and dlayerscale need
        ("pre_norm", POINTER(velo_tensor)),  # from the forward pass; float32, or the dtype of x
        ("gamma", POINTER(velo_tensor)),  # the forward gain
        ("rowscale", POINTER(velo_tensor)),  # that of the forward call
        ("layerscale", POINTER(velo_tensor)),  # that of the forward call
        ("mean", POINTER(velo_tensor)),  # from the forward pass
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dresidual", POINTER(velo_tensor)),  # shape and dtype of pre_norm; may be dpre_norm itself
        ("dgamma", POINTER(velo_tensor)),  # float32, [n]
        ("dbeta", POINTER(velo_tensor)),  # float32, [n]
        ("drowscale", POINTER(velo_tensor)),  # float32, shape of rowscale
        ("dlayerscale", POINTER(velo_tensor)),  # float32, [n]
        ("p", c_double),  # that of the forward call
        ("seed", c_int64),  # that of the forward call
        ("offset", c_int64),  # that of the forward call
        ("accumulate", c_int64),  # 1 adds to the gradients of gains and scales instead of writing them
        ("dropout_origin", POINTER(velo_ints)),  # that of the forward call
        ("dropout_extents", POINTER(velo_ints)),  # those of the forward call
    ]
    _numbers_ = ("p", "seed", "offset")


class velo_swiglu_args(Sized):
    """`silu(t) = t / (1 + exp(-t))`; `y = silu(x1) * x2`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # rank 1..8; even size along dim
        ("y", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("dim", c_int64),  # the split dimension; negative counts from the end
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim",)


class velo_swiglu_backward_args(Sized):
    """`s = 1 / (1 + exp(-x1))`; `dx1 = dy * x2 * s * (1 + x1 * (1 - s))`; `dx2 = dy * silu(x1)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("dim", c_int64),  # as in the forward call
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim",)


class velo_geglu_args(Sized):
    """`y = gelu(x1) * x2`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # rank 1..8; even size along dim
        ("y", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("dim", c_int64),  # the split dimension; negative counts from the end
        ("approximate", c_int64),  # the form of gelu
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim", "approximate")


class velo_geglu_backward_args(Sized):
    """`dx1 = dy * x2 * slope(x1)`; `dx2 = dy * gelu(x1)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("dim", c_int64),  # as in the forward call
        ("approximate", c_int64),  # as in the forward call
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim", "approximate")


class velo_reglu_args(Sized):
    """`y = max(x1, 0) * x2`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # rank 1..8; even size along dim
        ("y", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("dim", c_int64),  # the split dimension; negative counts from the end
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim",)


class velo_reglu_backward_args(Sized):
    """`dx1 = dy * x2 * step(x1)`; `dx2 = dy * max(x1, 0)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape of x with dim halved, dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("dim", c_int64),  # as in the forward call
    ]
    _defaults_ = {"dim": -1}
    _numbers_ = ("dim",)


class velo_gelu_args(Sized):
    """`y = x * Phi(x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("approximate", c_int64),  # the form of gelu
    ]
    _numbers_ = ("approximate",)


class velo_gelu_backward_args(Sized):
    """`dx = dy * (Phi(x) + x * phi(x))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy or x itself
        ("approximate", c_int64),  # as in the forward call
    ]
    _numbers_ = ("approximate",)


class velo_fast_gelu_args(Sized):
    """`y = x / (1 + exp(-1.702 * x))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
    ]


class velo_fast_gelu_backward_args(Sized):
    """`s = 1 / (1 + exp(-1.702 * x))`; `dx = dy * (s + 1.702 * x * s * (1 - s))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy or x itself
    ]


class velo_silu_args(Sized):
    """`y = x / (1 + exp(-x))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
    ]


class velo_silu_backward_args(Sized):
    """`s = 1 / (1 + exp(-x))`; `dx = dy * (s + x * s * (1 - s))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy or x itself
    ]


class velo_relu_args(Sized):
    """`y = max(x, 0)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
    ]


class velo_relu_backward_args(Sized):
    """`dx = dy * step(x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy or x itself
    ]


class velo_rotary_position_embedding_args(Sized):
    """`y = x * cos + rotate(x) * sin`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., .., .., D]
        ("cos", POINTER(velo_tensor)),  # 4-D, broadcast against x (with positions [P, R]): each size equals that of x or is 1; the last is the rotated width R, even, at most D; float32 or the dtype of x
        ("sin", POINTER(velo_tensor)),  # shape and dtype of cos
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("mode", c_int64),  # which features form a pair
        ("positions", POINTER(velo_tensor)),  # 3-D, broadcast against the rows of x: cos and sin are then [P, R], and a row of x takes the row of the tables that it names, in [0, P), else VELO_ERR_ARGUMENT before anything is written
    ]
    _numbers_ = ("mode",)


class velo_rotary_position_embedding_backward_args(Sized):
    """`dx = dy * cos + rotate^T(dy * sin)`; `dcos = sum(dy * x)`; `dsin = sum(dy * rotate(x))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("cos", POINTER(velo_tensor)),  # the forward table
        ("sin", POINTER(velo_tensor)),  # the forward table
        ("x", POINTER(velo_tensor)),  # the forward input, needed for dcos and dsin only
        ("dx", POINTER(velo_tensor)),  # shape and dtype of dy; may be dy itself
        ("dcos", POINTER(velo_tensor)),  # float32, shape of cos; together with dsin
        ("dsin", POINTER(velo_tensor)),  # float32, shape of sin; together with dcos
        ("mode", c_int64),  # as in the forward call
        ("positions", POINTER(velo_tensor)),  # as in the forward call; dcos and dsin are then [P, R], 0 in rows that no position names
    ]
    _numbers_ = ("mode",)


class velo_rope_frequencies_args(Sized):
    """`cos[p, i] = m * cos(positions[p] * f[i])`; `sin[p, i] = m * sin(positions[p] * f[i])`; `f[i] = theta^(-2 * i / D)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("positions", POINTER(velo_tensor)),  # any shape; each in [0, 2^24)
        ("cos", POINTER(velo_tensor)),  # float32, shape of positions with D appended
        ("sin", POINTER(velo_tensor)),  # float32, shape of cos
        ("frequencies", POINTER(velo_tensor)),  # float32, [D / 2]: f
        ("dim", c_int64),  # D, even: features that turn
        ("theta", c_double),  # the slowest pair turns by theta^(2 / D - 1)
        ("scaling", c_int64),  # how positions beyond the trained ones are reached
        ("factor", c_double),  # context length over original_length
        ("original_length", c_int64),  # M: positions that the model was trained on
        ("beta_fast", c_double),  # yarn
        ("beta_slow", c_double),  # yarn
        ("mscale", c_double),  # yarn
        ("mscale_all_dim", c_double),  # yarn; not 0: the caller multiplies its softmax scale by c(mscale_all_dim)^2
        ("attention_factor", c_double),  # yarn: m, unless it is 0
        ("truncate", c_int64),  # yarn: 1 rounds the ends of the ramp to whole features
        ("low_freq_factor", c_double),  # llama3
        ("high_freq_factor", c_double),  # llama3: more than low_freq_factor
        ("mode", c_int64),  # which features form a pair
    ]
    _defaults_ = {"dim": 128, "theta": 1e+04, "factor": 1.0, "original_length": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "truncate": 1, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    _numbers_ = ("dim", "theta", "scaling", "factor", "original_length", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", "low_freq_factor", "high_freq_factor", "mode")


class velo_matmul_args(Sized):
    """`c = op(a) @ op(b) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("a", POINTER(velo_tensor)),  # [.., m, k], or [k, m] with transpose_a; unit stride in the last dimension
        ("b", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_b; dtype of a; unit stride in the last dimension; NULL when packed is given
        ("packed", velo_pack),  # the weight in place of b, of a's dtype; transpose_b must be 0
        ("bias", POINTER(velo_tensor)),  # float32 or the dtype of a; broadcast to c: each dimension, counted from the last, is c's, 1 or missing
        ("c", POINTER(velo_tensor)),  # [.., m, n]; dtype of a, or float32; unit stride in the last dimension
        ("transpose_a", c_int64),  # 1 when a is stored [k, m]
        ("transpose_b", c_int64),  # 1 when b is stored [n, k]
        ("accumulate", c_int64),  # 1 adds to c (in float32, rounded once) instead of writing it
        ("dtype", c_int64),  # dtype of c
    ]
    _numbers_ = ("dtype",)


class velo_matmul_backward_args(Sized):
    """`da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[broadcast](dc)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dc", POINTER(velo_tensor)),  # [.., m, n], strided as a of matmul
        ("a", POINTER(velo_tensor)),  # [.., m, k], dtype of dc; db needs it
        ("b", POINTER(velo_tensor)),  # [k, n], dtype of dc; da needs it
        ("bias", POINTER(velo_tensor)),  # for the shape of dbias
        ("da", POINTER(velo_tensor)),  # shape of a, dtype of dc
        ("db", POINTER(velo_tensor)),  # shape of b
        ("dbias", POINTER(velo_tensor)),  # float32, shape of bias, or [n] without it
        ("transpose_a", c_int64),  # 1 when a is stored [k, m]
        ("transpose_b", c_int64),  # 1 when b is stored [n, k]
        ("accumulate", c_int64),  # 1 adds to db and dbias (in float32, rounded once)
        ("dtype", c_int64),  # dtype of db
    ]
    _numbers_ = ("dtype",)


class velo_matmul_add_args(Sized):
    """`c = op(a) @ op(b) + bias + add`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("a", POINTER(velo_tensor)),  # as of matmul
        ("b", POINTER(velo_tensor)),  # as of matmul
        ("packed", velo_pack),  # as of matmul
        ("bias", POINTER(velo_tensor)),  # one row, [n] or [1, n], float32 or the dtype of a; add takes the others
        ("add", POINTER(velo_tensor)),  # dtype of a; broadcast to c: each dimension, counted from the last, is c's, 1 or missing
        ("c", POINTER(velo_tensor)),  # [.., m, n], dtype of a; unit stride in the last dimension
        ("transpose_a", c_int64),  # 1 when a is stored [k, m]
        ("transpose_b", c_int64),  # 1 when b is stored [n, k]
    ]


class velo_matmul_add_backward_args(Sized):
    """`da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[rows](dc)`; `dadd = sum[broadcast](dc)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dc", POINTER(velo_tensor)),  # [.., m, n], strided as a of matmul
        ("a", POINTER(velo_tensor)),  # [.., m, k], dtype of dc; db needs it
        ("b", POINTER(velo_tensor)),  # [k, n], dtype of dc; da needs it
        ("add", POINTER(velo_tensor)),  # for its shape; dadd needs it
        ("da", POINTER(velo_tensor)),  # shape of a, dtype of dc
        ("db", POINTER(velo_tensor)),  # shape of b, dtype of dc
        ("dbias", POINTER(velo_tensor)),  # float32, [n]
        ("dadd", POINTER(velo_tensor)),  # shape of add, dtype of dc
        ("transpose_a", c_int64),  # 1 when a is stored [k, m]
        ("transpose_b", c_int64),  # 1 when b is stored [n, k]
    ]


class velo_matmul_swiglu_args(Sized):
    """`silu(t) = t / (1 + exp(-t))`; `h = x @ op(weight) + bias`; `y = silu(h1) * h2`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., k]; unit stride in the last dimension
        ("weight", POINTER(velo_tensor)),  # [k, 2 n], or [2 n, k] with transpose_weight; dtype of x; unit stride in the last dimension; NULL when packed is given
        ("packed", velo_pack),  # the weight [k, 2 n] in its place, of x's dtype; n must be a multiple of 96, transpose_weight 0
        ("bias", POINTER(velo_tensor)),  # [2 n], float32 or the dtype of x
        ("y", POINTER(velo_tensor)),  # [.., n], dtype of x; unit stride in the last dimension
        ("h", POINTER(velo_tensor)),  # [.., 2 n], dtype of x: what the gradient needs
        ("transpose_weight", c_int64),  # 1 when the weight is stored [2 n, k]
    ]


class velo_matmul_swiglu_backward_args(Sized):
    """`s = 1 / (1 + exp(-h1))`; `dh1 = dy * h2 * s * (1 + h1 * (1 - s))`; `dh2 = dy * h1 * s`; `dx = dh @ op(weight)^T`; `dweight = op(x)^T @ dh`; `dbias = sum[rows](dh)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [.., n]
        ("h", POINTER(velo_tensor)),  # [.., 2 n], dtype of dy: from the forward call
        ("x", POINTER(velo_tensor)),  # [.., k], dtype of dy; dweight needs it
        ("weight", POINTER(velo_tensor)),  # as in the forward call, where that took a pack the weight itself; dx needs it
        ("bias", POINTER(velo_tensor)),  # the forward call's; read where h is computed again
        ("dx", POINTER(velo_tensor)),  # shape of x, dtype of dy
        ("dweight", POINTER(velo_tensor)),  # shape of the weight
        ("dbias", POINTER(velo_tensor)),  # float32, [2 n]
        ("transpose_weight", c_int64),  # 1 when the weight is stored [2 n, k]
        ("accumulate", c_int64),  # 1 adds to dweight and dbias (in float32, rounded once)
        ("dtype", c_int64),  # dtype of dweight
    ]
    _numbers_ = ("dtype",)


class velo_rms_norm_matmul_args(Sized):
    """`rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = (x * rstd * gamma) @ op(weight) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., k]
        ("gamma", POINTER(velo_tensor)),  # [k], float32 or the dtype of x
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x; unit stride in the last dimension; NULL when packed is given
        ("packed", velo_pack),  # the weight in its place, of x's dtype; transpose_weight must be 0
        ("bias", POINTER(velo_tensor)),  # [n], float32 or the dtype of x
        ("y", POINTER(velo_tensor)),  # [.., n], dtype of x; unit stride in the last dimension
        ("rstd", POINTER(velo_tensor)),  # float32, [.., 1]: what the gradient needs
        ("transpose_weight", c_int64),  # 1 when the weight is stored [n, k]
        ("epsilon", c_double),  # added to the mean square; a finite number
    ]
    _defaults_ = {"epsilon": 1e-06}
    _numbers_ = ("epsilon",)


class velo_rms_norm_matmul_backward_args(Sized):
    """`h = dy @ op(weight)^T`; `g = h * gamma`; `dx = rstd * (g - x * rstd^2 * mean(g * x))`; `dgamma = sum[rows](h * x * rstd)`; `dweight = (x * rstd * gamma)^T @ dy`; `dbias = sum[rows](dy)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [.., n], dtype of x
        ("x", POINTER(velo_tensor)),  # [.., k], the forward input
        ("gamma", POINTER(velo_tensor)),  # the forward gain
        ("rstd", POINTER(velo_tensor)),  # from the forward call
        ("weight", POINTER(velo_tensor)),  # as in the forward call; dx and dgamma need it
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x
        ("dgamma", POINTER(velo_tensor)),  # float32, [k]
        ("dweight", POINTER(velo_tensor)),  # shape of the weight
        ("dbias", POINTER(velo_tensor)),  # float32, [n]
        ("transpose_weight", c_int64),  # 1 when the weight is stored [n, k]
        ("accumulate", c_int64),  # 1 adds to dgamma, dweight and dbias (in float32, rounded once)
        ("dtype", c_int64),  # dtype of dweight
    ]
    _numbers_ = ("dtype",)


class velo_matmul_add_fp32_args(Sized):
    """`grad += grad_output^T @ total_input`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("total_input", POINTER(velo_tensor)),  # [.., t, k]
        ("grad_output", POINTER(velo_tensor)),  # [.., t, n], dtype of total_input
        ("grad", POINTER(velo_tensor)),  # float32, [n, k]
    ]


class velo_grouped_matmul_args(Sized):
    """`y[e] = x[e] @ op(weight[e]) + bias[e]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [m, k], or [k, m] with transpose_x
        ("weight", POINTER(velo_tensor)),  # [groups, k, n], of depth [k, n], dtype of x; NULL when packed is given
        ("bias", POINTER(velo_tensor)),  # [groups, n], float32 or dtype of x; NULL for depth
        ("y", POINTER(velo_tensor)),  # [m, n], of depth [groups, m, n]
        ("group_list", POINTER(velo_ints)),  # a number for each group, which may be empty; or
        ("group_list_tensor", POINTER(velo_tensor)),  # [groups], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
        ("group_type", c_int64),  # which axis the list cuts
        ("transpose_x", c_int64),  # 1 when x is stored [k, m], for depth only
        ("transpose_weight", c_int64),  # 1 when weight is stored [groups, n, k] or [n, k]
        ("accumulate", c_int64),  # 1 adds to y (in float32, rounded once)
        ("dtype", c_int64),  # dtype of y
        ("packed", velo_pack),  # a pack in place of weight, its count that of the groups, of x's dtype; transpose_weight must be 0; NULL for depth
    ]
    _numbers_ = ("group_list_kind", "group_type", "dtype")


class velo_grouped_matmul_backward_args(Sized):
    """`dx[e] = dy[e] @ op(weight[e])^T`; `dweight[e] = x[e]^T @ dy[e]`; `dbias[e] = sum[rows](dy[e])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [m, n]
        ("x", POINTER(velo_tensor)),  # [m, k], dtype of dy; dweight needs it
        ("weight", POINTER(velo_tensor)),  # [groups, k, n], dtype of dy; dx needs it
        ("dx", POINTER(velo_tensor)),  # [m, k], dtype of dy
        ("dweight", POINTER(velo_tensor)),  # [groups, k, n]
        ("dbias", POINTER(velo_tensor)),  # float32, [groups, n]
        ("group_list", POINTER(velo_ints)),  # a number for each group, which may be empty; or
        ("group_list_tensor", POINTER(velo_tensor)),  # [groups], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
        ("transpose_weight", c_int64),  # 1 when weight is stored [groups, n, k]
        ("accumulate", c_int64),  # 1 adds to dweight and dbias
        ("dtype", c_int64),  # dtype of dweight
    ]
    _numbers_ = ("group_list_kind", "dtype")


class velo_grouped_matmul_add_fp32_args(Sized):
    """`grad[e] += x[e]^T @ dy[e]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [m, k]
        ("dy", POINTER(velo_tensor)),  # [m, n], dtype of x
        ("grad", POINTER(velo_tensor)),  # float32, [groups, k, n] or [groups k, n]
        ("group_list", POINTER(velo_ints)),  # a number for each group, which may be empty; or
        ("group_list_tensor", POINTER(velo_tensor)),  # [groups], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
    ]
    _numbers_ = ("group_list_kind",)


class velo_weight_quant_matmul_args(Sized):
    """`y = x @ ((weight + offset) * scale) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., k]
        ("weight", POINTER(velo_tensor)),  # int8 [k, n]; int4 as uint8 [k, n / 2] or int4 [k, n]; NULL when packed is given
        ("scale", POINTER(velo_tensor)),  # [n], or [groups, n] for each k / groups, a multiple of 32; float32 or dtype of x
        ("offset", POINTER(velo_tensor)),  # shape and dtype of scale; NULL = 0
        ("bias", POINTER(velo_tensor)),  # [n], float32 or dtype of x
        ("y", POINTER(velo_tensor)),  # [.., n], dtype of x
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k], int4 in pairs along k
        ("row_invariant", c_int64),  # 1 gives a row the same bits among any number of rows; it has them anyway where x is float32 or float16 and weight packed or not transposed, else more than 16 rows take longer
        ("packed", velo_pack),  # a pack with weight_only in place of weight; transpose_weight must be 0
    ]


class velo_weight_quant_matmul_backward_args(Sized):
    """`dx = dy @ ((weight + offset) * scale)^T`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [.., n]
        ("weight", POINTER(velo_tensor)),  # int8 [k, n]; int4 as uint8 [k, n / 2] or int4 [k, n]
        ("scale", POINTER(velo_tensor)),  # [n] or [groups, n]; float32 or dtype of dy
        ("offset", POINTER(velo_tensor)),  # shape and dtype of scale; NULL = 0
        ("dx", POINTER(velo_tensor)),  # [.., k], dtype of dy
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
    ]


class velo_weight_quant_grouped_matmul_args(Sized):
    """`y[e] = x[e] @ ((weight[e] + offset[e]) * scale[e]) + bias[e]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [m, k]
        ("weight", POINTER(velo_tensor)),  # int8 [groups, k, n]; int4 as uint8 [groups, k, n / 2] or int4 [groups, k, n]; NULL when packed is given
        ("scale", POINTER(velo_tensor)),  # [groups, n], or [groups, g, n] for each k / g, a multiple of 32; float32 or dtype of x
        ("offset", POINTER(velo_tensor)),  # shape and dtype of scale; NULL = 0
        ("bias", POINTER(velo_tensor)),  # [groups, n], float32 or dtype of x
        ("y", POINTER(velo_tensor)),  # [m, n], dtype of x
        ("group_list", POINTER(velo_ints)),  # a number for each group, which may be empty; or
        ("group_list_tensor", POINTER(velo_tensor)),  # [groups], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
        ("transpose_weight", c_int64),  # 1 when weight is stored [groups, n, k], int4 in pairs along k
        ("row_invariant", c_int64),  # 1 gives a row the same bits among any number of rows; it has them anyway where x is float32 or float16 and weight packed or not transposed, else more than 16 rows take longer
        ("packed", velo_pack),  # a pack with weight_only in place of weight, its count that of the groups; transpose_weight must be 0
    ]
    _numbers_ = ("group_list_kind",)


class velo_quant_grouped_matmul_args(Sized):
    """`y[e] = act((x[e] @ weight[e] + bias[e]) * scale[e] * per_token_scale[e])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [m, k], k at most 131071
        ("weight", POINTER(velo_tensor)),  # [groups, k, n]; NULL when packed is given
        ("scale", POINTER(velo_tensor)),  # [groups, n]: float32; bfloat16 for such a y; int64 for int8, a float32 in the low half
        ("per_token_scale", POINTER(velo_tensor)),  # [m]; NULL = 1, and for int8
        ("bias", POINTER(velo_tensor)),  # [groups, n], added to the sums; NULL = 0
        ("y", POINTER(velo_tensor)),  # [m, n]
        ("group_list", POINTER(velo_ints)),  # a number for each group, which may be empty; or
        ("group_list_tensor", POINTER(velo_tensor)),  # [groups], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
        ("output_dtype", c_int64),  # dtype of y; int8 rounds to even, NaN to 0, without an activation
        ("act_type", c_int64),  # the activation
        ("transpose_weight", c_int64),  # 1 when weight is stored [groups, n, k]
        ("packed", velo_pack),  # a pack of int8 in place of weight, its count that of the groups; transpose_weight must be 0
    ]
    _numbers_ = ("group_list_kind", "output_dtype", "act_type")


class velo_ffn_args(Sized):
    """`y = act(x @ weight1 + bias1) @ weight2 + bias2`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., k1]
        ("weight1", POINTER(velo_tensor)),  # [experts, k1, n1], or [k1, n1]; dtype of x, int8, or int4 as uint8 [.., n1 / 2] or int4
        ("weight2", POINTER(velo_tensor)),  # [experts, k2, n2], or [k2, n2], as weight1; k2 is n1, half of it where gated
        ("bias1", POINTER(velo_tensor)),  # [experts, n1], or [n1]; float32 or dtype of x, int32 for int8
        ("bias2", POINTER(velo_tensor)),  # [experts, n2], or [n2], as bias1
        ("scale", POINTER(velo_tensor)),  # of x int8: [1], [experts], or [experts, n1], [n1]
        ("offset", POINTER(velo_tensor)),  # of x int8: [1] or [experts]; NULL = 0
        ("deq_scale1", POINTER(velo_tensor)),  # of x int8: [experts, n1], or [n1]; float32, bfloat16 for such a y, int64 with a float32 in the low half
        ("deq_scale2", POINTER(velo_tensor)),  # of x int8: [experts, n2], or [n2], dtype of deq_scale1
        ("antiquant_scale1", POINTER(velo_tensor)),  # of quantized weights: [experts, n1] or [experts, groups, n1], without experts if there are none
        ("antiquant_scale2", POINTER(velo_tensor)),  # as antiquant_scale1, of weight2
        ("antiquant_offset1", POINTER(velo_tensor)),  # as antiquant_scale1; NULL = 0
        ("antiquant_offset2", POINTER(velo_tensor)),  # as antiquant_scale2; NULL = 0
        ("y", POINTER(velo_tensor)),  # [.., n2], dtype of x; of int8 output_dtype
        ("group_list", POINTER(velo_ints)),  # rows of each expert, which may have none (expert_tokens_index, of kind counts expert_tokens); or
        ("group_list_tensor", POINTER(velo_tensor)),  # [experts], in its place, checked when the call runs
        ("group_list_kind", c_int64),  # what the list says
        ("activation", c_int64),  # act; gated ones without quantized weights
        ("inner_precise", c_int64),  # MindSpeed's choice of precision, which changes nothing here; 0 for bfloat16
        ("output_dtype", c_int64),  # dtype of y for x of int8; not int8
        ("row_invariant", c_int64),  # as in weight_quant_matmul, for weights of int8 or int4 alone; the other forms always have it
    ]
    _defaults_ = {"activation": VELO_FFN_ACTIVATION_RELU}
    _numbers_ = ("group_list_kind", "activation", "inner_precise", "output_dtype")


class velo_fusion_attention_args(Sized):
    """`attention_out = softmax(scale * query @ key^T) @ value`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("query", POINTER(velo_tensor)),  # [.., N, D] in the order of layout
        ("key", POINTER(velo_tensor)),  # dtype of query
        ("value", POINTER(velo_tensor)),  # dtype of query
        ("attention_out", POINTER(velo_tensor)),  # shape and dtype of query with Dv for D
        ("softmax_max", POINTER(velo_tensor)),  # float32, the largest score a row sees; its shape is that of statistics
        ("softmax_sum", POINTER(velo_tensor)),  # the same of the sum of exp(score - softmax_max) over the keys a row sees, so that softmax_max + log(softmax_sum) is the log-sum-exp of the row
        ("layout", c_int64),  # order of dimensions of query, key, value, attention_out and their gradients
        ("head_num", c_int64),  # query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
        ("scale", c_double),  # factor of the products, usually 1 / sqrt(D); finite in float32
        ("sparse_mode", c_int64),  # which keys a row sees
        ("pre_tokens", c_int64),  # full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
        ("next_tokens", c_int64),  # the same to the right
        ("prefix", POINTER(velo_ints)),  # prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
        ("statistics", c_int64),  # shape and order of softmax_max and softmax_sum
        ("atten_mask", POINTER(velo_tensor)),  # 1 hides; [Sq, Skv] or [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv]; read in modes 0, 1 and 5, a constant of MindSpeed's shape in the others
        ("pse", POINTER(velo_tensor)),  # dtype of query, [B or 1, N or 1, Sq or 1, Skv], or the last 1024 rows where Sq = Skv > 1024 and for tnd; alibi: float32 slopes [N] or [B, N]
        ("pse_type", c_int64),  # how pse enters a score
        ("q_start_idx", c_int64),  # alibi: position of the first query
        ("kv_start_idx", c_int64),  # alibi: position of the first key
        ("keep_prob", c_double),  # share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all
        ("seed", c_int64),  # of dropout, as the operator dropout has it
        ("offset", c_int64),  # of dropout
        ("dropout_origin", POINTER(velo_ints)),  # 4 values: where the call's [B, N, Sq, Skv] begins in the whole, whose indices decide; tnd: [1, N, T, longest Skv]
        ("dropout_extents", POINTER(velo_ints)),  # 4 values, the sizes of the whole; by default the call's own
        ("actual_seq_qlen", POINTER(velo_ints)),  # tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
        ("actual_seq_kvlen", POINTER(velo_ints)),  # tnd: ends of the key sequences, as many as actual_seq_qlen
    ]
    _defaults_ = {"scale": 1.0, "pre_tokens": 2147483647, "next_tokens": 2147483647, "pse_type": VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE, "keep_prob": 1.0}
    _numbers_ = ("layout", "head_num", "scale", "sparse_mode", "pre_tokens", "next_tokens", "statistics", "pse_type", "q_start_idx", "kv_start_idx", "keep_prob", "seed", "offset")


class velo_fusion_attention_backward_args(Sized):
    """`delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`; `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("query", POINTER(velo_tensor)),  # the forward input
        ("key", POINTER(velo_tensor)),  # the forward input
        ("value", POINTER(velo_tensor)),  # the forward input
        ("dy", POINTER(velo_tensor)),  # gradient of attention_out: its shape and dtype
        ("softmax_max", POINTER(velo_tensor)),  # from the forward pass
        ("softmax_sum", POINTER(velo_tensor)),  # from the forward pass
        ("attention_out", POINTER(velo_tensor)),  # from the forward pass
        ("dquery", POINTER(velo_tensor)),  # shape and dtype of query
        ("dkey", POINTER(velo_tensor)),  # shape of key; its dtype or float32
        ("dvalue", POINTER(velo_tensor)),  # shape of value; dtype of dkey
        ("dpse", POINTER(velo_tensor)),  # shape and dtype of pse, whose pse_type is 0 or 1 and which has all its rows; costs two more products a score
        ("accumulate", c_int64),  # 1 adds to dkey and dvalue instead of writing them
        ("layout", c_int64),  # order of dimensions of query, key, value, attention_out and their gradients
        ("head_num", c_int64),  # query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
        ("scale", c_double),  # factor of the products, usually 1 / sqrt(D); finite in float32
        ("sparse_mode", c_int64),  # which keys a row sees
        ("pre_tokens", c_int64),  # full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
        ("next_tokens", c_int64),  # the same to the right
        ("prefix", POINTER(velo_ints)),  # prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
        ("statistics", c_int64),  # shape and order of softmax_max and softmax_sum
        ("atten_mask", POINTER(velo_tensor)),  # 1 hides; [Sq, Skv] or [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv]; read in modes 0, 1 and 5, a constant of MindSpeed's shape in the others
        ("pse", POINTER(velo_tensor)),  # dtype of query, [B or 1, N or 1, Sq or 1, Skv], or the last 1024 rows where Sq = Skv > 1024 and for tnd; alibi: float32 slopes [N] or [B, N]
        ("pse_type", c_int64),  # how pse enters a score
        ("q_start_idx", c_int64),  # alibi: position of the first query
        ("kv_start_idx", c_int64),  # alibi: position of the first key
        ("keep_prob", c_double),  # share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all
        ("seed", c_int64),  # of dropout, as the operator dropout has it
        ("offset", c_int64),  # of dropout
        ("dropout_origin", POINTER(velo_ints)),  # 4 values: where the call's [B, N, Sq, Skv] begins in the whole, whose indices decide; tnd: [1, N, T, longest Skv]
        ("dropout_extents", POINTER(velo_ints)),  # 4 values, the sizes of the whole; by default the call's own
        ("actual_seq_qlen", POINTER(velo_ints)),  # tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
        ("actual_seq_kvlen", POINTER(velo_ints)),  # tnd: ends of the key sequences, as many as actual_seq_qlen
    ]
    _defaults_ = {"scale": 1.0, "pre_tokens": 2147483647, "next_tokens": 2147483647, "pse_type": VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE, "keep_prob": 1.0}
    _numbers_ = ("layout", "head_num", "scale", "sparse_mode", "pre_tokens", "next_tokens", "statistics", "pse_type", "q_start_idx", "kv_start_idx", "keep_prob", "seed", "offset")


class velo_ring_attention_update_args(Sized):
    """`max = max(prev_max, cur_max)`; `p = prev_sum * exp(prev_max - max)`; `c = cur_sum * exp(cur_max - max)`; `sum = p + c`; `out = prev_out * p / sum + cur_out * c / sum`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("prev_out", POINTER(velo_tensor)),  # [.., N, D] in the order of layout
        ("prev_max", POINTER(velo_tensor)),  # float32 [B, N, S] or [B, N, S, 8], tnd [T, N] or [T, N, 8], as fusion_attention's statistics
        ("prev_sum", POINTER(velo_tensor)),  # shape of prev_max; from 0
        ("cur_out", POINTER(velo_tensor)),  # shape and dtype of prev_out
        ("cur_max", POINTER(velo_tensor)),  # shape of prev_max
        ("cur_sum", POINTER(velo_tensor)),  # shape of prev_max; from 0
        ("out", POINTER(velo_tensor)),  # shape and dtype of prev_out; may be it
        ("max", POINTER(velo_tensor)),  # shape of prev_max; may be it
        ("sum", POINTER(velo_tensor)),  # shape of prev_max; may be prev_sum
        ("layout", c_int64),  # order of dimensions of prev_out
        ("actual_seq_qlen", POINTER(velo_ints)),  # tnd with statistics [T, N, 8]: ends of the sequences, cumulative, with or without a leading zero
    ]
    _defaults_ = {"layout": VELO_ATTENTION_LAYOUT_SBH}
    _numbers_ = ("layout",)


class velo_flash_attention_args(Sized):
    """`attention_out = softmax(scale_value * query @ key^T + alibi_mask) @ value`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("query", POINTER(velo_tensor)),  # [B, N, S, D] in the order of io_layout
        ("key", POINTER(velo_tensor)),  # shape and dtype of query
        ("value", POINTER(velo_tensor)),  # shape and dtype of query
        ("atten_mask", POINTER(velo_tensor)),  # [S, S], 1 hides
        ("alibi_mask", POINTER(velo_tensor)),  # dtype of query, [B or 1, N or 1, S or 1, S]: added to scores
        ("attention_out", POINTER(velo_tensor)),  # shape and dtype of query
        ("softmax_log_max_sum", POINTER(velo_tensor)),  # float32 [B, N, S]: log of the sum of exp(score)
        ("head_num", c_int64),  # heads; needed by bsh and sbh, elsewhere 0 or what the shape says
        ("io_layout", c_int64),  # bnsd, bsh or sbh
        ("scale_value", c_double),  # factor of the products
        ("q_scale", c_double),  # 1
        ("keep_prob", c_double),  # as fusion_attention has it
        ("pre_tokens", c_int64),  # a hint: keys that the first column shows; atten_mask alone decides
        ("next_tokens", c_int64),  # a hint: keys that the first row shows; atten_mask alone decides
        ("precise_mode", c_int64),  # 0
        ("seed", c_int64),  # of dropout
        ("offset", c_int64),  # of dropout
    ]
    _defaults_ = {"io_layout": VELO_ATTENTION_LAYOUT_BNSD, "scale_value": 1.0, "q_scale": 1.0, "keep_prob": 1.0, "pre_tokens": 2147483647, "next_tokens": 1}
    _numbers_ = ("head_num", "io_layout", "scale_value", "q_scale", "keep_prob", "pre_tokens", "next_tokens", "precise_mode", "seed", "offset")


class velo_flash_attention_backward_args(Sized):
    """`P = exp(score - softmax_log_max_sum)`; `dS = P * (dy @ value^T - sum[D](dy * attention_out))`; `dquery = scale_value * dS @ key`; `dkey = scale_value * dS^T @ query`; `dvalue = P^T @ dy`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("query", POINTER(velo_tensor)),  # [B, N, S, D] in the order of io_layout
        ("key", POINTER(velo_tensor)),  # shape and dtype of query
        ("value", POINTER(velo_tensor)),  # shape and dtype of query
        ("dy", POINTER(velo_tensor)),  # gradient of attention_out
        ("softmax_log_max_sum", POINTER(velo_tensor)),  # from the forward pass
        ("attention_out", POINTER(velo_tensor)),  # from the forward pass
        ("atten_mask", POINTER(velo_tensor)),  # [S, S], 1 hides
        ("alibi_mask", POINTER(velo_tensor)),  # dtype of query, [B or 1, N or 1, S or 1, S]: added to scores
        ("dquery", POINTER(velo_tensor)),  # shape and dtype of query
        ("dkey", POINTER(velo_tensor)),  # shape and dtype of query
        ("dvalue", POINTER(velo_tensor)),  # shape and dtype of query
        ("head_num", c_int64),  # heads; needed by bsh and sbh, elsewhere 0 or what the shape says
        ("io_layout", c_int64),  # bnsd, bsh or sbh
        ("scale_value", c_double),  # factor of the products
        ("q_scale", c_double),  # 1
        ("keep_prob", c_double),  # as fusion_attention has it
        ("pre_tokens", c_int64),  # a hint: keys that the first column shows; atten_mask alone decides
        ("next_tokens", c_int64),  # a hint: keys that the first row shows; atten_mask alone decides
        ("precise_mode", c_int64),  # 0
        ("seed", c_int64),  # of dropout
        ("offset", c_int64),  # of dropout
    ]
    _defaults_ = {"io_layout": VELO_ATTENTION_LAYOUT_BNSD, "scale_value": 1.0, "q_scale": 1.0, "keep_prob": 1.0, "pre_tokens": 2147483647, "next_tokens": 1}
    _numbers_ = ("head_num", "io_layout", "scale_value", "q_scale", "keep_prob", "pre_tokens", "next_tokens", "precise_mode", "seed", "offset")


class velo_cached_attention_args(Sized):
    """`attention_out = softmax(scale * query @ key^T) @ value`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("query", POINTER(velo_tensor)),  # [B, Sq, N, D]; D up to 576
        ("key", POINTER(velo_tensor)),  # Nkv heads, N % Nkv = 0; dtype of query or int8
        ("value", POINTER(velo_tensor)),  # shape of key with Dv for D, up to 512; dtype of key
        ("key_scale", POINTER(velo_tensor)),  # int8: factors, shape of key without D
        ("value_scale", POINTER(velo_tensor)),  # int8: factors, shape of value without Dv
        ("block_table", POINTER(velo_tensor)),  # [B, P]: pages of each sequence in order; read as far as its length goes, and checked when the call runs
        ("cache_seqlens", POINTER(velo_tensor)),  # [B]: keys of each sequence, those of the new rows among them, checked when the call runs; needed beside block_table, else by default Skv
        ("attention_out", POINTER(velo_tensor)),  # [B, Sq, N, Dv], dtype of query
        ("scale", c_double),  # factor of the products, usually 1 / sqrt(D); finite in float32
        ("pre_tokens", c_int64),  # keys before its own that a row sees; 2147483647: all
    ]
    _defaults_ = {"scale": 1.0, "pre_tokens": 2147483647}
    _numbers_ = ("scale", "pre_tokens")


class velo_generate_mask_args(Sized):
    """`mask[i, j] = step(positions[i] - pre_tokens - j) + step(j - positions[i] - next_tokens)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("positions", POINTER(velo_tensor)),  # any shape; a row of the mask each, from 0
        ("mask", POINTER(velo_tensor)),  # uint8, shape of positions with keys appended
        ("sparse_mode", c_int64),  # full: the window; or a mode with a constant, all but all_mask and prefix
        ("keys", c_int64),  # columns; of a constant the first, up to 2048
        ("pre_tokens", c_int64),  # columns left of its position that a row shows; 2147483647: all
        ("next_tokens", c_int64),  # the same to the right
    ]
    _defaults_ = {"keys": 2048, "pre_tokens": 2147483647}
    _numbers_ = ("sparse_mode", "keys", "pre_tokens", "next_tokens")


class velo_alibi_slopes_args(Sized):
    """`slopes[i] = 2^(-8 * (heads[i] + 1) / p)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("heads", POINTER(velo_tensor)),  # any shape; heads, from 0
        ("slopes", POINTER(velo_tensor)),  # float32, shape of heads
        ("head_num", c_int64),  # heads of all ranks
    ]
    _defaults_ = {"head_num": 8}
    _numbers_ = ("head_num",)


class velo_embedding_args(Sized):
    """`y[t] = table[ids[t]]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("ids", POINTER(velo_tensor)),  # any shape; each in [0, V), else VELO_ERR_ARGUMENT before anything is written
        ("table", POINTER(velo_tensor)),  # [V, D]
        ("y", POINTER(velo_tensor)),  # shape of ids with D appended, dtype of table
    ]


class velo_embedding_backward_args(Sized):
    """`dtable[ids[t]] += dy[t]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("ids", POINTER(velo_tensor)),  # as in the forward call
        ("dy", POINTER(velo_tensor)),  # shape of ids with D appended
        ("dtable", POINTER(velo_tensor)),  # float32, [rows, D]
        ("rows", c_int64),  # V, the rows of the table
        ("accumulate", c_int64),  # 1 adds to dtable instead of writing it
    ]
    _numbers_ = ("rows",)


class velo_cross_entropy_args(Sized):
    """`lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * w[targets[t]] * (lse[t] - logits[t, targets[t]]) + e / V * sum[v](w[v] * (lse[t] - logits[t, v]))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # [T, V]
        ("targets", POINTER(velo_tensor)),  # [T]; each in [0, V) or ignore_index, else VELO_ERR_ARGUMENT before anything is written
        ("loss", POINTER(velo_tensor)),  # float32, [T] or []
        ("lse", POINTER(velo_tensor)),  # float32, [T]: log-sum-exp of each row, what the gradient needs
        ("ignore_index", c_int64),  # the target that does not count
        ("reduction", c_int64),  # how tokens become one number
        ("class_weights", POINTER(velo_tensor)),  # float32, [V]: w; NULL: each is 1
        ("label_smoothing", c_double),  # e
    ]
    _defaults_ = {"ignore_index": -100, "reduction": VELO_REDUCTION_MEAN}
    _numbers_ = ("ignore_index", "reduction", "label_smoothing")


class velo_cross_entropy_backward_args(Sized):
    """`b[t, v] = (1 - e) * w[v] * [v = targets[t]] + e / V * w[v]`; `dlogits[t, v] = (exp(logits[t, v] - lse[t]) * sum[u](b[t, u]) - b[t, v]) * dloss[t]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dloss", POINTER(velo_tensor)),  # float32, shape of loss
        ("logits", POINTER(velo_tensor)),  # the forward input
        ("targets", POINTER(velo_tensor)),  # the forward targets
        ("lse", POINTER(velo_tensor)),  # float32, [T], from the forward pass
        ("dlogits", POINTER(velo_tensor)),  # shape and dtype of logits; may be logits itself
        ("ignore_index", c_int64),  # as in the forward call
        ("reduction", c_int64),  # as in the forward call
        ("class_weights", POINTER(velo_tensor)),  # as in the forward call
        ("label_smoothing", c_double),  # as in the forward call
    ]
    _defaults_ = {"ignore_index": -100, "reduction": VELO_REDUCTION_MEAN}
    _numbers_ = ("ignore_index", "reduction", "label_smoothing")


class velo_apply_fused_adamw_args(Sized):
    """`g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 * v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) + epsilon)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("grad", POINTER(velo_tensor)),  # shape of param
        ("scale", POINTER(velo_tensor)),  # float32, []: factor on the gradient, such as a clip factor; NULL = 1
        ("param", POINTER(velo_tensor)),  # any shape
        ("master", POINTER(velo_tensor)),  # float32, shape of param: the exact parameters when param has 16 bits
        ("m", POINTER(velo_tensor)),  # first moment, shape of param
        ("v", POINTER(velo_tensor)),  # second moment, shape and dtype of m
        ("v_max", POINTER(velo_tensor)),  # largest second moment, shape of param; required by amsgrad
        ("step", c_int64),  # number of this update, from 1
        ("lr", c_double),  # learning rate
        ("beta1", c_double),  # decay of the first moment
        ("beta2", c_double),  # decay of the second moment
        ("epsilon", c_double),  # added to the root
        ("weight_decay", c_double),  # decoupled weight decay
        ("amsgrad", c_int64),  # 1 divides by the largest second moment so far
        ("maximize", c_int64),  # 1 ascends
        ("step_tensor", POINTER(velo_tensor)),  # []: the number of this update in place of step, read when the update runs; at least 1, else VELO_ERR_ARGUMENT before anything is written
        ("lr_tensor", POINTER(velo_tensor)),  # float32, []: the learning rate in place of lr, read when the update runs
    ]
    _defaults_ = {"step": 1, "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}
    _numbers_ = ("step", "lr", "beta1", "beta2", "epsilon", "weight_decay")


class velo_apply_fused_ema_adamw_args(Sized):
    """`m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1 - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema = ema_decay * ema + (1 - ema_decay) * p`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("grad", POINTER(velo_tensor)),  # shape of param
        ("param", POINTER(velo_tensor)),  # any shape
        ("m", POINTER(velo_tensor)),  # first moment, shape of param
        ("v", POINTER(velo_tensor)),  # second moment, shape of param
        ("ema", POINTER(velo_tensor)),  # running average of param, its shape
        ("step", c_int64),  # number of this update, from 1
        ("lr", c_double),  # learning rate
        ("ema_decay", c_double),  # decay of the average
        ("beta1", c_double),  # decay of the first moment
        ("beta2", c_double),  # decay of the second moment
        ("epsilon", c_double),  # added to the root
        ("mode", c_int64),  # 1: decoupled weight decay (AdamW); 0: it is added to the gradient (Adam)
        ("bias_correction", c_int64),  # 0 leaves the moments as they are
        ("weight_decay", c_double),  # weight decay
        ("step_tensor", POINTER(velo_tensor)),  # []: the number of this update in place of step, as in apply_fused_adamw
    ]
    _defaults_ = {"step": 1, "lr": 0.001, "ema_decay": 0.9999, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08, "mode": 1, "bias_correction": 1}
    _numbers_ = ("step", "lr", "ema_decay", "beta1", "beta2", "epsilon", "mode", "weight_decay")


class velo_multi_tensor_adamw_args(Sized):
    """`g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 * v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) + epsilon)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("grad", POINTER(velo_tensors)),  # shapes of param
        ("scale", POINTER(velo_tensor)),  # float32, []: factor on all gradients; NULL = 1
        ("param", POINTER(velo_tensors)),  # any shapes
        ("master", POINTER(velo_tensors)),  # float32, shapes of param: the exact parameters when param has 16 bits
        ("m", POINTER(velo_tensors)),  # first moments, shapes of param
        ("v", POINTER(velo_tensors)),  # second moments, shapes and dtypes of m
        ("v_max", POINTER(velo_tensors)),  # largest second moments, shapes of param; required by amsgrad
        ("step", c_int64),  # number of this update, from 1
        ("lr", c_double),  # learning rate
        ("beta1", c_double),  # decay of the first moment
        ("beta2", c_double),  # decay of the second moment
        ("epsilon", c_double),  # added to the root
        ("weight_decay", c_double),  # decoupled weight decay
        ("amsgrad", c_int64),  # 1 divides by the largest second moment so far
        ("maximize", c_int64),  # 1 ascends
        ("step_tensor", POINTER(velo_tensor)),  # []: the number of this update in place of step, as in apply_fused_adamw
        ("lr_tensor", POINTER(velo_tensor)),  # float32, []: the learning rate in place of lr, read when the update runs
    ]
    _defaults_ = {"step": 1, "lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}
    _numbers_ = ("step", "lr", "beta1", "beta2", "epsilon", "weight_decay")


class velo_multi_tensor_ema_adamw_args(Sized):
    """`m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1 - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema = ema_decay * ema + (1 - ema_decay) * p`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("grad", POINTER(velo_tensors)),  # shapes of param
        ("param", POINTER(velo_tensors)),  # any shapes
        ("m", POINTER(velo_tensors)),  # first moments, shapes of param
        ("v", POINTER(velo_tensors)),  # second moments, shapes of param
        ("ema", POINTER(velo_tensors)),  # running averages of param, its shapes
        ("step", c_int64),  # number of this update, from 1
        ("lr", c_double),  # learning rate
        ("ema_decay", c_double),  # decay of the averages
        ("beta1", c_double),  # decay of the first moment
        ("beta2", c_double),  # decay of the second moment
        ("epsilon", c_double),  # added to the root
        ("mode", c_int64),  # 1: decoupled weight decay (AdamW); 0: it is added to the gradient (Adam)
        ("bias_correction", c_int64),  # 0 leaves the moments as they are
        ("weight_decay", c_double),  # weight decay
        ("step_tensor", POINTER(velo_tensor)),  # []: the number of this update in place of step, as in apply_fused_adamw
    ]
    _defaults_ = {"step": 1, "lr": 0.001, "ema_decay": 0.9999, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08, "mode": 1, "bias_correction": 1}
    _numbers_ = ("step", "lr", "ema_decay", "beta1", "beta2", "epsilon", "mode", "weight_decay")


class velo_global_norm_args(Sized):
    """`sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm + 1e-6))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("sum_of_squares", POINTER(velo_tensor)),  # float64, []
        ("norm", POINTER(velo_tensor)),  # float32, []
        ("clip", POINTER(velo_tensor)),  # float32, []: what apply_fused_adamw takes as scale
        ("max_norm", c_double),  # the norm to clip to
        ("accumulate", c_int64),  # 1 adds to sum_of_squares instead of writing it
    ]
    _defaults_ = {"max_norm": 1.0}
    _numbers_ = ("max_norm",)


class velo_multi_tensor_global_norm_args(Sized):
    """`sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm + 1e-6))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensors)),  # any shapes
        ("sum_of_squares", POINTER(velo_tensor)),  # float64, []
        ("norm", POINTER(velo_tensor)),  # float32, []
        ("clip", POINTER(velo_tensor)),  # float32, []: what multi_tensor_adamw takes as scale
        ("max_norm", c_double),  # the norm to clip to
        ("accumulate", c_int64),  # 1 adds to sum_of_squares instead of writing it
    ]
    _defaults_ = {"max_norm": 1.0}
    _numbers_ = ("max_norm",)


class velo_bf16_param_split_args(Sized):
    """`param = bfloat16(master)`; `residual = master - param`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("master", POINTER(velo_tensor)),  # any shape
        ("v", POINTER(velo_tensor)),  # second moment, shape of master: half_even sets its sign, plain for a tie and negative for none; unread by half_up
        ("param", POINTER(velo_tensor)),  # bfloat16, shape of master
        ("residual", POINTER(velo_tensor)),  # uint8, shape of master with 2 appended
        ("rounding", c_int64),  # where master lies halfway between two of bfloat16
    ]
    _numbers_ = ("rounding",)


class velo_bf16_param_merge_args(Sized):
    """`master = param + residual`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("param", POINTER(velo_tensor)),  # any shape
        ("residual", POINTER(velo_tensor)),  # shape of param with 2 appended
        ("v", POINTER(velo_tensor)),  # as bf16_param_split left it
        ("master", POINTER(velo_tensor)),  # float32, shape of param
        ("rounding", c_int64),  # as in bf16_param_split
    ]
    _numbers_ = ("rounding",)


class velo_add_args(Sized):
    """`y = a + b`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("a", POINTER(velo_tensor)),  # any shape
        ("b", POINTER(velo_tensor)),  # shape and dtype of a
        ("y", POINTER(velo_tensor)),  # shape and dtype of a; may be a or b itself
    ]


class velo_cast_args(Sized):
    """`y = round(x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape of x, element type `dtype`
        ("dtype", c_int64),  # element type of y
    ]
    _numbers_ = ("dtype",)


class velo_dropout_args(Sized):
    """`y = x * mask / (1 - p)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("mask", POINTER(velo_tensor)),  # uint8, shape of x: 1 where an element is kept, else 0
        ("p", c_double),  # probability of dropping an element; 1 drops all
        ("seed", c_int64),  # key of the generator, modulo 2^64
        ("offset", c_int64),  # upper half of its counter: another for each call that shares the seed
        ("dropout_origin", POINTER(velo_ints)),  # a value for each dimension of x: where x begins in the whole, whose indices decide
        ("dropout_extents", POINTER(velo_ints)),  # the sizes of the whole; by default those of x
    ]
    _defaults_ = {"p": 0.5}
    _numbers_ = ("p", "seed", "offset")


class velo_dropout_backward_args(Sized):
    """`dx = dy * mask / (1 - p)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("p", c_double),  # that of the forward call
        ("seed", c_int64),  # that of the forward call
        ("offset", c_int64),  # that of the forward call
        ("dropout_origin", POINTER(velo_ints)),  # that of the forward call
        ("dropout_extents", POINTER(velo_ints)),  # those of the forward call
    ]
    _defaults_ = {"p": 0.5}
    _numbers_ = ("p", "seed", "offset")


class velo_accumulate_args(Sized):
    """`y += alpha * x`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape
        ("y", POINTER(velo_tensor)),  # shape of x
        ("alpha", c_double),  # the factor of x
    ]
    _defaults_ = {"alpha": 1.0}
    _numbers_ = ("alpha",)


class velo_reduce_max_abs_args(Sized):
    """`y = max(abs(x))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # any shape; [.., n] for rows and columns
        ("y", POINTER(velo_tensor)),  # float32: [], [..] for rows, [n] for columns
        ("over", c_int64),  # what one number stands for
    ]
    _numbers_ = ("over",)


class velo_matmul_all_reduce_args(Sized):
    """`y = sum_ranks(x @ op(weight)) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [.., k], the leading dimensions folded into m rows; int8 with dequant_scale
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x; with scale int8, or int4 as int4 or as two numbers in a uint8, as of weight_quant_matmul
        ("y", POINTER(velo_tensor)),  # [.., n], dtype of x; of output_dtype with dequant_scale
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
        ("parallel_num", c_int64),  # slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are as many rows; the same on all ranks; MindSpeed's coc-parallel-num
        ("bias", POINTER(velo_tensor)),  # [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so all ranks give the same; int32 with dequant_scale, and then of this rank's product; NULL = 0
        ("packed", velo_pack),  # a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
        ("scale", POINTER(velo_tensor)),  # of a quantized weight: [1], [n], or [groups, n], float32 or the dtype of x; NULL: the weight is not quantized, or x is, too
        ("offset", POINTER(velo_tensor)),  # shape and dtype of scale; NULL = 0
        ("group_size", c_int64),  # rows of k in a group of scale, a multiple of 32 below k; the last group may have fewer; 0: groups are equal
        ("dequant_scale", POINTER(velo_tensor)),  # of int8 by int8: [1], [n] or [1, n]; int64 and uint64 have a float32 in the low half; bfloat16 for such a y alone
        ("per_token_scale", POINTER(velo_tensor)),  # [m], with dequant_scale alone; NULL = 1
        ("output_dtype", c_int64),  # dtype of y with dequant_scale
    ]
    _numbers_ = ("parallel_num", "group_size", "output_dtype")


class velo_matmul_reduce_scatter_args(Sized):
    """`y = part_rank(sum_ranks(x @ op(weight))) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [S, .., k]; S divides by the ranks, or is the sum of rows
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x
        ("y", POINTER(velo_tensor)),  # [S / ranks, .., n], or this rank's of rows, dtype of x
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
        ("parallel_num", c_int64),  # slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are as many rows; the same on all ranks; MindSpeed's coc-parallel-num
        ("bias", POINTER(velo_tensor)),  # [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so all ranks give the same; NULL = 0
        ("packed", velo_pack),  # a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
        ("rows", POINTER(velo_ints)),  # [ranks]: rows of y of each rank, the same list on all; some may be 0; NULL: as many on each
    ]
    _numbers_ = ("parallel_num",)


class velo_all_gather_matmul_args(Sized):
    """`y = gather_ranks(x) @ op(weight) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [s, .., k]
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x
        ("y", POINTER(velo_tensor)),  # [S, .., n], dtype of x; S = ranks * s, or the sum of rows
        ("gathered", POINTER(velo_tensor)),  # x of all ranks, in their order along the first dimension: what the gradient to weight needs
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
        ("parallel_num", c_int64),  # slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are as many rows; the same on all ranks; MindSpeed's coc-parallel-num
        ("bias", POINTER(velo_tensor)),  # [n] or [1, n], float32 or the dtype of x; NULL = 0
        ("packed", velo_pack),  # a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
        ("rows", POINTER(velo_ints)),  # [ranks]: s of each rank, the same list on all; some may be 0; NULL: as many on each
    ]
    _numbers_ = ("parallel_num",)


class velo_all_gather_matmul_reduce_scatter_args(Sized):
    """`y = part_rank(sum_scatter(gather_ranks(x) @ op(weight))) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("gather_group", velo_group),  # the ranks whose x is gathered, of the stream's context; NULL: this one alone
        ("scatter_group", velo_group),  # the ranks whose products are summed and divided, another group; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [s, .., k]
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x
        ("y", POINTER(velo_tensor)),  # [S / summing ranks, .., n], or this rank's of scatter_rows, dtype of x; S = gathering ranks * s, or the sum of gather_rows
        ("gathered", POINTER(velo_tensor)),  # x of all ranks, in their order along the first dimension: what the gradient to weight needs
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
        ("parallel_num", c_int64),  # slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are as many rows; the same on all ranks; MindSpeed's coc-parallel-num
        ("bias", POINTER(velo_tensor)),  # [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so ranks of scatter_group give the same; NULL = 0
        ("packed", velo_pack),  # a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
        ("gather_rows", POINTER(velo_ints)),  # [gathering ranks]: s of each rank, the same list on all of gather_group; some may be 0; NULL: as many on each
        ("scatter_rows", POINTER(velo_ints)),  # [summing ranks]: rows of y of each rank, the same list on all of scatter_group, with the sum S; some may be 0; NULL: as many on each
        ("beside", POINTER(velo_tensor)),  # the shape and dtype of y: rows that travel over scatter_group beside the sum, in its pieces; of a gradient the layer's x beside dx; on all ranks or none
        ("beside_gathered", POINTER(velo_tensor)),  # [S, .., n]: beside of all ranks of scatter_group, in their order: what the gradient to weight needs; given on all ranks or none; [0] without beside
    ]
    _numbers_ = ("parallel_num",)


class velo_matmul_all_reduce_add_rms_norm_args(Sized):
    """`z = sum_ranks(x @ op(weight) + bias) + residual`; `y = z`; `norm_out = z / sqrt(mean(z^2) + epsilon) * gamma`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [.., k], the leading dimensions folded into m rows; int8 with dequant_scale
        ("weight", POINTER(velo_tensor)),  # [k, n], or [n, k] with transpose_weight; dtype of x; with scale int8, or int4 as int4 or as two numbers in a uint8, as of weight_quant_matmul
        ("bias", POINTER(velo_tensor)),  # [n] or [1, n], float32 or the dtype of x, int32 with dequant_scale; added to this rank's product, before the sum: the same bias on all ranks counts as often as there are ranks, unlike that of matmul_all_reduce; NULL = 0, and other ranks may give one
        ("residual", POINTER(velo_tensor)),  # [.., n] of m rows, whatever their leading dimensions; float32, or the dtype of x, and any of the three with dequant_scale; this rank's is added
        ("gamma", POINTER(velo_tensor)),  # [n]; float32, or the dtype of norm_out
        ("scale", POINTER(velo_tensor)),  # of a quantized weight: [1], [n], or [groups, n], as of matmul_all_reduce; NULL: the weight is not quantized, or x is, too
        ("offset", POINTER(velo_tensor)),  # shape and dtype of scale; NULL = 0
        ("y", POINTER(velo_tensor)),  # z, shape and dtype of residual; may be the residual itself
        ("norm_out", POINTER(velo_tensor)),  # shape of residual, dtype of x; dtype of residual with dequant_scale
        ("rstd", POINTER(velo_tensor)),  # float32, shape of residual with 1 for n; what the gradient needs
        ("transpose_weight", c_int64),  # 1 when weight is stored [n, k]
        ("epsilon", c_double),  # added to the mean square
        ("parallel_num", c_int64),  # slices of rows, as of matmul_all_reduce; the same on all ranks
        ("packed", velo_pack),  # as of matmul_all_reduce; NULL with scale or dequant_scale
        ("group_size", c_int64),  # of scale, as of matmul_all_reduce
        ("dequant_scale", POINTER(velo_tensor)),  # of int8 by int8: [1], [n] or [1, n], as of matmul_all_reduce; bfloat16 for such a residual alone
    ]
    _defaults_ = {"epsilon": 1e-06}
    _numbers_ = ("epsilon", "parallel_num", "group_size")


class velo_grouped_matmul_all_reduce_args(Sized):
    """`y[e] = sum_ranks(x[e] @ weight[e]) + bias[e]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensors)),  # [m, k] of each group, or one [m, k]; all of one dtype
        ("weight", POINTER(velo_tensors)),  # [k, n] of each group, dtype of x; or one tensor
        ("bias", POINTER(velo_tensors)),  # [n] or [1, n] of each group, float32 or the dtype of x; NULL = 0
        ("y", POINTER(velo_tensors)),  # [m, n] of each group, or one [m, n]; dtype of x; written, never read
        ("group_list", POINTER(velo_ints)),  # of one x: the end of each group's rows, the same list on all ranks; NULL for a list
        ("split_item", c_int64),  # which of x and y are one tensor
        ("parallel_num", c_int64),  # slices of rows, as of matmul_all_reduce; the same on all ranks
    ]
    _numbers_ = ("split_item", "parallel_num")


class velo_all_to_all_all_gather_bmm_args(Sized):
    """`rows[e] = gather_tp(all_to_all_ep(x))`; `y[e] = act(rows[e] @ op(weight[e]) + bias[e])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group_ep", velo_group),  # the ranks among which experts lie, of the stream's context; NULL: this one alone
        ("group_tp", velo_group),  # the ranks between which weights are cut, another group; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [E, C, H / tp], or [E, C / tp, H]: C rows for each expert, those of an ep rank's experts together
        ("weight", POINTER(velo_tensor)),  # [E / ep, H, n], or [E / ep, n, H] with transpose_weight; dtype of x
        ("bias", POINTER(velo_tensor)),  # [E / ep, n] or [E / ep, 1, n], float32 or the dtype of x; NULL = 0
        ("y", POINTER(velo_tensor)),  # [E / ep, ep C, n], dtype of x
        ("gathered", POINTER(velo_tensor)),  # [E / ep, ep C, H]: the rows of each expert, which the gradient to weight needs; need_allgather_out
        ("pre_activation", POINTER(velo_tensor)),  # shape of y: the argument of act; need_activation_feature
        ("shard_type", c_int64),  # what a rank of group_tp has of the tokens' rows; the same on all ranks
        ("act_type", c_int64),  # act
        ("transpose_weight", c_int64),  # 1 when weight is stored [E / ep, n, H]
    ]
    _numbers_ = ("shard_type", "act_type")


class velo_bmm_reduce_scatter_all_to_all_args(Sized):
    """`y = all_to_all_ep(reduce_scatter_tp(x[e] @ op(weight[e])) + bias[e])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group_ep", velo_group),  # as of all_to_all_all_gather_bmm
        ("group_tp", velo_group),  # as of all_to_all_all_gather_bmm
        ("x", POINTER(velo_tensor)),  # [E / ep, ep C, k]: the rows of each expert, by rank of ep
        ("weight", POINTER(velo_tensor)),  # [E / ep, k, H], or [E / ep, H, k] with transpose_weight; dtype of x
        ("bias", POINTER(velo_tensor)),  # [E / ep, w] or [E / ep, 1, w] for y's width w, float32 or the dtype of x; NULL = 0
        ("y", POINTER(velo_tensor)),  # [E, C, H / tp], or [E, C / tp, H]; dtype of x
        ("shard_type", c_int64),  # what a rank of group_tp gets of the sums; the same on all ranks
        ("transpose_weight", c_int64),  # 1 when weight is stored [E / ep, H, k]
    ]
    _numbers_ = ("shard_type",)


class velo_moe_token_permute_args(Sized):
    """`permuted[sorted_indices[t * k + j]] = tokens[t]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("tokens", POINTER(velo_tensor)),  # [T, n]
        ("indices", POINTER(velo_tensor)),  # [T, k] or [T], the experts of each token, -1 - expert for a dropped choice, which comes after all; padded: [experts, capacity], the tokens of each expert
        ("permuted", POINTER(velo_tensor)),  # [rows, n], dtype of tokens
        ("sorted_indices", POINTER(velo_tensor)),  # int32, [T k]; padded: as indices
        ("counts", POINTER(velo_tensor)),  # int64, [num_experts], the rows of each expert in permuted: a group_list_tensor
        ("num_out_tokens", c_int64),  # rows kept; 0 all, negative: all but so many
        ("num_experts", c_int64),  # indices are below it; counts need it; 0: 65536 at most
        ("padded_mode", c_int64),  # 1: each expert has as many rows, whose tokens indices lists
    ]
    _numbers_ = ("num_out_tokens", "num_experts")


class velo_moe_token_permute_backward_args(Sized):
    """`dtokens[t] = sum[j](dpermuted[sorted_indices[t * k + j]])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dpermuted", POINTER(velo_tensor)),  # [rows, n]
        ("sorted_indices", POINTER(velo_tensor)),  # of the forward call, each row once; padded: indices
        ("dtokens", POINTER(velo_tensor)),  # [T, n], dtype of dpermuted
        ("tokens", c_int64),  # T
        ("padded_mode", c_int64),  # 1: each expert has as many rows, whose tokens sorted_indices lists
    ]
    _numbers_ = ("tokens",)


class velo_moe_token_unpermute_args(Sized):
    """`tokens[t] = sum[j](probs[t, j] * permuted[sorted_indices[t * k + j]])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("permuted", POINTER(velo_tensor)),  # [rows, n]
        ("sorted_indices", POINTER(velo_tensor)),  # [T k], each row once; padded: [experts, capacity], the token of each row
        ("probs", POINTER(velo_tensor)),  # [T, k], padded [T, experts]; float32 or dtype of permuted; NULL: 1, and k is 1
        ("tokens", POINTER(velo_tensor)),  # [T, n], dtype of permuted
        ("restore_shape", POINTER(velo_ints)),  # padded: [T, n]
        ("padded_mode", c_int64),  # 1: each expert has as many rows, whose tokens sorted_indices lists
    ]


class velo_moe_token_unpermute_backward_args(Sized):
    """`dpermuted[sorted_indices[t * k + j]] = probs[t, j] * dy[t]`; `dprobs[t, j] = sum(permuted[sorted_indices[t * k + j]] * dy[t])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [T, n]
        ("permuted", POINTER(velo_tensor)),  # of the forward call; dprobs needs it
        ("sorted_indices", POINTER(velo_tensor)),  # of the forward call
        ("probs", POINTER(velo_tensor)),  # of the forward call
        ("dpermuted", POINTER(velo_tensor)),  # [rows, n], dtype of dy
        ("dprobs", POINTER(velo_tensor)),  # shape and dtype of probs
        ("num_out_tokens", c_int64),  # as in moe_token_permute: how many rows there are
        ("padded_mode", c_int64),  # 1: each expert has as many rows, whose tokens sorted_indices lists
    ]
    _numbers_ = ("num_out_tokens",)


class velo_topk_router_args(Sized):
    """`w = scale * s / sum[chosen](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss = mean(logsumexp(logits)^2)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # [T, E]
        ("expert_bias", POINTER(velo_tensor)),  # float32, [E], for the choice alone
        ("weights", POINTER(velo_tensor)),  # float32, [T, k]
        ("indices", POINTER(velo_tensor)),  # int32, [T, k]
        ("counts", POINTER(velo_tensor)),  # int64, [E], choices before any is dropped
        ("aux_loss", POINTER(velo_tensor)),  # float32, a number
        ("z_loss", POINTER(velo_tensor)),  # float32, a number
        ("k", c_int64),  # experts of a token
        ("score_function", c_int64),  # s of the logits
        ("normalize", c_int64),  # 1 divides the weights of a token by the sum of its chosen s
        ("scale", c_double),  # of the weights
        ("num_groups", c_int64),  # groups of as many experts
        ("kept_groups", c_int64),  # groups that are chosen from; 0 all
        ("group_score", c_int64),  # by which groups are compared
        ("capacity", c_int64),  # tokens of an expert at most; 0 all
        ("drop_policy", c_int64),  # which choices capacity keeps
    ]
    _defaults_ = {"k": 2, "normalize": 1, "scale": 1.0, "num_groups": 1}
    _numbers_ = ("k", "score_function", "scale", "num_groups", "kept_groups", "group_score", "capacity", "drop_policy")


class velo_topk_router_backward_args(Sized):
    """`dlogits = ds * dweights + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # of the forward call
        ("indices", POINTER(velo_tensor)),  # of the forward call
        ("counts", POINTER(velo_tensor)),  # [E]; daux_loss needs it
        ("dweights", POINTER(velo_tensor)),  # [T, k]
        ("daux_loss", POINTER(velo_tensor)),  # a number
        ("dz_loss", POINTER(velo_tensor)),  # a number
        ("dlogits", POINTER(velo_tensor)),  # as logits
        ("score_function", c_int64),  # s of the logits
        ("normalize", c_int64),  # 1 divides the weights of a token by the sum of its chosen s
        ("scale", c_double),  # of the weights
        ("total_tokens", c_int64),  # tokens that the losses are means over; 0: T
    ]
    _defaults_ = {"normalize": 1, "scale": 1.0}
    _numbers_ = ("score_function", "scale", "total_tokens")


class velo_capacity_gate_args(Sized):
    """`w = s / sum[kept](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss = mean(logsumexp(logits)^2)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # [T, E]; those of a balanced gate come from sinkhorn
        ("weights", POINTER(velo_tensor)),  # float32, [T, k]
        ("indices", POINTER(velo_tensor)),  # int32, [T, k], the first choice first
        ("positions", POINTER(velo_tensor)),  # int32, [T, k], the place of each choice at its expert
        ("slot_tokens", POINTER(velo_tensor)),  # int32, [E, capacity], the token at each place; -1 none
        ("combine", POINTER(velo_tensor)),  # float32, [T, E, capacity], the weights as a matrix
        ("dispatch", POINTER(velo_tensor)),  # uint8, [T, E, capacity], 1 for each choice that is kept
        ("counts", POINTER(velo_tensor)),  # int64, [E], choices before any is dropped
        ("aux_loss", POINTER(velo_tensor)),  # float32, a number
        ("z_loss", POINTER(velo_tensor)),  # float32, a number
        ("k", c_int64),  # experts of a token
        ("capacity_factor", c_double),  # places over those that even shares need
        ("min_capacity", c_int64),  # places of an expert at least, where there are as many tokens
        ("capacity", c_int64),  # places of an expert, whatever the factor; 0: by it; T: none is dropped
        ("noise", c_int64),  # of the choice
        ("random_selection", c_int64),  # 1: draws decide which tokens an expert keeps; 0 where k is 2
        ("seed", c_int64),  # key of the generator, modulo 2^64
        ("offset", c_int64),  # upper half of its counter: another for each call that shares the seed
        ("first_token", c_int64),  # number of the first token among those of all ranks
    ]
    _defaults_ = {"k": 1, "capacity_factor": 1.0, "min_capacity": 4}
    _numbers_ = ("k", "capacity_factor", "min_capacity", "capacity", "noise", "seed", "offset", "first_token")


class velo_capacity_gate_backward_args(Sized):
    """`dlogits = ds * dw + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # of the forward call
        ("indices", POINTER(velo_tensor)),  # of the forward call
        ("positions", POINTER(velo_tensor)),  # of the forward call; dcombine needs them
        ("dweights", POINTER(velo_tensor)),  # [T, k]
        ("dcombine", POINTER(velo_tensor)),  # [T, E, capacity]
        ("daux_loss", POINTER(velo_tensor)),  # a number
        ("dz_loss", POINTER(velo_tensor)),  # a number
        ("dlogits", POINTER(velo_tensor)),  # as logits
    ]


class velo_sinkhorn_args(Sized):
    """`y = rows * exp(logits) * columns`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # [T, E]
        ("y", POINTER(velo_tensor)),  # float32, [T, E]
        ("tolerance", c_double),  # mean change of the factors of experts that ends the rounds
        ("max_rounds", c_int64),  # rounds at most
    ]
    _defaults_ = {"tolerance": 0.0001, "max_rounds": 1000}
    _numbers_ = ("tolerance", "max_rounds")


class velo_sinkhorn_backward_args(Sized):
    """`dlogits = exp(logits) * dpowers`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logits", POINTER(velo_tensor)),  # of the forward call
        ("dy", POINTER(velo_tensor)),  # [T, E]
        ("dlogits", POINTER(velo_tensor)),  # as logits
        ("tolerance", c_double),  # mean change of the factors of experts that ends the rounds
        ("max_rounds", c_int64),  # rounds at most
    ]
    _defaults_ = {"tolerance": 0.0001, "max_rounds": 1000}
    _numbers_ = ("tolerance", "max_rounds")


class velo_softmax_args(Sized):
    """`y[i] = exp(scale * x[i]) / sum[j](exp(scale * x[j]))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., n]
        ("mask", POINTER(velo_tensor)),  # nonzero hides; sizes those of x's last dimensions, or 1 in all but the last
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("scale", c_double),  # x is multiplied by it
    ]
    _defaults_ = {"scale": 1.0}
    _numbers_ = ("scale",)


class velo_softmax_backward_args(Sized):
    """`dx[i] = scale * y[i] * (dy[i] - sum[j](dy[j] * y[j]))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [.., n]
        ("y", POINTER(velo_tensor)),  # the forward output: shape and dtype of dy
        ("dx", POINTER(velo_tensor)),  # shape and dtype of dy; may be dy or y itself
        ("scale", c_double),  # as in the forward call
    ]
    _defaults_ = {"scale": 1.0}
    _numbers_ = ("scale",)


class velo_pad_seqlen_args(Sized):
    """`y[i, j] = x[start[i] + j]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [T, H], T the sum of seq_len
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence, each at most max_seq_len
        ("y", POINTER(velo_tensor)),  # [sequences, max_seq_len, H], dtype of x
        ("max_seq_len", c_int64),  # the length of the rows
    ]
    _defaults_ = {"max_seq_len": 1}
    _numbers_ = ("max_seq_len",)


class velo_pad_seqlen_backward_args(Sized):
    """`dx[start[i] + j] = dy[i, j]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [sequences, max_seq_len, H]
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence
        ("dx", POINTER(velo_tensor)),  # [T, H], T the sum of seq_len; dtype of dy
    ]


class velo_unpad_seqlen_args(Sized):
    """`y[start[i] + j] = x[i, j]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [sequences, S, H]
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence, each at most S
        ("y", POINTER(velo_tensor)),  # [T, H], T the sum of seq_len; dtype of x
    ]


class velo_unpad_seqlen_backward_args(Sized):
    """`dx[i, j] = dy[start[i] + j]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # [T, H], T the sum of seq_len
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence, each at most max_seq_len
        ("dx", POINTER(velo_tensor)),  # [sequences, max_seq_len, H], dtype of dy
        ("max_seq_len", c_int64),  # S of the forward input
    ]
    _defaults_ = {"max_seq_len": 1}
    _numbers_ = ("max_seq_len",)


class velo_unpad_gen_attention_mask_args(Sized):
    """`y[h] = mask[i]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("mask", POINTER(velo_tensor)),  # [sequences, m, S, S], m mostly 1
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence, each at most S
        ("y", POINTER(velo_tensor)),  # flat, head_num * m times the sum of the squared lengths; dtype of mask
        ("head_num", c_int64),  # copies of each
    ]
    _defaults_ = {"head_num": 1}
    _numbers_ = ("head_num",)


class velo_unpad_rope_args(Sized):
    """`q_out = q * cos + rotate(q) * sin`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("q", POINTER(velo_tensor)),  # [T, Hq], T the sum of seq_len; Hq a multiple of D and of Hk
        ("k", POINTER(velo_tensor)),  # [T, Hk], Hk a multiple of D; dtype of q
        ("cos", POINTER(velo_tensor)),  # [positions, D], float32 or dtype of q; D even
        ("sin", POINTER(velo_tensor)),  # shape and dtype of cos
        ("seq_len", POINTER(velo_tensor)),  # [sequences], each at most positions, checked when the call runs
        ("q_out", POINTER(velo_tensor)),  # shape and dtype of q; may be q itself
        ("k_out", POINTER(velo_tensor)),  # shape and dtype of k; may be k itself
    ]


class velo_unpad_rope_backward_args(Sized):
    """`dq = dq_out * cos + rotate^T(dq_out * sin)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dq_out", POINTER(velo_tensor)),  # [T, Hq]
        ("dk_out", POINTER(velo_tensor)),  # [T, Hk], dtype of dq_out
        ("cos", POINTER(velo_tensor)),  # the forward table
        ("sin", POINTER(velo_tensor)),  # the forward table
        ("seq_len", POINTER(velo_tensor)),  # as in the forward call
        ("dq", POINTER(velo_tensor)),  # shape and dtype of dq_out; may be dq_out itself
        ("dk", POINTER(velo_tensor)),  # shape and dtype of dk_out; may be dk_out itself
        ("upstream", c_int64),  # the formula of AscendSpeed, not the gradient
    ]


class velo_unpad_softmax_args(Sized):
    """`y[r, i] = exp(x[r, i]) / sum[j](exp(x[r, j]))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # flat, head_num times the sum of the squared lengths; or [n, flat], n of these
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("head_num", c_int64),  # heads
    ]
    _defaults_ = {"head_num": 1}
    _numbers_ = ("head_num",)


class velo_unpad_softmax_backward_args(Sized):
    """`dx[r, i] = y[r, i] * (dy[r, i] - sum[j](dy[r, j] * y[r, j]))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dy", POINTER(velo_tensor)),  # as y
        ("y", POINTER(velo_tensor)),  # the forward output: shape and dtype of dy
        ("seq_len", POINTER(velo_ints)),  # the length of each sequence
        ("dx", POINTER(velo_tensor)),  # shape and dtype of dy; may be dy or y itself
        ("head_num", c_int64),  # heads
    ]
    _defaults_ = {"head_num": 1}
    _numbers_ = ("head_num",)


class velo_unpad_strided_batch_matmul_args(Sized):
    """`c[i, h] = op(a[i, h]) @ op(b[i, h])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("a", POINTER(velo_tensor)),  # flat, [elements] of all its matrices, not [tokens, hidden]; or [r, elements], r of these
        ("b", POINTER(velo_tensor)),  # likewise, as many of them; dtype of a
        ("c", POINTER(velo_tensor)),  # likewise; dtype of a
        ("m", POINTER(velo_ints)),  # rows of op(a) and c of each sequence; needed without preset
        ("n", POINTER(velo_ints)),  # columns of op(b) and c
        ("k", POINTER(velo_ints)),  # columns of op(a), rows of op(b)
        ("lda", POINTER(velo_ints)),  # elements between stored rows of a; NULL: their length
        ("ldb", POINTER(velo_ints)),  # elements between stored rows of b; NULL: their length
        ("ldc", POINTER(velo_ints)),  # elements between stored rows of c; NULL: their length
        ("stride_a", POINTER(velo_ints)),  # elements between the matrices of two heads in a; NULL: their size
        ("stride_b", POINTER(velo_ints)),  # elements between the matrices of two heads in b; NULL: their size
        ("stride_c", POINTER(velo_ints)),  # elements between the matrices of two heads in c; NULL: their size
        ("transpose_a", POINTER(velo_ints)),  # 1 where a is stored [k, m]; NULL: nowhere
        ("transpose_b", POINTER(velo_ints)),  # 1 where b is stored [n, k]; NULL: nowhere
        ("seq_len", POINTER(velo_ints)),  # with a preset the length s of each sequence, in place of all lists
        ("head_num", c_int64),  # products of each sequence
        ("head_dim", c_int64),  # with a preset the columns of a head
        ("preset", c_int64),  # the lists of a product of attention
    ]
    _defaults_ = {"head_num": 1, "head_dim": 1}
    _numbers_ = ("head_num", "head_dim", "preset")


class velo_unpad_strided_batch_matmul_backward_args(Sized):
    """`da[i, h] = dc[i, h] @ op(b[i, h])^T`; `db[i, h] = op(a[i, h])^T @ dc[i, h]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("dc", POINTER(velo_tensor)),  # as c
        ("a", POINTER(velo_tensor)),  # as in the forward call, dtype of dc; db needs it
        ("b", POINTER(velo_tensor)),  # as in the forward call, dtype of dc; da needs it
        ("da", POINTER(velo_tensor)),  # as a, dtype of dc
        ("db", POINTER(velo_tensor)),  # as b, dtype of dc
        ("m", POINTER(velo_ints)),  # rows of op(a) and c of each sequence; needed without preset
        ("n", POINTER(velo_ints)),  # columns of op(b) and c
        ("k", POINTER(velo_ints)),  # columns of op(a), rows of op(b)
        ("lda", POINTER(velo_ints)),  # elements between stored rows of a; NULL: their length
        ("ldb", POINTER(velo_ints)),  # elements between stored rows of b; NULL: their length
        ("ldc", POINTER(velo_ints)),  # elements between stored rows of c; NULL: their length
        ("stride_a", POINTER(velo_ints)),  # elements between the matrices of two heads in a; NULL: their size
        ("stride_b", POINTER(velo_ints)),  # elements between the matrices of two heads in b; NULL: their size
        ("stride_c", POINTER(velo_ints)),  # elements between the matrices of two heads in c; NULL: their size
        ("transpose_a", POINTER(velo_ints)),  # 1 where a is stored [k, m]; NULL: nowhere
        ("transpose_b", POINTER(velo_ints)),  # 1 where b is stored [n, k]; NULL: nowhere
        ("seq_len", POINTER(velo_ints)),  # with a preset the length s of each sequence, in place of all lists
        ("head_num", c_int64),  # products of each sequence
        ("head_dim", c_int64),  # with a preset the columns of a head
        ("preset", c_int64),  # the lists of a product of attention
    ]
    _defaults_ = {"head_num": 1, "head_dim": 1}
    _numbers_ = ("head_num", "head_dim", "preset")


class velo_quantize_args(Sized):
    """`scale = max(abs(x)) / limit`; `y = round(x / scale)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("x", POINTER(velo_tensor)),  # [.., k, n]
        ("y", POINTER(velo_tensor)),  # int8 [.., k, n]; of int4 uint8 [.., k, n / 2], or int4 [.., k, n]
        ("scale", POINTER(velo_tensor)),  # float32: [], [.., k] of tokens, [.., n] of channels, [.., k / group_size, n] of groups
        ("over", c_int64),  # what has a scale of its own
        ("format", c_int64),  # of y
        ("group_size", c_int64),  # of groups: a divisor of k, 32, 64, 128 or another multiple of 32
    ]
    _numbers_ = ("over", "format", "group_size")


class velo_sequence_all_to_all_args(Sized):
    """`y = rows_or_heads(x)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [rows, heads, ..]: to heads, this rank's rows of all heads; to rows, all rows of this rank's heads
        ("y", POINTER(velo_tensor)),  # [rows, heads, ..] the other way, dtype of x
        ("to", c_int64),  # the cut of y
        ("rows", POINTER(velo_ints)),  # [ranks]: rows of each rank, the same list on all; NULL: as many on each
        ("heads", POINTER(velo_ints)),  # [2 ranks]: begin and end of each rank's heads, the same list on all; NULL: as many for each, one rank's after another's
    ]
    _numbers_ = ("to",)


class velo_context_parallel_attention_args(Sized):
    """`attention_out = softmax(scale * query @ key^T) @ value`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the context-parallel ranks, of the stream's context; NULL: this one alone
        ("plan", velo_sequence_plan),  # rows, tasks and messages of the ranks; it must live until the call has run; NULL: a causal ring of the group over one document, whose ranks have as many rows each
        ("query", POINTER(velo_tensor)),  # [S, N, D] or [B, S, N, D]: the rows of this rank, in the order of the plan
        ("key", POINTER(velo_tensor)),  # the same with Nkv heads, dtype of query
        ("value", POINTER(velo_tensor)),  # the same with Nkv heads of Dv elements, dtype of query
        ("attention_out", POINTER(velo_tensor)),  # shape and dtype of query with Dv for D
        ("softmax_max", POINTER(velo_tensor)),  # float32 [heads, rows] or [B, heads, rows] of the queries that this rank computes: its own, or with Ulysses all rows of its heads
        ("softmax_sum", POINTER(velo_tensor)),  # the same of the sum of exp(score - softmax_max)
        ("kept", POINTER(velo_tensor)),  # [n], dtype of query: blocks of other ranks that the plan keeps for the gradient, and for layers that share the keys; velo_op_infer tells n
        ("scale", c_double),  # factor of the products, usually 1 / sqrt(D); finite in float32
        ("alibi_slopes", POINTER(velo_tensor)),  # [N]: a score gets -slope * |i - j| for rows i and j of the sequence
        ("alibi_root", c_int64),  # 1: -slope * sqrt(|i - j|)
        ("keep_prob", c_double),  # share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all; decided by the indices of the whole [B, N, sequence, sequence], so that no cut changes it: ranks that have some heads or sequences give dropout_origin
        ("seed", c_int64),  # of dropout, as the operator dropout has it
        ("offset", c_int64),  # of dropout
        ("dropout_origin", POINTER(velo_ints)),  # 2 values: where the call's [B, N] begins in the whole [B, N, sequence, sequence], whose indices decide; the same on all ranks of group
        ("dropout_extents", POINTER(velo_ints)),  # 2 values, B and N of the whole; by default the call's own
        ("given", POINTER(velo_tensor)),  # [n], dtype of query: kept of the call of the layer that owns the keys, which had the plan of KEYS_SHARED; where this plan is of KEYS_GIVEN and takes any
    ]
    _defaults_ = {"scale": 1.0, "keep_prob": 1.0}
    _numbers_ = ("scale", "keep_prob", "seed", "offset")


class velo_context_parallel_attention_backward_args(Sized):
    """`delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`; `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the context-parallel ranks, of the stream's context; NULL: this one alone
        ("plan", velo_sequence_plan),  # rows, tasks and messages of the ranks; it must live until the call has run; NULL: a causal ring of the group over one document, whose ranks have as many rows each
        ("query", POINTER(velo_tensor)),  # [S, N, D] or [B, S, N, D]: the rows of this rank, in the order of the plan
        ("key", POINTER(velo_tensor)),  # the same with Nkv heads, dtype of query
        ("value", POINTER(velo_tensor)),  # the same with Nkv heads of Dv elements, dtype of query
        ("dy", POINTER(velo_tensor)),  # gradient of attention_out: its shape and dtype
        ("softmax_max", POINTER(velo_tensor)),  # from the forward pass
        ("softmax_sum", POINTER(velo_tensor)),  # from the forward pass
        ("attention_out", POINTER(velo_tensor)),  # from the forward pass
        ("kept", POINTER(velo_tensor)),  # from the forward pass; NULL where it has no elements
        ("dquery", POINTER(velo_tensor)),  # shape and dtype of query
        ("dkey", POINTER(velo_tensor)),  # shape and dtype of key
        ("dvalue", POINTER(velo_tensor)),  # shape and dtype of value
        ("scale", c_double),  # factor of the products, usually 1 / sqrt(D); finite in float32
        ("alibi_slopes", POINTER(velo_tensor)),  # [N]: a score gets -slope * |i - j| for rows i and j of the sequence
        ("alibi_root", c_int64),  # 1: -slope * sqrt(|i - j|)
        ("keep_prob", c_double),  # share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all; decided by the indices of the whole [B, N, sequence, sequence], so that no cut changes it: ranks that have some heads or sequences give dropout_origin
        ("seed", c_int64),  # of dropout, as the operator dropout has it
        ("offset", c_int64),  # of dropout
        ("dropout_origin", POINTER(velo_ints)),  # 2 values: where the call's [B, N] begins in the whole [B, N, sequence, sequence], whose indices decide; the same on all ranks of group
        ("dropout_extents", POINTER(velo_ints)),  # 2 values, B and N of the whole; by default the call's own
        ("given", POINTER(velo_tensor)),  # as in the forward pass
    ]
    _defaults_ = {"scale": 1.0, "keep_prob": 1.0}
    _numbers_ = ("scale", "keep_prob", "seed", "offset")


class velo_vocab_parallel_cross_entropy_args(Sized):
    """`lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * (lse[t] - logits[t, targets[t]]) + e / V * sum[v](lse[t] - logits[t, v])`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the classes are cut between, of the stream's context; NULL: this one alone
        ("logits", POINTER(velo_tensor)),  # [T, n]: this rank's classes
        ("targets", POINTER(velo_tensor)),  # [T], the same on all ranks; each in [0, V) or ignore_index
        ("loss", POINTER(velo_tensor)),  # float32, [T]; the same bits on all ranks
        ("lse", POINTER(velo_tensor)),  # float32, [T]: log-sum-exp over all classes, what the gradient needs
        ("ignore_index", c_int64),  # the target that does not count
        ("label_smoothing", c_double),  # e
        ("vocab_begin", c_int64),  # the first class of this rank; -1: rank * n; the ranks' columns hold each class once
        ("vocab_size", c_int64),  # V, classes of all ranks; those from V on are padding, which counts nowhere and has the gradient 0; 0: n * ranks, or vocab_begin + n if that is more; needed where columns are uneven
    ]
    _defaults_ = {"ignore_index": -100, "vocab_begin": -1}
    _numbers_ = ("ignore_index", "label_smoothing", "vocab_begin", "vocab_size")


class velo_vocab_parallel_cross_entropy_backward_args(Sized):
    """`dlogits[t, v] = (exp(logits[t, v] - lse[t]) - (1 - e) * [v = targets[t]] - e / V) * dloss[t]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the classes are cut between, of the stream's context; NULL: this one alone
        ("dloss", POINTER(velo_tensor)),  # float32, [T]: divided by the count of the tokens of all ranks where a mean is wanted
        ("logits", POINTER(velo_tensor)),  # the forward input
        ("targets", POINTER(velo_tensor)),  # the forward targets
        ("lse", POINTER(velo_tensor)),  # float32, [T], from the forward pass
        ("dlogits", POINTER(velo_tensor)),  # shape and dtype of logits; may be logits itself
        ("ignore_index", c_int64),  # the target that does not count
        ("label_smoothing", c_double),  # e
        ("vocab_begin", c_int64),  # the first class of this rank; -1: rank * n
        ("vocab_size", c_int64),  # V, classes of all ranks; those from V on are padding, which counts nowhere and has the gradient 0; 0: n * ranks, or vocab_begin + n if that is more; needed where columns are uneven
    ]
    _defaults_ = {"ignore_index": -100, "vocab_begin": -1}
    _numbers_ = ("ignore_index", "label_smoothing", "vocab_begin", "vocab_size")


class velo_vocab_parallel_embedding_args(Sized):
    """`y[t] = table[indices[t]]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the rows are cut between, of the stream's context; NULL: this one alone
        ("indices", POINTER(velo_tensor)),  # any shape, the same indices on all ranks; each in [0, V)
        ("weight", POINTER(velo_tensor)),  # [v, h]: this rank's rows of the table
        ("y", POINTER(velo_tensor)),  # shape of indices with h appended, dtype of weight; with sequence_parallel the first dimension is this rank's part of it
        ("vocab_begin", c_int64),  # the first row of this rank; -1: rank * v
        ("vocab_size", c_int64),  # V, rows of all ranks; those from V on are padding, which no index may name; 0: v * ranks, or vocab_begin + v if that is more; needed where rows are uneven
        ("sequence_parallel", c_int64),  # 1: each rank gets its part of the first dimension of indices, which the ranks divide evenly or by token_rows; 0: each gets all of y
        ("token_rows", POINTER(velo_ints)),  # [ranks]: rows of the first dimension of indices that each rank gets, the same list on all, with sequence_parallel alone; some may be 0; NULL: as many on each
    ]
    _defaults_ = {"vocab_begin": -1}
    _numbers_ = ("vocab_begin", "vocab_size")


class velo_vocab_parallel_embedding_backward_args(Sized):
    """`dtable[indices[t]] += dy[t]`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the rows are cut between, of the stream's context; NULL: this one alone
        ("indices", POINTER(velo_tensor)),  # as in the forward call
        ("dy", POINTER(velo_tensor)),  # gradient of y, with its shape; without sequence_parallel the same on all ranks
        ("dweight", POINTER(velo_tensor)),  # float32, [rows, h]
        ("rows", c_int64),  # v, this rank's rows of the table
        ("accumulate", c_int64),  # 1 adds to dweight instead of writing it
        ("vocab_begin", c_int64),  # the first row of this rank; -1: rank * rows
        ("vocab_size", c_int64),  # V, rows of all ranks, as in the forward call; 0: rows * ranks, or vocab_begin + rows if that is more
        ("sequence_parallel", c_int64),  # 1: dy has this rank's part of the first dimension of indices; 0: all of it
        ("token_rows", POINTER(velo_ints)),  # as in the forward call
    ]
    _defaults_ = {"vocab_begin": -1}
    _numbers_ = ("rows", "vocab_begin", "vocab_size")


class velo_column_parallel_linear_args(Sized):
    """`y = gather_ranks(x) @ weight^T + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the tensor-parallel ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [s, .., k]
        ("weight", POINTER(velo_tensor)),  # [n, k]: this rank's outputs; dtype of x
        ("bias", POINTER(velo_tensor)),  # [n], float32 or the dtype of x
        ("y", POINTER(velo_tensor)),  # [S, .., n], dtype of x; with gather_output [S, .., N], the outputs of rank after rank; N = ranks * n, or the sum of columns
        ("gathered", POINTER(velo_tensor)),  # x of all ranks, [S, .., k]: what the gradient to weight needs; [0] without sequence_parallel
        ("sequence_parallel", c_int64),  # 1: the rows of x are cut between the ranks; S: rows of all ranks; 0: every rank has all rows, and S is s
        ("gather_output", c_int64),  # 1: y has the outputs of all ranks; excludes sequence_parallel
        ("rows", POINTER(velo_ints)),  # [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on each
        ("parallel_num", c_int64),  # slices of rows, as matmul_all_reduce has them
        ("packed", velo_pack),  # a pack of weight with transpose, [k, n], beside it: products read the pack where it has the form of their instruction set, and weight elsewhere; NULL: each call packs anew
        ("columns", POINTER(velo_ints)),  # [ranks]: n of each rank, the same list on all, with gather_output alone; some may be 0; NULL: as many on each
    ]
    _numbers_ = ("parallel_num",)


class velo_column_parallel_linear_backward_args(Sized):
    """`dx = sum_ranks(dy @ weight)`; `dweight = dy^T @ gather_ranks(x)`; `dbias = sum[rows](dy)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the tensor-parallel ranks, of the stream's context; NULL: this one alone
        ("dy", POINTER(velo_tensor)),  # [S, .., n], dtype of x; with gather_output [S, .., N], of which this rank reads its n
        ("x", POINTER(velo_tensor)),  # [s, .., k], the forward input; dweight needs it or gathered
        ("gathered", POINTER(velo_tensor)),  # [S, .., k] from the forward pass with sequence_parallel, in place of x; [0] counts as NULL
        ("weight", POINTER(velo_tensor)),  # [n, k]: the forward weight; dtype of x
        ("dx", POINTER(velo_tensor)),  # [s, .., k], dtype of x
        ("dweight", POINTER(velo_tensor)),  # [n, k], the weight's gradient on this rank; float32, as main gradients are, or the dtype of x
        ("dbias", POINTER(velo_tensor)),  # float32, [n]
        ("sequence_parallel", c_int64),  # as in the forward call
        ("gather_output", c_int64),  # as in the forward call
        ("accumulate", c_int64),  # 1 adds to dweight and dbias (in float32, rounded once)
        ("rows", POINTER(velo_ints)),  # [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on each
        ("parallel_num", c_int64),  # slices of rows, as matmul_all_reduce has them
        ("packed", velo_pack),  # a pack of weight, [n, k], beside it: the product for dx reads the pack where it has the form of its instruction set, and weight elsewhere; NULL: each call packs anew
        ("columns", POINTER(velo_ints)),  # as in the forward call
    ]
    _numbers_ = ("parallel_num",)


class velo_row_parallel_linear_args(Sized):
    """`y = sum_ranks(x @ weight^T) + bias`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the tensor-parallel ranks, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [S, .., k]
        ("weight", POINTER(velo_tensor)),  # [n, k]: this rank's inputs; dtype of x
        ("bias", POINTER(velo_tensor)),  # [n], float32 or the dtype of x, the same on all ranks
        ("y", POINTER(velo_tensor)),  # [s, .., n], dtype of x
        ("sequence_parallel", c_int64),  # 1: y has this rank's rows, s of S; 0: all rows, and s is S
        ("rows", POINTER(velo_ints)),  # [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on each
        ("parallel_num", c_int64),  # slices of rows, as matmul_all_reduce has them
        ("packed", velo_pack),  # a pack of weight with transpose, [k, n], beside it: products read the pack where it has the form of their instruction set, and weight elsewhere; NULL: each call packs anew
    ]
    _numbers_ = ("parallel_num",)


class velo_row_parallel_linear_backward_args(Sized):
    """`dx = gather_ranks(dy) @ weight`; `dweight = gather_ranks(dy)^T @ x`; `dbias = sum[rows](gather_ranks(dy))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the tensor-parallel ranks, of the stream's context; NULL: this one alone
        ("dy", POINTER(velo_tensor)),  # [s, .., n], dtype of x
        ("x", POINTER(velo_tensor)),  # [S, .., k], the forward input; dweight needs it
        ("weight", POINTER(velo_tensor)),  # [n, k]: the forward weight; dtype of x
        ("dx", POINTER(velo_tensor)),  # [S, .., k], dtype of x
        ("dweight", POINTER(velo_tensor)),  # [n, k], the weight's gradient on this rank; float32, as main gradients are, or the dtype of x
        ("dbias", POINTER(velo_tensor)),  # float32, [n]: over the rows of all ranks
        ("sequence_parallel", c_int64),  # as in the forward call
        ("accumulate", c_int64),  # 1 adds to dweight and dbias (in float32, rounded once)
        ("rows", POINTER(velo_ints)),  # [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on each
        ("parallel_num", c_int64),  # slices of rows, as matmul_all_reduce has them
        ("packed", velo_pack),  # a pack of weight, [n, k], beside it: the product for dx reads the pack where it has the form of its instruction set, and weight elsewhere; NULL: each call packs anew
    ]
    _numbers_ = ("parallel_num",)


class velo_parallel_rms_norm_args(Sized):
    """`rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [..., n]: this rank's part of the rows, compact; as many rows on all ranks, n may differ
        ("gamma", POINTER(velo_tensor)),  # trailing dimensions of x; float32, or the dtype of x
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("rstd", POINTER(velo_tensor)),  # float32, the shape of x with a 1 for each normalized dimension; the same bits on all ranks; what the gradient needs; NaN where these hold no element
        ("epsilon", c_double),  # added to the mean square; a finite number, the same on all ranks
    ]
    _defaults_ = {"epsilon": 1e-06}
    _numbers_ = ("epsilon",)


class velo_parallel_rms_norm_backward_args(Sized):
    """`dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x * rstd)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this one alone
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("gamma", POINTER(velo_tensor)),  # the forward gain
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dgamma", POINTER(velo_tensor)),  # float32, shape of gamma
        ("accumulate", c_int64),  # 1 adds to dgamma instead of writing it
    ]


class velo_parallel_layer_norm_args(Sized):
    """`mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma + beta`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this one alone
        ("x", POINTER(velo_tensor)),  # [..., n]: this rank's part of the rows, compact; as many rows on all ranks, n may differ
        ("gamma", POINTER(velo_tensor)),  # trailing dimensions of x; float32, or the dtype of x; NULL = 1
        ("beta", POINTER(velo_tensor)),  # shape of gamma, [n] without it; float32, or the dtype of x; NULL = 0
        ("y", POINTER(velo_tensor)),  # shape and dtype of x; may be x itself
        ("mean", POINTER(velo_tensor)),  # float32, the shape of x with a 1 for each normalized dimension; the same bits on all ranks; what the gradient needs; NaN where these hold no element
        ("rstd", POINTER(velo_tensor)),  # like mean
        ("epsilon", c_double),  # added to the mean square; a finite number, the same on all ranks
    ]
    _defaults_ = {"epsilon": 1e-05}
    _numbers_ = ("epsilon",)


class velo_parallel_layer_norm_backward_args(Sized):
    """`g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this one alone
        ("dy", POINTER(velo_tensor)),  # shape and dtype of x
        ("x", POINTER(velo_tensor)),  # the forward input
        ("gamma", POINTER(velo_tensor)),  # the forward gain; NULL = 1
        ("mean", POINTER(velo_tensor)),  # from the forward pass
        ("rstd", POINTER(velo_tensor)),  # from the forward pass
        ("dx", POINTER(velo_tensor)),  # shape and dtype of x; may be dy itself
        ("dgamma", POINTER(velo_tensor)),  # float32, the normalized dimensions of x
        ("dbeta", POINTER(velo_tensor)),  # like dgamma
        ("accumulate", c_int64),  # 1 adds to dgamma and dbeta instead of writing them
    ]


class velo_capacity_args(Sized):
    """`capacity = max_ranks(max[e](counts))`."""
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("group", velo_group),  # the ranks, of the stream's context; NULL: this one alone
        ("counts", POINTER(velo_tensor)),  # [E], the choices of each expert on this rank
        ("capacity", POINTER(velo_tensor)),  # int64, a number
        ("history", POINTER(velo_tensor)),  # [2 + n]: calls so far, the prediction, the last n maxima, of which call c has number c mod n; zeros before the first call; n is 5 in MindSpeed
        ("tokens", c_int64),  # the most tokens of a rank, which the capacity never exceeds; the same on all; 0: any
        ("initial", c_int64),  # the first prediction; the same on all ranks
        ("period", c_int64),  # calls between predictions; the same on all ranks
        ("margin", c_int64),  # of a prediction over the mean; the same on all ranks
    ]
    _defaults_ = {"initial": 256, "period": 19, "margin": 20}
    _numbers_ = ("tokens", "initial", "period", "margin")


# Result and parameters of every function, in the order of the function table.
FUNCTIONS = {
    "velo_last_error": (c_int32, POINTER(velo_error_info)),
    "velo_error_text": (c_int32, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_status_describe": (c_int32, c_int32, POINTER(c_char_p), POINTER(c_char_p)),
    "velo_tensor_create": (c_int32, velo_context, POINTER(velo_dtype), c_int32, POINTER(c_int64), POINTER(POINTER(velo_managed_tensor))),
    "velo_tensor_import": (c_int32, velo_context, POINTER(velo_managed_tensor), POINTER(velo_tensor)),
    "velo_tensor_release": (None, POINTER(velo_managed_tensor)),
    "velo_tensor_extent": (c_int32, POINTER(velo_tensor), POINTER(c_uint64)),
    "velo_context_create": (c_int32, POINTER(velo_context_desc), POINTER(velo_context)),
    "velo_context_destroy": (None, velo_context),
    "velo_context_stream": (c_int32, velo_context, POINTER(velo_stream)),
    "velo_config_set": (c_int32, velo_context, c_char_p, c_char_p),
    "velo_config_get": (c_int32, velo_context, c_char_p, c_char_p, c_uint64, POINTER(c_uint64), POINTER(c_char_p)),
    "velo_config_list": (c_int32, velo_context, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_context_get_stats": (c_int32, velo_context, POINTER(velo_context_stats)),
    "velo_stream_create": (c_int32, velo_context, POINTER(velo_stream)),
    "velo_stream_destroy": (None, velo_stream),
    "velo_stream_synchronize": (c_int32, velo_stream),
    "velo_stream_query": (c_int32, velo_stream, POINTER(c_int32)),
    "velo_stream_clear": (c_int32, velo_stream),
    "velo_stream_wait": (c_int32, velo_stream, velo_event),
    "velo_event_create": (c_int32, velo_context, POINTER(velo_event)),
    "velo_event_destroy": (None, velo_event),
    "velo_event_record": (c_int32, velo_event, velo_stream),
    "velo_event_synchronize": (c_int32, velo_event, c_int64),
    "velo_event_query": (c_int32, velo_event, POINTER(c_int32)),
    "velo_pack_create": (c_int32, velo_context, POINTER(velo_pack_desc), POINTER(velo_pack)),
    "velo_pack_destroy": (None, velo_pack),
    "velo_pack_update": (c_int32, velo_stream, velo_pack, POINTER(velo_tensor)),
    "velo_get_api": (c_int32, c_uint32, c_uint64, POINTER(c_void_p)),
    "velo_version": (c_int32, POINTER(c_int32), POINTER(c_int32), POINTER(c_int32), POINTER(c_uint32)),
    "velo_capability_query": (c_int32, enumeration, POINTER(c_int32)),
    "velo_describe": (c_int32, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_op_count": (c_int32, POINTER(c_int64)),
    "velo_op_name": (c_int32, c_int64, POINTER(c_char_p)),
    "velo_op_describe": (c_int32, c_char_p, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_op_call": (c_int32, velo_stream, c_char_p, POINTER(velo_named_value), c_int64),
    "velo_op_infer": (c_int32, velo_context, c_char_p, POINTER(velo_named_value), c_int64, POINTER(velo_shape), c_int64, POINTER(c_int64)),
    "velo_op_explain": (c_int32, velo_context, c_char_p, POINTER(velo_named_value), c_int64, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_invoke": (c_int32, c_char_p, POINTER(velo_value), c_int64, POINTER(velo_value)),
    "velo_kernel_register": (c_int32, velo_context, POINTER(velo_kernel_desc), POINTER(velo_kernel)),
    "velo_kernel_destroy": (None, velo_kernel),
    "velo_kernel_list": (c_int32, velo_context, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_plugin_load": (c_int32, velo_context, c_char_p),
    "velo_closure_create": (c_int32, velo_stream, c_char_p, c_char_p, POINTER(c_void_p), POINTER(velo_closure)),
    "velo_closure_destroy": (None, velo_closure),
    "velo_rms_norm": (c_int32, velo_stream, POINTER(velo_rms_norm_args)),
    "velo_rms_norm_backward": (c_int32, velo_stream, POINTER(velo_rms_norm_backward_args)),
    "velo_swiglu": (c_int32, velo_stream, POINTER(velo_swiglu_args)),
    "velo_swiglu_backward": (c_int32, velo_stream, POINTER(velo_swiglu_backward_args)),
    "velo_rotary_position_embedding": (c_int32, velo_stream, POINTER(velo_rotary_position_embedding_args)),
    "velo_rotary_position_embedding_backward": (c_int32, velo_stream, POINTER(velo_rotary_position_embedding_backward_args)),
    "velo_matmul": (c_int32, velo_stream, POINTER(velo_matmul_args)),
    "velo_matmul_add_fp32": (c_int32, velo_stream, POINTER(velo_matmul_add_fp32_args)),
    "velo_fusion_attention": (c_int32, velo_stream, POINTER(velo_fusion_attention_args)),
    "velo_fusion_attention_backward": (c_int32, velo_stream, POINTER(velo_fusion_attention_backward_args)),
    "velo_embedding": (c_int32, velo_stream, POINTER(velo_embedding_args)),
    "velo_embedding_backward": (c_int32, velo_stream, POINTER(velo_embedding_backward_args)),
    "velo_cross_entropy": (c_int32, velo_stream, POINTER(velo_cross_entropy_args)),
    "velo_cross_entropy_backward": (c_int32, velo_stream, POINTER(velo_cross_entropy_backward_args)),
    "velo_apply_fused_adamw": (c_int32, velo_stream, POINTER(velo_apply_fused_adamw_args)),
    "velo_global_norm": (c_int32, velo_stream, POINTER(velo_global_norm_args)),
    "velo_add": (c_int32, velo_stream, POINTER(velo_add_args)),
    "velo_cast": (c_int32, velo_stream, POINTER(velo_cast_args)),
    "velo_pool_create": (c_int32, POINTER(velo_pool_desc), POINTER(velo_pool)),
    "velo_pool_destroy": (None, velo_pool),
    "velo_pool_allocate": (c_int32, velo_pool, POINTER(velo_pool_request), POINTER(c_void_p)),
    "velo_pool_free": (c_int32, velo_pool, c_void_p, c_uint64, velo_stream),
    "velo_pool_trim": (c_int32, velo_pool, c_uint64, POINTER(c_uint64)),
    "velo_pool_set_limit": (c_int32, velo_pool, c_uint64),
    "velo_pool_allocator": (c_int32, velo_pool, POINTER(velo_allocator)),
    "velo_pool_check": (c_int32, velo_pool),
    "velo_pool_locate": (c_int32, velo_pool, c_void_p, POINTER(c_int32), POINTER(c_uint64)),
    "velo_pool_get_stats": (c_int32, velo_pool, POINTER(velo_pool_stats)),
    "velo_adaptor_create": (c_int32, POINTER(velo_adaptor_desc), POINTER(velo_adaptor)),
    "velo_adaptor_destroy": (None, velo_adaptor),
    "velo_adaptor_allocator": (c_int32, velo_adaptor, POINTER(velo_allocator)),
    "velo_adaptor_get_stats": (c_int32, velo_adaptor, POINTER(velo_adaptor_stats)),
    "velo_adaptor_flush": (c_int32, velo_adaptor),
    "velo_pool_functions": (c_int32, velo_pool, POINTER(c_void_p), POINTER(c_void_p)),
    "velo_plan_create": (c_int32, POINTER(velo_plan_desc), POINTER(velo_plan)),
    "velo_plan_destroy": (None, velo_plan),
    "velo_plan_add": (c_int32, velo_plan, c_int64, c_int64, c_uint64, POINTER(c_int64)),
    "velo_plan_read": (c_int32, velo_plan, enumeration, c_char_p, c_uint64),
    "velo_plan_solve": (c_int32, velo_plan, POINTER(velo_plan_options)),
    "velo_plan_get_buffer": (c_int32, velo_plan, c_int64, POINTER(velo_plan_buffer)),
    "velo_plan_get_stats": (c_int32, velo_plan, POINTER(velo_plan_stats)),
    "velo_plan_write": (c_int32, velo_plan, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_swap_create": (c_int32, velo_context, POINTER(velo_swap_desc), POINTER(velo_swap)),
    "velo_swap_destroy": (None, velo_swap),
    "velo_swap_add": (c_int32, velo_swap, c_void_p, c_uint64, enumeration, POINTER(c_uint64)),
    "velo_swap_drop": (c_int32, velo_swap, c_uint64, velo_stream),
    "velo_swap_out": (c_int32, velo_swap, c_uint64, velo_stream, velo_event),
    "velo_swap_in": (c_int32, velo_swap, c_uint64, c_void_p, velo_stream, velo_event),
    "velo_swap_wait": (c_int32, velo_swap, c_uint64, velo_stream),
    "velo_swap_get_object": (c_int32, velo_swap, c_uint64, POINTER(velo_swap_object)),
    "velo_swap_assign": (c_int32, velo_swap, c_uint64, c_int64),
    "velo_swap_forward": (c_int32, velo_swap, c_int64, velo_stream),
    "velo_swap_backward": (c_int32, velo_swap, c_int64, velo_stream),
    "velo_swap_update": (c_int32, velo_swap, POINTER(c_uint64), c_int64, c_int64, velo_swap_update_fn, c_void_p),
    "velo_swap_get_stats": (c_int32, velo_swap, POINTER(velo_swap_stats)),
    "velo_recompute_layers": (c_int32, POINTER(velo_recompute_rule), POINTER(velo_recompute_layer), c_int64, POINTER(c_int64)),
    "velo_recompute_choose": (c_int32, POINTER(velo_recompute_rule), POINTER(velo_recompute_budget), POINTER(velo_recompute_module), c_int64, POINTER(c_int32), POINTER(velo_recompute_choice)),
    "velo_recompute_create": (c_int32, POINTER(velo_recompute_desc), POINTER(velo_recompute)),
    "velo_recompute_destroy": (None, velo_recompute),
    "velo_recompute_add": (c_int32, velo_recompute, POINTER(velo_recompute_region), velo_stream, POINTER(c_int64)),
    "velo_recompute_get_output": (c_int32, velo_recompute, c_int64, c_int64, POINTER(c_void_p)),
    "velo_recompute_release": (c_int32, velo_recompute, c_int64, velo_stream),
    "velo_recompute_restore": (c_int32, velo_recompute, c_int64, velo_stream),
    "velo_recompute_end": (c_int32, velo_recompute, c_int64, velo_stream),
    "velo_recompute_get_stats": (c_int32, velo_recompute, POINTER(velo_recompute_stats)),
    "velo_pool_record": (c_int32, velo_pool, c_uint64),
    "velo_pool_note": (c_int32, velo_pool, c_void_p, c_char_p),
    "velo_pool_snapshot": (c_int32, velo_pool, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_pool_save": (c_int32, velo_pool, enumeration, c_char_p),
    "velo_pool_get_stream_stats": (c_int32, velo_pool, velo_stream, POINTER(velo_pool_stream_stats)),
    "velo_recompute_plan_create": (c_int32, POINTER(velo_recompute_plan)),
    "velo_recompute_plan_destroy": (None, velo_recompute_plan),
    "velo_recompute_plan_add": (c_int32, velo_recompute_plan, POINTER(velo_recompute_op), POINTER(c_int64)),
    "velo_recompute_plan_solve": (c_int32, velo_recompute_plan, POINTER(velo_recompute_plan_options)),
    "velo_recompute_plan_get_step": (c_int32, velo_recompute_plan, c_int64, POINTER(velo_recompute_step)),
    "velo_recompute_plan_get_stats": (c_int32, velo_recompute_plan, POINTER(velo_recompute_plan_stats)),
    "velo_plan_add_use": (c_int32, velo_plan, c_int64, c_int64, enumeration),
    "velo_plan_add_work": (c_int32, velo_plan, c_int64, c_double),
    "velo_plan_get_use": (c_int32, velo_plan, c_int64, POINTER(velo_plan_use_info)),
    "velo_plan_begin": (c_int32, velo_plan, enumeration),
    "velo_plan_end": (c_int32, velo_plan),
    "velo_plan_allocate": (c_int32, velo_plan, POINTER(velo_pool_request), POINTER(c_void_p)),
    "velo_plan_free": (c_int32, velo_plan, c_void_p, c_uint64, velo_stream),
    "velo_plan_use": (c_int32, velo_plan, c_void_p, enumeration),
    "velo_plan_work": (c_int32, velo_plan, c_double),
    "velo_plan_allocator": (c_int32, velo_plan, POINTER(velo_allocator)),
    "velo_plan_get_step": (c_int32, velo_plan, POINTER(velo_plan_step)),
    "velo_plan_solve_swaps": (c_int32, velo_plan, POINTER(velo_swap_options)),
    "velo_plan_get_swap_stats": (c_int32, velo_plan, POINTER(velo_plan_swap_stats)),
    "velo_plan_get_swap": (c_int32, velo_plan, c_int64, POINTER(velo_plan_swap)),
    "velo_group_create": (c_int32, velo_context, POINTER(velo_group_desc), POINTER(velo_group)),
    "velo_group_create_local": (c_int32, POINTER(velo_context), c_int32, POINTER(velo_group_desc), POINTER(velo_group)),
    "velo_group_destroy": (None, velo_group),
    "velo_group_abort": (c_int32, velo_group),
    "velo_group_get_info": (c_int32, velo_group, POINTER(velo_group_info)),
    "velo_group_describe": (c_int32, velo_group, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_group_barrier": (c_int32, velo_stream, velo_group),
    "velo_group_all_reduce": (c_int32, velo_stream, velo_group, POINTER(velo_reduction), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_topology_create": (c_int32, POINTER(velo_topology_desc), POINTER(velo_topology)),
    "velo_topology_destroy": (None, velo_topology),
    "velo_topology_get_info": (c_int32, velo_topology, POINTER(velo_topology_info)),
    "velo_topology_family_name": (c_int32, velo_topology, c_int64, POINTER(c_char_p)),
    "velo_topology_get_family": (c_int32, velo_topology, c_char_p, POINTER(velo_topology_family)),
    "velo_topology_get_place": (c_int32, velo_topology, c_char_p, c_int64, POINTER(velo_topology_place)),
    "velo_topology_get_group": (c_int32, velo_topology, c_char_p, c_int64, POINTER(c_int32), c_int64, POINTER(c_int64)),
    "velo_topology_write": (c_int32, velo_topology, c_char_p, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_schedule_create": (c_int32, POINTER(velo_schedule_desc), POINTER(velo_schedule)),
    "velo_schedule_destroy": (None, velo_schedule),
    "velo_schedule_read": (c_int32, velo_schedule, enumeration, c_char_p, c_uint64),
    "velo_schedule_get_info": (c_int32, velo_schedule, POINTER(velo_schedule_info)),
    "velo_schedule_get_length": (c_int32, velo_schedule, c_int32, POINTER(c_int64)),
    "velo_schedule_get_actions": (c_int32, velo_schedule, c_int32, c_int64, c_int64, POINTER(velo_action)),
    "velo_schedule_write": (c_int32, velo_schedule, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_schedule_check": (c_int32, velo_schedule, POINTER(c_int64)),
    "velo_schedule_get_violation": (c_int32, velo_schedule, c_int64, POINTER(velo_violation)),
    "velo_schedule_simulate": (c_int32, velo_schedule, POINTER(velo_schedule_costs), POINTER(velo_timeline)),
    "velo_timeline_destroy": (None, velo_timeline),
    "velo_timeline_get_stats": (c_int32, velo_timeline, POINTER(velo_timeline_stats)),
    "velo_timeline_get_rank": (c_int32, velo_timeline, c_int32, POINTER(velo_timeline_rank)),
    "velo_timeline_write": (c_int32, velo_timeline, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_group_reduce": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_reduction), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_broadcast": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor)),
    "velo_group_all_gather": (c_int32, velo_stream, velo_group, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_all_gather_v": (c_int32, velo_stream, velo_group, POINTER(velo_tensor), POINTER(c_int64), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_reduce_scatter": (c_int32, velo_stream, velo_group, POINTER(velo_reduction), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_reduce_scatter_v": (c_int32, velo_stream, velo_group, POINTER(velo_reduction), POINTER(velo_tensor), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_all_to_all": (c_int32, velo_stream, velo_group, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_all_to_all_v": (c_int32, velo_stream, velo_group, POINTER(velo_tensor), POINTER(c_int64), POINTER(c_int64), POINTER(c_int64), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_gather": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_gather_v": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor), POINTER(c_int64), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_scatter": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_group_scatter_v": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor), POINTER(c_int64), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_send": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor)),
    "velo_group_receive": (c_int32, velo_stream, velo_group, c_int32, POINTER(velo_tensor)),
    "velo_group_exchange": (c_int32, velo_stream, velo_group, POINTER(velo_group_message), c_int64),
    "velo_matmul_all_reduce": (c_int32, velo_stream, POINTER(velo_matmul_all_reduce_args)),
    "velo_transport_query": (c_int32, velo_context, enumeration),
    "velo_group_create_part": (c_int32, velo_group, POINTER(c_int32), c_int32, POINTER(velo_group_desc), POINTER(velo_group)),
    "velo_group_shrink": (c_int32, velo_group, POINTER(velo_group_desc), POINTER(velo_group)),
    "velo_group_history": (c_int32, velo_group, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_mailbox_create": (c_int32, c_int32, c_int64, POINTER(velo_mailbox)),
    "velo_mailbox_destroy": (None, velo_mailbox),
    "velo_mailbox_get_link": (c_int32, velo_mailbox, c_int32, POINTER(velo_link)),
    "velo_executor_create": (c_int32, velo_context, velo_schedule, POINTER(velo_executor_desc), POINTER(velo_executor)),
    "velo_executor_destroy": (None, velo_executor),
    "velo_executor_run": (c_int32, velo_stream, velo_executor),
    "velo_executor_cancel": (c_int32, velo_executor),
    "velo_executor_get_timeline": (c_int32, velo_executor, POINTER(velo_timeline)),
    "velo_schedule_lower": (c_int32, velo_schedule, POINTER(velo_schedule)),
    "velo_buckets_create": (c_int32, velo_stream, velo_group, POINTER(velo_tensor), POINTER(c_int64), c_int64, POINTER(velo_buckets_desc), POINTER(velo_buckets)),
    "velo_buckets_destroy": (None, velo_buckets),
    "velo_buckets_ready": (c_int32, velo_buckets, velo_stream, c_int64),
    "velo_buckets_finish": (c_int32, velo_buckets, velo_stream),
    "velo_buckets_gather": (c_int32, velo_buckets, velo_stream, POINTER(velo_tensor)),
    "velo_buckets_wait": (c_int32, velo_buckets, velo_stream, c_int64),
    "velo_buckets_get_info": (c_int32, velo_buckets, POINTER(velo_buckets_info)),
    "velo_buckets_get_bucket": (c_int32, velo_buckets, c_int64, POINTER(velo_bucket)),
    "velo_matmul_reduce_scatter": (c_int32, velo_stream, POINTER(velo_matmul_reduce_scatter_args)),
    "velo_all_gather_matmul": (c_int32, velo_stream, POINTER(velo_all_gather_matmul_args)),
    "velo_all_gather_matmul_reduce_scatter": (c_int32, velo_stream, POINTER(velo_all_gather_matmul_reduce_scatter_args)),
    "velo_schedule_kind_name": (c_int32, enumeration, POINTER(c_char_p)),
    "velo_schedule_get_stage": (c_int32, velo_schedule, c_int32, POINTER(velo_stage_info)),
    "velo_sublayers_create": (c_int32, POINTER(velo_sublayers_desc), POINTER(velo_sublayers)),
    "velo_group_dispatch": (c_int32, velo_stream, velo_group, velo_group, POINTER(velo_tensor), POINTER(velo_tensor), POINTER(c_int64), POINTER(velo_tensor)),
    "velo_group_get_link": (c_int32, velo_group, POINTER(velo_link)),
    "velo_tune": (c_int32, POINTER(velo_tune_desc), POINTER(velo_tuning)),
    "velo_tuning_destroy": (None, velo_tuning),
    "velo_tuning_get_info": (c_int32, velo_tuning, POINTER(velo_tuning_info)),
    "velo_tuning_get_plan": (c_int32, velo_tuning, c_int64, POINTER(velo_tuning_plan)),
    "velo_tuning_get_memory": (c_int32, velo_tuning, c_int64, c_int32, POINTER(velo_tuning_memory)),
    "velo_tuning_get_rejection": (c_int32, velo_tuning, c_int64, POINTER(velo_tuning_rejection)),
    "velo_tuning_write": (c_int32, velo_tuning, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_executor_settle": (c_int32, velo_stream, velo_executor),
    "velo_executor_get_stats": (c_int32, velo_executor, POINTER(velo_executor_stats)),
    "velo_group_combine": (c_int32, velo_stream, velo_group, velo_group, POINTER(velo_tensor), POINTER(c_int64), POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_collective_create": (c_int32, velo_group, POINTER(velo_collective_desc), POINTER(velo_collective)),
    "velo_collective_destroy": (None, velo_collective),
    "velo_collective_start": (c_int32, velo_stream, velo_collective),
    "velo_collective_describe": (c_int32, velo_collective, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_timeline_get_memory": (c_int32, velo_timeline, c_int32, POINTER(velo_timeline_memory)),
    "velo_timeline_get_path": (c_int32, velo_timeline, c_int64, POINTER(velo_path_step), POINTER(c_int64)),
    "velo_plan_place_swaps": (c_int32, velo_plan, POINTER(velo_plan_options)),
    "velo_plan_get_stay": (c_int32, velo_plan, c_int64, POINTER(velo_plan_stay)),
    "velo_swap_begin_step": (c_int32, velo_swap, velo_plan, c_void_p, velo_stream),
    "velo_swap_begin_stage": (c_int32, velo_swap, POINTER(c_int64)),
    "velo_swap_get_buffer": (c_int32, velo_swap, c_int64, POINTER(c_void_p)),
    "velo_swap_end_step": (c_int32, velo_swap),
    "velo_group_measure": (c_int32, velo_stream, velo_group),
    "velo_collective_explain": (c_int32, velo_collective, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_op_cost": (c_int32, velo_context, c_char_p, POINTER(velo_named_value), c_int64, POINTER(velo_cost)),
    "velo_op_get_counts": (c_int32, velo_context, c_char_p, POINTER(velo_op_counts)),
    "velo_op_reset_counts": (c_int32, velo_context),
    "velo_dropout": (c_int32, velo_stream, POINTER(velo_dropout_args)),
    "velo_dropout_backward": (c_int32, velo_stream, POINTER(velo_dropout_backward_args)),
    "velo_layer_norm": (c_int32, velo_stream, POINTER(velo_layer_norm_args)),
    "velo_layer_norm_backward": (c_int32, velo_stream, POINTER(velo_layer_norm_backward_args)),
    "velo_grouped_matmul": (c_int32, velo_stream, POINTER(velo_grouped_matmul_args)),
    "velo_grouped_matmul_backward": (c_int32, velo_stream, POINTER(velo_grouped_matmul_backward_args)),
    "velo_grouped_matmul_add_fp32": (c_int32, velo_stream, POINTER(velo_grouped_matmul_add_fp32_args)),
    "velo_matmul_backward": (c_int32, velo_stream, POINTER(velo_matmul_backward_args)),
    "velo_geglu": (c_int32, velo_stream, POINTER(velo_geglu_args)),
    "velo_geglu_backward": (c_int32, velo_stream, POINTER(velo_geglu_backward_args)),
    "velo_reglu": (c_int32, velo_stream, POINTER(velo_reglu_args)),
    "velo_reglu_backward": (c_int32, velo_stream, POINTER(velo_reglu_backward_args)),
    "velo_gelu": (c_int32, velo_stream, POINTER(velo_gelu_args)),
    "velo_gelu_backward": (c_int32, velo_stream, POINTER(velo_gelu_backward_args)),
    "velo_fast_gelu": (c_int32, velo_stream, POINTER(velo_fast_gelu_args)),
    "velo_fast_gelu_backward": (c_int32, velo_stream, POINTER(velo_fast_gelu_backward_args)),
    "velo_silu": (c_int32, velo_stream, POINTER(velo_silu_args)),
    "velo_silu_backward": (c_int32, velo_stream, POINTER(velo_silu_backward_args)),
    "velo_relu": (c_int32, velo_stream, POINTER(velo_relu_args)),
    "velo_relu_backward": (c_int32, velo_stream, POINTER(velo_relu_backward_args)),
    "velo_dropout_add_rms_norm": (c_int32, velo_stream, POINTER(velo_dropout_add_rms_norm_args)),
    "velo_dropout_add_rms_norm_backward": (c_int32, velo_stream, POINTER(velo_dropout_add_rms_norm_backward_args)),
    "velo_dropout_add_layer_norm": (c_int32, velo_stream, POINTER(velo_dropout_add_layer_norm_args)),
    "velo_dropout_add_layer_norm_backward": (c_int32, velo_stream, POINTER(velo_dropout_add_layer_norm_backward_args)),
    "velo_moe_token_permute": (c_int32, velo_stream, POINTER(velo_moe_token_permute_args)),
    "velo_moe_token_permute_backward": (c_int32, velo_stream, POINTER(velo_moe_token_permute_backward_args)),
    "velo_moe_token_unpermute": (c_int32, velo_stream, POINTER(velo_moe_token_unpermute_args)),
    "velo_moe_token_unpermute_backward": (c_int32, velo_stream, POINTER(velo_moe_token_unpermute_backward_args)),
    "velo_ring_attention_update": (c_int32, velo_stream, POINTER(velo_ring_attention_update_args)),
    "velo_topk_router": (c_int32, velo_stream, POINTER(velo_topk_router_args)),
    "velo_topk_router_backward": (c_int32, velo_stream, POINTER(velo_topk_router_backward_args)),
    "velo_apply_fused_ema_adamw": (c_int32, velo_stream, POINTER(velo_apply_fused_ema_adamw_args)),
    "velo_accumulate": (c_int32, velo_stream, POINTER(velo_accumulate_args)),
    "velo_reduce_max_abs": (c_int32, velo_stream, POINTER(velo_reduce_max_abs_args)),
    "velo_softmax": (c_int32, velo_stream, POINTER(velo_softmax_args)),
    "velo_softmax_backward": (c_int32, velo_stream, POINTER(velo_softmax_backward_args)),
    "velo_pad_seqlen": (c_int32, velo_stream, POINTER(velo_pad_seqlen_args)),
    "velo_pad_seqlen_backward": (c_int32, velo_stream, POINTER(velo_pad_seqlen_backward_args)),
    "velo_unpad_seqlen": (c_int32, velo_stream, POINTER(velo_unpad_seqlen_args)),
    "velo_unpad_seqlen_backward": (c_int32, velo_stream, POINTER(velo_unpad_seqlen_backward_args)),
    "velo_unpad_gen_attention_mask": (c_int32, velo_stream, POINTER(velo_unpad_gen_attention_mask_args)),
    "velo_unpad_rope": (c_int32, velo_stream, POINTER(velo_unpad_rope_args)),
    "velo_unpad_rope_backward": (c_int32, velo_stream, POINTER(velo_unpad_rope_backward_args)),
    "velo_unpad_softmax": (c_int32, velo_stream, POINTER(velo_unpad_softmax_args)),
    "velo_unpad_softmax_backward": (c_int32, velo_stream, POINTER(velo_unpad_softmax_backward_args)),
    "velo_flash_attention": (c_int32, velo_stream, POINTER(velo_flash_attention_args)),
    "velo_flash_attention_backward": (c_int32, velo_stream, POINTER(velo_flash_attention_backward_args)),
    "velo_rope_frequencies": (c_int32, velo_stream, POINTER(velo_rope_frequencies_args)),
    "velo_weight_quant_grouped_matmul": (c_int32, velo_stream, POINTER(velo_weight_quant_grouped_matmul_args)),
    "velo_quant_grouped_matmul": (c_int32, velo_stream, POINTER(velo_quant_grouped_matmul_args)),
    "velo_ffn": (c_int32, velo_stream, POINTER(velo_ffn_args)),
    "velo_quantize": (c_int32, velo_stream, POINTER(velo_quantize_args)),
    "velo_weight_quant_matmul": (c_int32, velo_stream, POINTER(velo_weight_quant_matmul_args)),
    "velo_weight_quant_matmul_backward": (c_int32, velo_stream, POINTER(velo_weight_quant_matmul_backward_args)),
    "velo_bf16_param_split": (c_int32, velo_stream, POINTER(velo_bf16_param_split_args)),
    "velo_bf16_param_merge": (c_int32, velo_stream, POINTER(velo_bf16_param_merge_args)),
    "velo_matmul_add": (c_int32, velo_stream, POINTER(velo_matmul_add_args)),
    "velo_matmul_add_backward": (c_int32, velo_stream, POINTER(velo_matmul_add_backward_args)),
    "velo_cached_attention": (c_int32, velo_stream, POINTER(velo_cached_attention_args)),
    "velo_generate_mask": (c_int32, velo_stream, POINTER(velo_generate_mask_args)),
    "velo_alibi_slopes": (c_int32, velo_stream, POINTER(velo_alibi_slopes_args)),
    "velo_unpad_strided_batch_matmul": (c_int32, velo_stream, POINTER(velo_unpad_strided_batch_matmul_args)),
    "velo_unpad_strided_batch_matmul_backward": (c_int32, velo_stream, POINTER(velo_unpad_strided_batch_matmul_backward_args)),
    "velo_multi_tensor_adamw": (c_int32, velo_stream, POINTER(velo_multi_tensor_adamw_args)),
    "velo_multi_tensor_ema_adamw": (c_int32, velo_stream, POINTER(velo_multi_tensor_ema_adamw_args)),
    "velo_matmul_swiglu": (c_int32, velo_stream, POINTER(velo_matmul_swiglu_args)),
    "velo_matmul_swiglu_backward": (c_int32, velo_stream, POINTER(velo_matmul_swiglu_backward_args)),
    "velo_rms_norm_matmul": (c_int32, velo_stream, POINTER(velo_rms_norm_matmul_args)),
    "velo_rms_norm_matmul_backward": (c_int32, velo_stream, POINTER(velo_rms_norm_matmul_backward_args)),
    "velo_sharding_create": (c_int32, velo_topology, POINTER(velo_sharding)),
    "velo_sharding_destroy": (None, velo_sharding),
    "velo_sharding_add": (c_int32, velo_sharding, POINTER(velo_sharding_parameter), POINTER(c_int64)),
    "velo_sharding_get_info": (c_int32, velo_sharding, POINTER(velo_sharding_info)),
    "velo_sharding_parameter_name": (c_int32, velo_sharding, c_int64, POINTER(c_char_p)),
    "velo_sharding_get_part": (c_int32, velo_sharding, c_int64, c_int64, POINTER(velo_sharding_part)),
    "velo_sharding_get_piece": (c_int32, velo_sharding, c_int64, c_int64, c_int64, POINTER(velo_sharding_piece)),
    "velo_sharding_get_sum": (c_int32, velo_sharding, c_int64, c_int64, c_int64, POINTER(c_char_p)),
    "velo_sharding_get_holders": (c_int32, velo_sharding, c_int64, c_int64, c_int64, POINTER(c_int32), c_int64, POINTER(c_int64)),
    "velo_sharding_check": (c_int32, velo_sharding),
    "velo_sharding_transfer": (c_int32, velo_sharding, velo_sharding, c_int64, c_int64, enumeration, POINTER(velo_sharding_move), c_int64, POINTER(c_int64)),
    "velo_sharding_write": (c_int32, velo_sharding, c_int64, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_sequence_plan_create": (c_int32, POINTER(velo_sequence_desc), POINTER(velo_sequence_plan)),
    "velo_sequence_plan_destroy": (None, velo_sequence_plan),
    "velo_sequence_plan_get_info": (c_int32, velo_sequence_plan, POINTER(velo_sequence_info)),
    "velo_sequence_plan_get_rows": (c_int32, velo_sequence_plan, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_sequence_plan_get_step": (c_int32, velo_sequence_plan, enumeration, c_int64, c_int64, POINTER(velo_sequence_step)),
    "velo_sequence_plan_get_task": (c_int32, velo_sequence_plan, enumeration, c_int64, c_int64, c_int64, POINTER(velo_sequence_task)),
    "velo_sequence_plan_get_message": (c_int32, velo_sequence_plan, enumeration, c_int64, c_int64, enumeration, c_int64, POINTER(velo_sequence_message)),
    "velo_sequence_plan_get_spans": (c_int32, velo_sequence_plan, enumeration, c_int64, c_int64, enumeration, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_sequence_plan_check": (c_int32, velo_sequence_plan),
    "velo_sequence_plan_write": (c_int32, velo_sequence_plan, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_multi_tensor_global_norm": (c_int32, velo_stream, POINTER(velo_multi_tensor_global_norm_args)),
    "velo_sequence_all_to_all": (c_int32, velo_stream, POINTER(velo_sequence_all_to_all_args)),
    "velo_context_parallel_attention": (c_int32, velo_stream, POINTER(velo_context_parallel_attention_args)),
    "velo_context_parallel_attention_backward": (c_int32, velo_stream, POINTER(velo_context_parallel_attention_backward_args)),
    "velo_vocab_parallel_cross_entropy": (c_int32, velo_stream, POINTER(velo_vocab_parallel_cross_entropy_args)),
    "velo_vocab_parallel_cross_entropy_backward": (c_int32, velo_stream, POINTER(velo_vocab_parallel_cross_entropy_backward_args)),
    "velo_vocab_parallel_embedding": (c_int32, velo_stream, POINTER(velo_vocab_parallel_embedding_args)),
    "velo_vocab_parallel_embedding_backward": (c_int32, velo_stream, POINTER(velo_vocab_parallel_embedding_backward_args)),
    "velo_column_parallel_linear": (c_int32, velo_stream, POINTER(velo_column_parallel_linear_args)),
    "velo_column_parallel_linear_backward": (c_int32, velo_stream, POINTER(velo_column_parallel_linear_backward_args)),
    "velo_row_parallel_linear": (c_int32, velo_stream, POINTER(velo_row_parallel_linear_args)),
    "velo_row_parallel_linear_backward": (c_int32, velo_stream, POINTER(velo_row_parallel_linear_backward_args)),
    "velo_parallel_rms_norm": (c_int32, velo_stream, POINTER(velo_parallel_rms_norm_args)),
    "velo_parallel_rms_norm_backward": (c_int32, velo_stream, POINTER(velo_parallel_rms_norm_backward_args)),
    "velo_parallel_layer_norm": (c_int32, velo_stream, POINTER(velo_parallel_layer_norm_args)),
    "velo_parallel_layer_norm_backward": (c_int32, velo_stream, POINTER(velo_parallel_layer_norm_backward_args)),
    "velo_profiler_create": (c_int32, velo_context, POINTER(velo_profiler_desc), POINTER(velo_profiler)),
    "velo_profiler_destroy": (None, velo_profiler),
    "velo_profiler_begin": (c_int32, velo_profiler, c_char_p),
    "velo_profiler_end": (c_int32, velo_profiler),
    "velo_profiler_stop": (c_int32, velo_profiler),
    "velo_profiler_get_stats": (c_int32, velo_profiler, POINTER(velo_profiler_stats)),
    "velo_profiler_get_event": (c_int32, velo_profiler, c_int64, POINTER(velo_profiler_event)),
    "velo_profiler_write": (c_int32, velo_profiler, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_profiler_save": (c_int32, velo_profiler, c_char_p),
    "velo_matmul_all_reduce_add_rms_norm": (c_int32, velo_stream, POINTER(velo_matmul_all_reduce_add_rms_norm_args)),
    "velo_dispatcher_create": (c_int32, velo_group, POINTER(velo_dispatcher_desc), POINTER(velo_dispatcher)),
    "velo_dispatcher_destroy": (None, velo_dispatcher),
    "velo_dispatcher_get_info": (c_int32, velo_dispatcher, POINTER(velo_dispatcher_info)),
    "velo_routing_create": (c_int32, velo_dispatcher, POINTER(velo_routing)),
    "velo_routing_destroy": (None, velo_routing),
    "velo_routing_set": (c_int32, velo_routing, velo_stream, POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_routing_get_rows": (c_int32, velo_routing, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_routing_reset": (c_int32, velo_routing),
    "velo_dispatcher_dispatch": (c_int32, velo_dispatcher, velo_stream, velo_routing, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_dispatcher_combine": (c_int32, velo_dispatcher, velo_stream, velo_routing, POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_dispatcher_combine_backward": (c_int32, velo_dispatcher, velo_stream, velo_routing, POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_dispatcher_dispatch_backward": (c_int32, velo_dispatcher, velo_stream, velo_routing, POINTER(velo_tensor), POINTER(velo_tensor)),
    "velo_expert_plan_create": (c_int32, POINTER(velo_expert_plan_desc), POINTER(velo_expert_plan)),
    "velo_expert_plan_destroy": (None, velo_expert_plan),
    "velo_expert_plan_get_info": (c_int32, velo_expert_plan, POINTER(velo_expert_plan_info)),
    "velo_expert_plan_get_experts": (c_int32, velo_expert_plan, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_expert_plan_get_ranks": (c_int32, velo_expert_plan, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_expert_plan_write": (c_int32, velo_expert_plan, enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_capacity_gate": (c_int32, velo_stream, POINTER(velo_capacity_gate_args)),
    "velo_capacity_gate_backward": (c_int32, velo_stream, POINTER(velo_capacity_gate_backward_args)),
    "velo_sinkhorn": (c_int32, velo_stream, POINTER(velo_sinkhorn_args)),
    "velo_sinkhorn_backward": (c_int32, velo_stream, POINTER(velo_sinkhorn_backward_args)),
    "velo_grouped_matmul_all_reduce": (c_int32, velo_stream, POINTER(velo_grouped_matmul_all_reduce_args)),
    "velo_capacity": (c_int32, velo_stream, POINTER(velo_capacity_args)),
    "velo_all_to_all_all_gather_bmm": (c_int32, velo_stream, POINTER(velo_all_to_all_all_gather_bmm_args)),
    "velo_bmm_reduce_scatter_all_to_all": (c_int32, velo_stream, POINTER(velo_bmm_reduce_scatter_all_to_all_args)),
    "velo_sublayers_destroy": (None, velo_sublayers),
    "velo_sublayers_get_info": (c_int32, velo_sublayers, POINTER(velo_sublayers_info)),
    "velo_sublayers_get_steps": (c_int32, velo_sublayers, POINTER(velo_sublayer_step), c_int64, POINTER(c_int64)),
    "velo_sublayers_get_needs": (c_int32, velo_sublayers, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)),
    "velo_sublayers_write": (c_int32, velo_sublayers, POINTER(velo_sublayer_span), enumeration, c_char_p, c_uint64, POINTER(c_uint64)),
    "velo_sublayers_run": (c_int32, velo_stream, velo_stream, velo_sublayers, POINTER(velo_sublayers_run_desc)),
}


class velo_api(ctypes.Structure):
    """The function table of velo_get_api: its size, its ABI, and one slot per function."""
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32)] + [
        (name[len("velo_"):], CFUNCTYPE(*types)) for name, types in FUNCTIONS.items()]


def load(path=None):
    """Opens the library, at `path` or where velo's modules find it, and gives every function its
    parameters. Functions newer than the library are left out."""
    if path is None:
        from velo import _libraries
    lib = _libraries.library() if path is None else ctypes.CDLL(path)
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(lib, name, None)
        if function is not None:
            function.restype, function.argtypes = result, parameters
    return lib


def check(lib, status):
    """Raises VeloError with the calling thread's record unless status is VELO_OK."""
    if status != 0:
        text = ctypes.create_string_buffer(1024)
        lib.velo_error_text(text, len(text), None)
        raise VeloError(status, text.value.decode())
