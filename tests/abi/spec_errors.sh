#!/usr/bin/env bash
# usage: spec_errors.sh VELO_GEN SPEC_FOLDER
#
# Breaks a copy of the spec in one place at a time and expects velo_gen to refuse it with exit code
# 2, the file, the line of the broken place and a word of the reason. The unbroken copy must pass.
set -u
gen=$1 spec=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# breaks NAME FILE SED_EXPRESSION PATTERN: applies the expression to the file; the message must
# match PATTERN.
breaks() {
  local name=$1 file=$2 expression=$3 pattern=$4
  rm -rf "$work/spec"
  cp -r "$spec" "$work/spec"
  sed -i -E "$expression" "$work/spec/$file"
  if cmp -s "$spec/$file" "$work/spec/$file"; then
    echo "$name: the expression changed nothing"
    failures=$((failures + 1))
    return
  fi
  local line
  line=$(diff "$spec/$file" "$work/spec/$file" | sed -nE '1s/^([0-9]+).*/\1/p')
  local message
  message=$("$gen" --spec "$work/spec" --root "$work/out" 2>&1)
  local code=$?
  if [ $code -ne 2 ] || ! grep -qE "$file:[0-9]+" <<<"$message" ||
    ! grep -qE "$pattern" <<<"$message"; then
    echo "$name: exit code $code, message: $message (expected $file:$line and '$pattern')"
    failures=$((failures + 1))
  elif ! grep -q "$file:$line:" <<<"$message"; then
    echo "$name: wrong line in: $message (expected $line)"
    failures=$((failures + 1))
  fi
  if [ -e "$work/out" ]; then
    echo "$name: something was written in spite of the error"
    failures=$((failures + 1))
  fi
}

norm=ops/norm.json
breaks syntax $norm '4s/\[/[,/' "unexpected|near"
breaks unknown-key $norm '0,/"gradient_of"/s/"gradient_of"/"gradientof"/' \
  'unknown key; known here: .*gradient_of'
breaks unknown-kind $norm '0,/"kind": "f64"/s//"kind": "real"/' '"real" is none of: tensor'
breaks bad-name $norm '0,/"name": "gamma"/s//"name": "Gamma"/' 'not a lower_case name'
breaks reserved-word $norm '0,/"name": "gamma"/s//"name": "register"/' 'reserved word'
breaks double-field $norm '0,/"name": "gamma"/s//"name": "x"/' 'already taken'
breaks double-op $norm 's/"name": "rms_norm_backward"/"name": "rms_norm"/' 'already taken'
breaks alias-target $norm '0,/"alias": \["x"\]/s//"alias": ["z"]/' '"z" is no other tensor'
breaks default-range $norm '0,/"default": 1e-6/s//"default": -1.5/' 'outside its own range'
breaks default-type $norm '0,/"default": 1e-6/s//"default": "small"/' \
  'expected a number, got a string'
breaks formula $norm 's/`rstd = 1 \/ sqrt\(mean/`rstd = 1 \/ sqrt(mean(/' 'formula "rstd.*expected'
breaks gradient-of $norm 's/"gradient_of": "rms_norm"/"gradient_of": "layer_norm"/' \
  'no operator "layer_norm"'
breaks release $norm '0,/"since": "1.0"/s//"since": "one"/' 'expected a release'
breaks comment-mark $norm '0,/"source": "/s//"source": "*\/ /' 'comment mark'
breaks rows-axis $norm '0,/"gamma": "N..."/s//"gamma": "Nn..."/' '"Nn..." is no axis'
breaks rows-tensor $norm '0,/"gamma": "N..."/s//"gain": "N..."/' \
  '"gain" is no tensor of this operator'
breaks rows-where ops/loss.json '0,/"reduction": \["none"\]/s//"reduction": ["no"]/' 'has no "no"'
breaks rows-attribute ops/loss.json '0,/"reduction": \["none"\]/s//"logits": ["none"]/' \
  'is no number or enumeration'
breaks family-name $norm '2s/norm/gnome/' 'listed as "norm"'
breaks enumerator ops/loss.json '0,/"default": "mean"/s//"default": "median"/' 'has no "median"'
breaks direction core.json '0,/"type": "uint64_t"\}/s//"type": "uint64_t", "dir": "out"}/' \
  'only a pointer'
