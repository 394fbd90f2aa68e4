--[[ examples/luajit/velo.lua at work: results, an error with its text, callbacks that velo calls, and
a name in C for every enumerator.

    luajit binding_test.lua FOLDER_OF_VELO_LUA LIBRARY ]]
local folder, library = arg[1], arg[2]
package.path = folder .. "/?.lua;" .. package.path
local ffi, velo = require("ffi"), require("velo").open(library)
jit.off() -- compiled code must not call what calls back
local C, new, check = velo.C, velo.new, velo.check

local function tensor(data, sizes)
  local shape = ffi.new("int64_t[?]", #sizes, sizes)
  local view = new("velo_tensor", {data = data, ndim = #sizes, shape = shape})
  view.device.type, view.dtype = C.VELO_DEVICE_CPU, {C.VELO_DTYPE_FLOAT, 32, 1}
  return view, shape
end

-- A context whose loops and whose log run in Lua; lines of level 3 tell when it comes and goes.
local loops, tasks_run, lines = 0, 0, {}
local run = ffi.cast("void (*)(void*, int64_t, void (*)(void*, int64_t), void*)",
                     function(_, tasks, task, task_user)
  loops = loops + 1
  for i = 0, tonumber(tasks) - 1 do
    task(task_user, i)
    tasks_run = tasks_run + 1
  end
end)
local log = ffi.cast("velo_log_fn", function(_, level, component, line)
  lines[#lines + 1] = level .. " " .. ffi.string(component) .. ": " .. ffi.string(line)
end)
local threads = new("velo_parallel_for", {threads = 4, run = run})
local desc = new("velo_context_desc", {parallel_for = threads, log = log, config_json = '{"log": "info"}'})
assert(desc.struct_size == ffi.sizeof("velo_context_desc"))
assert(desc.device.type == C.VELO_DEVICE_CPU)
local context, stream = new("velo_context[1]"), new("velo_stream[1]")
check(C.velo_context_create(desc, context))
check(C.velo_context_stream(context[0], stream))

-- Results: rows large enough that the work is shared out.
local rows, columns = 512, 256
local x, gamma = ffi.new("float[?]", rows * columns), ffi.new("float[?]", columns)
local y = ffi.new("float[?]", rows * columns)
for i = 0, rows * columns - 1 do x[i] = math.sin(i) end
for i = 0, columns - 1 do gamma[i] = 1 + i / columns end
local tx, sx = tensor(x, {rows, columns})
local tg, sg = tensor(gamma, {columns})
local ty, sy = tensor(y, {rows, columns})
local args = new("velo_rms_norm_args", {x = tx, gamma = tg, y = ty, epsilon = 0.25})
check(C.velo_rms_norm(stream[0], args))
for _, row in ipairs {0, 17, rows - 1} do
  local squares = 0
  for i = 0, columns - 1 do squares = squares + x[row * columns + i] ^ 2 end
  for i = 0, columns - 1 do
    local wanted = x[row * columns + i] * gamma[i] / math.sqrt(squares / columns + 0.25)
    assert(math.abs(y[row * columns + i] - wanted) < 1e-5, "row " .. row .. ", column " .. i)
  end
end
assert(loops > 0 and tasks_run > loops, "the host's parallel_for did not run the work")

-- The default, which the binding sets: without it epsilon would be 0.
assert(new("velo_rms_norm_args").epsilon == 1e-6)
assert(new("velo_cross_entropy_args").ignore_index == -100)
assert(new("velo_cross_entropy_args").reduction == C.VELO_REDUCTION_MEAN)

-- An error, as a record and as a sentence.
tg.ndim = 0
local worked, sentence = pcall(check, C.velo_rms_norm(stream[0], args))
assert(not worked and sentence:find("velo_rms_norm: args.gamma.ndim: expected", 1, true), sentence)
local record = new("velo_error_info")
check(C.velo_last_error(record))
assert(ffi.string(record["function"]) == "velo_rms_norm")
assert(ffi.string(record.argument) == "args.gamma.ndim" and record.code == C.VELO_ERR_RANK)

C.velo_context_destroy(context[0])
assert(lines[1]:find("^3 context: created") and lines[2]:find("^3 context: destroyed"), lines[1])
print(#velo.document.functions .. " functions bound, " .. loops .. " loops and " .. #lines .. " log lines in Lua")
