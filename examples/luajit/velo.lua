--[[ velo for LuaJIT, made at run time from the JSON of velo_describe: no other function, no struct
and no constant is written here.

    local velo = require("velo").open("libvelo.so.1")
    local context = velo.new("velo_context[1]")                  -- a place for a handle: context[0]
    velo.check(velo.C.velo_context_create(nil, context))
    velo.new("velo_rms_norm_args", {x = tx, epsilon = 1e-5})     -- its size and defaults are set

Memory that velo is given a pointer to, and callbacks, must be kept alive by the caller, as in C. ]]
local ffi = require("ffi")
local escapes = setmetatable({n = "\n", t = "\t"}, {__index = function(_, c) return c end})

local function decode_text(text, at)
  local behind = at
  while text:sub(behind, behind) ~= '"' do behind = text:match("^\\?.()", behind) end
  return text:sub(at, behind - 1):gsub("\\(.)", escapes), behind + 1
end
-- The JSON value at a place, and the place behind it; null is nil.
local function decode(text, at)
  at = text:find("%S", at)
  local first = text:sub(at, at)
  if first == '"' then return decode_text(text, at + 1) end
  if first ~= "{" and first ~= "[" then
    local word, behind = text:match("^([%w%.%+%-]+)()", at)
    if word == "true" or word == "false" then return word == "true", behind end
    return tonumber(word), behind
  end
  local out, key = {}, nil
  at = text:match("%s*()", at + 1)
  while not text:find("^[%]}]", at) do
    key = #out + 1
    if first == "{" then
      key, at = decode(text, at)
      at = text:find(":", at, true) + 1
    end
    out[key], at = decode(text, at)
    at = text:match("^%s*,?%s*()", at)
  end
  return out, at + 1
end

-- A name in its type: "void (*)(int)", "f" gives "void (*f)(int)".
local function declare(type, name)
  local inside, count = type:gsub("%(%*%)", "(*" .. name .. ")", 1)
  return count > 0 and inside or type .. " " .. name
end

local function parameters(call)
  local out = {}
  for i, p in ipairs(call.params) do out[i] = declare(p.type, p.name) end
  return "(" .. table.concat(out, ", ") .. ")"
end
local function members(fields)
  local out = {}
  for i, field in ipairs(fields) do
    local inner = field.members and "union {" .. members(field.members) .. "}" or field.type
    out[i] = declare(inner, field.name) .. (field.count and "[" .. field.count .. "];" or ";")
  end
  return table.concat(out, " ")
end

-- All structs, the operators' among them: these have their fields behind a prelude.
local function structs(document)
  local out = {unpack(document.structs)}
  for _, operator in ipairs(document.operators) do
    local fields = {unpack(operator.prelude)}
    for _, f in ipairs(operator.fields) do
      fields[#fields + 1] = {name = f.name, type = f.ctype, size = f.size, initial = f.initial}
    end
    out[#out + 1] = {name = operator.args, sized = true, fields = fields}
  end
  return out
end

local function declarations(document)
  local out, slots = {}, {members(document.table.prelude)}
  local function line(...) out[#out + 1] = string.format(...) end
  for _, enum in ipairs(document.enums) do
    if enum.type then line("typedef %s %s;", enum.type, enum.name) end
    for _, v in ipairs(enum.values) do line("enum { %s = %d };", v.c_name, v.value) end
  end
  for _, handle in ipairs(document.handles) do line("typedef %s %s;", handle.type, handle.name) end
  for _, s in ipairs(structs(document)) do line("typedef struct %s %s;", s.name, s.name) end
  for _, c in ipairs(document.callbacks) do line("typedef %s;", declare(c.type, c.name)) end
  for _, s in ipairs(structs(document)) do line("struct %s { %s };", s.name, members(s.fields)) end
  line("struct %s;", document.table.name)
  for _, f in ipairs(document.functions) do
    line("%s %s%s;", f.result, f.name, parameters(f))
    slots[#slots + 1] = f.result .. " (*" .. f.slot.name .. ")" .. parameters(f) .. ";"
  end
  line("struct %s { %s };", document.table.name, table.concat(slots, " "))
  return table.concat(out, "\n") .. "\n"
end

local function open(path)
  ffi.cdef("int32_t velo_describe(char* buffer, uint64_t capacity, uint64_t* needed);")
  local C, needed, known = ffi.load(path), ffi.new("uint64_t[1]"), {}
  C.velo_describe(nil, 0, needed)
  local buffer = ffi.new("char[?]", needed[0])
  C.velo_describe(buffer, needed[0], nil)
  local document = decode(ffi.string(buffer), 1)
  ffi.cdef(declarations(document))
  for _, s in ipairs(structs(document)) do known[s.name] = s end
  local function new(name, values)
    local out, struct = ffi.new(name), known[name] or {fields = {}}
    for _, f in ipairs(struct.fields) do if f.initial then out[f.name] = f.initial end end
    if struct.sized then out.struct_size = ffi.sizeof(name) end
    for field, value in pairs(values or {}) do out[field] = value end
    return out
  end
  local function check(status)
    if status == 0 then return end
    local text = ffi.new("char[1024]")
    C.velo_error_text(text, 1024, nil)
    error(ffi.string(text), 2)
  end
  return {C = C, document = document, new = new, check = check}
end

return {open = open, declarations = declarations, structs = structs}
