# SPDX-License-Identifier: Apache-2.0
# Completion of Phalanx's trainer in bash:  source <(trainer completion bash)
#
# What can be completed is a table that the program prints (`trainer completion table` says how),
# kept in a file for each binary. A Tab reads it with what bash has built in: no process is started
# but, once after the binary has changed, the binary itself.

# Into `binary`: the file that a command name stands for; that which printed this script where the
# name is an alias's or a function's.
_phalanx_find_binary() {
  local - folder IFS=:
  set -f
  binary=$1
  case $1 in
    '~/'*) binary=$HOME/${1#'~/'} ;;
    */*) ;;
    *)
      for folder in $PATH; do
        binary=$folder/$1
        [[ -f $binary && -x $binary ]] && break
      done
      ;;
  esac
  [[ -f $binary && -x $binary ]] || binary=$_phalanx_program
  [[ $binary == /* ]] || binary=$PWD/$binary
}

# Into `table`: the lines of the binary's table. The file that keeps them has the binary's very time
# of change, which nothing else but the binary has: an older build in its place is seen too.
_phalanx_read_table() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/phalanx/completion name=${binary//\//%} file
  ((${#name} > 200)) && name=${name: -200}
  file=$folder/$name
  if [[ ! -f $file || $file -nt $binary || $file -ot $binary ]]; then
    command mkdir -p "$folder" || return
    if ! { "$binary" completion table >"$file.$$" 2>/dev/null </dev/null &&
      command touch -r "$binary" "$file.$$" && command mv -f "$file.$$" "$file"; }; then
      command rm -f "$file.$$"
      return 1
    fi
  fi
  mapfile -t table <"$file"
}

# Into `found`: the fields of the table's line of a kind about something; empty without one.
_phalanx_look_up() {
  local line start=$1$'\t'$2$'\t'
  found=()
  for line in "${table[@]}"; do
    if [[ $line == "$start"* ]]; then
      IFS=$'\t' read -ra found <<<"${line#"$start"}"
      break
    fi
  done
}

# Into `words`: what stands before the cursor, without quotes. Into `quote`: the one that is open in
# the last word; into `kept`: how much of that word bash keeps, since it completes only what is
# behind that quote, or else behind one of COMP_WORDBREAKS.
_phalanx_split_line() {
  local line=${COMP_LINE:0:COMP_POINT} word='' in_word='' i char outside
  words=() quote='' kept=0
  for ((i = 0; i < ${#line}; ++i)); do
    char=${line:i:1}
    if [[ $quote ]]; then
      if [[ $char == "$quote" ]]; then
        quote='' kept=$outside
      elif [[ $char == '\' && $quote == '"' && ${line:i+1:1} == [\\\"\$\`] ]]; then
        word+=${line: ++i:1}
      else
        word+=$char
      fi
    elif [[ $char == '\' ]]; then
      word+=${line: ++i:1} in_word=1
    elif [[ $char == [\'\"] ]]; then
      quote=$char in_word=1 outside=$kept kept=${#word}
    elif [[ $char == [[:blank:]] ]]; then
      [[ $in_word ]] && words+=("$word")
      word='' in_word='' kept=0
    else
      word+=$char in_word=1
      [[ $COMP_WORDBREAKS == *"$char"* ]] && kept=${#word}
    fi
  done
  words+=("$word")
}

# Adds to COMPREPLY those of the given words that begin with the last word of the line.
_phalanx_offer() {
  local candidate
  for candidate; do
    [[ $candidate == "${words[-1]}"* ]] && COMPREPLY+=("${candidate:kept}")
  done
}

# Adds the paths that go on from what the last word holds behind $2: folders, and for $1 "configs"
# YAML files, for "all" every file.
_phalanx_offer_files() {
  local - typed=${words[-1]#"$2"} start path nullglob=0 failglob=0
  start=$typed
  [[ $start == '~/'* ]] && start=$HOME/${start#'~/'}
  shopt -q nullglob && nullglob=1
  shopt -q failglob && failglob=1
  set +f
  shopt -s nullglob
  shopt -u failglob
  for path in "$start"*; do
    if [[ -d $path || $1 == all || $1 == configs && $path == *.y?(a)ml ]]; then
      _phalanx_offer "$2$typed${path#"$start"}"
    fi
  done
  ((nullglob)) || shopt -u nullglob
  ((failglob)) && shopt -s failglob
}

# Adds commands' names and, where no command is named, configs; a command goes before a folder of
# its name, so that readline must not take the two for files.
_phalanx_offer_commands() {
  local i commands
  _phalanx_offer "${found[@]}"
  [[ $names ]] && return
  commands=${#COMPREPLY[@]}
  _phalanx_offer_files configs ''
  if ((commands == 0)); then
    compopt -o filenames
    return
  fi
  for ((i = commands; i < ${#COMPREPLY[@]}; ++i)); do
    [[ -d ${COMPREPLY[i]} ]] && COMPREPLY[i]+=/
    [[ $quote ]] || printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"
  done
}

# Adds paths of fields, a section at a time.
_phalanx_offer_keys() {
  local section='' name
  [[ ${words[-1]} == *.* ]] && section=${words[-1]%.*}.
  _phalanx_look_up key "${section%.}"
  for name in "${found[@]}"; do
    _phalanx_offer "$section${name%=}"
  done
}

# Adds keys, a section at a time, and behind `key=` its values.
_phalanx_offer_overrides() {
  local sign='' key section='' name
  case ${words[-1]} in
    ++*) sign=++ ;;
    +*) sign=+ ;;
    '~'*) sign='~' ;;
  esac
  key=${words[-1]#"$sign"}
  if [[ $key == *=* ]]; then
    key=${key%%=*}
    _phalanx_look_up value "$key"
    if [[ ${found[0]-} == / ]]; then # a path
      compopt -o filenames
      _phalanx_offer_files all "$sign$key="
    else
      for name in "${found[@]}"; do
        _phalanx_offer "$sign$key=$name"
      done
    fi
    return
  fi
  [[ $key == *.* ]] && section=${key%.*}.
  _phalanx_look_up key "${section%.}"
  for name in "${found[@]}"; do
    if [[ $sign == '~' ]]; then # a whole section, or a field of it, without a value
      _phalanx_offer "~$section${name%[.=]}"
      name=${name%=}
    fi
    _phalanx_offer "$sign$section$name"
  done
}

# Adds what the command's positional number `index` can be.
_phalanx_offer_arguments() {
  local takes fixed=0 wanted=' '
  _phalanx_look_up takes "$names"
  for takes in "${found[@]}"; do
    if [[ $takes == *'*' ]]; then
      ((index >= fixed)) && wanted+="${takes%'*'} "
    else
      ((index == fixed)) && wanted+="$takes "
      ((++fixed))
    fi
  done
  [[ $wanted == *' override '* ]] && _phalanx_offer_overrides
  ((${#COMPREPLY[@]})) && return
  case $wanted in
    *' key '*) _phalanx_offer_keys ;;
    *' word '*)
      _phalanx_look_up word "$about"
      _phalanx_offer "${found[@]}"
      ;;
    *' config '*)
      compopt -o filenames
      _phalanx_offer_files configs ''
      ;;
    *' run '*)
      compopt -o filenames
      _phalanx_offer_files folders ''
      ;;
    *' path '*)
      compopt -o filenames
      _phalanx_offer_files all ''
      ;;
  esac
}

# Whether a flag of the command takes a value.
_phalanx_takes_value() {
  local flag
  _phalanx_look_up flag "$names"
  for flag in "${found[@]}"; do
    [[ $flag == "$1="* ]] && return
  done
  return 1
}

# Adds the values of flag $1 behind $2, which is what the last word holds before them.
_phalanx_offer_values() {
  local flag
  _phalanx_look_up flag "$names"
  for flag in "${found[@]}"; do
    if [[ $flag == "$1=/" ]]; then # a path
      compopt -o filenames
      _phalanx_offer_files all "$2"
    elif [[ $flag == "$1="?* ]]; then
      _phalanx_offer "$2${flag#*=}"
    fi
  done
}

_phalanx_complete() {
  local IFS=$' \t\n' binary table words quote kept found word i
  local names='' about='' index=0 # the command; with its arguments; how many these are
  local flag=''                    # whose value comes next
  COMPREPLY=()
  _phalanx_find_binary "$1"
  _phalanx_read_table || return
  _phalanx_split_line
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ $flag ]]; then
      flag=''
      continue
    elif [[ $word == -* ]]; then
      _phalanx_takes_value "$word" && flag=$word
      continue
    fi
    if ((index == 0)); then
      _phalanx_look_up action "$names"
      if [[ " ${found[*]} " == *" $word "* ]]; then
        names+=${names:+ }$word about=$names
        continue
      fi
      [[ $names ]] || names=${found[0]} # the first is meant
    fi
    about+=" $word"
    ((++index))
  done
  if [[ $flag ]]; then
    _phalanx_offer_values "$flag" ''
  elif [[ ${words[-1]} == --*=* ]]; then
    flag=${words[-1]%%=*}
    _phalanx_offer_values "$flag" "$flag="
  elif [[ ${words[-1]} == -* ]]; then
    _phalanx_look_up flag "$names"
    _phalanx_offer "${found[@]/%=\//=}"
  elif _phalanx_look_up action "$names"; ((index == 0 && ${#found[@]})); then
    _phalanx_offer_commands
  else
    _phalanx_offer_arguments
  fi
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[.=/] ]] && compopt -o nospace
}
