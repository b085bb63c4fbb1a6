#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Other terminals and locales, and text with escape sequences.
. "$(dirname "$0")/lib.sh"
need_tmux

# A session with escape sequences in its messages shows them, but does not execute them.
mkdir -p "$XDG_DATA_HOME/qsf/sessions"
cat >"$XDG_DATA_HOME/qsf/sessions/evil.jsonl" <<'EOF'
{"kind":"message","time":1,"role":"user","text":"show me"}
{"kind":"message","time":2,"role":"assistant","text":"\u001b]0;owned\u0007a\u001b[2Jb\u001b[31mred \u009b5mc \u202eback","stop":"eos","seed":"1","tokens":3}
not json
EOF
start 80 24 "'$chat' '$stories' --session evil"
see 'is ready'
see '\^\[\]0;owned\^G'
see '\^\[\[2Jb'
see '202E'
see '1 damaged line'
see '│ show me'
[ "$(tm display-message -p -t t '#{pane_title}')" != owned ] || fail "the title was set"
keys C-d
see '^rc=0'
see '\^\[\[2Jb'

# No colors, no UTF-8, no description of the terminal.
start 80 24 "env NO_COLOR=1 '$chat' '$stories' --no-save"
see 'is ready'
tm capture-pane -p -e -t t | grep -q "$(printf '\033')\[3[0-7]m" && fail "NO_COLOR: colors"
keys C-d
see '^rc=0'
start 80 24 "env LC_ALL=C '$chat' '$stories' --no-save -n 3"
see 'is ready'
keys 'é' Enter
see '│ é'
keys C-d
see '^rc=0'
start 80 24 "env TERM=no-such-terminal '$chat' '$stories' --no-save"
see 'no-such-terminal'
keys C-d
see '^rc=0'

# Without a screen of before, the conversation follows the last one on a line of its own.
start 80 24 "env TERM=linux '$chat' '$stories' --no-save --ignore-eos -n 3"
see 'is ready'
keys 'Once' Enter
see ' 3 tok'
keys C-d
see '^rc=0'
see '^you: Once$'

prompts() { [ "$(screen | grep -c '^>')" = "$1" ]; }

# Lines where a screen is impossible: dumb terminals, on request.
for how in "env TERM=dumb '$chat'" "'$chat' --plain" "env ACCESSIBLE=1 '$chat'" "'$chat' --simple-io"; do
    start 80 24 "$how '$stories' --no-save -n 5"
    see '^>'
    keys 'Once' Enter
    wait_for prompts 2 || fail "$how: no prompt after the answer"
    keys C-d
    see '^rc=0'
done
finish