breaks error-code core.json '0,/"errors": \["NULL", "STRUCT"\]/s//"errors": ["NULL", "STRUKT"]/' \
  'no error code VELO_ERR_STRUKT'
breaks error-order core.json '0,/"code": 2,/s//"code": 1,/' 'codes rise'
breaks field-type core.json '0,/"type": "uint16_t"/s//"type": "uint17_t"/' 'unknown type'
breaks parameter-type core.json '0,/"type": "velo_error_info\*"/s//"type": "velo_error_inf*"/' \
  'unknown type'
breaks slot-twice slots.json 's/"velo_event_query"/"velo_event_record"/' \
  'no function of that name, or its second slot'
breaks example-field $norm '0,/"gamma": \[1, 2, 3, 4\]/s//"gama": [1, 2, 3, 4]/' \
  'no field of this operator'
breaks adapter-name $norm '0,/"name": "epsilon"/s//"name": "outputs"/' \
  'is a parameter of the adapters'
breaks example-missing $norm '0,/, "gamma": \[1, 2, 3, 4\]/s///' 'the operator needs "gamma"'
breaks example-ragged $norm '0,/\[\[1, 1, -1, -1\]\]/s//[[1, 1, -1], [-1]]/' \
  'arrays of one depth have one length'
breaks example-output $norm '0,/"y": \[\[1, 2, -3, -4\]\], /s///' 'the operator writes "y" too'
breaks example-result $norm '0,/"rstd": \[\[1\]\]/s//"epsilon": 1/' 'no output of this operator'
breaks example-dtype ops/embedding.json '0,/"dtype": "i64"/s//"dtype": "f32"/' \
  'the field takes none of that dtype'
breaks example-range ops/embedding.json '0,/, "range": \[0, 3\]/s///' \
  'integers are drawn from a "range"'
breaks example-drawn ops/elementwise.json '0,/"a": \[1, 2\]/s//"a": {"shape": [2]}/' \
  'what has a known result is not drawn'
breaks example-word ops/attention.json 's/"layout": "tnd",$/"layout": "tdn",/' \
  '"attention_layout" has no "tdn"'
breaks header core.json '0,/"header": "stream.h"/s//"header": "steam.h"/' \
  'no module read so far lists "steam.h"'
breaks header-twice core.json '0,/"types.h", /s//"types.h", "types.h", /' 'already taken'
breaks header-generated core.json '0,/"types.h", /s//"types.h", "ops_x.h", /' 'is generated'
breaks module-name core.json '2s/core/kernel/' 'the file is named core.json'
breaks article core.json '0,/"article": "a pack"/s//"article": "pack"/' 'expected "a" or "an"'
breaks destroy-order core.json 's/"order": 4/"order": 5/' 'already taken'
breaks handle-unknown ops/matmul.json '0,/"handle": "velo_pack"/s//"handle": "velo_park"/' \
  'no module declares a handle "velo_park"'
breaks list-out $norm '0,/"kind": "tensor", "dir": "out"/s//"kind": "tensors", "dir": "out"/' \
  '"out" is none of: in, inout'
breaks bound-missing $norm '0,/"text": "float32: 4 ulp/s//"txt": "float32: 4 ulp/' \
  'unknown key; known here: .*text'
breaks bound-number $norm '0,/"relative": 4.8e-07/s//"relative": -1/' 'a bound is 0 or more'
breaks bound-kind $norm '0,/"relative": 4.8e-07/s//"ulps": 4/' \
  'unknown key; known here: absolute, relative'
breaks handle-errors core.json 's/"errors": \["NULL", "HANDLE", "STATE"/"errors": ["NULL", "HANDLE"/' 'takes a velo_.* has the error STATE'
breaks destroy core.json 's/"destroy": "velo_event_destroy"/"destroy": "velo_event_end"/' \
  'no such function'

