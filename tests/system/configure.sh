#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# configure works as documented: options, variables, other shells, other directories, packages.
. "$(dirname "$0")/lib.sh"
unset CFLAGS CPPFLAGS LDFLAGS AR RANLIB STRIP PKG_CONFIG PKG_CONFIG_PATH
cc=$(config CC)
: "${cc:=$CC}"
unset CC
configure=$QSF_SRCDIR/configure

# in_dir NAME COMMAND...: runs it in a new directory; output in NAME.out, exit status in $rc.
in_dir() {
    dir=$1
    shift
    mkdir -p "$work/$dir"
    (cd "$work/$dir" && "$@") >"$work/$dir.out" 2>&1
    rc=$?
}
expect_rc() { [ $rc = "$1" ] || { cat "$work/$dir.out"; fail "$2: exit status $rc, expected $1"; }; }
expect_text() { grep -qF -- "$1" "$work/$dir.out" ||
    { cat "$work/$dir.out"; fail "$2: does not say '$1'"; }; }
setting() { sed -n "s/^$1 = //p" "$work/$dir/config.mk"; }

# ---- usage errors
for wrong in --no-such-option --enable-everything --prefixx=/usr nonsense FOO=bar; do
    in_dir usage sh "$configure" $wrong
    expect_rc 2 "configure $wrong"
    expect_text "$wrong" "configure $wrong"
done
in_dir usage sh "$configure" --prefix
expect_rc 2 'configure --prefix'
in_dir usage sh "$configure" --prefix=relative
expect_rc 1 'configure --prefix=relative'
in_dir usage sh "$configure" --enable-static --enable-sanitizers
expect_rc 1 'static and sanitizers together'
[ ! -e "$work/usage/config.mk" ] || fail "a refused configure wrote config.mk"

# ---- --help lists every option of the option loop
in_dir help sh "$configure" --help
expect_rc 0 'configure --help'
sed -n '/^for arg; do/,/^done/p' "$configure" | grep -oE -- '--[a-z][a-z-]+' | sort -u >"$work/known"
[ "$(wc -l <"$work/known")" -gt 10 ] || fail "the option loop of configure was not found"
while read -r option; do expect_text "$option" "configure --help"; done <"$work/known"

# ---- an ordinary run from an empty directory, with every available shell
n=0
for shell in sh dash 'busybox ash' 'bash --posix' ksh yash; do
    have "${shell%% *}" || continue
    # sh is often one of the others.
    [ "$shell" = sh ] || ! cmp -s "$(command -v "${shell%% *}")" "$(command -v sh)" || continue
    n=$((n + 1))
    # shellcheck disable=SC2086
    in_dir "shell$n" $shell "$configure" "CC=$cc"
    expect_rc 0 "configure under $shell"
    cmp -s "$work/shell1/config.mk" "$work/shell$n/config.mk" || fail "$shell writes another config.mk"
done
for f in Makefile config.mk config.h config.log qsf.pc; do
    [ -s "$work/shell1/$f" ] || fail "configure does not write $f"
done
[ ! -d "$QSF_SRCDIR/templates" ] || [ -d "$work/shell1/templates" ] ||
    fail "no templates in the build directory"
in_dir shell1 "$MAKE" -n all
expect_rc 0 'make -n in a build directory'
before=$(ls -l --time-style=full-iso "$work/shell1/config.mk" 2>/dev/null)
in_dir shell1 sh "$configure" "CC=$cc"
[ "$before" = "$(ls -l --time-style=full-iso "$work/shell1/config.mk" 2>/dev/null)" ] ||
    fail "configuring the same again touches config.mk: everything would be built again"
# Another library of the chat changes config.mk, but not the flags of the kernels.
if [ -f "$QSF_BUILDDIR/obj/kernels/init.o" ]; then
    (cd "$QSF_BUILDDIR" && "$MAKE" -n -W config.mk -o config.h -o config.flags -o config.stamp obj/kernels/init.o) \
        >"$work/kernels" 2>&1 || fail "make -n obj/kernels/init.o"
    if grep -q ' -c ' "$work/kernels"; then fail "a change of config.mk builds the kernels again"; fi
fi

# ---- options and variables are used, and kept by the next automatic configuration
in_dir opts sh "$configure" "CC=$cc" CFLAGS='-O1 -DA_B=1' LDFLAGS=-Wl,--as-needed --prefix=/p --libdir=/q \
    --enable-werror
