--[[ What the library says of itself, as a C header: the declarations of the binding, and an _INIT for
every struct that begins with its size.

    luajit header.lua FOLDER_OF_VELO_LUA LIBRARY ]]
local folder, library = arg[1], arg[2]
package.path = folder .. "/?.lua;" .. package.path
local binding = require("velo")
local document = binding.open(library).document

local whole = {} -- types that an initializer puts in braces
for _, struct in ipairs(document.structs) do whole[struct.name] = true end

local function initial(struct)
  local out = {}
  for i, field in ipairs(struct.fields) do
    local value = field.initial or ((field.count or whole[field.type]) and {0}) or 0
    if type(value) == "table" then value = "{" .. table.concat(value, ", ") .. "}" end
    out[i] = field.name == "struct_size" and "sizeof(" .. struct.name .. ")" or value
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

print("#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif")
io.write(binding.declarations(document))
print("#ifdef __cplusplus\n}\n#endif")
for _, struct in ipairs(binding.structs(document)) do
  if struct.sized then print("#define " .. struct.name:upper() .. "_INIT " .. initial(struct)) end
end
