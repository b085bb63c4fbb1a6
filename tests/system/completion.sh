#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The completions that the programs print have every option; what bash offers for options, values, files and
# sessions; and the programs accept the values.
. "$(dirname "$0")/lib.sh"

programs=
for p in qsf-run qsf-chat qsf-convert; do
    [ -x "$QSF_BUILDDIR/$p" ] || continue
    programs="$programs $p"
    for shell in bash zsh fish; do
        "$QSF_BUILDDIR/$p" --print-completion $shell >"$work/$p.$shell" || fail "$p --print-completion $shell"
        "$QSF_BUILDDIR/$p" --help | sed -n 's/^ \{1,8\}\(-.*\)/\1/p' | sed 's/   *.*//' |
            grep -oE -- '--[a-z0-9-]+' | sort -u >"$work/options"
        [ "$(wc -l <"$work/options")" -gt 10 ] || fail "$p --help has no options"
        case $shell in fish) begin='-l ' ;; *) begin=-- ;; esac
        grep -oE -- "${begin}[a-z0-9-]+" "$work/$p.$shell" | sed "s/^$begin/--/" | sort -u |
            comm -23 "$work/options" - | sed "s/\$/ of $p is not offered in $shell/" >"$work/missing"
        [ ! -s "$work/missing" ] || { cat "$work/missing"; fail "options without completion"; }
        if have $shell; then $shell -n "$work/$p.$shell" || fail "$shell cannot read the completions of $p"; fi
    done
    expect 2 'must be bash, zsh or fish' "$QSF_BUILDDIR/$p" --print-completion tcsh
done
[ -n "$programs" ] || skip "no programs"
for shell in bash zsh fish; do have $shell || echo "skip: no $shell: its completions were not read"; done

# ---- every value of an option that is offered is accepted, and something else is not

# values PROGRAM OPTION: the words that bash offers for it.
values() { sed -n "s/^ *\(.*| \)\{0,1\}--$2\( |.*\)\{0,1\}) _[a-z_]*_words '\([^']*\)'.*/\3/p" "$work/$1.bash"; }
# try PROGRAM OPTION ARGUMENTS...: exit status 2 means that the value was refused.
try() {
    program=$1 option=$2
    shift 2
    words=$(values "$program" "$option")
    [ -n "$words" ] || fail "$program: no values for --$option"
    for word in $words; do
        "$QSF_BUILDDIR/$program" "--$option" "$word" "$@" >"$work/out" 2>&1 </dev/null
        [ $? != 2 ] || { cat "$work/out"; fail "$program does not accept --$option $word"; }
    done
    expect 2 . "$QSF_BUILDDIR/$program" "--$option" nonsense "$@"
}
case $programs in
*chat*)
    for option in mouse notify color snapshot-limit; do
        try qsf-chat $option --no-config --print-config
    done
    ;;
esac
case $programs in
*convert*)
    for option in quant-type rule layout experts compress; do
        words=$(values qsf-convert $option)
        [ -n "$words" ] || fail "qsf-convert: no values for --$option"
    done
    ;;
esac
words=$(values qsf-run io)
[ "$words" = "auto uring pread mmap " ] || fail "--io offers: $words"

# ---- what bash offers

have bash || { echo "skip: no bash"; finish; }
mkdir -p "$work/data/qsf/sessions" "$work/dir/models"
: >"$work/dir/a.gguf"
: >"$work/dir/b c.qsf"
: >"$work/dir/notes.txt"
: >"$work/dir/chat.jinja"
: >"$work/data/qsf/sessions/work.jsonl"
: >"$work/data/qsf/sessions/my talk.jsonl"
: >"$work/data/qsf/sessions/work.qsfsnap"
cat >"$work/drive.bash" <<'EOS'
# drive.bash FILE WORDS...: what the last word can become, one per line.
file=$1
shift
compopt() { :; } # only while readline completes
source "$file"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function_of=$(complete -p "$1")
function_of=${function_of#*-F }
"${function_of%% *}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}" | sort
EOS
# offers "EXPECTED WORDS, SEPARATED BY COMMAS" WORDS...
offers() {
    want=$1
    shift
    got=$(cd "$work/dir" && XDG_DATA_HOME=$work/data bash "$work/drive.bash" "$work/$1.bash" "$@" | tr '\n' ,)
    [ "$got" = "$want" ] || fail "\"$*\" offers \"$got\", not \"$want\""
}
offers "--mouse," qsf-chat --mou
offers "off,on," qsf-chat --mouse ""
offers "off,on," qsf-chat --mouse = ""
offers "osc," qsf-chat --notify = os
offers "--notify=osc," qsf-chat --notify=os
offers "my\\ talk,work," qsf-chat --session ""
mkdir -p "$work/config/qsf"
printf '[model x]\n[role coder]\n  [role my helper ]\n; [role no]\n[roles y]\n' >"$work/config/qsf/config"
export XDG_CONFIG_HOME="$work/config"
offers "coder,my\\ helper," qsf-chat --role ""
offers "coder," qsf-run --role = c
for shell in zsh fish; do
    have "$shell" || continue
    case $shell in
    zsh) list='compadd() { print -l "$names[@]"; }; compdef() { :; }; source "$1" 2>/dev/null; _qsf_chat_roles' ;;
    fish) list='source $argv[2]; __qsf_chat_roles' ;;
    esac
    "$shell" -c "$list" "$shell" "$work/qsf-chat.$shell" >"$work/roles" 2>/dev/null
    [ "$(tr '\n' , <"$work/roles")" = "coder,my helper," ] || { cat "$work/roles"; fail "$shell: --role"; }
done
offers "work," qsf-chat --replay w
offers "my\\ talk," qsf-chat --print-session my
offers "a.gguf,b c.qsf,guide,models," qsf-chat --model ""
offers "a.gguf,b c.qsf,guide,models," qsf-run -m ""
offers "b c.qsf," qsf-run 'b\ '
offers "a.gguf," qsf-chat --plain a
offers "a.gguf,b c.qsf,chat.jinja,models,notes.txt," qsf-run --file ""
offers "chat.jinja,models," qsf-run --render ""
offers "models," qsf-run --parity ""
offers "models," qsf-chat --model-dir ""
offers "" qsf-run --system ""
offers "" qsf-run -- --mod
offers "q2,q4,q6,q8," qsf-chat --kv-type q
offers "chatml," qsf-run --template chatm
offers "--i2s-flavor,--inspect," qsf-convert --i
offers "minmax,search," qsf-convert --rule ""
offers "a.gguf,b c.qsf,models," qsf-convert ""
offers "a.gguf,b c.qsf,models," qsf-convert a.gguf ""
finish