expect_rc 0 'configure with options'
[ "$(setting CFLAGS)" = '-O1 -DA_B=1' ] || fail "CFLAGS became $(setting CFLAGS)"
[ "$(setting LDFLAGS)" = -Wl,--as-needed ] || fail "LDFLAGS became $(setting LDFLAGS)"
[ "$(setting bindir) $(setting libdir)" = '/p/bin /q' ] || fail "--prefix or --libdir is ignored"
setting WARN_FLAGS | grep -q -- -Werror || fail "--enable-werror is ignored"
cp "$work/opts/config.mk" "$work/opts.mk"
rm "$work/opts/config.stamp"
in_dir opts "$MAKE" config.mk
cmp "$work/opts/config.mk" "$work/opts.mk" || fail "the automatic configuration forgets arguments"

in_dir env env CC="$cc" CFLAGS=-O1 sh "$configure"
expect_rc 0 'CC and CFLAGS from the environment'
[ "$(setting CFLAGS)" = -O1 ] || fail "CFLAGS from the environment is ignored"
setting CONFIGURE_ARGS | grep -q CFLAGS=-O1 || fail "CFLAGS from the environment is not recorded"
[ -z "$(setting COLD_OPT)" ] || fail "files are compiled with $(setting COLD_OPT) instead of the given CFLAGS"

# ---- debug information of kernels is for those who ask for it
[ "$(setting KERNEL_DEBUG)" = -g0 ] || fail "kernels have debug information: $(setting KERNEL_DEBUG)"
setting KERNEL_UNWIND | grep -q -- -fno-asynchronous-unwind-tables || fail "kernels have tables for unwinding"
in_dir debug sh "$configure" "CC=$cc" CFLAGS='-O2 -g' --enable-debug
expect_rc 0 '--enable-debug with CFLAGS'
[ "$(setting KERNEL_DEBUG) $(setting CFLAGS)" = '-g1 -O2 -g' ] || fail "--enable-debug with CFLAGS: $(setting KERNEL_DEBUG)"
[ -z "$(setting KERNEL_UNWIND)" ] || fail "--enable-debug: kernels without tables for unwinding"

# ---- headers are not precompiled for ccache, nor for a compiler that ignores what is precompiled
printf '#!/bin/sh\nexec %s "$@"\n' "$cc" >"$work/ccache-like"
chmod +x "$work/ccache-like"
in_dir ccache sh "$configure" CC="$work/ccache-like"
[ "$(setting CFLAGS) $(setting COLD_OPT)" = '-O2 -g1 -O1' ] || fail "without CFLAGS: $(setting CFLAGS) $(setting COLD_OPT)"
[ "$(setting KERNEL_PCH)" = no ] || fail "headers are precompiled for ccache"
# shellcheck disable=SC2016  # for the wrapper to expand
printf '#!/bin/sh\nfor last; do :; done\ncase "$*" in *-include*) rm -f "${last%%/*}/pch.h.gch" ;; esac\nexec %s "$@"\n' "$cc" >"$work/nopch-cc"
chmod +x "$work/nopch-cc"
in_dir nopch sh "$configure" CC="$work/nopch-cc"
expect_rc 0 'a compiler that does not use what is precompiled'
[ "$(setting KERNEL_PCH)" = no ] || fail "headers are precompiled by a compiler that cannot"

in_dir san sh "$configure" "CC=$cc" --enable-sanitizers
if [ $rc = 0 ]; then
    setting EXTRA_CFLAGS | grep -q fsanitize=address,undefined || fail "--enable-sanitizers is ignored"
    ! setting EXTRA_CFLAGS | grep -q FORTIFY || fail "hardening and sanitizers exclude each other"
    [ -z "$(setting KERNEL_UNWIND)" ] || fail "--enable-sanitizers: kernels without tables for unwinding"
else
    expect_text 'cannot link' '--enable-sanitizers'
    echo "skip: $cc has no sanitizers"
