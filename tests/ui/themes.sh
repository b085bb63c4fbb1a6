#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Themes: the colors that reach the terminal, the question for its background, and terminals without colors.
. "$(dirname "$0")/lib.sh"
need_tmux

# colors: the colors and attributes of the label of the user, as tmux has them.
colors() { tm capture-pane -p -e -t t | cat -v | grep -o '[^ ]*myou' | head -n 1; }
has_colors() { colors | grep -qF -- "$1"; }
see_colors() { wait_for has_colors "$1" || { colors; fail "the label does not have $1"; }; }
# reply RGB: as a terminal answers.
reply() { tm send-keys -t t -l "$(printf '\033]11;rgb:%s\033\\' "$1")"; }

mkdir -p "$work/config/qsf"
printf '[theme mine]\nuser = 208 underline\n' >"$work/config/qsf/config"
start 80 24 "TERM=xterm-256color '$chat' '$stories' --no-save -n 1"
see 'is ready'
keys hello Enter
see '^ you '
# tmux without a client does not know its background.
see_colors '[36m'
keys /theme Enter
see 'theme auto, background unknown; themes: auto dark light ansi mono mine'
# The answer may come late; it is not typed.
reply ffff/ffff/dddd
see_colors '38;5;24'
reply 0000/0000/0000
see_colors '38;5;80'
see '^>$|^> *$'
not_see 'rgb:'
keys '/theme mi' Tab Enter
see_colors '38;5;208'
keys '/theme mono' Enter
see_colors '[1m'
has_colors '38;5' && fail 'mono has colors'
keys '/theme light' Enter
see_colors '38;5;24'
keys '/theme nobody' Enter
see "no theme is called 'nobody'"
keys C-d
see '^rc=0'

# COLORFGBG where there is no answer; eight colors; none.
start 80 24 "TERM=xterm-256color COLORFGBG='0;15' '$chat' '$stories' --no-save -n 1"
see 'is ready'
keys hello Enter
see_colors '38;5;24'
keys C-d
see '^rc=0'
start 80 24 "TERM=xterm '$chat' '$stories' --no-save -n 1 --theme dark"
see 'is ready'
keys hello Enter
see_colors '[36m'
keys C-d
see '^rc=0'
start 80 24 "TERM=xterm-256color NO_COLOR=1 '$chat' '$stories' --no-save -n 1 --theme dark"
see 'is ready'
keys hello Enter
see_colors '[1m'
tm capture-pane -p -e -t t | cat -v | grep -q '\[3[0-7]m\|38;5' && fail 'colors in spite of NO_COLOR'
keys C-d
see '^rc=0'
finish
