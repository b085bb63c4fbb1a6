#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make tarball-arm64: the archive of another machine, with its libraries and their licenses; its programs run
# in an emulator, without any library. Minutes of compiling, and of the network: only if it is named.
. "$(dirname "$0")/lib.sh"
[ -z "${QSF_SAN-}" ] || skip "archives are made of the build without sanitizers"
for tool in debootstrap aarch64-linux-gnu-gcc qemu-aarch64-static; do
    have $tool || skip "$tool is not installed"
done
[ "$(id -u)" = 0 ] || skip "debootstrap needs root"
cd "$QSF_BUILDDIR" || exit 1
"$MAKE" tarball-arm64 >"$work/log" 2>&1 || { tail -20 "$work/log"; fail "make tarball-arm64"; finish; }
archive=$(tail -n 1 "$work/log")
bytes=$(wc -c <"$archive")
echo "${archive##*/} has $bytes bytes"
[ "$bytes" -lt 12000000 ] || fail "$bytes bytes"
gzip -dc "$archive" | tar xf - -C "$work" || fail "unpacking"
there=$work/$(basename "$archive" .tar.gz)
[ "$(cat "$there/MACHINE")" = aarch64 ] || fail "made for $(cat "$there/MACHINE")"
for program in qsf-chat qsf-get; do
    readelf -h "$there/bin/$program" | grep -q 'Machine: *AArch64' || fail "$program is for another machine"
    readelf -l "$there/bin/$program" | grep -q INTERP && fail "$program needs shared libraries"
done
for lib in glibc ncurses readline md4c curl mbedtls; do
    [ -s "$there/share/doc/qsf/licenses/$lib" ] || fail "the license of $lib is missing"
done
# ---- the programs, in an emulator
arm() {
    program=$1
    shift
    qemu-aarch64-static -0 "$program" "$there/bin/$program" "$@"
}
export XDG_DATA_HOME="$work/data" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
[ "$(arm qsf-run --version)" = "$(./qsf-run --version)" ] || fail "another version"
arm qsf-run guide -p 'How do I quit?' --temp 0 >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "the guide does not answer"; }
grep -q /quit "$work/out" || { cat "$work/out"; fail "the guide answers something else"; }
echo 'How do I quit?' | arm qsf-chat guide --temp 0 >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "the chat does not answer"; }
grep -q /quit "$work/out" || { cat "$work/out"; fail "the guide answers something else in the chat"; }
obj/tests/tools/mktiny "$work/model.gguf" script='one _two _three' || fail "mktiny"
arm qsf-convert -q 8bit "$work/model.gguf" "$work/model.qsf" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "qsf-convert"; }
here=$(./qsf-run "$work/model.qsf" -p x -n 3 2>/dev/null)
[ "$(arm qsf-run "$work/model.qsf" -p x -n 3 2>"$work/err")" = "$here" ] ||
    { cat "$work/err"; fail "another answer than on this machine"; }
finish
