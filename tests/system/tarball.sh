#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make tarball: the same bytes twice, below 12 MB, with all that belongs to it; install.sh installs, updates
# and removes exactly its own files; the chat opens on a system that has nothing but a kernel.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "archives are made of the build without sanitizers"
cd "$QSF_BUILDDIR" || exit 1
[ -x qsf-get ] || skip "the programs are not built"

make_static || { tail -5 "$work/log"
skip "THE ARCHIVE WAS NOT MADE: static libraries are missing here and could not be built"; }
build() { # COMMAND...: make tarball
    "$@" "$MAKE" P="$work/package" tarball >"$work/log" 2>&1 || { cat "$work/log"; fail "make tarball"; finish; }
}
build env
name=$(basename "$work"/package/qsf-*.tar.gz .tar.gz)
mv "$work/package/$name.tar.gz" "$work/first.tar.gz"
# Another umask.
# shellcheck disable=SC2016
build sh -c 'umask 077 && exec "$0" "$@"'
cmp "$work/first.tar.gz" "$work/package/$name.tar.gz" || fail "other bytes the second time"
bytes=$(wc -c <"$work/first.tar.gz")
[ "$bytes" -lt 12000000 ] || fail "$bytes bytes"
echo "the archive has $bytes bytes"

gzip -dc "$work/first.tar.gz" | tar xf - -C "$work" || fail "unpacking"
there=$work/$name
for f in bin/qsf-run bin/qsf-convert bin/qsf-get $([ ! -x qsf-serve ] || echo bin/qsf-serve) \
    share/man/man1/qsf-chat.1 share/man/man5/qsf-config.5 \
    share/applications/qsf.desktop share/icons/hicolor/scalable/apps/qsf.svg share/qsf/models/guide.qsf \
    share/qsf/templates/chatml.jinja share/bash-completion/completions/qsf-chat \
    share/zsh/site-functions/_qsf-run share/fish/vendor_completions.d/qsf-get.fish \
    share/qsf/terminfo/x/xterm-256color share/doc/qsf/LICENSE; do
    [ -s "$there/$f" ] || fail "$f is missing"
done
for lib in glibc ncurses readline utf8proc pcre2 jansson inih libdeflate lz4 zstd liburing md4c curl c-ares \
    mbedtls nettle $([ ! -x qsf-serve ] || echo libmicrohttpd); do
    [ -s "$there/share/doc/qsf/licenses/$lib" ] || fail "the license of $lib is missing"
done
# ---- install.sh
left() { find "$1" ! -type d 2>/dev/null | LC_ALL=C sort; }
export HOME="$work/home"
mkdir -p "$HOME/.config/qsf" "$HOME/.local/share/man"
echo '# mine' >"$HOME/.config/qsf/config"
prefix=$HOME/.local
expect 2 usage sh "$there/install.sh" --wrong
(cd "$work" && sh "$name/install.sh" --prefix "$prefix") >"$work/out" 2>&1 || { cat "$work/out"; fail "install.sh"; }
grep -q "$prefix/bin is not in PATH" "$work/out" || { cat "$work/out"; fail "the PATH lacks the programs: not said"; }
[ "$("$prefix/bin/qsf-run" --version)" = "$(./qsf-run --version)" ] || fail "the installed qsf-run"
[ "$(stat -c %i "$prefix/bin/qsf-run")" = "$(stat -c %i "$prefix/bin/qsf-chat")" ] ||
    fail "the programs are installed as separate copies"
[ -n "$(echo 'How do I quit?' | "$prefix/bin/qsf-chat" guide 2>"$work/err")" ] ||
    { cat "$work/err"; fail "the guide has no answer"; }
(cd "$there" && find bin share -type f | LC_ALL=C sort) >"$work/want"
(cd "$prefix" && find . ! -type d ! -name installed | sed 's|^\./||' | LC_ALL=C sort) >"$work/got"
diff "$work/want" "$work/got" || fail "other files are installed than the archive has"
[ "$(stat -c %a "$prefix/bin/qsf-get" "$prefix/share/man/man1/qsf-get.1" | paste -sd ' ')" = "755 644" ] || fail "modes"