# Another module: types of either may stand in the other, errors only in core.json.
module() {
  rm -rf "$work/spec"
  cp -r "$spec" "$work/spec"
  printf '%s\n' "$1" >"$work/spec/pond.json"
  message=$("$gen" --spec "$work/spec" --root "$work/module" 2>&1)
}
pond='{"module": "pond", "headers": ["pond.h"],
 "handles": [{"name": "velo_pond", "article": "a pond", "header": "pond.h", "since": "1.0",
              "doc": "Water.",
              "destroy": "velo_pond_destroy", "order": 14}],
 "functions": [{"name": "velo_pond_destroy", "header": "pond.h", "since": "1.0",
                "thread": "per-handle", "result": "void", "doc": "Ends it.",
                "params": [{"name": "pond", "type": "velo_pond", "nullable": true,
                            "ownership": "take"}]}]}'
module "$pond"
if [ $? -ne 0 ] || ! grep -q '#include "velo/pond.h"' "$work/module/capi/include/velo/api.h" ||
  ! grep -q 'VELO_HANDLE(pond, "a pond", 14)' "$work/module/abi/generated/handles.inc"; then
  echo "a second module is not taken: $message"
  failures=$((failures + 1))
fi
module "${pond/\"functions\"/\"errors\": [], \"functions\"}"
if [ $? -ne 2 ] || ! grep -q 'pond.json:.*unknown key' <<<"$message"; then
  echo "errors outside core.json go unnoticed: $message"
  failures=$((failures + 1))
fi

rm -rf "$work/spec"
cp -r "$spec" "$work/spec"
cp "$spec/ops/norm.json" "$work/spec/ops/forgotten.json"
message=$("$gen" --spec "$work/spec" --root "$work/out" 2>&1)
if [ $? -ne 2 ] || ! grep -q 'ops/forgotten.json is not listed' <<<"$message"; then
  echo "a family that is not listed goes unnoticed: $message"
  failures=$((failures + 1))
fi

rm -rf "$work/spec"
cp -r "$spec" "$work/spec"
sed -i '/"velo_event_query"/d' "$work/spec/slots.json"
message=$("$gen" --spec "$work/spec" --root "$work/out" --check 2>&1)
if [ $? -ne 2 ] ||
  ! grep -q 'slots.json:3: functions: "velo_event_query" has no slot yet' <<<"$message"; then
  echo "a function without a slot goes unnoticed: $message"
  failures=$((failures + 1))
fi
message=$("$gen" --spec "$work/spec" --root "$work/out" 2>&1)
if [ $? -ne 0 ] ||
  [ "$(tail -n 3 "$work/spec/slots.json" | head -n 1)" != '    "velo_event_query"' ]; then
  echo "a function without a slot does not get the last one: $message"
  failures=$((failures + 1))
fi

rm -rf "$work/spec"
cp -r "$spec" "$work/spec"
sed -i -E 's/, "out": .*\}\}(,?)$/}\1/' "$work/spec/ops/elementwise.json"
message=$("$gen" --spec "$work/spec" --root "$work/out" 2>&1)
if [ $? -ne 2 ] || ! grep -q 'ops\[0\]: "examples" has none with a known result' <<<"$message"; then
  echo "an operator without a known result goes unnoticed: $message"
  failures=$((failures + 1))
fi

if ! "$gen" --spec "$spec" --root "$work/good" >"$work/list"; then
  echo "the spec itself is refused"
  failures=$((failures + 1))
fi
if ! "$gen" --spec "$spec" --root "$work/good" --check; then
  echo "what was just written differs"
  failures=$((failures + 1))
fi
echo "changed" >>"$work/good/abi/generated/velo.map"
message=$("$gen" --spec "$spec" --root "$work/good" --check 2>&1)
if [ $? -ne 1 ] || ! grep -q 'abi/generated/velo.map:[0-9]* differs' <<<"$message"; then
  echo "a changed output is not named: $message"
  failures=$((failures + 1))
fi
touch "$work/good/capi/include/velo/ops_gone.h"
message=$("$gen" --spec "$spec" --root "$work/good" --check 2>&1)
if [ $? -ne 1 ] ||
  ! grep -q 'ops_gone.h: nothing in the spec produces this file' <<<"$message"; then
  echo "a leftover is not named: $message"
  failures=$((failures + 1))
fi
exit $((failures > 0))
