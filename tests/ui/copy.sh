#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# /copy to the clipboard of a terminal (tmux accepts OSC 52 as one) and by programs; /save-code; /export to
# HTML.
. "$(dirname "$0")/lib.sh"
need_tmux

files=$XDG_DATA_HOME/qsf/sessions
mkdir -p "$files" "$work/bin" "$work/none"
# A conversation with two blocks of code; the second is too large for OSC 52.
large=$(seq -s ' ' 1 16000)
printf '%s\n' '{"kind":"message","role":"user","text":"Write a program."}' \
    '{"kind":"message","role":"assistant","text":"Here:\n\n```c\nint main(void)\n{\n    return 0; /* k\u00e4se */\n}\n```\nthe end"}' \
    '{"kind":"message","role":"user","text":"A large one."}' \
    "{\"kind\":\"message\",\"role\":\"assistant\",\"text\":\"\`\`\`\\n$large\\n\`\`\`\"}" >"$files/code.jsonl"
printf 'int main(void)\n{\n    return 0; /* käse */\n}' >"$work/want"

# The programs that are installed here must not answer. The shell needs its own.
for f in sh cat env; do ln -s "$(command -v $f)" "$work/none/$f"; done
unset DISPLAY WAYLAND_DISPLAY

# ---- by the terminal, from within tmux: with its passthrough, and without $TMUX as for other terminals

for how in '' 'unset TMUX;'; do
    rm -f "$work/go" "$work/raw"
    start 80 24 "until [ -e '$work/go' ]; do sleep 0.05; done; $how PATH='$work/none' '$chat' '$stories' --session code"
    tm set -s set-clipboard on
    tm pipe-pane -t t "cat >'$work/raw'"
    : >"$work/go"
    see 'the end|16000'
    keys '/copy code 1' Enter
    see 'copied code 1 \(c, 4 lines, 44 bytes\) by OSC 52' || continue
    tm show-buffer >"$work/got"
    cmp "$work/want" "$work/got" || fail "another text on the clipboard"
    base64=$(base64 <"$work/want" | tr -d '\n')
    # The copy of the output may be later than the screen.
    wait_for grep -qaF "]52;c;$base64" "$work/raw" || fail "no OSC 52 in the output"
    case $(grep -caF 'Ptmux;' "$work/raw")$how in 1 | '0unset TMUX;') ;; *) fail "passthrough ($how)" ;; esac
    keys '/copy code 2' Enter
    see 'too large for OSC 52'
    tm show-buffer >"$work/got"
    cmp "$work/want" "$work/got" || fail "the clipboard changed"
    keys C-d
    see '^rc='
done

# GNU screen passes on only short strings.
rm -f "$work/raw" "$work/go"
start 80 24 "until [ -e '$work/go' ]; do sleep 0.05; done; unset TMUX; TERM=screen PATH='$work/none' '$chat' '$stories' --session code"
tm pipe-pane -t t "cat >'$work/raw'"
: >"$work/go"
see 'the end|16000'
keys '/copy code 1' Enter
see 'copied code 1 .* by OSC 52'
keys C-d
see '^rc=0'
for_screen() { tr '\033' '@' <"$work/raw" | grep -qaF "@P@]52;c;$base64"; }
wait_for for_screen || fail "no string for GNU screen"

# ---- by a program, on the screen and without it

cat >"$work/bin/xclip" <<SCRIPT
#!/bin/sh
PATH='$PATH'
cat >'$work/clip.part'
mv '$work/clip.part' '$work/clip'
SCRIPT
chmod +x "$work/bin/xclip"
start 80 24 "DISPLAY=:9 PATH='$work/bin:$work/none' '$chat' '$stories' --session code"
see 'the end|16000'
keys '/copy code 2' Enter
see 'by xclip \(too large for OSC 52'
# A program that needs longer than a tenth of a second continues.
has_large() { [ "$(wc -c <"$work/clip")" = ${#large} ]; }
wait_for has_large || fail "xclip got another text"
rm "$work/clip"
keys C-d
see '^rc=0'

printf '/copy code 1\n' >"$work/in"
DISPLAY=:9 PATH=$work/bin:$PATH "$chat" "$stories" --session code <"$work/in" >"$work/out" 2>"$work/err"
err_has 'copied code 1 \(c, 4 lines, 44 bytes\) by xclip$'
[ -s "$work/out" ] && fail "/copy writes to standard output"
wait_for cmp -s "$work/want" "$work/clip" || fail "xclip got another text from a pipe"
# Also when this program has ended before it.
cat >"$work/bin/xclip" <<SCRIPT
#!/bin/sh
until [ -e '$work/ended' ]; do sleep 0.05; done
cat >'$work/late'
SCRIPT
DISPLAY=:9 PATH=$work/bin:$PATH "$chat" "$stories" --session code <"$work/in" >"$work/out" 2>"$work/err"
err_has 'copied code 1 \(c, 4 lines, 44 bytes\) by xclip$'
: >"$work/ended"
wait_for cmp -s "$work/want" "$work/late" || fail "a slow xclip was ended"
PATH=$work/none "$chat" "$stories" --session code <"$work/in" >"$work/out" 2>"$work/err"
[ $? = 1 ] || fail "no exit code of a copy that failed"
err_has 'cannot copy code 1 .*: no wl-copy, xclip, xsel, pbcopy or clip.exe with a display'

# ---- files

cd "$work" || exit 1
printf '/save-code 1 main.c\n/export\n/export html\n' | chat_lines 0 "$stories" --session code
printf '\n' | cat "$work/want" - | cmp - main.c || fail "/save-code wrote another text"
grep -q '^## You' Write-a-program.md || fail "no export with a name from the title"
grep -q '<span class="k">return</span>' Write-a-program.html || fail "code is not highlighted in HTML"
printf '/save-code 1 main.c\n' | chat_lines 1 "$stories" --session code
err_has 'main.c exists: /save-code! 1 main.c replaces it'
finish