# An update removes what the new version lacks; what is from elsewhere is not replaced.
mkdir "$prefix/share/old"
printf '%s\n' 'f share/old/one' 'd share/old' 'f ../config' >>"$prefix/share/qsf/installed"
touch "$prefix/share/old/one" "$HOME/config"
PATH="$prefix/bin:$PATH" sh "$there/install.sh" --prefix="$prefix" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "an update"; }
grep -q 'Start it: qsf-chat$' "$work/out" || { cat "$work/out"; fail "the PATH has the programs"; }
[ ! -e "$prefix/share/old/one" ] || fail "a file of the version before is still there"
echo mine >"$prefix/share/own"
(cd / && sh "$prefix/share/qsf/install.sh" --uninstall) >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "--uninstall"; }
[ "$(left "$HOME")" = "$HOME/.config/qsf/config
$HOME/.local/share/own
$HOME/config" ] || { left "$HOME"; fail "--uninstall: more or less is left than was there before"; }
[ "$(find "$prefix" -type d | LC_ALL=C sort | paste -sd ' ')" = "$prefix $prefix/share $prefix/share/man" ] ||
    fail "--uninstall: directories"
expect 1 'nothing was installed' sh "$there/install.sh" --uninstall --prefix="$prefix"
mkdir "$prefix/bin"
echo other >"$prefix/bin/qsf-chat"
expect 1 "$prefix/bin/qsf-chat" sh "$there/install.sh" --prefix="$prefix"
[ "$(left "$prefix")" = "$prefix/bin/qsf-chat
$prefix/share/own" ] || fail "something was installed in spite of a conflict"
expect 0 '' sh "$there/install.sh" --prefix="$prefix" --force
expect 0 '' sh "$there/install.sh" --prefix="$prefix" --uninstall
[ "$(left "$prefix")" = "$prefix/share/own" ] || fail "--force and --uninstall"
expect 0 '' sh "$there/install.sh" --prefix="$work/new/dir"
expect 0 '' sh "$work/new/dir/share/qsf/install.sh" --uninstall
[ ! -e "$work/new/dir" ] || fail "the directory that it made is still there"

# ---- a system that has nothing: no libraries, locales, terminals, users, /proc or home
bare() { env -i TERM=xterm-256color QSF_DATADIR="$data" "$chroot" "$work/bare" "$@"; }
chroot=$(command -v chroot) || chroot=/usr/sbin/chroot
mkdir "$work/bare"
cp -a "$there" "$work/bare/opt"
data=/opt/share/qsf
if ! bare /opt/bin/qsf-run --version >"$work/out" 2>&1; then
    [ "$(id -u)" != 0 ] || { cat "$work/out"; fail "chroot"; }
    echo "skip: THE SYSTEM THAT HAS NOTHING WAS NOT TRIED: not root"
    finish
fi
[ -n "$(echo 'How do I quit?' | bare /opt/bin/qsf-chat guide 2>"$work/err")" ] ||
    { cat "$work/err"; fail "the guide has no answer on a bare system"; }
have tmux || { echo "skip: THE SCREEN ON A BARE SYSTEM WAS NOT TRIED: no tmux"; finish; }
# $work/screen: what the screen shows when the words ~ 3 are there; false if the program has ended before.
screen_shows() {
    tmux -S "$work/tmux" -f /dev/null new-session -d -x 80 -y 24 \
        "env -i TERM=$1 QSF_DATADIR=$2 $chroot $work/bare /opt/bin/qsf-chat --no-config --no-save guide; echo ended; cat"
    until tmux -S "$work/tmux" capture-pane -p >"$work/screen" && grep -qE "$3|ended" "$work/screen"; do sleep 0.1; done
    [ -z "${4-}" ] || { tmux -S "$work/tmux" send-keys -l "$4"
    until tmux -S "$work/tmux" capture-pane -p >"$work/screen" && grep -qE "$4|ended" "$work/screen"; do sleep 0.1; done; }
    tmux -S "$work/tmux" kill-server
    ! grep -q ended "$work/screen"
}
screen_shows xterm-256color /opt/share/qsf ' ready' 'Grüße ✓' || { cat "$work/screen"; fail "the screen on a bare system"; }
grep -q '─' "$work/screen" || { cat "$work/screen"; fail "no UTF-8 on the screen of a bare system"; }
finish
