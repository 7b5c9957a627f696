# SPDX-License-Identifier: Apache-2.0
# For bazelw: a folder of one's own is built as the repository @mine of Phalanx's workspace. What belongs to
# Phalanx has the same paths and options there as in the clone, so all of it comes from the clone's results or
# the cache; in a workspace that loads Phalanx as a repository, all of it is compiled anew.

# The folder where the user stands, or one above it, if its WORKSPACE names no "phalanx": neither is it a clone
# nor does it load Phalanx itself. Nothing otherwise.
own_folder() {
  local folder=$PWD
  until [[ -e $folder/WORKSPACE || $folder == / ]]; do folder=$(dirname "$folder"); done
  [[ -e $folder/WORKSPACE ]] || return 0
  grep -Eq 'name *= *"phalanx"' "$folder/WORKSPACE" || echo "$folder"
}

# own_target PLACE PATTERN: the pattern as Phalanx's workspace knows it. PLACE is the package where the user
# stands, with a slash at its end; empty at the top.
own_target() {
  local place=$1 pattern=${2#-} sign=
  [[ $2 != -* ]] || sign=-
  case $pattern in
    @*) ;;
    //*) pattern=@mine$pattern ;;
    :*) pattern=@mine//${place%/}$pattern ;;
    ... | */* | ?*:*) pattern=@mine//$place$pattern ;;
    *) pattern=@mine//${place%/}:$pattern ;;
  esac
  echo "$sign$pattern"
}

# own_query EXPRESSION: the same for each label of a query.
own_query() { sed -E 's#(^|[^@A-Za-z0-9_/.-])//#\1@mine//#g' <<<"$1"; }

# Sets `translated` to the arguments of a command, which stand behind it, and `target` to the last target.
translate_own() {
  local command=$1 place=$2 argument before= are_options_over= is_program=
  shift 2
  translated=() target=
  for argument in "$@"; do
    if [[ $argument == -- && ! $is_program ]]; then
      translated+=(--)
      are_options_over=yes
    elif [[ $is_program || (! $are_options_over && ($argument == -* || $before == -[cj])) ]]; then
      translated+=("$argument")
    elif [[ $command == *query ]]; then
      translated+=("$(own_query "$argument")")
    else
      target=$(own_target "$place" "$argument")
      translated+=("$target")
      [[ $command != run ]] || is_program=yes
    fi
    before=$argument
  done
}

# The program that a target is, below the folder of results.
own_program() {
  local label=${1#@mine//}
  local package=${label%%:*} name=${label##*[:/]}
  echo "external/mine/${package:+$package/}$name"
}

# build_own FOLDER COMMAND BAZEL [OPTION ...] -- [ARGUMENT ...]: runs a command of Bazel for a folder. The
# options are Bazel's own, before the command; the arguments those behind it.
build_own() {
  local folder=$1 command=$2 place bazel=() arguments translated target results
  shift 2
  while [[ $1 != -- ]]; do
    bazel+=("$1")
    shift
  done
  arguments=("${@:2}")
  [[ ! -f $folder/.bazelrc ]] || bazel+=(--bazelrc="$folder/.bazelrc")
  place=${PWD#"$folder"}
  place=${place#/}
  translate_own "$command" "${place:+$place/}" "${arguments[@]}"
  local mine=--override_repository="mine=$folder"
  if [[ $command != run || $target != @mine//* ]]; then
    (cd "$here" && exec "${bazel[@]}" "$command" "$mine" "${translated[@]}") || return
    [[ $command == *query ]] || link_own_results
    return
  fi
  # `bazel run` would have the program look for its files in the clone.
  local options=() i
  for ((i = 0; i < ${#translated[@]}; ++i)); do
    [[ ${translated[i]} != "$target" ]] || break
    options+=("${translated[i]}")
  done
  arguments=("${translated[@]:i + 1}")
  [[ ${arguments[0]:-} != -- ]] || arguments=("${arguments[@]:1}")
  (cd "$here" && exec "${bazel[@]}" build "$mine" "${options[@]}" "$target") || return
  link_own_results
  exec "$results/$(own_program "$target")" "${arguments[@]}"
}

# Sets `results`, and lets bazel-bin of the own folder lead to what belongs to it there.
link_own_results() {
  results=$(cd "$here" && "${bazel[@]}" info bazel-bin 2>/dev/null) || return
  [[ -e $folder/bazel-bin && ! -L $folder/bazel-bin ]] ||
    ln -sfn "$results/external/mine" "$folder/bazel-bin"
}