fi
in_dir static sh "$configure" "CC=$cc" --enable-static
if [ $rc = 0 ]; then
    setting LDFLAGS | grep -q -- -static || fail "--enable-static is ignored"
    # A library of the chat without a static form: only the chat is linked dynamically, and this is reported.
    # shellcheck disable=SC2016  # for the wrapper to expand
    printf '#!/bin/sh\ncase "$*" in *-static*readline*) exit 1;; esac\nexec %s "$@"\n' "$cc" >"$work/nostatic"
    chmod +x "$work/nostatic"
    in_dir static2 sh "$configure" CC="$work/nostatic" --enable-static
    expect_rc 0 'no static readline'
    expect_text 'no static form of readline' 'no static readline'
    [ "$(setting UI_STATIC)" = no ] || fail "without a static readline the chat is linked statically"
    setting LDFLAGS | grep -q -- -static || fail "without a static readline nothing is static"
fi
for mk in "$work"/*/config.mk; do
    ! grep -E -- '-march=native|-ffast-math' "$mk" || fail "$mk: results would depend on the machine"
    grep -q -- -ffp-contract=off "$mk" || fail "$mk lacks -ffp-contract=off"
done

# ---- a cross prefix finds prefixed tools only
mkdir "$work/cross"
for tool in gcc ar ranlib strip; do
    real=$tool
    [ $tool != gcc ] || real=$cc
    printf '#!/bin/sh\nexec %s "$@"\n' "$real" >"$work/cross/mine-$tool"
done
chmod +x "$work"/cross/*
in_dir cross1 env PATH="$work/cross:$PATH" sh "$configure" --cross-prefix=mine-
expect_rc 0 '--cross-prefix'
[ "$(setting CC) $(setting AR) $(setting STRIP)" = 'mine-gcc mine-ar mine-strip' ] ||
    fail "--cross-prefix is ignored"
in_dir cross2 env PATH="$work/cross:$PATH" sh "$configure" --host=mine
[ "$(setting CC)" = mine-gcc ] || fail "--host is ignored"
in_dir cross3 sh "$configure" --cross-prefix=nobody-has-this-
expect_rc 1 'a cross compiler that is not there'
expect_text nobody-has-this-gcc 'a cross compiler that is not there'

# ---- a missing library: its package by name, and the failed program in config.log
printf '#!/bin/sh\ncase "$*" in *jansson*) exit 1;; esac\nexec %s "$@"\n' "$cc" >"$work/nojansson"
chmod +x "$work/nojansson"
in_dir lib sh "$configure" CC="$work/nojansson"
expect_rc 1 'a missing library'
expect_text jansson 'a missing library'
expect_text '--install-deps' 'a missing library'
grep -q 'json_loads' "$work/lib/config.log" || fail "config.log does not show the failed program"
grep -q -- '-ljansson' "$work/lib/config.log" || fail "config.log does not show the failed command"

# ---- --install-deps with managers that only record their arguments
# A separate PATH: the tools configure needs, one fake manager, nothing else. No compiler.
tools=$work/tools
mkdir "$tools"
for tool in sh env cat sed tr grep mktemp rm id uname date cp cmp printf ls chmod; do
    real=$(command -v $tool) && case $real in /*) ln -s "$real" "$tools/$tool" ;; esac
done
for fake in id uname; do rm -f "$tools/$fake"; done
# shellcheck disable=SC2016  # for the fake to expand
printf '#!/bin/sh\necho "${FAKE_UID:-0}"\n' >"$tools/id"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "${FAKE_OS:-Linux}"\n' >"$tools/uname"
chmod +x "$tools/id" "$tools/uname"

# manager NAME QUERY: a fake NAME that writes its command line to $work/asked, and a fake QUERY (the tool that
# reports what is installed) that knows only $HAVE_PKG.
manager() {
    rm -rf "$work/fake" "$work/asked"
    mkdir "$work/fake"
    for name in "$1" $2; do
        cat >"$work/fake/$name" <<EOF
#!/bin/sh
case "$name \$*" in
*"-Wf"* | "dpkg-query "* | "rpm "* | "apk info"* | "pacman -T"* | "brew list"*)
    for last; do :; done
    case " \${HAVE_PKG-} " in
    *" \$last "* | " all ") case "$name" in dpkg-query) echo "install ok installed" ;; esac; exit 0 ;;
    esac
    case "$name" in pacman) echo "\$last" ;; esac
    exit 1 ;;
esac
echo "$name \$*" >>"$work/asked"
exit "\${FAKE_FAIL:-0}"
EOF
        chmod +x "$work/fake/$name"
    done
}
install_deps() { in_dir deps env PATH="$work/fake:$tools" "$@" sh "$configure" --install-deps; }
asked() {
    grep -qxF -- "$1" "$work/asked" 2>/dev/null ||
        { cat "$work/deps.out" "$work/asked"; fail "$2: did not run '$1'"; }
}

manager apt-get dpkg-query
install_deps
asked 'apt-get install -y --no-install-recommends gcc libc6-dev make pkg-config libncurses-dev libreadline-dev libmd4c-dev libutf8proc-dev libpcre2-dev libjansson-dev libinih-dev libcurl4-openssl-dev nettle-dev libmicrohttpd-dev libdeflate-dev liblz4-dev libzstd-dev libcmocka-dev liburing-dev tmux procps' apt-get
asked 'apt-get update' apt-get
expect_rc 1 'no compiler after a fake installation'
expect_text 'no C compiler found' 'after the installation configure goes on'
manager apt-get dpkg-query
install_deps HAVE_PKG='gcc make tmux' CC=clang
asked 'apt-get install -y --no-install-recommends clang libc6-dev pkg-config libncurses-dev libreadline-dev libmd4c-dev libutf8proc-dev libpcre2-dev libjansson-dev libinih-dev libcurl4-openssl-dev nettle-dev libmicrohttpd-dev libdeflate-dev liblz4-dev libzstd-dev libcmocka-dev liburing-dev procps' 'apt-get, some there, CC=clang'
manager dnf rpm
install_deps
asked 'dnf install -y gcc glibc-devel make pkgconf-pkg-config ncurses-devel readline-devel md4c-devel utf8proc-devel pcre2-devel jansson-devel inih-devel libcurl-devel nettle-devel libmicrohttpd-devel libdeflate-devel lz4-devel libzstd-devel libcmocka-devel liburing-devel tmux procps-ng' dnf
manager zypper rpm
install_deps
asked 'zypper --non-interactive install gcc glibc-devel make pkg-config ncurses-devel readline-devel md4c-devel utf8proc-devel pcre2-devel libjansson-devel libinih-devel libcurl-devel libnettle-devel libmicrohttpd-devel libdeflate-devel liblz4-devel libzstd-devel libcmocka-devel liburing-devel tmux procps' zypper
manager pacman ''
install_deps
asked 'pacman -Sy --needed --noconfirm gcc glibc make pkgconf ncurses readline md4c libutf8proc pcre2 jansson libinih curl nettle libmicrohttpd libdeflate lz4 zstd cmocka liburing tmux procps-ng' pacman
manager apk ''
install_deps
asked 'apk add -U gcc musl-dev make pkgconf ncurses-dev readline-dev md4c-dev utf8proc-dev pcre2-dev jansson-dev inih-dev curl-dev nettle-dev libmicrohttpd-dev libdeflate-dev lz4-dev zstd-dev cmocka-dev liburing-dev tmux procps' apk
manager brew ''
install_deps FAKE_OS=Darwin FAKE_UID=501
asked 'brew install make pkgconf ncurses readline md4c utf8proc pcre2 jansson inih curl nettle libmicrohttpd libdeflate lz4 zstd cmocka tmux' brew

# All packages are installed: the manager is not even called.
manager apt-get dpkg-query
install_deps HAVE_PKG=all
[ ! -e "$work/asked" ] || fail "everything installed, still: $(cat "$work/asked")"
expect_text 'all present' 'everything installed'

# Not root: sudo if available, otherwise the exact command and a failure.
manager apk 'sudo'
install_deps FAKE_UID=1000
asked 'sudo apk add -U gcc musl-dev make pkgconf ncurses-dev readline-dev md4c-dev utf8proc-dev pcre2-dev jansson-dev inih-dev curl-dev nettle-dev libmicrohttpd-dev libdeflate-dev lz4-dev zstd-dev cmocka-dev liburing-dev tmux procps' 'not root'
manager apk ''
install_deps FAKE_UID=1000
expect_rc 1 'not root, no sudo'
expect_text 'apk add -U gcc musl-dev' 'not root, no sudo'
[ ! -e "$work/asked" ] || fail "not root, no sudo, still: $(cat "$work/asked")"
manager dnf rpm
install_deps FAKE_FAIL=1
expect_rc 1 'a failed installation'
expect_text 'dnf install -y gcc' 'a failed installation'
rm -rf "$work/fake"
install_deps
expect_rc 1 'no manager'
expect_text 'no known package manager' 'no manager'
finish
